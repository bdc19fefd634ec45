"""One draw from the posterior of a logistic regression, its prior or likelihood weighted for privacy."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import numpy as np

from privpost.evaluation.diagnostics import assess
from privpost.mechanisms.base import (
    SamplingMechanism,
    batches,
    check_choice,
    check_coefficient,
)
from privpost.mechanisms.weighted_posterior import Concentrated, Diffused, Direct, WeightedPosterior
from privpost.models.binary_regression import BinaryRegression
from privpost.models.logistic_regression import GaussianApproximation, LogisticPosterior
from privpost.privacy.glm import concentrated_precision, diffused_power, posterior_rdp
from privpost.privacy.ledger import Release
from privpost.samplers import elliptical_slice
from privpost.samplers import slice as univariate_slice

SAMPLERS = ("elliptical", "slice")


class Diagnosis(NamedTuple):
    """A run apart from the release, by which its chains are judged: its size, and its random numbers."""

    chains: int
    draws: int
    rng: np.random.Generator


class Chains(NamedTuple):
    """What a release's chains tell: their start for a similar posterior, and R-hat and ESS of the diagnosis, or nan."""

    approximation: GaussianApproximation
    rhat: float
    ess: float


@dataclass(frozen=True)
class LogisticSampling(SamplingMechanism):
    """One draw of w from N(w; 0, (nβ)⁻¹ I) Π 1/(1 + exp(−z_i·w))^ρ, by slice sampling.

    The guarantee is that of an exact draw; the elliptical sampler's draws are nearly independent, so that a few sweeps
    reach it.

    Attributes:
        burn_in: sweeps before the released one, ≥ 0.
        sampler: "elliptical", all chains as one batch, or "slice", one coordinate at a time as Geumlek et al. did.

    Raises:
        ValueError: a setting outside its range, or another model than BinaryRegression.
    """

    burn_in: int = field(default=10, kw_only=True)
    sampler: str = field(default="elliptical", kw_only=True)

    public_inputs: ClassVar[tuple[str, ...]] = ("n", "prior", "bound on the features")
    exact: ClassVar[bool] = False

    def __post_init__(self):
        super().__post_init__()
        self.check_model(self.model)
        check_choice("sampler", self.sampler, SAMPLERS)
        if self.burn_in < 0:
            raise ValueError(f"burn_in is {self.burn_in!r}; it must be >= 0")

    @staticmethod
    def check_model(model) -> None:
        """Raises a ValueError unless the model is a BinaryRegression."""
        if not isinstance(model, BinaryRegression):
            raise ValueError(f"model is {model!r}; it must be a BinaryRegression")

    @property
    @abstractmethod
    def power(self) -> float:
        """ρ in (0, 1]."""

    @property
    @abstractmethod
    def precision(self) -> float:
        """β > 0 of the prior that is sampled with."""

    @property
    def radius(self) -> float | None:
        """Radius of the ball that the prior is truncated to, if any."""
        return None

    def posterior(self, statistics) -> LogisticPosterior:
        """The law of a release about one data set's statistics (n d,)."""
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
        return self.posterior(statistics).log_density(theta.reshape(-1, theta.shape[-1])).reshape(shape)

    def perturb(self, statistics, rng):
        """One draw of w (..., d) per leading index, each from a chain of its own."""
        return batches(self.replicate, statistics, rng)

    def replicate(self, statistics, size, rng):
        """Independent releases (size, d) about one data set's statistics, as one batch of chains."""
        return self.draw(statistics, rng, size).values

    def draw(self, statistics, rng, size=None, *, start=None, centre=None, diagnosis: Diagnosis | None = None):
        """Releases, each the end of a chain of its own, and with `size` what the chains tell.

        Args:
            statistics: of one data set where `size` is given, (n d,), else (..., n d).
            rng: source of randomness of the chains.
            size: number of releases.
            start: Gaussian approximation of a similar posterior, which saves time.
            centre: source of randomness for the Gaussian about which the chains move; by default `rng`.
            diagnosis: the run by which the chains are judged, if they are.

        Returns:
            A Release of weights (size, d) or (..., d), with `Chains` as its info where `size` is given.
        """
        if size is None:
            return Release(self.perturb(statistics, rng))
        posterior = self.posterior(statistics)
        approximation = posterior.laplace(start)
        gaussian = None if centre is None else elliptical_slice.recentred(posterior, approximation, centre)

        def run(n_chains, n_draws, rng):
            """Draws (n_draws, n_chains, d)."""
            if self.sampler == "slice":
                around = gaussian or elliptical_slice.recentred(posterior, approximation, rng)
                return _univariate(posterior, around, n_chains, n_draws, self.burn_in, rng)
            counts = {"n_chains": n_chains, "n_draws": n_draws, "n_burn_in": self.burn_in}
            about = {"approximation": approximation, "gaussian": gaussian}
            return elliptical_slice.sample(posterior, **counts, rng=rng, **about)[0]

        values, judged = run(size, 1, rng)[0], (np.nan, np.nan)
        if diagnosis is not None:
            assessment = assess(run(*diagnosis))
            judged = assessment.rhat_max, assessment.ess_min
        return Release(values, Chains(approximation, *judged))


