"""The noise-aware posterior against the exact one (ours; models of Bernstein and Sheldon 2018).

Bits: the sampler draws θ from its exact conditional given the count, but the count from a normal approximation. The two
conditionals belong to no joint distribution, so the stationary law is computed as a fixed point, by quadrature over the
count. Its distance from the exact posterior is the error of the approximation, without Monte Carlo noise.

Redacted sums with public bounds: the posterior of the normal model, by quadrature, is compared with the posterior
under the sum's own law, by Fourier inversion.
"""

import functools

import numpy as np
from scipy.special import betaln, xlog1py, xlogy

from privpost.evaluation.rows import columns, places
from privpost.evaluation.summaries import mean_and_sem
from privpost.experiments.bernstein2018.trials import PRIOR, Counts, experiment, many_chains
from privpost.experiments.ranges import BURN_IN, DRAWS, EPSILON, MODEL, N
from privpost.lab.schema import Integer, Schema, Text
from privpost.samplers.noise_aware_exact import conditional_cdf, count_weights, posterior_density
from privpost.samplers.noise_aware_gibbs import random_sum, run
from privpost.samplers.noise_aware_quadrature import (
    log_normal_laplace,
    parameter_edges,
    redacted_likelihood,
    redacted_posterior,
)

SETTINGS = Schema(
    model=Text(says=MODEL),
    prior=PRIOR,
    largest_n=Integer(at_least=1, says="largest n that is computed", unit="records"),
    burn_in=BURN_IN,
    draws=DRAWS,
    chains=Integer(at_least=2, says="chains per release"),
    bins=Integer(at_least=2, says="bins of the sampled total variation, equally likely under the exact posterior"),
    nodes=Integer(at_least=20, says="quadrature nodes on either side of the release"),
    n=N,
    epsilon=EPSILON,
)
TABLES = {
    "oracle": {
        "total_variation": "total variation distance from the exact posterior, mean over trials [probability]",
        "total_variation_max": "largest total variation distance over trials [probability]",
        "total_variation_sampled": "total variation distance of the sampler's draws, in bins [probability]",
        "sampling_floor": "total variation distance that as many independent draws would have, in bins [probability]",
        "n_bins": "bins of the sampled total variation, equally likely under the exact posterior [count]",
    },
}
# Mass of the exact posterior outside the quadrature's range.
_TAIL = 1e-10


# Cached: to find the nodes takes as long as all the rest.
_gauss_legendre = functools.cache(np.polynomial.legendre.leggauss)


def _legendre(low, high, nodes):
    node, weight = _gauss_legendre(nodes)
    return low + (high - low) * (node + 1) / 2, weight * (high - low) / 2


def _beta_density(theta, a, b):
    return np.exp(xlogy(a - 1, theta) + xlog1py(b - 1, -theta) - betaln(a, b))


