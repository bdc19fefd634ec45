"""One draw from a posterior whose prior or likelihood is weighted for privacy, under Rényi DP."""

from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar, Self

import numpy as np

from privpost.distributions import exact_draws
from privpost.mechanisms.draws.rounded import Rounded, public_counts
from privpost.mechanisms.draws.weighted import ConjugateDraw, Weighting
from privpost.models.conjugate.beta_bernoulli import BetaBernoulli
from privpost.models.conjugate.dirichlet_categorical import DirichletCategorical
from privpost.privacy.accounting.approximate import bits_curve, by_curve
from privpost.privacy.accounting.costs import Cost
from privpost.privacy.accounting.losses import Beta
from privpost.privacy.checks import check_choice
from privpost.privacy.divergences import certified
from privpost.privacy.divergences.renyi import SUPREMA, Supremum, dirichlet_categorical_supremum


@dataclass(frozen=True)
class PosteriorDraw(Rounded, ConjugateDraw):
    """One exact draw from the posterior with natural parameters η0/m + r Σ(S(x), 1).

    Here η0 are the natural parameters of the prior, and S(x) are the statistics of a record x. The model is
    beta-Bernoulli or Dirichlet-categorical. For both, the supremum of the Rényi divergence over neighbours is known
    (Geumlek et al. 2017, theorem 15).

    Attributes:
        coefficient: weight r of the likelihood in a diffused draw, or divisor m in a concentrated draw, in (0, 1].
        supremum: "exact" is over the posteriors of all data sets. "paper" is corollary 2 as printed.

    Raises:
        ValueError: a setting is outside its range, or the model is not supported.

    >>> budget = Cost("rdp", 0.1, order=2)
    >>> draw = PosteriorDraw.calibrate(BetaBernoulli(6, 12), 100, budget, weighting="diffused")
    >>> round(draw.coefficient, 3)
    0.718
    """

    supremum: Supremum = field(default="exact", kw_only=True)
    coefficient: float = 1.0

    named: ClassVar[str] = "{}Posterior"
    public_inputs: ClassVar[tuple[str, ...]] = ("n", "prior")
    models: ClassVar[tuple[type, ...]] = (BetaBernoulli, DirichletCategorical)

    def __post_init__(self):
        super().__post_init__()
        check_choice("supremum", self.supremum, SUPREMA)

    @classmethod
    def calibrate(cls, model, n: int, budget: Cost, *, weighting: Weighting, supremum: Supremum = "exact") -> Self:
        """Return the draw nearest to the true posterior within a Rényi or (ε, δ) budget."""
        return cls._within(model, n, budget, weighting=weighting, supremum=supremum)

    @property
    def sensitivity(self) -> float:
        """Largest l2 change of the natural parameters of a draw's law, over substitutions of one record."""
        statistics = [self.model.sufficient_statistics(record[None]) for record in self.model.records]
        natural = self.model.natural_parameters(self.release_law(np.stack(statistics)))
        return float(np.sqrt(((natural[:, None] - natural[None]) ** 2).sum(axis=-1)).max())

    def _cells(self, statistics, bits, randbits):
        law = [
            Fraction(alpha) / Fraction(self.m) + Fraction(self.r) * int(count)
            for alpha, count in zip(map(float, self.model.prior), statistics, strict=True)
        ]
        if isinstance(self.model, BetaBernoulli):
            return [exact_draws.beta(law, randbits=randbits).refine(bits)]
        return exact_draws.dirichlet(law, bits, randbits)

    @property
    def public_statistics(self):
        """Counts for which draws are timed."""
        return public_counts(self.n, len(self.model.prior))

    def certified_rdp(self, order: float) -> float:
        """A proved upper bound of the exact `rdp` at an order, from interval arithmetic."""
        return certified.dirichlet_rdp(self.model.prior, self.n, self.r, self.m, order)

    @staticmethod
    def supremum_over_neighbours(model, n, orders, r=1.0, m=1.0, supremum="exact"):
        """Supremum of the Rényi divergence over neighbours (`dirichlet_categorical_supremum`)."""
        return dirichlet_categorical_supremum(model.prior, n, orders, r, m, supremum)

    @property
    def ends(self) -> tuple[float, float]:
        """Ends 0 and 1 of the parameter space."""
        return self.model.support

    def privacy_curve(self, epsilon) -> float | None:
        """δ(ε) for binary data: the largest `beta_curve` over all neighbouring counts. None for more categories."""
        return bits_curve(self, epsilon) if isinstance(self.model, BetaBernoulli) else None

    def recalibrated(self, budget) -> Self | None:
        """Return the draw for binary data with the largest coefficient within the budget. None for more categories."""
        return by_curve(self, budget, 1.0) if isinstance(self.model, BetaBernoulli) else None

    @property
    def loss(self) -> Beta:
        """Bound on a draw's privacy loss, as a law from `losses`: `Beta` of the two smallest prior parameters."""
        law = self.release_law(np.zeros(len(self.model.prior)))
        return Beta(tuple(sorted(law.tolist())[:2]), self.r, self.n - 1 if len(law) == 2 else 0)

    @property
    def asymptote(self) -> float:
        """Smallest order at which the exact Rényi divergence is infinite, which is 1 + min(prior) / (r m) for any n."""
        return 1 + float(min(self.model.prior)) / (self.r * self.m)

    @classmethod
    def examples(cls) -> list[Self]:
        """For each weighting: binary data with either supremum, or with a uniform prior, and three categories."""
        bits, categories, uniform = BetaBernoulli(6, 12), DirichletCategorical((1, 2, 3)), BetaBernoulli(1, 1)
        return [
            example
            for weighting in cls.weightings
            for weight in [1.0 if weighting == "direct" else 0.3]
            for example in (
                cls(bits, 8, 2.0, weight, weighting=weighting),
                cls(bits, 8, 1.5, weight, weighting=weighting, supremum="paper"),
                cls(categories, 4, 1.5, weight, weighting=weighting),
                cls(uniform, 5, 1.5, weight, weighting=weighting),
            )
        ]
