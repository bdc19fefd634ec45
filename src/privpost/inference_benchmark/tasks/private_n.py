"""Tasks whose records are bits or categories. The number n of records is private.

Neighbouring data sets differ in the presence of one record. A substitution can cost twice the budget.
"""

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
from scipy.special import gammaln

from privpost.inference_benchmark.base import Task
from privpost.inference_benchmark.tasks import Made
from privpost.mechanisms.base import COUNTED
from privpost.mechanisms.noise.laplace import LaplaceMechanism
from privpost.models.conjugate.beta_bernoulli import BetaBernoulli
from privpost.models.conjugate.dirichlet_categorical import DirichletCategorical
from privpost.privacy.checks import check_given, check_numbers
from privpost.samplers.noise_aware import exact_counts
from privpost.samplers.noise_aware.draws import Draws, named


@dataclass(frozen=True)
class UnboundedLaplace(LaplaceMechanism):
    """Counts plus Laplace noise of scale 1/ε, which is ε-DP if neighbours add or remove a record.

    Attributes:
        n: largest number of records. The true number is private, with a uniform prior on 0, ..., n.

    Raises:
        ValueError: a setting is outside its range, or the model's records are not categories.
    """

    neighbours: ClassVar[str] = "add or remove one"
    public_inputs: ClassVar[tuple[str, ...]] = ("prior", "largest n")
    models: ClassVar[tuple[type, ...]] = COUNTED

    @property
    def sensitivity(self) -> float:
        """The sensitivity 1, as each record is in one count."""
        return 1.0

    def check_statistics(self, statistics) -> None:
        """Raise ValueError unless statistics (..., d) are counts of at most n records."""
        counts = check_numbers("statistics", statistics, self.model.statistics_size)
        if np.any(counts < 0) or np.any(counts.sum(axis=-1) > self.n):
            raise ValueError(f"n is at most {self.n}, but the statistics are counts of {counts.sum(axis=-1).max():g}")

    def neighbouring_statistics(self) -> np.ndarray:
        """Statistics of data sets with one record and without records."""
        # These pairs suffice, since other records do not affect the noise.
        ones = np.eye(self.model.statistics_size)
        return np.stack([ones, 0 * ones], axis=1)

    def posterior(self, release, draws: int, rng: np.random.Generator) -> Draws:
        """Independent draws of θ given the noisy counts (d,), by a sum over all counts of at most n records.

        The counts s have the prior p(s) ∝ N!/Π s_j! Π Γ(α_j + s_j)/Γ(Σα + N) with N = Σ s_j.
        """
        check_given(release, (self.model.statistics_size,), draws, rng)
        counts = np.arange(self.n + 1.0)
        # The number n − N of missing records is one more count, so that all counts add up to n.
        rest = gammaln(self.n - counts + 1) - gammaln(np.sum(self.model.prior) + self.n - counts)
        latent = exact_counts.latent_counts([rest, *self._factors(release, self.n)], draws, rng)[:, 1:]
        return named(self.model.sample(self.model.posterior(latent), rng), self.model)

    def posterior_of(self, number: int, release, draws: int, rng: np.random.Generator) -> np.ndarray:
        """Independent draws of θ given the noisy counts (d,) and the number of records."""
        latent = exact_counts.latent_counts(self._factors(release, number), draws, rng)
        return self.model.sample(self.model.posterior(latent), rng)

    def _factors(self, release, most: int) -> list[np.ndarray]:
        """For each category, the log-weights (most + 1,) of 0, ..., `most` records."""
        # Factors that depend on the total alone are left out.
        counts, prior = np.arange(most + 1.0), np.asarray(self.model.prior, float)
        return [
            gammaln(alpha + counts) - gammaln(counts + 1) - np.abs(y - counts) / self.scale
            for y, alpha in zip(release, prior, strict=True)
        ]


class PrivateNTask(Task):
    """Counts of bits or of categories, where the number of records has a uniform prior on 0, ..., 2n.

    Attributes:
        n: prior mean of the number of records.
        largest: largest number of records, 2n.
    """

    def __init__(self, name, prior, n, noise, budget):
        self.name, self.n, self.largest = name, n, 2 * n
        bits = name == "private_n_binomial"
        self.model = BetaBernoulli(*prior) if bits else DirichletCategorical(tuple(prior))
        self.mechanism = UnboundedLaplace.calibrate(self.model, self.largest, budget, coordinates="all")
        self.size = 1 if bits else len(self.model.prior)

    def probabilities(self, theta) -> np.ndarray:
        """Probabilities (..., d) of all categories at θ (..., p)."""
        return np.concatenate([theta, 1 - theta], axis=-1) if self.size == 1 else theta

    def data(self, theta, rng):
        number = rng.integers(self.largest + 1, size=len(theta))
        return rng.multinomial(number, self.probabilities(theta)).astype(float)

    def laws(self, releases):
        return [partial(self._drawn, release) for release in releases]

    def _drawn(self, release, draws: int, rng) -> np.ndarray:
        return np.reshape(self.mechanism.posterior(release, draws, rng), (draws, self.size))


TASKS = {
    "private_n_binomial": Made(PrivateNTask, (10, 10)),
    "private_n_multinomial": Made(PrivateNTask, (5, 5, 5)),
}
