"""Noise-aware Gibbs samplers for p(θ | y), y a noisy sum of sufficient statistics (Bernstein and Sheldon 2018).

The Laplace noise is a scale mixture of normals and the sum's distribution given θ is approximated by a normal one.
Every step acts on all trials at once; its cost does not depend on n.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import log_ndtr, ndtri_exp

from privpost.models.univariate import SegmentMoments, UnivariateFamily
from privpost.samplers import chain

SEGMENTS = ("independent", "multinomial")
# Rounds of rejection before a trial's draw is made another way: no trial can hold up the others.
ROUNDS = 10
# Sweeps that are handed over at once: some hundred kilobytes for a thousand trials.
CHUNK = 50


class State(NamedTuple):
    """Where a batch of chains stands.

    Attributes:
        theta: parameters, shape (trials,) or (categories, trials).
        statistic: latent sum of sufficient statistics, shape as that of the release.
        variance: variance σ² of each noise variate, shape as that of the release.
    """

    theta: np.ndarray
    statistic: np.ndarray
    variance: np.ndarray


class Kernel(NamedTuple):
    """A Gibbs sampler (`chain.Sampler`) for one batch of releases; a sweep costs the number of rejected proposals."""

    init: Callable[[np.random.Generator], State]
    step: Callable[[State, np.random.Generator], tuple[State, int]]


class Proposals(NamedTuple):
    """Proposals of the latent sum over a run, and how many of them were no valid statistics."""

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
        kernel: the sampler.
        rng: source of randomness.
        burn_in: sweeps before the first draw that is handed over, ≥ 0.
        draws: sweeps that are handed over, ≥ 1.
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
    """Draw the mixture variance σ² of Laplace noise given the noise itself.

    The prior is σ² ~ Exp(mean 2b²) with b the noise's scale, so 1/σ² ~ InverseGaussian(mean 1/(b|r|), shape 1/b²)
    given the residual r = y − s (algorithm 1, line 5). Both roots of the sampler of Michael, Schucany and Haas
    (1976) are written for σ², without cancellation: with e = |r|/b, h = ν²/2 for a standard normal ν and
    R = e + h + √(h(h + 2e)) they are b²R, taken with probability R/(R + e), and b²e²/R.

    Args:
        residual: r, any shape; 0 is allowed.
        scale: b > 0, broadcast.
    """
    distance = np.abs(residual)
    distance /= scale
    half = rng.standard_normal(distance.shape)
    half *= half
    half *= 0.5
    root = 2 * distance
    root += half
    root *= half
    np.sqrt(root, out=root)
    root += half
    root += distance
    other = rng.random(distance.shape)
    other *= root + distance
    variance = np.where(other > root, distance * (distance / root), root)
    variance *= scale * scale
    return variance


def truncated_normal(mean, sd, low, high, rng: np.random.Generator) -> tuple[np.ndarray, int]:
    """Draw from N(mean, sd²) restricted to [low, high], and count the rejected proposals.

    A draw that is still invalid after `ROUNDS` rounds of rejection is replaced by an exact one through the inverse
    distribution function, so the number of steps is bounded.

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
    draws[invalid] = _truncated_normal_quantile(mean[invalid], sd[invalid], low, high, rng.random(len(invalid)))
    return draws, rejected


def _truncated_normal_quantile(mean, sd, low, high, probability):
    alpha, beta = (low - mean) / sd, (high - mean) / sd
    # Reflected into the lower tail, where the logarithm of the distribution function keeps its digits.
    upper = alpha > 0
    alpha, beta = np.where(upper, -beta, alpha), np.where(upper, -alpha, beta)
    log_alpha, log_beta = log_ndtr(alpha), log_ndtr(beta)
    share = np.exp(log_alpha - log_beta)
    z = ndtri_exp(log_beta + np.log(share + (1 - share) * probability))
    return np.clip(mean + sd * np.where(upper, -z, z), low, high)


