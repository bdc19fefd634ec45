"""One posterior sample (OPS) for binary data under pure DP: the exponential mechanism with the log-joint as score."""

from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar, Self

import numpy as np

from privpost.distributions import exact_draws, truncated_beta
from privpost.mechanisms.draws.rounded import Rounded, public_counts
from privpost.mechanisms.pure import PureMechanism
from privpost.models.base import is_number
from privpost.models.conjugate.beta_bernoulli import BetaBernoulli
from privpost.privacy.accounting.approximate import bits_curve, by_curve
from privpost.privacy.accounting.costs import Cost
from privpost.privacy.accounting.losses import Beta, Law, Response
from privpost.privacy.divergences import certified


@dataclass(frozen=True)
class ExponentialMechanism(Rounded, PureMechanism):
    """One draw of θ in [a0, 1−a0] from the beta-Bernoulli posterior at temperature T = max(1, 2Δ/ε).

    Prior and likelihood are both tempered. With s successes, the draw is from Beta(1 + (α−1+s)/T, 1 + (β−1+n−s)/T)
    truncated to [a0, 1−a0]. One draw costs 2Δ/T ≤ ε in pure DP, where Δ = ln((1−a0)/a0) is the sensitivity (Foulds et
    al. 2016, theorem 2.2).

    Attributes:
        epsilon: upper bound ε > 0 of the cost of one draw.
        a0: distance of the parameter space from 0 and 1, in (0, 0.5).

    Raises:
        ValueError: a setting is outside its range, or the model is not a BetaBernoulli.

    >>> round(ExponentialMechanism.calibrate(BetaBernoulli(1, 1), 400, Cost("pure", 0.5), a0=0.05).temperature, 1)
    11.8
    """

    a0: float = field(kw_only=True)

    method: ClassVar[str] = "ops"
    norm: ClassVar[str] = "log-likelihood ratio"
    releases: ClassVar[str] = "sample"
    public_inputs: ClassVar[tuple[str, ...]] = ("n", "prior", "a0")
    models: ClassVar[tuple[type, ...]] = (BetaBernoulli,)

    def __post_init__(self):
        super().__post_init__()
        if not is_number(self.a0) or not 0 < self.a0 < 0.5:
            raise ValueError(f"a0 is {self.a0!r}; it must lie in (0, 0.5)")

    @classmethod
    def calibrate(cls, model, n: int, budget: Cost, *, a0: float) -> Self:
        """Return the mechanism with the largest ε within the budget. `rdp_to_pure_epsilon` converts a Rényi budget."""
        return super().calibrate(model, n, budget, a0=a0)

    @property
    def sensitivity(self) -> float:
        """Largest change Δ = ln((1−a0)/a0) of a record's log-likelihood over θ in [a0, 1−a0]."""
        return float(np.log((1 - self.a0) / self.a0))

    @property
    def temperature(self) -> float:
        """Temperature T = max(1, 2Δ/ε)."""
        return max(1.0, 2 * self.sensitivity / self.epsilon)

    def query(self, data) -> np.ndarray:
        """Log-likelihood (101,) of the data on a grid of θ from a0 to 1 − a0, ends included."""
        grid = np.linspace(self.a0, 1 - self.a0, 101)
        return self.model.log_likelihood(grid, self.model.sufficient_statistics(data))

    @property
    def ends(self) -> tuple[float, float]:
        """Ends a0 and 1 − a0 of the parameter space."""
        return self.a0, 1 - self.a0

    def release_law(self, statistics) -> np.ndarray:
        """Parameters (..., 2) of the tempered beta distribution before truncation."""
        return 1 + (self.model.posterior(statistics) - 1) / self.temperature

    def _perturb(self, statistics, rng):
        """Return one exact draw of θ per leading index."""
        return truncated_beta.sample(self.release_law(statistics), *self.ends, rng)

    def _cells(self, statistics, bits, randbits):
        """Return ⌊2^bits θ⌋ of one exact draw θ from the tempered law."""
        prior, temperature, low = map(float, self.model.prior), Fraction(self.temperature), Fraction(self.a0)
        law = [
            1 + (Fraction(alpha) - 1 + int(count)) / temperature for alpha, count in zip(prior, statistics, strict=True)
        ]
        return [exact_draws.beta(law, (low, 1 - low), randbits).refine(bits)]

    @property
    def public_statistics(self):
        """Counts for which draws are timed."""
        return public_counts(self.n, 2)

    def certified_epsilon(self) -> float:
        """A proved upper bound of the cost, computed from the same numbers that an exact draw uses."""
        return certified.tempered_epsilon(self.a0, self.temperature)

    def cost(self) -> Cost:
        """Pure cost 2Δ/T of one draw. The cost is ε if T > 1, and at most ε if T = 1."""
        return Cost("pure", min(self.epsilon, 2 * self.sensitivity))

    @property
    def loss(self) -> Law:
        """Bound on the privacy loss of a draw, as a law from `losses`: `Beta`, or `Response` if a0 < 1e-6."""
        if self.a0 < 1e-6:
            return Response(self.cost().epsilon)
        return Beta(tuple(self.release_law(np.zeros(2)).tolist()), 1 / self.temperature, self.n - 1, self.ends)

    def privacy_curve(self, epsilon) -> float | None:
        """δ(ε), the largest `beta_curve` over all pairs of neighbouring counts."""
        return bits_curve(self, epsilon)

    def recalibrated(self, budget) -> Self | None:
        """Return the mechanism with the lowest temperature T ≥ 1 within an (ε, δ) budget."""
        return by_curve(self, budget, 2 * self.sensitivity)

    def log_density(self, release, statistics) -> np.ndarray | None:
        """Log-density of the draw given (successes, failures)."""
        return truncated_beta.log_density(release, self.release_law(statistics), *self.ends)

    @classmethod
    def examples(cls) -> list[Self]:
        """A tempered draw, an untempered draw, and a draw with a prior whose density is infinite at 0."""
        return [
            cls(BetaBernoulli(1, 1), 8, 1.0, a0=0.2),
            cls(BetaBernoulli(10, 10), 8, 10.0, a0=0.1),
            cls(BetaBernoulli(0.5, 2), 5, 0.1, a0=0.05),
        ]
