"""Trials of the models in the studies of Bernstein and Sheldon (2018): data, releases and posteriors."""

import dataclasses
import math

import numpy as np
from scipy.special import betainc

from privpost import discovery
from privpost.evaluation.mmd import Bins, UnitInterval, beta_embedding
from privpost.experiments.bernstein2018.base import COVERAGE, RECORDS, Data, Experiment, Release
from privpost.experiments.bernstein2018.clamped import ClampedNormal
from privpost.experiments.ranges import BURN_IN, CONCENTRATION, DRAWS, EPSILON, MODEL, N
from privpost.lab.schema import Choice, Real, SettingError, Text, Vector, suggest
from privpost.mechanisms.noise.laplace import LaplaceMechanism
from privpost.mechanisms.noise.redacted import RedactedLaplace, RedactedSum
from privpost.models.conjugate.normal_unknown_variance import NormalUnknownVariance
from privpost.models.conjugate.univariate import UnivariateFamily
from privpost.privacy.accounting.costs import Cost
from privpost.samplers.noise_aware import exact as noise_aware_exact
from privpost.samplers.noise_aware import quadrature as noise_aware_quadrature
from privpost.samplers.noise_aware.gibbs import bounded_kernel

# Models with bounded statistics, and which are released: all, or the "free" ones, which n does not determine.
COUNT_MODELS = {
    "binomial": ("beta_bernoulli", "free"),
    "multinomial": ("dirichlet_categorical", "all"),
    "multinomial_free": ("dirichlet_categorical", "free"),
    "bit_rows": ("beta_bits", "free"),
}
# For each variant, the source of the redaction bounds and the covariance of the segments.
VARIANTS = {
    "paper": ("true_theta", "independent"),
    "corrected": ("public", "multinomial"),
    "public_bounds": ("public", "independent"),
    "joint_segments": ("true_theta", "multinomial"),
}
# `experiment` checks which of these numbers must be positive.
PRIOR = Vector(Real(at_least=-1e6, at_most=1e6), says="parameters of the model's prior")
VARIANT = Choice(*VARIANTS, says="`paper`, or how redaction bounds and segments differ from the paper's")
# Settings of the studies that run chains on any model.
CHAINS = {
    "model": Text(says=MODEL),
    "prior": PRIOR,
    "variant": VARIANT,
    "burn_in": BURN_IN,
    "draws": DRAWS,
    "n": N,
    "epsilon": EPSILON,
}
# Redaction bounds have to be below this number, as squares of larger records may overflow.
LARGEST = 1e100


def repeated(value, times: int):
    """Return an array with each entry of the last axis repeated. A scalar or None is returned unchanged."""
    return value if value is None or np.ndim(value) == 0 else np.repeat(value, times, axis=-1)


def many_chains(data: Data, release: Release, chains: int) -> tuple[Data, Release]:
    """Return the data and the release with every trial repeated, so that several chains run on one release."""
    return Data(*(repeated(entry, chains) for entry in data)), Release(*(repeated(entry, chains) for entry in release))


