"""Exact posterior draws that are rounded down to a public number of bits and returned after a public time."""

import math
import secrets
from abc import abstractmethod
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cached_property, partial
from typing import Any

import numpy as np

from privpost.distributions import exact_draws

# Rounding may add at most this many typical standard deviations of the law.
MOST_ROUNDED = 1e6
# For larger parameters, rigorous bounds of the distribution function take too long.
LARGEST_PARAMETER = 1e16


class Rounded:
    """Mixin for mechanisms that make exact draws from a law with rational parameters.

    The time of a draw depends on the data. So a draw is returned after a whole number of units of time. A unit is twice
    the longest time of earlier draws for `public_statistics` on this machine.
    """

    model: Any
    # A method of the mechanism that returns the parameters of the law of a draw, given the statistics.
    release_law: Callable[..., Any]
    n: int

    @abstractmethod
    def _cells(self, statistics, bits: int, randbits: Callable[[int], int]) -> list[int]:
        """Return ⌊2^bits θ⌋, one number per coordinate, for one exact draw θ given exact statistics."""

    @property
    @abstractmethod
    def public_statistics(self) -> list[Sequence[Fraction | int]]:
        """Statistics at the ends and in the middle of the possible range, for which draws are timed."""

    @property
    def typical_deviation(self) -> float:
        """Largest standard deviation of a coordinate of a draw, for data with the prior's means. It is public."""
        prior = self.model.prior
        law = self.release_law(self.n * prior / prior.sum())
        mean = law / law.sum()
        return float(np.sqrt((mean * (1 - mean)).max() / (law.sum() + 1)))

    def rounding(self, bits: int) -> dict[str, float]:
        """Return what a statement says about rounding. It adds a standard deviation of about 2^-bits/√12.

        Raises:
            ValueError: with so few bits, all draws would be rounded to one number, or a parameter is too large.
        """
        added, typical = 2.0**-bits / math.sqrt(12), self.typical_deviation
        if not typical > added / MOST_ROUNDED:
            raise ValueError(
                f"bits is {bits}, but the law's typical standard deviation is {typical:.3g}: all draws would be "
                "rounded to one number."
            )
        largest = max(self.model.prior) / getattr(self, "m", 1.0)
        if largest > LARGEST_PARAMETER:
            raise ValueError(
                f"prior and budget give a law with a parameter of {largest:.3g}; exact draws are made up to "
                f"{LARGEST_PARAMETER:g}."
            )
        return {
            "cell_width": 2.0**-bits,
            "standard_deviation_added": added,
            "typical_standard_deviation_of_the_law": typical,
            "variance_added_in_percent": 100 * (added / typical) ** 2,
        }

    def seconds(self, bits: int) -> float:
        """Approximate time in seconds of two calls of `rounded`, the rehearsal and the draw, from public numbers."""
        # One draw for each public statistic, a second draw for the first one, and four of the longest draw.
        durations = []
        for statistics in self.public_statistics:
            law: Any = self.release_law(np.array(statistics, float))
            durations.append(self._draw_seconds(np.asarray(law, float), bits + 8))
        return durations[0] + sum(durations) + 4 * max(durations)

    @staticmethod
    def _draw_seconds(law: np.ndarray, bits: int) -> float:
        """Approximate seconds of a Dirichlet draw, which takes one beta draw for each parameter except the last."""
        rest = np.maximum(law.sum() - np.cumsum(law), 0.0)
        return bits * float(exact_draws.seconds(law[:-1], rest[:-1], bits).sum())

    @cached_property
    def _units(self) -> dict[int, float]:
        return {}

    def rounded(
        self, statistics, bits: int, randbits: Callable[[int], int] = secrets.randbits, *, public_time: bool = True
    ) -> list[int]:
        """Return ⌊2^bits θ⌋, one number per coordinate, for one exact draw θ.

        Args:
            statistics: exact statistics; counts must be whole numbers.
            bits: public number of bits.
            randbits: source of fair bits; by default, the source of the operating system.
            public_time: whether to wait for a whole number of units of time. False is for public data only.
        """
        if not public_time:
            with exact_draws.guessing():
                return self._cells(statistics, bits, randbits)
        if bits not in self._units:
            public = [partial(self._cells, counts, bits, secrets.randbits) for counts in self.public_statistics]
            self._units[bits] = exact_draws.unit_of_time(public)
        return exact_draws.in_units_of_time(self._units[bits], partial(self._cells, statistics, bits, randbits))


def public_counts(n: int, levels: int) -> list[list[int]]:
    """Return eight lists of counts of n records, for the timing of draws.

    In four lists, the records are (1) all in the first category, (2) an eighth in the first and the rest in the last,
    (3) spread evenly, or (4) all in the last. Each list has a copy with one record moved, as special numbers may take
    more or less time.
    """
    even = [n // levels + (level < n % levels) for level in range(levels)]
    most = [[n, *(0,) * (levels - 1)], [n // 8, *(0,) * (levels - 2), n - n // 8], even]
    return [moved for counts in (*most, most[0][::-1]) for moved in (counts, _with_one_moved(counts))]


def _with_one_moved(counts: list[int]) -> list[int]:
    """Return the counts with one record moved from the last category to the first, or back if the last is empty."""
    first, *middle, last = counts
    return [first + 1, *middle, last - 1] if last else [first - 1, *middle, last + 1]