def parameter_grid(prior, release: float, n: int, scale: float, nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return nodes and weights for integrals over θ that cover the exact posterior of one release."""
    from scipy.stats import beta as beta_law

    alpha, beta = prior
    low, high = _count_range(prior, release, n, scale)
    ends = beta_law.ppf([_TAIL, 1 - _TAIL], [alpha + low, alpha + high], [beta + n - low, beta + n - high])
    return _legendre(*ends, 2 * nodes)


def _count_range(prior, release, n, scale):
    cumulative = np.cumsum(count_weights(prior, np.array([release]), n, scale)[0])
    low, high = np.searchsorted(cumulative, [_TAIL, 1 - _TAIL])
    # The tails of the normal approximation differ: half of the range is added on either side.
    margin = 1 + (high - low) / 2
    return max(0.0, low - margin), min(float(n), high + margin)


def stationary_density(prior, release: float, n: int, scale: float, theta, weights, nodes: int) -> np.ndarray:
    """Return the density at θ of the law that alternating θ | s and s | θ, y leaves unchanged.

    θ | s ~ Beta(α + s, β + n − s); s | θ, y has density ∝ N(s; nθ, nθ(1−θ)) exp(−|y − s|/scale) on [0, n].

    Args:
        prior: (α, β).
        release: y.
        n: public number of records.
        scale: scale of the Laplace noise.
        theta, weights: quadrature over θ, from `parameter_grid`.
        nodes: quadrature nodes over s on either side of y, where the Laplace density has its kink.
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
    # The fixed point, as the null vector of transition − 1 with total mass 1.
    size = len(s)
    system = transition - np.eye(size)
    system[-1] = 1.0
    mass = np.linalg.solve(system, np.eye(size)[-1])
    density = to_theta @ mass
    return density / (weights @ density)


def simulate(config, streams, ledger) -> dict:
    """Return total variation distances (n, trials); nan beyond `largest_n`.

    `stationary`: between the law that the normal approximation leads to and the exact posterior. `sampled`: between the
    pooled draws of many chains and a reference, over bins that are equally likely under it; the reference is the exact
    posterior for bits, and the normal model's posterior for redacted sums, so that only the chains' error counts.
    `floor`: half of the distance between two halves of the chains, about what independent draws would give.
    """
    trial = experiment(config.model, config.prior, "corrected")
    stationary, sampled, floor = (np.full((len(config.n), config.trials), np.nan) for _ in range(3))
    compare = _bits if config.model == "binomial" else _redacted
    for i, n in enumerate(config.n):
        if n > config.largest_n:
            continue
        trial.open(ledger, f"n={n}", n, config.epsilon)
        for block in streams.blocks():
            data = trial.data(n, block.size, streams("data", block.index, n=n))
            rng = streams("mechanism", block.index, n=n)
            release = trial.release(ledger, f"n={n}", data, n, config.epsilon, rng, block.trials)
            stationary[i, block.trials], edges = compare(config, trial, data, release, n)
            kernel = trial.kernel(*many_chains(data, release, config.chains), n)
            halves = _shares(config, kernel, edges, streams("sampler", block.index, n=n))
            sampled[i, block.trials] = np.abs(halves.mean(axis=0) - 1 / config.bins).sum(axis=-1) / 2
            floor[i, block.trials] = np.abs(halves[0] - halves[1]).sum(axis=-1) / 4
    return {"stationary": stationary, "sampled": sampled, "floor": floor}


def _bits(config, trial: Counts, data, release, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return distances (trials,) of the sampler's law from the exact posterior, and ends of the posterior's bins."""
    prior, y = tuple(trial.model.prior), release.values[0]
    distance, edges = np.empty(len(y)), np.empty((len(y), config.bins - 1))
    for t, value in enumerate(y):
        theta, weights = parameter_grid(prior, value, n, release.scale, config.nodes)
        exact = posterior_density(prior, y[t : t + 1], theta, n, release.scale)[0]
        exact /= weights @ exact
        law = stationary_density(prior, value, n, release.scale, theta, weights, config.nodes)
        distance[t] = weights @ np.abs(exact - law) / 2
        edges[t] = _quantiles(prior, value, n, release.scale, theta, config.bins)
    return distance, edges


def _redacted(config, trial, data, release, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return distances (trials,) of the normal model's posterior from the exact one, and ends of its bins."""
    model, y, scale = trial.model, release.values[0], float(release.scale[0])
    edges = parameter_edges(model, 2 * config.nodes)
    theta, width = (edges[1:] + edges[:-1]) / 2, np.diff(edges)
    prior = width * np.exp(model.log_density(theta, model.prior))
    interval = data.low[0], data.high[0]
    mean, variance = random_sum(n, model.segment_moments(theta, *interval))
    approximate = prior * np.exp(log_normal_laplace(y[:, None] - mean, variance, scale))
    exact = prior * redacted_likelihood(model, y, n, scale, interval, theta)
    difference = exact / exact.sum(axis=1, keepdims=True) - approximate / approximate.sum(axis=1, keepdims=True)
    posterior = redacted_posterior(model, y, n, scale, *interval)
    return np.abs(difference).sum(axis=1) / 2, posterior.quantiles(np.arange(1, config.bins) / config.bins)


def _quantiles(prior, release, n, scale, theta, bins: int) -> np.ndarray:
    """Return the ends of bins that are equally likely under the exact posterior, from its law at `theta`."""
    from scipy.interpolate import PchipInterpolator

    weights = count_weights(prior, np.array([release]), n, scale)[0]
    # The other weights are below rounding.
    low, high = np.flatnonzero(weights > 1e-20)[[0, -1]]
    cdf = PchipInterpolator(theta, conditional_cdf(prior, theta, n, (low, high)) @ weights[low : high + 1])
    fine = np.interp(np.linspace(0, len(theta) - 1, 20 * len(theta)), np.arange(len(theta)), theta)
    return np.interp(np.arange(1, bins) / bins, cdf(fine), fine)


def _shares(config, kernel, edges, rng) -> np.ndarray:
    """Return the shares of Gibbs draws in the bins of each trial, by halves of its chains: (2, trials, bins)."""
    trials, chains = len(edges), config.chains
    below = np.zeros((config.bins - 1, trials, chains))

    def consume(theta):
        theta = theta.reshape(-1, trials, chains)
        for k, edge in enumerate(edges.T):
            below[k] += (theta <= edge[:, None]).sum(axis=0)

    run(kernel, rng, config.burn_in, config.draws, consume)
    halves = below[..., : chains // 2].mean(axis=-1), below[..., chains // 2 :].mean(axis=-1)
    cumulative, ends = np.stack(halves) / config.draws, np.zeros((2, 1, trials))
    return np.diff(np.concatenate([ends, cumulative, ends + 1], axis=1), axis=1).transpose(0, 2, 1)


def tabulate(cells):
    """Yield means over trials with their standard errors."""
    for cell in cells:
        for at, point in places(cell.config, "n"):
            if point.n > point.largest_n:
                continue
            values = {name: mean_and_sem(cell.arrays[name][at]) for name in ("stationary", "sampled", "floor")}
            yield {
                "model": point.model,
                "prior": prior_name(point.model, point.prior),
                **columns(point, "n", "epsilon"),
                "total_variation": values["stationary"][0],
                "total_variation_sem": values["stationary"][1],
                "total_variation_max": float(cell.arrays["stationary"][at].max()),
                "total_variation_sampled": values["sampled"][0],
                "total_variation_sampled_sem": values["sampled"][1],
                "sampling_floor": values["floor"][0],
                "sampling_floor_sem": values["floor"][1],
                "n_trials": point.trials,
                "n_draws": point.draws * point.chains,
                "n_bins": point.bins,
            }


def prior_name(model: str, prior) -> str:
    """Return a model's prior in words."""
    if model == "normal":
        return f"N({prior[0]:g}, {prior[1]:g})"
    return f"{'Beta' if model == 'binomial' else 'Gamma'}({prior[0]:g}, {prior[1]:g})"
