"""Randomised response: each person perturbs their own answer, so no curator has to be trusted."""

import itertools
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln, logsumexp, xlogy

from privpost.mechanisms.base import COUNTED
from privpost.mechanisms.pure import PureMechanism
from privpost.models.conjugate.beta_bernoulli import BetaBernoulli
from privpost.models.conjugate.dirichlet_categorical import DirichletCategorical
from privpost.privacy.checks import check_given
from privpost.samplers.noise_aware import exact_counts
from privpost.samplers.noise_aware.draws import Draws, named


@dataclass(frozen=True)
class RandomisedResponse(PureMechanism):
    """Each person reports their true answer with probability e^ε/(e^ε + d − 1), otherwise another of the d answers.

    The release (d,) counts the reports of each answer. It is ε-DP, even against the person who counts the reports
    (Warner 1965; Kairouz, Oh and Viswanath 2016).

    Attributes:
        epsilon: ε > 0, the cost of one release.

    Raises:
        ValueError: a setting is outside its range, or the model's records are not categories.

    >>> round(RandomisedResponse(BetaBernoulli(1, 1), 100, 1.0).truth, 4)
    0.7311
    """

    method: ClassVar[str] = "randomised_response"
    norm: ClassVar[str] = "log-likelihood ratio"
    public_inputs: ClassVar[tuple[str, ...]] = ("n", "prior")
    releases: ClassVar[str] = "statistics"
    support: ClassVar[str] = "integers"
    models: ClassVar[tuple[type, ...]] = COUNTED
    local: ClassVar[bool] = True

    @property
    def size(self) -> int:
        """Number d of possible answers."""
        return len(self.model.prior)

    @property
    def other(self) -> float:
        """Probability 1/(e^ε + d − 1) of each answer that is not the true one."""
        return float(np.exp(-self.epsilon) / (1 + (self.size - 1) * np.exp(-self.epsilon)))

    @property
    def truth(self) -> float:
        """Probability e^ε/(e^ε + d − 1) of the true answer."""
        return float(1 / (1 + (self.size - 1) * np.exp(-self.epsilon)))

    @property
    def _logs(self) -> tuple[float, float]:
        """The logarithms of `other` and of `truth` − `other`."""
        log_other = -self.epsilon - float(np.log1p((self.size - 1) * np.exp(-self.epsilon)))
        return log_other, log_other + float(np.log(np.expm1(self.epsilon))) if self.epsilon < 700 else 0.0

    @property
    def sensitivity(self) -> float:
        """Largest change ε of a release's log-probability between neighbours."""
        return self.epsilon

    def query(self, data) -> np.ndarray:
        """Log-probabilities (releases,) of all possible releases. There are very many for a large data set."""
        statistics = self.model.sufficient_statistics(data)
        cuts = itertools.combinations(range(self.n + self.size - 1), self.size - 1)
        all_releases = [np.diff([-1, *cut, self.n + self.size - 1]) - 1 for cut in cuts]
        return self.log_mass(np.array(all_releases, float), statistics)

    def select(self, statistics) -> np.ndarray:
        """The counts (..., d) as floats."""
        return np.asarray(statistics, float)

    def _perturb(self, statistics, rng):
        """Return counts (..., d): how many people report each answer."""
        true = np.rint(np.asarray(statistics, float)).astype(np.int64)
        chances = np.full((self.size, self.size), self.other)
        np.fill_diagonal(chances, self.truth)
        return rng.multinomial(true, chances).sum(axis=-2).astype(float)

    def log_mass(self, release, statistics) -> np.ndarray:
        """Log-probability of reports (..., d) given the true counts (..., d). It is −inf for impossible reports.

        The time grows fast with the number of records, so this method is for few records.
        """
        release, statistics = np.broadcast_arrays(np.asarray(release, float), np.asarray(statistics, float))
        both = np.concatenate([release.reshape(-1, self.size), statistics.reshape(-1, self.size)], axis=1)
        rows, places = np.unique(both, axis=0, return_inverse=True)
        logs = np.array([self._log_mass_of(*np.split(row, 2)) for row in rows])
        return logs[places.ravel()].reshape(release.shape[:-1])

    def _log_mass_of(self, reported, true) -> float:
        if np.any(reported < 0) or np.any(reported != np.rint(reported)) or reported.sum() != true.sum():
            return -np.inf
        return float(self._splits(tuple(map(int, true)), tuple(map(int, reported))))

    def _splits(self, true: tuple[int, ...], reported: tuple[int, ...]) -> float:
        """Log-probability of the reports given the true counts, by a sum over all tables with these two margins."""
        if len(true) == 0:
            return 0.0 if not any(reported) else -np.inf
        row, terms = self.size - len(true), []
        for part in itertools.product(*(range(min(count, true[0]) + 1) for count in reported)):
            if sum(part) == true[0]:
                chances = np.full(self.size, self.other)
                chances[row] = self.truth
                log_row = gammaln(true[0] + 1) + (xlogy(part, chances) - gammaln(np.array(part) + 1)).sum()
                terms.append(log_row + self._splits(true[1:], tuple(np.subtract(reported, part))))
        return logsumexp(terms) if terms else -np.inf

    def project(self, release) -> np.ndarray:
        """Estimates (reports − n other)/(truth − other) of the true counts, clipped at 0 and rescaled to sum to n."""
        counts = np.maximum((np.asarray(release, float) - self.n * self.other) / (self.truth - self.other), 0.0)
        return self.n * counts / counts.sum(axis=-1, keepdims=True)

    def naive_posterior(self, release) -> np.ndarray:
        """Parameters (..., d) of the conjugate posterior that treats the estimated counts as exact counts."""
        return self.model.posterior(self.project(release))

    def posterior(self, release: ArrayLike, draws: int, rng: np.random.Generator) -> Draws:
        """Return independent, exact draws (draws, *theta_shape) given the numbers of reports (d,).

        The likelihood of r_i reports of answer i is (other + (truth − other) θ_i)^r_i. Its binomial expansion makes the
        posterior a mixture of the laws Dirichlet(prior + k), where k_i is the exponent of θ_i.
        """
        check_given(release, (self.size,), draws, rng)
        reported = np.asarray(release, float)
        if np.any(reported < 0) or np.any(reported != np.rint(reported)) or reported.sum() != self.n:
            raise ValueError(f"release is {release!r}; it must be whole numbers that sum to n, {self.n}")
        prior, counts, (log_other, log_forced) = self.model.prior, np.arange(self.n + 1.0), self._logs
        # The first count is n − Σ k_i, so that all counts sum to n.
        factors = [-gammaln(prior.sum() + self.n - counts)]
        for alpha, number in zip(prior, reported, strict=True):
            rest = number - counts
            with np.errstate(divide="ignore"):
                choices = np.where(rest >= 0, -gammaln(np.maximum(rest, 0) + 1) - gammaln(counts + 1), -np.inf)
            weight = np.maximum(rest, 0) * log_other + counts * log_forced
            factors.append(choices + weight + gammaln(alpha + counts))
        latent = exact_counts.latent_counts(factors, draws, rng)
        return named(self.model.sample(self.model.posterior(latent[:, 1:]), rng), self.model)

    @classmethod
    def examples(cls) -> list[Self]:
        """Binary data and three categories."""
        return [cls(BetaBernoulli(1, 1), 4, 1.0), cls(DirichletCategorical((5, 5, 5)), 3, 0.5)]
