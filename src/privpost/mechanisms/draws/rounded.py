"""Exact posterior draws, rounded down to a public number of bits and returned after a public time."""

import math
import secrets
from abc import abstractmethod
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cached_property, partial
from typing import Any

import numpy as np

from privpost.distributions import exact_draws

# The most typical standard deviations of the law that rounding may add.
MOST_ROUNDED = 1e6
# Enclosing the distribution function of a law with a larger parameter takes too long.
LARGEST_PARAMETER = 1e16


class Rounded:
    """Mixin of mechanisms whose draw is exact; its distribution has rational parameters.

    Enclosing distribution functions takes most of the time, and longer for some parameters than for others. So a draw
    is returned after a whole number of units of time. The unit is twice the longest time of earlier draws for
    `public_statistics` on this machine: it does not depend on the data.
    """

    model: Any
    # The mechanism's: parameters of the law of the draw, for statistics.
    release_law: Callable[..., Any]
    n: int

    @abstractmethod
    def _cells(self, statistics, bits: int, randbits: Callable[[int], int]) -> list[int]:
        """⌊2^bits θ⌋ of one ideal draw θ for exact statistics."""

    @property
    @abstractmethod
    def public_statistics(self) -> list[Sequence[Fraction | int]]:
        """Statistics at the ends and in the middle of their range, whose draws show how long a draw takes."""

    @property
    def typical_deviation(self) -> float:
        """Standard deviation of a coordinate of the law for data with the prior's means, public.

        For shares: the largest deviation of a share under Dirichlet(prior/m + r · n · the prior's means).
        """
        prior = self.model.prior
        law = self.release_law(self.n * prior / prior.sum())
        mean = law / law.sum()
        return float(np.sqrt((mean * (1 - mean)).max() / (law.sum() + 1)))

    def rounding(self, bits: int) -> dict[str, float]:
        """The error that rounding adds: the midpoint of a cell has a standard error of at most 2^-bits/√12.

        Raises:
            ValueError: bits that round all draws to one number, or too large a parameter.
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
        """Approximate time of two calls of `rounded`, rehearsal and draw, from public numbers; it varies by machine.

        There is one draw for each of the public statistics, two for the first, and two waits of twice the longest.
        """
        durations = []
        for statistics in self.public_statistics:
            law: Any = self.release_law(np.array(statistics, float))
            durations.append(self._draw_seconds(np.asarray(law, float), bits + 8))
        return durations[0] + sum(durations) + 4 * max(durations)

    @staticmethod
    def _draw_seconds(law: np.ndarray, bits: int) -> float:
        """Time of one Dirichlet draw: a beta fraction of the rest of the stick for each parameter but the last."""
        rest = np.maximum(law.sum() - np.cumsum(law), 0.0)
        return bits * float(exact_draws.seconds(law[:-1], rest[:-1], bits).sum())

    @cached_property
    def _units(self) -> dict[int, float]:
        return {}

    def rounded(
        self, statistics, bits: int, randbits: Callable[[int], int] = secrets.randbits, *, public_time: bool = True
    ) -> list[int]:
        """⌊2^bits θ⌋ of one ideal draw θ, one number for each coordinate: post-processing of the mechanism.

        Args:
            statistics: exact, whole numbers if they are counts.
            bits: public precision.
            randbits: source of fair bits, by default the operating system's.
            public_time: whether the draw waits as above; without waiting, for public data only, it has the same law.
        """
        if not public_time:
            with exact_draws.guessing():
                return self._cells(statistics, bits, randbits)
        if bits not in self._units:
            public = [partial(self._cells, counts, bits, secrets.randbits) for counts in self.public_statistics]
            self._units[bits] = exact_draws.unit_of_time(public)
        return exact_draws.in_units_of_time(self._units[bits], partial(self._cells, statistics, bits, randbits))


def public_counts(n: int, levels: int) -> list[list[int]]:
    """Counts of n records: all at the first level, all at the last, an eighth at the first, and evenly spread; and all
    these with one record moved, as whole numbers may take another time than others.
    """
    even = [n // levels + (level < n % levels) for level in range(levels)]
    most = [[n, *(0,) * (levels - 1)], [n // 8, *(0,) * (levels - 2), n - n // 8], even]
    return [moved for counts in (*most, most[0][::-1]) for moved in (counts, _with_one_moved(counts))]


def _with_one_moved(counts: list[int]) -> list[int]:
    """The counts with one record moved from the last level to the first, or, if the last is empty, the reverse."""
    first, *middle, last = counts
    return [first + 1, *middle, last - 1] if last else [first - 1, *middle, last + 1]
