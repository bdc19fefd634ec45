"""One draw of an exponential rate from its weighted posterior, under Rényi DP, for records in public bounds."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar, Self

import numpy as np

from privpost.distributions import exact_draws
from privpost.mechanisms.draws.rounded import Rounded
from privpost.mechanisms.draws.weighted import ConjugateDraw, Weighting
from privpost.models.base import check_bounds, is_number
from privpost.models.conjugate.gamma_exponential import GammaExponential
from privpost.privacy.accounting.costs import Cost
from privpost.privacy.accounting.losses import Gamma
from privpost.privacy.divergences import certified
from privpost.privacy.divergences.renyi import gamma_divergence


def _check_bounds(bounds) -> None:
    pair = isinstance(bounds, Sequence) and len(bounds) == 2 and all(map(is_number, bounds))
    if not pair or not 0 <= bounds[0] < bounds[1] < np.inf:
        raise ValueError(f"bounds are {bounds!r}; they must be two numbers, 0 <= low < high < inf")
    check_bounds(*bounds)


@dataclass(frozen=True)
class GammaDraw(Rounded, ConjugateDraw):
    """One exact draw from the weighted posterior of an exponential rate, for records in public bounds.

    With weight r of the likelihood and divisor m of the prior, the posterior is Gamma(shape/m + r n, rate/m + r Σx).

    The laws for neighbours have the same shape. Their Rényi divergence grows with the ratio of the two rates. This
    ratio is largest if the other n − 1 records are at the lower bound, so the supremum is exact (Geumlek et al. 2017,
    corollary 2).

    Attributes:
        coefficient: weight r of the likelihood in a diffused draw, or divisor m in a concentrated draw, in (0, 1].
        bounds: smallest and largest possible record, 0 ≤ low < high.

    Raises:
        ValueError: a setting is outside its range, or the model is not a GammaExponential.

    >>> draw = GammaDraw(GammaExponential(2, 2), 100, 2.0, 0.3, weighting="concentrated", bounds=(0.0, 5.0))
    >>> draw.perturb([130.0, 100.0], rng).shape
    ()
    """

    bounds: tuple[float, float] = field(kw_only=True)
    coefficient: float = 1.0

    named: ClassVar[str] = "{}Gamma"
    public_inputs: ClassVar[tuple[str, ...]] = ("n", "prior", "bounds")
    models: ClassVar[tuple[type, ...]] = (GammaExponential,)

    def __post_init__(self):
        super().__post_init__()
        _check_bounds(self.bounds)

    @classmethod
    def calibrate(cls, model, n: int, budget: Cost, *, weighting: Weighting, bounds: tuple[float, float]) -> Self:
        """Return the mechanism nearest to the true posterior within a Rényi budget."""
        return cls._within(model, n, budget, weighting=weighting, bounds=bounds)

    @property
    def sensitivity(self) -> float:
        """Largest change of the natural parameters (shape, rate): r (high − low)."""
        return self.r * (self.bounds[1] - self.bounds[0])

    @staticmethod
    def supremum_over_neighbours(model, n, orders, r=1.0, m=1.0, *, bounds):
        """Supremum of the Rényi divergence over neighbours, attained if all other records are at the lower bound."""
        _check_bounds(bounds)
        low, high = bounds
        order, r, m = np.broadcast_arrays(*(np.asarray(value, float) for value in (orders, r, m)))
        shape, rate = model.prior[0] / m + r * n, model.prior[1] / m + r * n * low
        return gamma_divergence(shape, rate, r * (high - low), order)

    def _law(self, total: Fraction) -> tuple[Fraction, Fraction]:
        """Exact shape and rate of the law, given the sum of the records."""
        shape, rate = (Fraction(float(value)) / Fraction(self.m) for value in self.model.prior)
        return shape + Fraction(self.r) * self.n, rate + Fraction(self.r) * total

    def _worst(self) -> tuple[Fraction, Fraction, Fraction]:
        """The law's shape, and the two rates for neighbours whose other records are at the lower bound."""
        low, high = map(Fraction, self.bounds)
        (shape, first), (_, second) = self._law(self.n * low), self._law((self.n - 1) * low + high)
        return shape, first, second

    def _cells(self, statistics, bits, randbits):
        return [exact_draws.gamma(*self._law(Fraction(statistics[0])), randbits).refine(bits)]

    @staticmethod
    def _draw_seconds(law, bits):
        return bits * float(exact_draws.seconds(law[0], law[0], bits))

    @property
    def public_statistics(self):
        """Statistics (Σx, n) for the timing of draws, with Σx at both ends and in the middle of its range."""
        low, high = map(Fraction, self.bounds)
        return [(self.n * (low + share * (high - low)), Fraction(self.n)) for share in (0, Fraction(1, 2), 1)]

    @property
    def typical_deviation(self) -> float:
        """Standard deviation of a draw for data with the prior's mean."""
        shape, rate = self.model.shape, self.model.rate
        return shape / rate / math.sqrt(shape / self.m + self.r * self.n)

    def certified_rdp(self, order: float) -> float:
        """A proved upper bound of `rdp` at an order, from interval arithmetic."""
        shape, first, second = self._worst()
        return certified.gamma_rdp(shape, (first, second), order)

    @property
    def loss(self) -> Gamma:
        """Bound on the privacy loss of a draw, as a law from `losses`: `Gamma` with rates rounded outwards."""
        shape, first, second = map(float, self._worst())
        return Gamma(shape, (math.nextafter(first, 0.0), math.nextafter(second, math.inf)))

    @classmethod
    def examples(cls) -> list[Self]:
        """Records up to 2, at a low and a higher order. Direct draws have a stronger prior, which they need."""
        bounds = (0.0, 2.0)
        direct = [(GammaExponential(2, 20), 2.0, 1.0, "direct"), (GammaExponential(3, 30), 8.0, 1.0, "direct")]
        weighted = [
            (model, order, coefficient, weighting)
            for model, order, coefficient in ((GammaExponential(2, 2), 2.0, 0.3), (GammaExponential(3, 6), 8.0, 0.2))
            for weighting in ("diffused", "concentrated")
        ]
        return [
            cls(model, 4, order, coefficient, weighting=weighting, bounds=bounds)
            for model, order, coefficient, weighting in direct + weighted
        ]
