"""Noise-aware Gibbs sampler of p(θ | y) for a noisy sum y of sufficient statistics (Bernstein and Sheldon 2018).

The Laplace noise is a scale mixture of normals, and the sum given θ is treated as normal. Every step acts on all trials
at once. The cost of a step does not depend on n.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import log_ndtr, ndtri_exp

from privpost.models.base import BoundedFamily
from privpost.models.conjugate.dirichlet_categorical import DirichletCategorical
from privpost.models.conjugate.univariate import SegmentMoments
from privpost.samplers import chain

# Rounds of rejection before a trial's draw is made in another way, so that no trial holds up all others.
ROUNDS = 10
# Sweeps that are handed over at once: some hundred kilobytes for a thousand trials.
CHUNK = 50


class State(NamedTuple):
    """The current state of a batch of chains.

    Attributes:
        theta: parameters, shape (trials,) or (categories, trials).
        statistic: latent sum of sufficient statistics, in the shape of the release.
        variance: variance σ² of each noise variate, in the shape of the release.
    """

    theta: np.ndarray
    statistic: np.ndarray
    variance: np.ndarray


class Kernel(NamedTuple):
    """A Gibbs sampler (`chain.Sampler`) for one batch of releases, with the number of rejections as cost of a sweep."""

    init: Callable[[np.random.Generator], State]
    step: Callable[[State, np.random.Generator], tuple[State, int]]


class Proposals(NamedTuple):
    """Numbers of proposed and of rejected latent sums in a run."""

    made: int
    rejected: int

    @property
    def rejected_share(self) -> float:
        return self.rejected / self.made


def run(
    kernel: Kernel,
    rng: np.random.Generator,
    burn_in: int,
    draws: int,
    consume: Callable[[np.ndarray], None],
) -> Proposals:
    """Run the chains and hand their draws to `consume`, a few sweeps at a time.

    Args:
        burn_in: number of discarded sweeps at the start, ≥ 0.
        draws: number of sweeps that are handed over, ≥ 1.
        consume: called with θ of consecutive sweeps, shape (sweeps, *theta.shape).

    Raises:
        ValueError: burn_in or draws out of range.
    """
    rejected, chunk = 0, []
    for draw, (state, invalid) in enumerate(chain.run(kernel, rng, draws=draws, burn_in=burn_in), start=1):
        rejected += sum(invalid)
        chunk.append(state.theta)
        if draw % CHUNK == 0 or draw == draws:
            consume(np.stack(chunk))
            chunk.clear()
    return Proposals((burn_in + draws) * state.theta.shape[-1] + rejected, rejected)


def noise_variance(residual, scale, rng: np.random.Generator) -> np.ndarray:
    """Draw the mixture variances σ² of Laplace noise, given the noise r = y − s (algorithm 1, line 5).

    A priori, σ² is exponential with mean 2b², where b is the scale of the noise. So 1/σ² given r has the law
    InverseGaussian(mean 1/(b|r|), shape 1/b²).

    Args:
        residual: noise r, any shape; 0 is allowed.
        scale: scale b > 0, broadcast.
    """
    # Compiled code is loaded only to run chains.
    from privpost.samplers.noise_aware.counts import noise_variances

    residual = np.asarray(residual, float, order="C")
    variance = np.empty_like(residual)
    noise_variances(
        residual.ravel(), np.broadcast_to(scale, residual.shape).astype(float).ravel(), variance.ravel(), rng
    )
    return variance


def truncated_normal(mean, sd, low, high, rng: np.random.Generator) -> tuple[np.ndarray, int]:
    """Return draws from N(mean, sd²) restricted to [low, high], and the number of rejected proposals.

    After `ROUNDS` rounds of rejection, the inverse distribution function gives the missing draws.

    Args:
        mean, sd: shape (trials,).
        low, high: scalars, low < high; may be infinite.
    """
    draws = mean + sd * rng.standard_normal(mean.shape)
    if draws.min() >= low and draws.max() <= high:
        return draws, 0
    rejected = 0
    invalid = np.flatnonzero((draws < low) | (draws > high))
    for _ in range(ROUNDS):
        rejected += len(invalid)
        proposals = mean[invalid] + sd[invalid] * rng.standard_normal(len(invalid))
        draws[invalid] = proposals
        invalid = invalid[(proposals < low) | (proposals > high)]
        if not len(invalid):
            return draws, rejected
    rejected += len(invalid)
    draws[invalid] = truncated_normal_quantile(mean[invalid], sd[invalid], low, high, rng.random(len(invalid)))
    return draws, rejected


def truncated_normal_quantile(mean, sd, low, high, probability) -> np.ndarray:
    """Return the quantiles (trials,), at given probabilities, of N(mean, sd²) restricted to [low, high]."""
    alpha, beta = (low - mean) / sd, (high - mean) / sd
    # Reflection into the lower tail, where the logarithm of the distribution function loses no digits.
    upper = alpha > 0
    alpha, beta = np.where(upper, -beta, alpha), np.where(upper, -alpha, beta)
    log_alpha, log_beta = log_ndtr(alpha), log_ndtr(beta)
    share = np.exp(log_alpha - log_beta)
    z = ndtri_exp(log_beta + np.log(share + (1 - share) * probability))
    return np.clip(mean + sd * np.where(upper, -z, z), low, high)


def bounded_kernel(model: BoundedFamily, release, n: int, scale: float) -> Kernel:
    """Return algorithm 1 for a noisy sum of bounded statistics t.

    A sweep draws a valid sum s from the product of N(n E t, n Cov t) and N(y, diag σ²), then θ given s, then the noise
    variances σ².

    Args:
        release: noisy sums y of the first q of d statistics, shape (q, trials). q is d, or d − 1 if the other sums
            determine the last sum.
        n, scale: public number of records, and scale Δ/ε of the noise.
    """
    # Compiled code is loaded only to run chains.
    from privpost.samplers.noise_aware.counts import draw_counts

    release = np.ascontiguousarray(release, float)
    size, trials = release.shape
    records = np.stack([model.sufficient_statistics(record[None]) for record in model.records])
    total, ends = n * records[0].sum(), (n * records.min(axis=0)[:, None], n * records.max(axis=0)[:, None])
    bounds = tuple(float(end[0, 0]) for end in ends)
    # The counts of all categories have a singular covariance, but can be drawn in closed form.
    closed = isinstance(model, DirichletCategorical) and size == model.statistics_size

    def complete(statistic):
        if size == model.statistics_size:
            return statistic
        return np.concatenate([statistic, total - statistic.sum(axis=0, keepdims=True)])

    def invalid(statistic):
        full = complete(statistic)
        return np.flatnonzero(((full < ends[0]) | (full > ends[1])).any(axis=0))

    def update(parameters, rng):
        theta = model.sample(parameters, rng)
        return np.ascontiguousarray(theta.T)

    def init(rng):
        theta = update(np.broadcast_to(model.prior, (trials, len(model.prior))), rng)
        return State(theta, model.sum_moments(theta, n, size)[0], noise_prior(release.shape, scale, rng))

    def step(state, rng):
        theta, variance = state.theta, state.variance
        if closed:
            statistic, noise = state.statistic.copy(), variance.copy()
            rejected = draw_counts(theta, release, noise, n, scale, ROUNDS, statistic, rng)
            return State(update(model.posterior(statistic.T), rng), statistic, noise), rejected
        if size == 1:
            mean, sd = normal_product(*model.sum_moments(theta, n, 1), release, variance)
            statistic, rejected = truncated_normal(mean[0], sd[0, 0], *bounds, rng)
            statistic = statistic[None]
        else:
            mean, factor = normal_product(*model.sum_moments(theta, n, size), release, variance)

            def draw(z, at):
                return mean[:, at] + np.einsum("ijt,jt->it", factor[..., at], z)

            statistic, rejected = _valid_draws(draw, invalid, state.statistic, rng)
        theta = update(model.posterior(complete(statistic).T), rng)
        return State(theta, statistic, noise_variance(release - statistic, scale, rng)), rejected

    return Kernel(init, step)


def normal_product(mean, covariance, observed, variance) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean m and a factor L of the normal law N(m, LLᵀ) ∝ N(mean, covariance) × N(observed, diag variance).

    The shapes are (q, trials) for m and (q, q, trials) for L. The covariance may be singular.
    """
    if len(mean) == 1:
        gain = covariance[:, 0] / (covariance[0, 0] + variance[0])
        return mean + gain * (observed[0] - mean[0]), np.sqrt(gain * variance)[None]
    # Compiled code is loaded only to run chains.
    from privpost.samplers.noise_aware.counts import multiply_normals

    # The compiled loop neither checks bounds nor converts arrays, and is compiled again for a read-only array.
    product, factor = np.array(mean, float, order="C"), np.zeros((len(mean), *mean.shape))
    shapes = (covariance, factor.shape), (observed, mean.shape), (variance, mean.shape)
    given = (np.array(np.broadcast_to(part, shape), float, order="C") for part, shape in shapes)
    multiply_normals(product, *given, factor)
    return product, factor


