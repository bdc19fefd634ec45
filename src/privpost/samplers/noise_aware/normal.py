"""Algorithm 2 of Bernstein and Sheldon (2018) for normal records of unknown mean and variance.

The release is the sums Σr and Σr² of records clamped to public bounds, plus Laplace noise (`ClampedMoments`).
"""

import numpy as np

from privpost.models.conjugate.clamped_moments import ClampedMoments
from privpost.samplers.noise_aware.gibbs import Kernel, State, _valid_draws, noise_prior, noise_variance, normal_product


def kernel(model: ClampedMoments, release, n: int, scale: float) -> Kernel:
    """Return the chains for a batch of releases, with the mean and the variance as θ (2, trials).

    A sweep draws the clamped and unclamped sums together, then θ, then the noise variances. Unclamped sums with
    Σu² < (Σu)²/n are impossible and are drawn again.

    Args:
        release: noisy sums, shape (2, trials).
        n, scale: public number of records, and scale of the Laplace noise.
    """
    release = np.ascontiguousarray(release, float)
    # The unclamped sums are not observed.
    observed, unseen = np.concatenate([release, 0 * release]), np.full_like(release, np.inf)

    def invalid(sums):
        return np.flatnonzero(n * sums[3] < sums[2] ** 2)

    def init(rng):
        theta = model.sample(model.prior, rng, release.shape[1])
        return State(theta.T, model.sum_moments(theta, n)[0], noise_prior(release.shape, scale, rng))

    def step(state, rng):
        variance = np.concatenate([state.variance, unseen])
        mean, factor = normal_product(*model.sum_moments(state.theta.T, n), observed, variance)

        def draw(z, at):
            return mean[:, at] + np.einsum("ijt,jt->it", factor[..., at], z)

        sums, rejected = _valid_draws(draw, invalid, state.statistic, rng)
        theta = model.sample(model.family.posterior(model.sums(sums[2:].T, n)), rng)
        return State(theta.T, sums, noise_variance(release - sums[:2], scale, rng)), rejected

    return Kernel(init, step)