def _univariate(posterior: LogisticPosterior, gaussian, n_chains: int, n_draws: int, burn_in: int, rng) -> np.ndarray:
    # The conditional standard deviations, those of a coordinate when the others stay.
    deviations = 1 / np.linalg.norm(gaussian.factor, axis=1)
    start = gaussian.mean + deviations * rng.standard_normal((n_chains, posterior.dimension))
    # A width of about three of them: few steps out, few shrinks.
    width = 3 * float(deviations.mean())
    start = posterior.into_ball(start)
    return univariate_slice.sample(posterior, start=start, width=width, n_draws=n_draws, n_burn_in=burn_in, rng=rng)[0]


@dataclass(frozen=True)
class RenyiLogistic(LogisticSampling, WeightedPosterior):
    """Draws with a Rényi guarantee, (λ, 2(ρc)²λ/(nβ)) at every order (Geumlek et al. 2017, theorems 16 and 17)."""

    norm: ClassVar[str] = "l2"

    def __post_init__(self):
        super().__post_init__()
        check_coefficient(self.power)

    @property
    def power(self):
        """ρ, the weight of the likelihood."""
        return self.r

    @property
    def precision(self):
        """β of the model."""
        return self.model.prior_precision

    @property
    def sensitivity(self):
        """2ρc, largest change of the gradient of the tempered log-likelihood, whatever the w."""
        return 2 * self.power * self.model.feature_bound

    @property
    def tight(self):
        """False: `query` looks at w = 0, where the gradient changes by at most half of it."""
        return False

    def query(self, data):
        """Gradient of the tempered log-likelihood at w = 0, shape (d,)."""
        return self.power * np.asarray(data, float).sum(axis=-2) / 2

    def rdp(self, orders):
        """2(ρc)²λ/(nβ) at each order."""
        return posterior_rdp(orders, self.n, self.precision, self.power, self.model.feature_bound)


@dataclass(frozen=True)
class LogisticDirect(Direct, RenyiLogistic):
    """One draw from the true posterior."""

    @classmethod
    def examples(cls):
        """One weight and two."""
        return [cls(BinaryRegression(1, 1.0), 4, 2.0), cls(BinaryRegression(2, 0.5), 3, 2.0)]


@dataclass(frozen=True)
class LogisticConcentrated(Concentrated, RenyiLogistic):
    """One draw from the posterior under a stronger prior (algorithm 4).

    Attributes:
        coefficient: β, at least the model's.
    """

    def __post_init__(self):
        super().__post_init__()
        if not self.model.prior_precision <= self.coefficient < np.inf:
            raise ValueError(f"coefficient is {self.coefficient!r}; it must be >= {self.model.prior_precision}, finite")

    @classmethod
    def coefficient_within(cls, model, n, order, epsilon, **options):
        """The smallest β ≥ the model's."""
        return concentrated_precision(order, epsilon, n, model.prior_precision, model.feature_bound)

    @property
    def m(self):
        """The model's β over the coefficient."""
        return self.model.prior_precision / self.coefficient

    @property
    def precision(self):
        """The coefficient."""
        return self.coefficient

    @classmethod
    def examples(cls):
        """One weight and two."""
        return [cls(BinaryRegression(1), 4, 2.0, 1.0), cls(BinaryRegression(2), 3, 2.0, 2.0)]


@dataclass(frozen=True)
class LogisticDiffused(Diffused, RenyiLogistic):
    """One draw with the likelihood to a power (algorithm 5).

    Attributes:
        coefficient: ρ in (0, 1].
    """

    @classmethod
    def coefficient_within(cls, model, n, order, epsilon, **options):
        """The largest ρ."""
        return diffused_power(order, epsilon, n, model.prior_precision, model.feature_bound)

    @classmethod
    def examples(cls):
        """One weight and two."""
        return [cls(BinaryRegression(1, 0.1), 4, 2.0, 0.3), cls(BinaryRegression(2, 0.1), 3, 2.0, 0.3)]