def binomial_kernel(prior, release, n: int, scale: float) -> Kernel:
    """Algorithm 1 for the number of successes among n bits, released with Laplace noise.

    s ~ N(nθ, nθ(1−θ)) × N(y, σ²) on [0, n], then σ² by `noise_variance`, then θ ~ Beta(α + s, β + n − s).

    Args:
        prior: (α, β).
        release: y, shape (trials,).
        n: public number of records.
        scale: Δ/ε with Δ = 1.
    """
    alpha, beta = map(float, prior)

    def init(rng):
        theta = rng.beta(alpha, beta, size=release.shape)
        return State(theta, n * theta, noise_prior(release.shape, scale, rng))

    def step(state, rng):
        mean = n * state.theta
        variance = mean * (1 - state.theta)
        gain = variance / (variance + state.variance)
        centre = mean + gain * (release - mean)
        statistic, rejected = truncated_normal(centre, np.sqrt(gain * state.variance), 0.0, float(n), rng)
        theta = rng.beta(alpha + statistic, (beta + n) - statistic)
        return State(theta, statistic, noise_variance(release - statistic, scale, rng)), rejected

    return Kernel(init, step)


def multinomial_kernel(prior, release, n: int, scale: float) -> Kernel:
    """Algorithm 1 for the counts of d categories among n records, all of them released with Laplace noise.

    The normal approximation N(nθ, n(diag θ − θθᵀ)) is that of independent N(nθ_j, nθ_j) given that they sum to n.
    Its product with N(y, diag σ²) is therefore a vector of independent normals with precisions 1/(nθ_j) + 1/σ_j²,
    given the same sum: it is drawn without the sum and then moved onto it along the variances. That is the same law as
    covariance Σ₁(Σ₁+Σ₂)⁻¹Σ₂ without a matrix. Proposals with a negative count are made again; a trial without a
    valid one in `ROUNDS` rounds keeps its counts, which leaves the conditional distribution invariant.

    Args:
        prior: concentrations α, shape (d,).
        release: y, shape (d, trials).
        n: public number of records.
        scale: Δ/ε with Δ = 2: a substituted record changes two counts by one.
    """
    concentration = np.asarray(prior, float)[:, None]

    def dirichlet(parameters, rng):
        gammas = rng.standard_gamma(parameters)
        return gammas / gammas.sum(axis=0)

    def init(rng):
        theta = dirichlet(np.broadcast_to(concentration, release.shape), rng)
        return State(theta, n * theta, noise_prior(release.shape, scale, rng))

    def step(state, rng):
        mean = n * state.theta
        variance = mean / (1 + mean / state.variance)
        centre = variance * (1 + release / state.variance)
        sd, share = np.sqrt(variance), variance / variance.sum(axis=0)
        statistic = _onto_sum(centre, sd, share, n, rng)
        rejected = 0
        if statistic.min() < 0:
            invalid = np.flatnonzero(statistic.min(axis=0) < 0)
            for _ in range(ROUNDS):
                rejected += len(invalid)
                proposals = _onto_sum(centre[:, invalid], sd[:, invalid], share[:, invalid], n, rng)
                statistic[:, invalid] = proposals
                invalid = invalid[proposals.min(axis=0) < 0]
                if not len(invalid):
                    break
            else:
                rejected += len(invalid)
                statistic[:, invalid] = state.statistic[:, invalid]
        theta = dirichlet(concentration + statistic, rng)
        return State(theta, statistic, noise_variance(release - statistic, scale, rng)), rejected

    return Kernel(init, step)


def _onto_sum(centre, sd, share, n, rng):
    free = centre + sd * rng.standard_normal(centre.shape)
    return free + share * (n - free.sum(axis=0))


def random_sum(n: int, moments: SegmentMoments) -> tuple[np.ndarray, np.ndarray]:
    """Mean nqμ̂ and variance nqΣ̂ + nq(1−q)μ̂² of the sum of the records in a segment (proposition 1)."""
    probability, mean, variance = moments
    expected = n * probability
    return expected * mean, expected * (variance + (1 - probability) * mean**2)


