"""Statements of Zhang et al. (2016) that exact computation decides, as rows of the table `bounds`.

- corollaries 1 and 2: algorithms 1 and 2 are ε-DP;
- theorem 4 (1): a draw from a posterior on L-Lipschitz parameters is 2L-DP (checked for the trimmed posterior);
- corollary 4: algorithm 3 with Δ = Lr is ε-DP;
- lemma 2: the Lipschitz constant of a network is the largest constant L_i of its nodes;
- lemma 3: the prior's mass outside the L-Lipschitz parameters is ≤ exp(−cL) for L ≥ L0, c = min c_i − ln|I|/L0;
- table 1: N draws estimate an expectation of a function in [0, 1] within √(ln(1/δ)/N), with probability ≥ 1 − δ;
- theorem 1: c_ij = (2n+1) ln((α+n+1)(β+n+1)) is the range of one parameter's divergence.
"""

import itertools
import math

import numpy as np

from privpost.experiments.zhang2016.settings import parse
from privpost.mechanisms.choices.map_estimate import GRID, utility, utility_sensitivity
from privpost.mechanisms.draws.network import RecordSampler
from privpost.models.networks.bayesian_network import LARGEST_ALPHABET, BayesianNetwork
from privpost.models.networks.fourier_basis import closure, largest_flips
from privpost.privacy.divergences.renyi import dirichlet_divergence

# Relative rounding error of the exact losses.
ROUNDING = 1e-9
# Thresholds L0 of lemma 3.
THRESHOLDS = (4.0, 8.0)
# Multiples of the threshold L0 at which the conclusion of lemma 3 is checked.
MULTIPLES = (1.0, 1.5, 2.0, 4.0)
# Possible meanings of the "posterior likelihood", the score of algorithm 3. The paper prints ξ(θ|D), the density.
SCORES = {"density": "the density", "mass": "the probability", "log": "the log-density"}
# Expectations of the 0/1 functions that draws estimate.
CHANCES = (0.5, 0.1, 0.01)


def difference_bound(alpha: float, beta: float, n: int) -> float:
    """Return theorem 1's bound (2n+1) ln((α+n+1)(β+n+1)) on the range of one parameter's divergence."""
    return (2 * n + 1) * math.log((alpha + n + 1) * (beta + n + 1))


def largest_divergence(alpha: float, beta: float, n: int) -> float:
    """Return the range of one parameter's divergence, the largest KL(Beta(α+a, β+b) ‖ Beta(α+z₁, β+z₂)).

    The counts have a + b ≤ n and z in [0, n]². The KL is 0 at z = (a, b) and convex in z, so the corners suffice.
    """
    counts = np.array([(a, b) for a in range(n + 1) for b in range(n + 1 - a)], float)
    prior = np.array([alpha, beta])
    corners = np.array(list(itertools.product((0.0, float(n)), repeat=2)))
    return float(dirichlet_divergence(prior + counts[:, None], prior + corners, 1.0).max())


def map_loss(n: int, epsilon: float, delta_utility: float, score: str = "density") -> float:
    """Return the largest privacy loss of algorithm 3 on one node with a uniform prior.

    The algorithm draws a grid point with weight ∝ exp(ε u / (2Δ)), where Δ is `delta_utility`. `score`, one of SCORES,
    says which function of the posterior is the utility u.
    """
    ones = np.arange(n + 1.0)
    pairs = np.stack([1 + ones, 1 + n - ones], axis=-1)
    values = np.log(utility(pairs, "density")) if score == "log" else utility(pairs, score)
    scores = values * epsilon / (2 * delta_utility)
    log_chance = scores - scores.max(axis=-1, keepdims=True)
    log_chance -= np.log(np.exp(log_chance).sum(axis=-1, keepdims=True))
    return float(np.abs(np.diff(log_chance, axis=0)).max())