class Counts(Experiment):
    """Experiment on bits, rows of bits or categories, whose counts get Laplace noise (algorithm 1)."""

    space = UnitInterval()

    def __init__(self, model, coordinates: str):
        self.model = model
        self.coordinates = coordinates
        self.binary = not model.theta_shape
        self.parameters = ("theta",) if self.binary else tuple(f"theta_{j + 1}" for j in range(len(model.prior)))
        released = coordinates == "all"
        last = len(self.parameters) - 1
        # The count of a category that is not released follows from n and the other counts.
        self.alike = tuple((float(model.prior[j]), released or j < last) for j in range(last + 1))
        # Number of bits in a record.
        self.size = getattr(model, "size", 1)

    def mechanism(self, n, epsilon, data=None):
        return LaplaceMechanism(self.model, n, epsilon, coordinates=self.coordinates)

    def data(self, n, size, rng):
        theta = self.model.sample(self.model.prior, rng, size=size)
        probabilities = np.stack([theta, 1 - theta], axis=-1) if self.binary else theta
        counts = rng.multinomial(int(n * self.size), probabilities) / self.size
        return Data(theta.reshape(size, -1).T, counts.T, counts.T)

    def kernel(self, data, release, n):
        return bounded_kernel(self.model, release.values, n, release.scale)

    def naive(self, data, release, n):
        projected = self.mechanism(n, 1.0).project(release.values.T).T
        changed = np.any(projected[: len(release.values)] != release.values, axis=0)
        return projected, float(changed.mean())

    def exact_quantiles(self, data, releases, n):
        if self.binary:
            values = self.size * np.stack([release.values[0] for release in releases])
            scales, bits = [self.size * release.scale for release in releases], int(n * self.size)
            return noise_aware_exact.posterior_cdf(self.model.prior, values, data.theta[0], bits, scales)[None]
        quantiles = [
            noise_aware_exact.categories_cdf(self.model.prior, release.values, data.theta, n, release.scale)
            for release in releases
        ]
        return np.stack(quantiles, axis=1)

    def _expectations(self, release, n, given_count):
        scaled = self.size * release.values, int(n * self.size), self.size * release.scale
        return noise_aware_exact.expectations(self.model.prior, *scaled, given_count)

    def exact_moments(self, data, release, n):
        def powers(a, b):
            mean = a / (a + b)
            return np.stack([mean, mean * (a + 1) / (a + b + 1)])

        mean, square = self._expectations(release, n, powers)
        return mean, np.sqrt(square - mean**2)

    def exact_features(self, data, release, n):
        return self._expectations(release, n, beta_embedding)

    def features(self, statistics):
        return beta_embedding(*self.marginals(statistics)[:, 0])

    def marginals(self, statistics) -> np.ndarray:
        """Return an array (2, parameters, trials): α and β of each parameter's beta posterior."""
        parameters = self.model.posterior(statistics.T).T
        total = parameters.sum(axis=0)
        first = parameters[: len(self.parameters)]
        return np.stack([first, total - first])

    def quantiles(self, data, statistics):
        return betainc(*self.marginals(statistics), data.theta)


