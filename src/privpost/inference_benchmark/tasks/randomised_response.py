"""A task with randomised response on four possible answers."""

import numpy as np

from privpost.inference_benchmark.tasks import Made
from privpost.inference_benchmark.tasks.counts import CountsTask
from privpost.mechanisms.noise.randomised_response import RandomisedResponse
from privpost.models.conjugate.dirichlet_categorical import DirichletCategorical


class ResponseTask(CountsTask):
    """Counts of answers that are reported by randomised response, with a Dirichlet prior."""

    def __init__(self, name, prior, n, noise, budget):
        self.name, self.n, self.model, self.size = name, n, DirichletCategorical(tuple(prior)), len(prior)
        self.mechanism = RandomisedResponse.calibrate(self.model, n, budget)

    def augmented(self, theta, releases, rng) -> np.ndarray:
        """Draws of the true counts (k, d) given θ (k, d) and the reported counts (k, d)."""
        chances = np.full((self.size, self.size), self.mechanism.other)
        np.fill_diagonal(chances, self.mechanism.truth)
        law = chances * theta[:, None]
        reported = np.rint(releases).astype(np.int64)
        return rng.multinomial(reported, law / law.sum(axis=-1, keepdims=True)).sum(axis=1).astype(float)


TASKS = {"randomised_response": Made(ResponseTask, (1, 1, 1, 1), noises=("randomised_response",))}
