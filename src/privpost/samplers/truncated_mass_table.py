"""What `truncated_masses` looks up, and the sizes of its parts."""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np

# Nodes of the trapezoid rule beside θ = 0.
NODES = 10
# Of each the real and the imaginary part, and h.
WIDTH = 2 * (NODES + 1) + 1
# Numbers of a point, see `truncated_masses.fill_point`.
POINT = 4 + WIDTH
# Coefficients of a polynomial in √α on an interval, and how many intervals √α has from one whole number to the next.
TERMS, PARTS = 6, 8


class Tails(NamedTuple):
    """Polynomials of ln Q at the nodes, filled in when they are needed; all chains with the same bounds share them.

    `kinds` (fields,), the first field with the same smallest probability; `keys`, a hash table, −1 where there is
    nothing, and at its end how many places are taken; `rows` (slots, TERMS × WIDTH).
    """

    kinds: np.ndarray
    keys: np.ndarray
    rows: np.ndarray


@functools.lru_cache(maxsize=8)
def tails(lows: tuple[float, ...]) -> Tails:
    """Return those of fields' smallest probabilities, 0 for none; the number of slots is a power of 2."""
    slots = 2**14 if any(lows) else 2
    keys = np.full(slots + 1, -1)
    keys[-1] = 0
    return Tails(np.array([lows.index(low) for low in lows]), keys, np.empty((slots, TERMS * WIDTH)))