class RedactedSums(Experiment):
    """Experiment on an unbounded univariate family. The sum leaves out records outside bounds (algorithm 2)."""

    parameters = ("theta",)
    alike = (0,)
    # Bins of the rate. Binning changes an MMD² by less than 0.1 %.
    space = Bins(0.04, 2048)
    collapses = True

    def __init__(self, model: UnivariateFamily, variant: str):
        self.model = model
        self.bounds, self.segments = VARIANTS[variant]
        self.uses_private_metadata = self.bounds == "true_theta"

    def _ends(self, theta=None):
        """Return the redaction bounds: quantiles of a record's law given θ, or of the prior predictive law."""
        tails = (1 - COVERAGE) / 2, (1 + COVERAGE) / 2
        if theta is None:
            return tuple(float(self.model.predictive_quantile(p)) for p in tails)
        return tuple(self.model.quantile(p, theta) for p in tails)

    @property
    def public_bounds(self) -> tuple[float, float]:
        """Redaction bounds that do not depend on θ."""
        return self._ends()

    def mechanism(self, n, epsilon, data=None):
        ends = self._ends() if data is None else (data.low, data.high)
        return RedactedLaplace(RedactedSum(self.model, *ends), n, epsilon)

    def data(self, n, size, rng):
        theta = self.model.sample(np.broadcast_to(self.model.prior, (size, len(self.model.prior))), rng)
        low, high = self._ends(theta if self.bounds == "true_theta" else None)
        low, high = np.broadcast_to(low, size), np.broadcast_to(high, size)
        statistics, redacted = np.empty((size, 2)), np.empty(size)
        part = max(1, RECORDS // n)
        for start in range(0, size, part):
            trials = slice(start, start + part)
            records = self.model.sample_data(theta[trials], n, rng)
            statistics[trials] = self.model.sufficient_statistics(records)
            redacted[trials] = RedactedSum(self.model, low[trials], high[trials]).sufficient_statistics(records)[:, 0]
        return Data(theta[None], statistics.T, redacted[None], low, high)

    def kernel(self, data, release, n, collapsed: bool = False):
        arguments = self.model, release.values[0], n, release.scale, data.low, data.high
        if collapsed:
            return noise_aware_quadrature.collapsed_kernel(*arguments)
        # Compiled code is loaded only where chains run.
        from privpost.samplers.noise_aware.redacted import redacted_kernel

        return redacted_kernel(*arguments, self.segments)

    def _posterior(self, data, release, n):
        return noise_aware_quadrature.redacted_posterior(
            self.model, release.values[0], n, release.scale, data.low, data.high
        )

    def exact_quantiles(self, data, releases, n):
        return np.stack([self._posterior(data, release, n).cdf(data.theta[0]) for release in releases])[None]

    def exact_moments(self, data, release, n):
        return self._posterior(data, release, n).moments()

    def exact_features(self, data, release, n):
        return self._features(self._posterior(data, release, n))

    def features(self, statistics):
        return self._features(
            noise_aware_quadrature.conjugate_posterior(self.model, self.model.posterior(statistics.T))
        )

    def _features(self, law):
        return self.space.features(law.theta.T, law.mass.T)

    def naive(self, data, release, n):
        """Return the sum of all records plus the noise of the release, and the share of projected trials."""
        # The paper gives this sum to the naive method. The sum is unbounded, so no finite ε covers it.
        noisy = data.statistics[0] + (release.values - data.exact)[0]
        low, high = (n * end for end in self.model.statistic_support)
        projected = np.clip(noisy, low, high)
        return np.stack([projected, data.statistics[1]]), float((projected != noisy).mean())

    def quantiles(self, data, statistics):
        return self.model.posterior_cdf(data.theta[0], self.model.posterior(statistics.T))[None]

    def naive_cost(self, epsilon):
        return Cost("pure", np.inf)


def experiment(name: str, prior, variant: str) -> Experiment:
    """Return the experiment on a model. Raises SettingError if the model is unknown or the prior does not fit it.

    Args:
        name: one of `COUNT_MODELS`, or the attribute `family` of any univariate family.
        prior: the values of the model's fields in order, or the concentrations for the multinomial.
        variant: one of `VARIANTS`, which differ in redaction only.
    """
    models = discovery.models()
    families = {model.family: model for model in models.values() if issubclass(model, UnivariateFamily)}
    if name in COUNT_MODELS:
        kind = models[COUNT_MODELS[name][0]]
    elif name in families:
        kind = families[name]
    elif name == NormalUnknownVariance.family:
        kind = NormalUnknownVariance
    else:
        allowed = [*COUNT_MODELS, *sorted(families), NormalUnknownVariance.family]
        raise SettingError(f"model is {name!r}, but must be one of {', '.join(allowed)}.{suggest(name, allowed)}")
    _check_prior(name, kind, prior)
    try:
        if name in COUNT_MODELS:
            several = "multinomial" in name
            return Counts(kind(tuple(prior)) if several else kind(*prior), COUNT_MODELS[name][1])
        model = kind(*prior)
        trial = ClampedNormal(model) if kind is NormalUnknownVariance else RedactedSums(model, variant)
    except ValueError as error:
        raise SettingError(f"prior is {prior}, which {name} cannot have: {error}") from error
    low, high = trial.public_bounds
    if not -LARGEST < low < high < LARGEST:
        raise SettingError(f"prior is {prior}, under which 95 % of {name}'s records lie in [{low:g}, {high:g}]")
    return trial


def _check_prior(name: str, kind, prior) -> None:
    """Raise SettingError unless the prior's numbers fit the model's fields."""
    fields = [field.name for field in dataclasses.fields(kind)]
    several = "multinomial" in name
    # Fields after the second (scales and numbers of bits) have defaults.
    most = math.inf if several else len(fields)
    if not 2 <= len(prior) <= most:
        needed = "at least 2 concentrations" if several else f"numbers for {', '.join(fields)}, at least the first 2"
        raise SettingError(f"prior is {prior}, but {name} needs {needed}.")
    for field, value in zip(fields * len(prior), prior, strict=False):
        if field != "prior_mean" and not CONCENTRATION.at_least <= value <= CONCENTRATION.at_most:
            raise SettingError(f"prior is {prior}, but {field} must be {CONCENTRATION.allowed()}.")