def redacted_kernel(
    model: UnivariateFamily, release, n: int, scale, low, high, segments: str = "multinomial"
) -> Kernel:
    """Algorithm 2: the sum of the records in [low, high], released with Laplace noise.

    With m_c, V_c the moments of the redacted sum, g = V_c/(V_c + σ²), m_c' = m_c + g(y − m_c), V_c' = gσ²:
    "independent" draws the full sum from N(m_l + m_c' + m_u, V_l + V_c' + V_u), as the paper does;
    "multinomial" accounts for Cov(s_r, s_q) = −n q_r q_q μ̂_r μ̂_q between segments, so that with n E x, n Var x
    the moments of the full sum and C = V_c − m_c(nEx − m_c)/n its covariance with the redacted one, the sum is
    N(nEx + C(y − m_c)/(V_c + σ²), n Var x − C²/(V_c + σ²)). A sweep draws the redacted sum from N(m_c', V_c') for σ² by
    `noise_variance`, then the full sum for θ: the paper's cycle, begun where the moments serve both draws.

    Args:
        model: the family and its prior.
        release: y, shape (trials,).
        n: public number of records.
        scale: Δ/ε, scalar or (trials,), Δ from `redacted_sensitivity`.
        low, high: the interval, scalars or (trials,).
        segments: "independent" or "multinomial".

    Raises:
        ValueError: another value of `segments`.
    """
    if segments not in SEGMENTS:
        raise ValueError(f"segments is {segments!r}; allowed: {', '.join(SEGMENTS)}")
    smallest, largest = (n * end for end in model.statistic_support)
    low, high, scale = (np.broadcast_to(np.asarray(value, float), release.shape) for value in (low, high, scale))
    # (Σx, n) of each trial; one trial's pair lies along the first axis, so that either entry is contiguous.
    statistics = np.full((2, len(release)), float(n))

    def init(rng):
        theta = model.sample(np.broadcast_to(model.prior, (*release.shape, len(model.prior))), rng)
        variance = noise_prior(release.shape, scale, rng)
        return State(theta, random_sum(n, model.segment_moments(theta, low, high))[0], variance)

    def step(state, rng):
        theta, noise = state.theta, state.variance
        mean, variance = random_sum(n, model.segment_moments(theta, low, high))
        gain = variance / (variance + noise)
        redacted = mean + gain * (release - mean) + np.sqrt(gain * noise) * rng.standard_normal(release.shape)
        noise = noise_variance(release - redacted, scale, rng)
        centre, spread = _full_sum(model, release, n, (low, high), segments, (theta, mean, variance, noise))
        # Rounding can take the variance below 0 where y fixes the sum.
        full, rejected = truncated_normal(centre, np.sqrt(np.maximum(spread, 0.0)), smallest, largest, rng)
        statistics[0] = full
        return State(model.sample(model.posterior(statistics.T), rng), redacted, noise), rejected

    return Kernel(init, step)


def _full_sum(model: UnivariateFamily, release, n: int, interval, segments: str, state) -> tuple:
    """Mean and variance of the sum of all records given y and (θ, mean and variance of the redacted sum, σ²)."""
    theta, mean, variance, noise = state
    total = variance + noise
    if segments == "multinomial":
        record_mean, record_variance = model.record_moments(theta)
        everything = n * record_mean
        covariance = variance - mean * (everything - mean) / n
        slope = covariance / total
        return everything + slope * (release - mean), n * record_variance - slope * covariance
    gain = variance / total
    (low, high), ends = interval, np.asarray(model.record_support)
    lower = random_sum(n, model.segment_moments(theta, ends[:1], low))
    upper = random_sum(n, model.segment_moments(theta, high, ends[1:]))
    return (
        lower[0] + mean + gain * (release - mean) + upper[0],
        lower[1] + gain * noise + upper[1],
    )


def noise_prior(shape, scale, rng):
    """Variates of the prior of the noise's variance, Exp(mean 2 scale²)."""
    return 2 * scale**2 * rng.standard_exponential(shape)
