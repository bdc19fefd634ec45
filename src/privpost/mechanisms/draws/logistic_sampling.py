"""One draw from the posterior of a logistic regression whose prior or likelihood is weighted for privacy."""

import math
from abc import abstractmethod
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np

from privpost.mechanisms.base import Mechanism
from privpost.mechanisms.batches import Batched
from privpost.mechanisms.draws.weighted import WeightedPosterior, Weighting
from privpost.models.regression.binary import BinaryRegression
from privpost.models.regression.logistic import LogisticPosterior
from privpost.privacy.accounting.approximate import (
    gaussian_curve,
    gaussian_from_approximate,
    pure_curve,
    pure_from_approximate,
)
from privpost.privacy.accounting.costs import Cost, at_most
from privpost.privacy.checks import check_coefficient
from privpost.privacy.divergences.glm import (
    concentrated_precision,
    diffused_power,
    ops_power,
    ops_pure_epsilon,
    ops_rdp,
    posterior_rdp,
)
from privpost.privacy.ledger.gate import Release
from privpost.samplers.logistic import exact as logistic_exact
from privpost.samplers.logistic.public_time import PublicTime
from privpost.samplers.logistic.public_time import sample as sample_in_public_time

# A draw is refused if it is expected to take more proposals, or takes more steps towards the mode, than this.
MOST_PROPOSALS = 10_000
MOST_STEPS = 100_000


class Drawn(NamedTuple):
    """What the sampler reports in addition to a draw.

    `start` speeds up later draws from similar posteriors. `proposals` is the number of proposals, including the
    accepted one, and `expected` is the expectation of this number. Both are nan without proposals. In public time,
    `start` is None, and `expected` is the largest expectation for any data.
    """

    start: Any
    proposals: float
    expected: float


@dataclass(frozen=True)
class LogisticSampling(Batched, Mechanism):
    """One exact draw of weights w with density ∝ N(w; 0, (nβ)⁻¹ I) Π 1/(1 + exp(−z_i·w))^ρ, for records z_i.

    Attributes:
        public_time: whether only public numbers decide how long a release takes and whether it is refused (Awan and Rao
            2023). False gives the same law and is mostly far faster, but is for public data only.

    Raises:
        ValueError: a setting is outside its range, or the model is not a BinaryRegression.
    """

    public_time: bool = field(default=True, kw_only=True)

    public_inputs: ClassVar[tuple[str, ...]] = ("n", "prior", "bound on the features")
    models: ClassVar[tuple[type, ...]] = (BinaryRegression,)

    @property
    @abstractmethod
    def power(self) -> float:
        """Power ρ of the likelihood, in (0, 1]."""

    @property
    @abstractmethod
    def precision(self) -> float:
        """Precision per record β > 0 of the prior N(0, (nβ)⁻¹ I) that the draw uses."""

    @property
    def radius(self) -> float | None:
        """Radius of the ball to which the prior is truncated. None without a ball."""
        return None

    @property
    def schedule(self) -> PublicTime:
        """The public numbers of steps and proposals of a draw in public time."""
        model = self.model
        return PublicTime(self.n, model.dimension, self.precision, self.power, model.feature_bound, self.radius)

    def _check_public_time(self) -> None:
        """Raises a ValueError if a draw in public time would take too long for some data."""
        public = self.schedule
        if not (public.log_expected <= math.log(MOST_PROPOSALS) and public.steps <= MOST_STEPS):
            raise ValueError(
                f"public_time is True; with n {self.n}, prior_precision {self.precision!r}, feature_bound "
                f"{self.model.feature_bound!r}, power {self.power:.6g} and dimension {self.model.dimension} some data "
                f"would take 1e{public.log_expected / math.log(10):.1f} proposals, of at most {MOST_PROPOSALS}, and "
                f"{public.steps} steps, of at most {MOST_STEPS}. LogisticLangevin draws within the same budget, and "
                "public data may be drawn from with public_time=False"
            )

    def check_statistics(self, statistics) -> None:
        """Raises a ValueError unless each row of statistics (..., n d) has n records within the model's bound."""
        if self.public_time:
            self._check_public_time()
        super().check_statistics(statistics)
        rows = np.asarray(statistics, float)
        rows = rows.reshape(-1, rows.shape[-1])
        for row in rows[:1] if np.all(rows == rows[:1]) else np.unique(rows, axis=0):
            self.model.checked(row, self.n)

    def release_law(self, statistics) -> LogisticPosterior:
        """Law of an exact draw for one data set's statistics (n d,)."""
        records = np.asarray(statistics, float).reshape(-1, self.model.dimension)
        return LogisticPosterior(
            records,
            np.ones(len(records)),
            prior_precision=self.n * self.precision,
            power=self.power,
            radius=self.radius,
        )

    def log_weight(self, theta, statistics) -> np.ndarray:
        """Log-density of the release up to a constant, at weights (..., d)."""
        theta = np.asarray(theta, float)
        shape = theta.shape[:-1]
        return self.release_law(statistics).log_density(theta.reshape(-1, theta.shape[-1])).reshape(shape)

    def prepare(self, statistics, start=None, size=None) -> logistic_exact.Envelope | LogisticPosterior:
        """Return what `draw` needs for these statistics: the law of the proposals or, in public time, the posterior.

        `size` is the number of draws. If it is None, the law has few proposals per draw.

        Raises:
            ValueError: a record exceeds the feature bound, there are not n records, or a draw would take too long.
            RuntimeError: the mode is not found.
        """
        if self.public_time:
            self._check_public_time()
            return self.release_law(self.model.checked(statistics, self.n))
        around = logistic_exact.envelope(self.release_law(self.model.checked(statistics, self.n)), start, draws=size)
        if around.log_least > math.log(MOST_PROPOSALS):
            raise ValueError(
                f"prior_precision (beta0 of the studies) is {self.model.prior_precision!r}; it must be one with which "
                f"an exact draw about these data takes at most {MOST_PROPOSALS} proposals"
            )
        return around

    def draw(self, statistics, rng, size=None, *, start=None, prepared=None) -> Release:
        """Return releases and, if `size` is given, the sampler's report.

        Args:
            statistics: (n d,) of one data set if `size` is given, otherwise (..., n d) of any number of data sets.
            start: `Drawn.start` of a similar posterior, which saves time.
            prepared: the result of `prepare` for the same arguments.

        Returns:
            A Release of weights (size, d) or (..., d). If `size` is given, its info is a `Drawn`.
        """
        if size is None:
            return Release(self.perturb(statistics, rng))
        around: Any = prepared or self.prepare(statistics, start, size)
        if self.public_time:
            public = self.schedule
            values = sample_in_public_time(around, public, size, rng)
            return Release(values, Drawn(None, public.proposals(size) / size, math.exp(public.log_expected)))
        values, info = logistic_exact.sample(around, size, rng)
        return Release(values, Drawn(around, *info))