def _valid_draws(draw, invalid, fallback, rng) -> tuple[np.ndarray, int]:
    """Return valid draws of sums (q, trials), and the number of rejected sums."""
    draws = draw(rng.standard_normal(fallback.shape), slice(None))
    wrong, rejected = invalid(draws), 0
    for _ in range(ROUNDS):
        if not len(wrong):
            return draws, rejected
        rejected += len(wrong)
        draws[:, wrong] = draw(rng.standard_normal((len(draws), len(wrong))), wrong)
        wrong = wrong[invalid(draws[:, wrong])]
    # Trials without a valid draw keep the old sums, which leaves the conditional law invariant.
    draws[:, wrong] = fallback[:, wrong]
    return draws, rejected + len(wrong)


def random_sum(n: int, moments: SegmentMoments) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean nqμ̂ and variance nqΣ̂ + nq(1−q)μ̂² of the sum of the records in a segment (prop. 1).

    `moments` holds the probability q of the segment, and the mean μ̂ and variance Σ̂ of a record in the segment.
    """
    probability, mean, variance = moments
    expected = n * probability
    return expected * mean, expected * (variance + (1 - probability) * mean**2)


def noise_prior(shape, scale, rng):
    """Draw noise variances from their prior, the exponential law of mean 2 scale²."""
    return 2 * scale**2 * rng.standard_exponential(shape)
