"""Tasks whose records are bits or categories and whose releases are noisy counts."""

from functools import partial

import numpy as np

from privpost.inference_benchmark.base import Records, Task
from privpost.inference_benchmark.tasks import Made
from privpost.mechanisms.noise.discrete import DiscreteGaussianMechanism, GeometricMechanism
from privpost.mechanisms.noise.gaussian import GaussianMechanism
from privpost.mechanisms.noise.laplace import LaplaceMechanism
from privpost.models.conjugate.beta_bernoulli import BetaBernoulli
from privpost.models.conjugate.dirichlet_categorical import DirichletCategorical

MECHANISMS = {
    kind.method: kind for kind in (LaplaceMechanism, GaussianMechanism, GeometricMechanism, DiscreteGaussianMechanism)
}


def indicators(probabilities, n: int, rng) -> np.ndarray:
    """Return indicators (k, n, d) of the categories of n random records, for each row of probabilities (k, d)."""
    uniform = rng.random((len(probabilities), n))
    shown, reached = np.empty((*uniform.shape, probabilities.shape[-1])), np.zeros(uniform.shape, bool)
    for j, ends in enumerate(np.cumsum(probabilities, axis=-1).T[:-1]):
        before, reached = reached, uniform <= ends[:, None]
        shown[..., j] = reached ^ before
    shown[..., -1] = ~reached
    return shown


class CountsTask(Task):
    """Counts of bits or of categories. For bits, θ is P(1). For categories, θ is the vector of probabilities."""

    def __init__(self, name, prior, n, noise, budget):
        self.name, self.n = name, n
        self.model = BetaBernoulli(*prior) if name == "binomial" else DirichletCategorical(tuple(prior))
        coordinates = "free" if name == "binomial" else "all"
        self.mechanism = MECHANISMS[noise].calibrate(self.model, n, budget, coordinates=coordinates)
        self.size = 1 if name == "binomial" else len(self.model.prior)

    def probabilities(self, theta) -> np.ndarray:
        """Probabilities (..., d) of all categories at θ (..., p)."""
        return np.concatenate([theta, 1 - theta], axis=-1) if self.size == 1 else theta

    def records(self, theta, rng):
        shown = indicators(self.probabilities(theta), self.n, rng)
        return Records(self.mechanism.select(shown), shown)

    def data(self, theta, rng):
        return rng.multinomial(self.n, self.probabilities(theta)).astype(float)

    def moments(self, theta):
        # Moments of the released counts only.
        shares = self.mechanism.select(self.probabilities(theta))
        covariance = np.eye(shares.shape[-1]) * shares[..., None] - shares[..., None] * shares[..., None, :]
        return self.n * shares, self.n * covariance

    def laws(self, releases):
        return [partial(self._drawn, release) for release in releases]

    def _drawn(self, release, draws: int, rng) -> np.ndarray:
        return np.reshape(self.mechanism.posterior(release, draws, rng), (draws, self.size))


TASKS = {
    "binomial": Made(CountsTask, (10, 10), noises=tuple(MECHANISMS)),
    # For discrete Gaussian noise on several counts, (ε, δ) is not known.
    "multinomial": Made(CountsTask, (5, 5, 5), noises=("laplace", "gaussian", "geometric")),
}