@dataclass(frozen=True)
class LogisticDraw(LogisticSampling, WeightedPosterior):
    """One draw with the Rényi DP parameter 2(ρcB)²λ/(nβ) at every order λ (Geumlek et al. 2017, theorems 16 and 17).

    Here c is the model's `feature_bound`, and B its `slope_bound`. With the weighting "ball", the prior is also
    truncated to ‖w‖ ≤ c/β, as in OPS. The cost is then the smaller of two: the parameter above, and the parameter that
    the pure guarantee implies. To see that theorem 17 holds on a ball, replace the negative log-density f by f + k
    dist(w, ball)² on R^d and let k → ∞. The sum is as strongly convex as f, and changes between neighbours as f does.

    Attributes:
        coefficient: precision β of a concentrated draw (algorithm 4), at least the model's precision. For other draws,
            the power ρ of the likelihood, in (0, 1] (algorithm 5 for a diffused draw).

    >>> draw = LogisticDraw.calibrate(BinaryRegression(2, 0.1), 100, Cost("rdp", 0.1, order=2), weighting="diffused")
    >>> round(draw.coefficient, 3)
    0.5
    """

    coefficient: float = 1.0

    weightings: ClassVar[tuple[str, ...]] = ("ball", *WeightedPosterior.weightings)
    named: ClassVar[str] = "Logistic{}"
    norm: ClassVar[str] = "l2"
    # `query` is the gradient at w = 0, which changes by at most half of the sensitivity.
    tight: ClassVar[bool] = False

    def __post_init__(self):
        super().__post_init__()
        if self.weighting != "concentrated":
            check_coefficient(self.coefficient)
        elif not self.model.prior_precision <= self.coefficient < np.inf:
            raise ValueError(f"coefficient is {self.coefficient!r}; it must be >= {self.model.prior_precision}, finite")

    @classmethod
    def calibrate(
        cls,
        model,
        n: int,
        budget: Cost,
        *,
        weighting: Weighting | Literal["ball"],
        public_time: bool = True,
    ) -> Self:
        """Return the draw nearest to the true posterior within a Rényi or (ε, δ) budget."""
        return cls._within(model, n, budget, weighting=weighting, public_time=public_time)

    @property
    def method(self):
        """The method's id: the weighting, or "ops_renyi" on the ball."""
        return "ops_renyi" if self.weighting == "ball" else self.weighting

    @property
    def name(self) -> str:
        """The mechanism's name in ledgers and tables. Each weighting has a separate name."""
        return "LogisticOpsRenyi" if self.weighting == "ball" else super().name

    @property
    def recorded(self):
        """Name, module and settings that a ledger records. Each weighting has a separate name."""
        name, module, settings = super().recorded
        return name, "privpost.mechanisms.draws.logistic_ops" if self.weighting == "ball" else module, settings

    @property
    def r(self):
        """The power ρ of the likelihood."""
        return 1.0 if self.weighting == "concentrated" else self.coefficient

    @property
    def m(self):
        """Divisor of the prior's precision: the model's β divided by the draw's β."""
        return self.model.prior_precision / self.precision

    @property
    def power(self) -> float:
        """The power ρ of the likelihood (`r`)."""
        return self.r

    @property
    def precision(self) -> float:
        """Precision β per record: the coefficient of a concentrated draw, otherwise the model's precision."""
        return self.coefficient if self.weighting == "concentrated" else self.model.prior_precision

    @property
    def radius(self) -> float | None:
        """Radius c/β of the ball for the weighting "ball". None for other weightings."""
        return self.model.feature_bound / self.precision if self.weighting == "ball" else None

    @classmethod
    def coefficient_within(cls, model, n, order, epsilon, *, weighting, **options):
        """Return the smallest β ≥ the model's β for a concentrated draw, and the largest power ρ for other draws."""
        beta, bounds = model.prior_precision, (model.feature_bound, model.slope_bound)
        if weighting == "concentrated":
            return concentrated_precision(order, epsilon, n, beta, *bounds)
        power = diffused_power(order, epsilon, n, beta, *bounds)
        return max(power, ops_power(order, epsilon, beta, model.feature_bound)) if weighting == "ball" else power

    @property
    def sensitivity(self) -> float:
        """Largest change 2ρcB of the tempered log-likelihood's gradient, over all w."""
        return 2 * self.power * self.model.feature_bound * self.model.slope_bound

    @property
    def mu(self) -> float:
        """Parameter μ = 2ρcB/√(nβ) of the draw's Gaussian DP (Gopi et al. 2022)."""
        return self.sensitivity / np.sqrt(self.n * self.precision)

    def query(self, data) -> np.ndarray:
        """Gradient (d,) of the tempered log-likelihood at w = 0."""
        return self.power * np.asarray(data, float).sum(axis=-2) / 2

    def rdp(self, orders) -> np.ndarray:
        """Rényi DP parameter 2(ρcB)²λ/(nβ) at each order λ. On the ball, the pure cost can make it smaller."""
        bounds = self.model.feature_bound, self.model.slope_bound
        gaussian = posterior_rdp(orders, self.n, self.precision, self.power, *bounds)
        if self.weighting != "ball":
            return gaussian
        return np.minimum(gaussian, ops_rdp(orders, self.power, self.precision, self.model.feature_bound))

    def privacy_curve(self, epsilon) -> float:
        """δ(ε) of Gaussian DP at μ. On the ball, δ is at most the δ that the pure cost implies."""
        gaussian = gaussian_curve(self.mu, epsilon)
        if self.weighting != "ball":
            return gaussian
        pure = ops_pure_epsilon(self.power, self.precision, self.model.feature_bound)
        return min(gaussian, pure_curve(float(pure), epsilon))

    def recalibrated(self, budget) -> Self | None:
        """Return the draw that just meets an (ε, δ) budget. None for a direct draw that costs too much."""
        if self.calibrated is None:
            return self if self.privacy_curve(budget.epsilon) <= budget.delta else None
        if self.weighting == "ball":
            return self._recalibrated_on_ball(budget)
        mu = 1 / gaussian_from_approximate(budget.epsilon, budget.delta)
        # The budget is rounded down, by less than the tolerance of the tests.
        within = Cost("rdp", 0.5 * mu**2 * self.order * (1 - 1e-9), order=self.order)
        return self.calibrate(self.model, self.n, within, **self.options)

    def _recalibrated_on_ball(self, budget):
        """Return the draw with the larger of the powers that the Gaussian and the pure curve allow."""
        gaussian = replace(self, weighting="diffused").recalibrated(budget).coefficient
        whole = ops_pure_epsilon(1.0, self.precision, self.model.feature_bound)
        pure = pure_from_approximate(budget.epsilon, budget.delta) / float(whole)
        mechanism = replace(self, coefficient=max(gaussian, min(1.0, pure)))
        # For a small δ, the rounding error of ε0 − ε can push the curve above δ.
        while not at_most(mechanism.privacy_curve(budget.epsilon), budget.delta):
            mechanism = replace(mechanism, coefficient=float(np.nextafter(mechanism.coefficient, 0.0)))
        return mechanism

    @classmethod
    def examples(cls) -> list[Self]:
        """Models with one weight and with two weights, each with every weighting."""
        one, two = (partial(BinaryRegression, d) for d in (1, 2))
        return [
            cls(one(1.0), 4, 2.0, weighting="direct"),
            cls(two(0.5), 3, 2.0, weighting="direct"),
            cls(one(), 4, 2.0, 1.0, weighting="concentrated"),
            cls(two(), 3, 2.0, 2.0, weighting="concentrated"),
            *(cls(one(0.1), 4, 2.0, 0.3, weighting=weighting) for weighting in ("diffused", "ball")),
            *(cls(two(0.1), 3, 2.0, 0.3, weighting=weighting) for weighting in ("diffused", "ball")),
        ]
