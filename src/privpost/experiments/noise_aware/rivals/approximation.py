"""Total variation between the exact posterior and the normal approximation of Bernstein and Sheldon (2018).

For binary data, the sampler draws θ from the exact conditional given the count, and the count from a normal law. No
joint distribution has these two conditionals, so the chain's stationary law is computed as a fixed point, by quadrature
over the count. For redacted sums, the posterior under a normal law of the sum is computed on a grid of θ.
"""

import functools

import numpy as np
from scipy.special import betaln, xlog1py, xlogy

from privpost.inference_benchmark.tasks.counts import CountsTask
from privpost.inference_benchmark.tasks.sums import RedactedTask
from privpost.samplers.noise_aware.exact import count_weights, posterior_density
from privpost.samplers.noise_aware.quadrature import log_normal_laplace

# Mass of the exact posterior that each end of the quadrature's range cuts off.
_TAIL = 1e-10
# Quadrature nodes on either side of the release.
NODES = 100


def distances(task, releases) -> np.ndarray:
    """Return the normal approximation's total variation distances (k,) for releases (k, q), nan if not known."""
    if task.noise == "laplace" and task.size == 1 and isinstance(task, CountsTask):
        return bits(tuple(task.model.prior), releases[:, 0], task.n, task.scale)
    if isinstance(task, RedactedTask):
        law = task.posteriors(releases)
        theta = law.theta[0][:, None]
        mean, variance = (part.ravel() for part in task.moments(theta))
        return redacted(law, task.log_prior(theta[:, 0]), mean, variance, releases[:, 0], task.scale)
    return np.full(len(releases), np.nan)


# The result is cached, as computing the nodes takes as long as everything else.
_gauss_legendre = functools.cache(np.polynomial.legendre.leggauss)


def _legendre(low, high, nodes):
    node, weight = _gauss_legendre(nodes)
    return low + (high - low) * (node + 1) / 2, weight * (high - low) / 2


def _beta_density(theta, a, b):
    return np.exp(xlogy(a - 1, theta) + xlog1py(b - 1, -theta) - betaln(a, b))


def parameter_grid(prior, release: float, n: int, scale: float, nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return nodes and weights of a quadrature over θ that covers the exact posterior of one release."""
    from scipy.stats import beta as beta_law

    alpha, beta = prior
    low, high = _count_range(prior, release, n, scale)
    ends = beta_law.ppf([_TAIL, 1 - _TAIL], [alpha + low, alpha + high], [beta + n - low, beta + n - high])
    return _legendre(*ends, 2 * nodes)


def _count_range(prior, release, n, scale):
    cumulative = np.cumsum(count_weights(prior, np.array([release]), n, scale)[0])
    low, high = np.searchsorted(cumulative, [_TAIL, 1 - _TAIL])
    # The normal approximation has other tails than the exact posterior, so half of the range is added on either side.
    margin = 1 + (high - low) / 2
    return max(0.0, low - margin), min(float(n), high + margin)


def stationary_density(prior, release: float, n: int, scale: float, theta, weights, nodes: int) -> np.ndarray:
    """Return the sampler's stationary density at θ, given a noisy count y.

    The sampler alternates between two laws. θ given the count s is Beta(α + s, β + n − s). The density of s given θ and
    y is proportional to N(s; nθ, nθ(1−θ)) exp(−|y − s|/scale) on [0, n].

    Args:
        prior: (α, β).
        release: y.
        n: public number of records.
        scale: scale of the Laplace noise.
        theta, weights: nodes and weights of the quadrature over θ, from `parameter_grid`.
        nodes: number of quadrature nodes over s on either side of y, where the Laplace density has its kink.
    """
    alpha, beta = prior
    low, high = _count_range(prior, release, n, scale)
    kink = min(max(release, low), high)
    parts = [_legendre(*part, nodes) for part in ((low, kink), (kink, high)) if part[1] > part[0]]
    s, s_weights = (np.concatenate(pieces) for pieces in zip(*parts, strict=True))
    to_theta = _beta_density(theta[:, None], alpha + s, beta + n - s)
    variance = n * theta * (1 - theta)
    log_conditional = -((s[:, None] - n * theta) ** 2) / (2 * variance) - np.abs(release - s[:, None]) / scale
    to_count = np.exp(log_conditional - log_conditional.max(axis=0)) * s_weights[:, None]
    to_count /= to_count.sum(axis=0)
    transition = to_count @ (to_theta * weights[:, None])
    # The fixed point is the null vector of transition − 1 with total mass 1.
    size = len(s)
    system = transition - np.eye(size)
    system[-1] = 1.0
    mass = np.linalg.solve(system, np.eye(size)[-1])
    density = to_theta @ mass
    return density / (weights @ density)


def bits(prior, releases, n: int, scale: float, nodes: int = NODES) -> np.ndarray:
    """Return the total variation distance between stationary law and exact posterior for each noisy count (k,)."""
    distances = np.empty(len(releases))
    for k, release in enumerate(releases):
        theta, weights = parameter_grid(prior, release, n, scale, nodes)
        exact = posterior_density(prior, releases[k : k + 1], theta, n, scale)[0]
        law = stationary_density(prior, release, n, scale, theta, weights, nodes)
        distances[k] = weights @ np.abs(exact / (weights @ exact) - law) / 2
    return distances


def redacted(exact, log_prior, mean, variance, releases, scale: float) -> np.ndarray:
    """Return total variation distances (k,) between exact posteriors and those that take the sum as normal.

    Args:
        exact: the exact posteriors of the releases (k,), as masses in cells of θ.
        log_prior: the prior's log-density, shape (cells,).
        mean, variance: mean and variance of the redacted sum given θ, shape (cells,).
        releases: noisy sums.
        scale: scale of the Laplace noise.
    """
    noisy = log_normal_laplace(releases[:, None] - mean, variance, scale)
    mass = exact.width[0] * np.exp(log_prior + noisy)
    return np.abs(exact.mass - mass / mass.sum(axis=1, keepdims=True)).sum(axis=1) / 2
