"""A table of ln Γ for compiled loops."""

from __future__ import annotations

import functools
import math

import numpy as np

# Range of the table, in powers of two.
FIRST_OCTAVE = -4
END_OCTAVE = 30


@functools.cache
def gamma_table() -> np.ndarray:
    """Taylor series of ln Γ to the third order about the middles of 1024 intervals of each octave from 2⁻⁴ to 2³⁰.

    A row has the coefficients, the constant first. The distance from a middle is at most x/2048, which makes the error
    less than 2e-14 (1 + x).
    """
    from scipy.special import gammaln, polygamma

    octaves = 2.0 ** np.arange(FIRST_OCTAVE, END_OCTAVE)
    middle = np.outer(octaves, 1 + (np.arange(1024) + 0.5) / 1024).ravel()
    # Rows that lie across two lines of the processor's cache take twice as long to load.
    space = np.empty(4 * len(middle) + 4)
    begin = -space.ctypes.data % 32 // 8
    table = space[begin : begin + 4 * len(middle)].reshape(-1, 4)
    table.T[:] = gammaln(middle), *(polygamma(n, middle) / math.factorial(n + 1) for n in range(3))
    return table
