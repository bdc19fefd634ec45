"""What `truncated_masses` looks up, and the sizes of its parts."""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np

# Nodes of the trapezoid rule beside θ = 0.
NODES = 10
# Of each the real and the imaginary part, and h.
WIDTH = 2 * (NODES + 1) + 1
# A point is one row of numbers, see `truncated_masses.fill_point`: its place on the grid, 0 for none yet, its stretch,
GRID = 0
STRETCH = 1
# the least α that nothing is cut off of, the variance of the sum of gammas,
LEAST = 2
VARIANCE = 3
# and sums of the levels' rows, the last of them of h.
SUMS = 4
POINT = SUMS + WIDTH
LAST = POINT - 1
# Coefficients of a polynomial in √α on an interval.
TERMS = 6
# Intervals of √α from one whole number to the next.
PARTS = 8
# Rows of the table, 72 MB when all of them are filled, and places of the hash table; powers of 2.
ROWS = 2**16
SLOTS = 2**17


class Tails(NamedTuple):
    """Polynomials of ln Q at the nodes, filled in when they are needed; all chains of a process share them.

    `kinds` (fields,), the numbers of the fields' smallest probabilities; `keys` (SLOTS + 1,), a hash table, −1 where
    there is nothing, and at its end how many rows are filled; `places` (SLOTS,), the row of each key; `rows`
    (ROWS, TERMS × WIDTH), one after another in the order in which they are filled.
    """

    kinds: np.ndarray
    keys: np.ndarray
    places: np.ndarray
    rows: np.ndarray


@functools.cache
def _kinds() -> dict[float, int]:
    """Return the number of each smallest probability that was asked for."""
    return {}


@functools.cache
def _table() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    keys = np.full(SLOTS + 1, -1)
    keys[-1] = 0
    # Memory that no row needs is never touched.
    return keys, np.empty(SLOTS, np.int64), np.empty((ROWS, TERMS * WIDTH))


def tails(lows: tuple[float, ...]) -> Tails:
    """Return those of fields' smallest probabilities, 0 for none."""
    return Tails(np.array([_kinds().setdefault(low, len(_kinds())) for low in lows]), *_table())