def trimmed_means(alpha: float, beta: float, most: int, omega: float) -> list[np.ndarray]:
    """Return, for each number of records up to `most`, the means of Beta(α + ones, β + zeros) on [ω, 1−ω]."""
    # The quadrature is exact for uniform priors, as the densities are polynomials. Other priors get spare nodes.
    spare = 0 if alpha == beta == 1 else 16 + math.ceil(alpha + beta)
    nodes, weights = np.polynomial.legendre.leggauss(most // 2 + 2 + spare)
    theta = 0.5 + (0.5 - omega) * nodes
    means = []
    for total in range(most + 1):
        ones = np.arange(total + 1.0)[:, None]
        log_density = (alpha - 1 + ones) * np.log(theta) + (beta - 1 + total - ones) * np.log1p(-theta)
        density = weights * np.exp(log_density - log_density.max(axis=1, keepdims=True))
        means.append(density @ theta / density.sum(axis=1))
    return means


def sampler_loss(mechanism: RecordSampler) -> float:
    """Return the largest privacy loss of a draw from a trimmed posterior. With edges, it is an upper bound.

    Adding a one to a parameter's counts multiplies the density by θ/E θ, and adding a zero multiplies it by
    (1−θ)/E(1−θ). Turning a zero into a one multiplies it by θ/(1−θ) · E(1−θ)/E θ. Here E is the mean given the common
    counts. All factors are monotone, so the worst θ is ω or 1−ω.
    """
    model, n, omega = mechanism.model, mechanism.n, mechanism.omega
    means = trimmed_means(model.alpha, model.beta, n - 1, omega)
    top = math.log((1 - omega) / omega)
    flipped = np.array([top + np.abs(np.log(mean / (1 - mean))).max() for mean in means])
    either = [np.stack([mean, 1 - mean]) for mean in means]
    added = np.array([max(np.log(mean / omega).max(), np.log((1 - omega) / mean).max()) for mean in either])
    # A record moves between two configurations of the parents. Together these hold at most n − 1 other records.
    pair = max(float((added[: n - t] + added[t]).max()) for t in range(n))
    return sum(float(flipped[-1]) if len(family) == 1 else max(float(flipped.max()), pair) for family in model.families)


def network_lipschitz(model: BayesianNetwork, theta) -> tuple[float, float]:
    """Return the Lipschitz constant of a network, and the largest Lipschitz constant L_i of its nodes.

    The network's constant is the largest |ln p(x)/p(y)| / ρ(x, y) over records x and y that differ in ρ > 0 nodes. L_i
    is the largest |ln p(x_i|j)/p(y_i|j)| over values x_i ≠ y_i of node i and configurations j of its parents.
    """
    records = np.array(list(itertools.product((0, 1), repeat=len(model.nodes))))
    log_chance = np.log(model.record_probabilities(theta))
    distance = np.abs(records[:, None] - records).sum(axis=-1)
    ratio = np.abs(log_chance[:, None] - log_chance)[distance > 0] / distance[distance > 0]
    return float(ratio.max()), float(np.abs(np.log(theta / (1 - theta))).max())


def rows(config) -> list[dict]:
    """Return all rows of the table `bounds` that need no simulation."""
    models = {}
    for network in config.exact_graphs:
        name, graph = parse(network)
        models[name] = BayesianNetwork(graph, config.alpha, config.beta)
    table = [*_difference_rows(config), *_map_rows(config), *_lemma_3_rows(config), *_utility_rows(config)]
    for name, model in models.items():
        table += _loss_rows(config, name, model)
        if len(model.nodes) <= LARGEST_ALPHABET:
            table.append(_lemma_2_row(name, model))
    return table


def _row(statement, graph, parameter, empirical, bound, **more) -> dict:
    row = {"statement": statement, "graph": graph, "parameter": parameter, "empirical": empirical, "bound": bound}
    return {**row, "holds": bool(empirical <= bound * (1 + ROUNDING)), **more}


def _difference_rows(config) -> list[dict]:
    """Return the checks of theorem 1's c_ij over all counts, with a product and with a sum in the logarithm."""
    rows = []
    for prior, n in itertools.product(config.difference_priors, config.difference_sizes):
        largest, parameter = largest_divergence(prior, prior, n), f"alpha=beta={prior:g}"
        product, total = difference_bound(prior, prior, n), (2 * n + 1) * math.log(2 * (prior + n + 1))
        for statement, bound in (("theorem_1_difference", product), ("theorem_1_difference_sum", total)):
            rows.append(_row(statement, "one parameter", parameter, largest, bound, n=n))
    return rows


def _map_rows(config) -> list[dict]:
    """Return the checks of corollary 4 on one node, with Δ = Lr for each of SCORES and with an enumerated Δ."""
    lipschitz = math.log(GRID[-1] / GRID[0])
    readings = {
        "corollary 4" + ("" if score == config.utility else f" with {words}"): (lipschitz, score)
        for score, words in SCORES.items()
    }
    rows = []
    for n in config.map_sizes:
        change = utility_sensitivity(1.0, 1.0, n, config.utility, has_parents=False)
        cases = {**readings, "corollary 4 with enumerated sensitivity": (change, config.utility)}
        for statement, (value, score) in cases.items():
            loss = map_loss(n, 1.0, value, score)
            rows.append(_row(statement, "one node", f"Delta={value:.4g}", loss, 1.0, n=n, epsilon=1.0))
    return rows


def _loss_rows(config, name, model) -> list[dict]:
    """Return the checks of corollaries 1 and 2 and of theorem 4 (1) at ε = 1."""
    counts = model.sufficient_statistics(model.records[:, None, :])
    change = np.abs(counts[:, None] - counts).sum(axis=-1).max()
    laplace = float(change) / (2 * len(model.nodes))
    rows = [
        _row("corollary 1", name, "", laplace, 1.0, epsilon=1.0),
        _row("corollary 2", name, "", largest_flips(model) / len(closure(model)), 1.0, epsilon=1.0),
    ]
    for n in config.exact_sizes:
        mechanism = RecordSampler(model, n, 1.0)
        parameter = f"omega={mechanism.omega:.4g}"
        loss, bound = sampler_loss(mechanism), 2 * mechanism.sensitivity
        rows.append(_row("theorem 4 (1)", name, parameter, loss, bound, n=n, epsilon=1.0))
    return rows


def _lemma_2_row(name, model) -> dict:
    """Return the check of lemma 2 at parameters θ that alternate between 0.2 and 0.9."""
    theta = np.where(np.arange(model.theta_shape[0]) % 2, 0.9, 0.2)
    statement = "lemma 2" if all(not parents for _, parents in model.parents) else "lemma 2 with edges"
    return _row(statement, name, "theta=0.2,0.9", *network_lipschitz(model, theta))


def _lemma_3_rows(config) -> list[dict]:
    """Return the checks of lemma 3 on independent nodes with uniform priors, where P(|logit θ| > L) = 2/(1 + e^L)."""
    rows = []
    for size, threshold in itertools.product(config.lemma_3_nodes, THRESHOLDS):
        single = math.log((1 + math.exp(threshold)) / 2) / threshold
        c = single - math.log(size) / threshold
        for multiple in MULTIPLES:
            lipschitz = multiple * threshold
            outside = -math.expm1(size * math.log(math.tanh(lipschitz / 2)))
            parameter = f"L0={threshold:g},L={lipschitz:g}"
            rows.append(_row("lemma 3", f"independent_{size}", parameter, outside, math.exp(-c * lipschitz)))
    return rows


def _utility_rows(config) -> list[dict]:
    """Return checks of the exact chance that the mean of N draws of a 0/1 function misses by more than the bound."""
    # The import is here because it is slow, and the study's settings do not need it.
    from scipy.stats import binom

    rows = []
    for number, delta in itertools.product(config.sampler_draws, config.delta):
        squared = math.log(1 / delta) / number
        for statement, bound in (("sampler utility", math.sqrt(squared)), ("sampler utility without a root", squared)):
            missed = max(
                float(binom.cdf(np.ceil(number * (p - bound)) - 1, number, p))
                + float(binom.sf(np.floor(number * (p + bound)), number, p))
                for p in CHANCES
            )
            row = _row(statement, "any", f"N={number},delta={delta:g},within={bound:.3g}", missed, delta)
            rows.append({**row, "rate": missed, "allowed": delta})
    return rows
