"""The table of `truncated_masses`, and the sizes of its parts."""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np

# Nodes of the trapezoid rule beside θ = 0.
NODES = 10
# A row has the real and the imaginary part at each node, and h.
WIDTH = 2 * (NODES + 1) + 1
# A point is a row of numbers (see `truncated_masses.fill_point`): its place on the grid, 0 for none yet,
GRID = 0
# its stretch,
STRETCH = 1
# the least α whose gamma law loses nothing to the bound,
LEAST = 2
# the variance of the sum of gammas,
VARIANCE = 3
# and sums of the levels' rows, the last one that of h.
SUMS = 4
POINT = SUMS + WIDTH
LAST = POINT - 1
# Coefficients of a polynomial in √α on an interval.
TERMS = 6
# Intervals of √α from one whole number to the next.
PARTS = 8
# Rows of the table; 72 MB when all of them are filled.
ROWS = 2**16
# Slots of the hash table, a power of 2.
SLOTS = 2**17


class Tails(NamedTuple):
    """Polynomials of ln Q at the nodes, filled in when they are needed; all chains of a process share them.

    `kinds` (fields,): an index for each field's smallest probability. `keys` (SLOTS + 1,): a hash table, −1 in empty
    slots, and at its end the number of filled rows. `places` (SLOTS,): the row of each key. `rows`
    (ROWS, TERMS × WIDTH): in the order in which they are filled.
    """

    kinds: np.ndarray
    keys: np.ndarray
    places: np.ndarray
    rows: np.ndarray


@functools.cache
def _kinds() -> dict[float, int]:
    """Return an index for each smallest probability asked for so far."""
    return {}


@functools.cache
def _table() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    keys = np.full(SLOTS + 1, -1)
    keys[-1] = 0
    # The memory of rows that are not filled is never touched.
    return keys, np.empty(SLOTS, np.int64), np.empty((ROWS, TERMS * WIDTH))


def tails(lows: tuple[float, ...]) -> Tails:
    """Return the tails for the fields' smallest probabilities, 0 for a field without one."""
    return Tails(np.array([_kinds().setdefault(low, len(_kinds())) for low in lows]), *_table())
