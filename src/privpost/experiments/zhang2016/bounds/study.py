"""Utility bounds of Zhang et al. (2016) against simulated releases, consistency of marginals, and noise scales.

A network has |I| nodes and m = Σ_i 2^|π_i| parameters. N_I is the downward closure of its families.
The first three statements hold with probability ≥ 1 − δ:

- proposition 1: no count is perturbed by more than (2|I|/ε) ln(2m/δ);
- theorem 1: KL(true ‖ released posterior) ≤ its mean + √(−½ Σ c_ij² ln δ), c_ij = (2n+1) ln((α+n+1)(β+n+1));
- theorem 3: in sum, family i's released counts are off by at most (4|N_I|/ε)(2^|π_i| ln(|N_I|/δ) + t|N_I|);
- corollary 3: all released counts are non-negative with probability at least 1 − exp(−t);
- lemma 4: a released value's utility u has P(u ≤ u* − 2t) ≤ exp(−εt/(2Δ)) / μ(u > u* − t), u* = max u, μ uniform.
"""

import itertools
import math
from dataclasses import replace

import numpy as np
from scipy.special import betaln, digamma

from privpost.experiments.ranges import (
    ALPHA,
    BETA,
    CONCENTRATION,
    EPSILON,
    MODEL_ALPHA,
    MODEL_BETA,
    SHARE,
    UTILITY,
    N,
    T,
)
from privpost.experiments.zhang2016 import expected_loss, guarantees, table1
from privpost.experiments.zhang2016.guarantees import difference_bound
from privpost.experiments.zhang2016.mechanisms import configured, target
from privpost.experiments.zhang2016.settings import Network, parse
from privpost.lab.schema import Choice, Integer, Real, Schema, Vector
from privpost.mechanisms.choices.map_estimate import GRID, UTILITIES, utility
from privpost.models.networks.bayesian_network import BayesianNetwork
from privpost.models.networks.fourier_basis import closure
from privpost.privacy.ledger.gate import Request

SETTINGS = Schema(
    graph=Network(says="directed acyclic graph of the network"),
    alpha=ALPHA,
    beta=BETA,
    model_alpha=MODEL_ALPHA,
    model_beta=MODEL_BETA,
    utility=Choice(*UTILITIES, says=UTILITY),
    t_shares=Vector(Real(above=0, below=1), says="t of lemma 4, as a share of the highest utility", unit="share"),
    difference_priors=Vector(
        CONCENTRATION, says="alpha = beta of the exhaustive check of theorem 1's differences", unit="records"
    ),
    difference_sizes=Vector(
        Integer(at_least=1), says="n of the exhaustive check of theorem 1's differences", unit="records"
    ),
    exact_graphs=Vector(Network(), says="graphs of the statements that exact computation decides"),
    exact_sizes=Vector(Integer(at_least=1), says="n at which the trimmed sampler's loss is computed", unit="records"),
    map_sizes=Vector(Integer(at_least=1), says="n at which the MAP mechanism's loss is computed", unit="records"),
    lemma_3_nodes=Vector(Integer(at_least=1), says="independent nodes in lemma 3's check", unit="count"),
    sampler_draws=Vector(
        Integer(at_least=1), says="N of the sampler's utility, the draws that are averaged", unit="count"
    ),
    noise_graphs=Vector(Network(), says="graphs of the table of noise scales"),
    loss_sizes=Vector(Integer(at_least=2), says="n at which the mean loss of one node is computed", unit="records"),
    loss_delta=SHARE.means("δ of the second term of table 1, beside the mean loss", "probability"),
    loss_nodes=Integer(at_least=10, at_most=1000, says="nodes of the mean loss's quadrature over counts"),
    n=N,
    epsilon=EPSILON,
    delta=SHARE.means("probability that a bound may fail", "probability"),
    t=T,
)
TABLES = {
    "bounds": {
        "statement": "proposition, lemma, theorem or corollary of the paper",
        "parameter": "further parameter of the statement",
        "empirical": "simulated or exact value that the bound is compared with",
        "bound": "upper bound on `empirical` that the statement gives",
        "holds": "whether the statement holds in the row, within its Monte Carlo error",
        "margin": "`bound` over `empirical` [ratio]",
        "rate": "share of the trials that exceed the bound [share]",
        "allowed": "share of the trials that may exceed the bound [share]",
        "closure": "families and their subsets, whose Fourier coefficients are released [count]",
    },
    "table1": {
        "networks_only": "whether the mechanism is for networks only",
        "privacy": "the paper's privacy guarantee, in its words",
        "privacy_rows": "rows of `bounds` about the privacy guarantee [count]",
        "privacy_rows_that_hold": "rows of `bounds` about the privacy guarantee that hold [count]",
        "largest_loss": "largest privacy loss found, as a multiple of the promised one [ratio]",
        "utility": "the paper's utility guarantee, in its words",
        "bound": "the paper's bound, in its words",
        "bound_rows": "rows of `bounds` about the utility bound [count]",
        "bound_rows_that_hold": "rows of `bounds` about the utility bound that hold [count]",
        "restored": "utility bound with the constants of its proof",
        "restored_rows": "rows of `bounds` about the restored utility bound [count]",
        "restored_rows_that_hold": "rows of `bounds` about the restored utility bound that hold [count]",
        "restored_margin": "smallest margin of the rows about the restored utility bound [ratio]",
    },
    "consistency": {
        "largest_disagreement": "largest difference between two released marginals that should agree [records]",
        "largest_count": "largest count, for comparison [records]",
    },
    "noise_scale": {
        "laplace": "scale of Laplace noise on a count at ε = 1 [records]",
        "fourier_coefficient": "scale of Laplace noise on an orthonormal Fourier coefficient at ε = 1 [records]",
        "fourier_cell": "scale of Laplace noise with the variance of a count rebuilt from coefficients [records]",
        "largest_in_degree": "largest number of parents in the graph [count]",
        "average_in_degree": "mean number of parents [count]",
    },
    "theorem1": {
        "epsilon_times": "rule by which ε falls: n ε = 2 (`n`), or n² ε = 1 (`n_squared`)",
        "epsilon": "ε of one release [nats]",
        "mean_loss": "mean KL divergence of the released posterior from the true one [nats]",
        "first_term": "first term of table 1, without a constant [nats]",
        "second_term": "second term of table 1, without a constant [nats]",
    },
}
# A frequency contradicts a bound if it exceeds the bound by more than this many standard errors.
LIMIT = 4.0
# Releases from which consistency is measured.
CONSISTENCY_RELEASES = 200


def divergences(truth, released) -> np.ndarray:
    """Return KL(Beta(truth) ‖ Beta(released)), shape (..., m), for `truth` (m, 2) and `released` (..., m, 2)."""
    # This textbook form is accurate enough here, and several times as fast as `dirichlet_divergence`.
    excess = released - truth
    slope = digamma(truth.sum(axis=-1)) - digamma(truth[..., 0]), digamma(truth.sum(axis=-1)) - digamma(truth[..., 1])
    ratio = betaln(released[..., 0], released[..., 1]) - betaln(truth[..., 0], truth[..., 1])
    return ratio + excess[..., 0] * slope[0] + excess[..., 1] * slope[1]


def family_tables(model: BayesianNetwork, counts) -> list[np.ndarray]:
    """Return each family's table from counts (..., 2m), with one axis of length 2 per member of the family."""
    counts = np.asarray(counts, float)
    tables = []
    for i, family in enumerate(model.families):
        cells = counts[..., 2 * model.offsets[i] : 2 * model.offsets[i + 1]]
        # Statistics have ones before zeros.
        tables.append(np.flip(cells.reshape(*counts.shape[:-1], *[2] * len(family)), axis=-1))
    return tables


def largest_disagreement(model: BayesianNetwork, counts) -> float:
    """Return the largest difference between two families' marginal counts of shared nodes, for counts (trials, 2m)."""
    tables = family_tables(model, counts)
    worst = 0.0
    for (i, first), (k, second) in itertools.combinations(enumerate(model.families), 2):
        shared = sorted(set(first) & set(second))
        if shared:
            left, right = (_marginal(tables[place], family, shared) for place, family in ((i, first), (k, second)))
            worst = max(worst, float(np.abs(left - right).max()))
    return worst


def _marginal(table, family, shared) -> np.ndarray:
    """Return a family's table (trials, 2, 2, ...) summed over nodes outside `shared`, with axes ordered as `shared`."""
    left_out = tuple(1 + place for place, node in enumerate(family) if node not in shared)
    nodes = [node for node in family if node in shared]
    return table.sum(axis=left_out).transpose(0, *(1 + nodes.index(node) for node in shared))


def simulate(config, streams, ledger) -> dict:
    """Return the columns of the tables `bounds` and `consistency`, as `bounds/<column>` and `consistency/<column>`."""
    _, graph = parse(config.graph)
    model = BayesianNetwork(graph, config.alpha, config.beta)
    mechanisms = {}
    for n, epsilon in itertools.product(config.n, config.epsilon):
        mechanisms[n, epsilon] = [
            configured(method, model, n, epsilon, utility=config.utility) for method in ("laplace", "fourier", "map")
        ]
        for mechanism in mechanisms[n, epsilon]:
            ledger.open(_account(mechanism), target(mechanism.method, model, epsilon), mechanism)
    rows, consistency = [], []
    for n in config.n:
        rng = streams("data", n=n)
        theta = rng.beta(config.model_alpha, config.model_beta, model.theta_shape)
        statistics = model.sufficient_statistics(model.sample_data(theta, n, rng))
        for epsilon in config.epsilon:
            point = {"n": n, "epsilon": epsilon}
            for mechanism, table in zip(mechanisms[n, epsilon], (_laplace_rows, _fourier_rows, _map_rows), strict=True):
                releases = _releases(mechanism, statistics, streams, ledger)
                entries, disagreements = table(mechanism, statistics, releases, config, point)
                rows += entries
                consistency += disagreements
    return {**_columns("bounds", rows), **_columns("consistency", consistency)}


def _account(mechanism) -> str:
    return f"{mechanism.method}/n={mechanism.n}/epsilon={mechanism.epsilon:g}"


def _releases(mechanism, statistics, streams, ledger):
    """Return pairs of a block and its releases about one data set."""
    # A bound is about one release, so releases are repeats.
    account, blocks = _account(mechanism), list(streams.blocks())
    requests = [
        Request(account, mechanism, statistics, streams(mechanism.method, block.index), block.size, block.trials)
        for block in blocks
    ]
    return [(block, release.values) for block, release in zip(blocks, ledger.release_all(requests), strict=True)]


def _columns(table, rows) -> dict[str, np.ndarray]:
    return {f"{table}/{name}": np.array([row[name] for row in rows]) for name in rows[0]}


def _frame(arrays, table):
    import pandas as pd

    prefix = f"{table}/"
    return pd.DataFrame({name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)})


def _row(statement, point, setting, empirical, bound, rate=math.nan, allowed=math.nan, *, holds=None, trials=1) -> dict:
    """Return a statement's row, which fails if `rate` exceeds `allowed` by more than LIMIT standard errors."""
    if holds is None:
        holds = rate <= allowed + LIMIT * math.sqrt(allowed * (1 - allowed) / trials)
    parameter = ",".join(f"{name}={value:.4g}" for name, value in setting.items())
    row = {"statement": statement, **point, "parameter": parameter, "empirical": float(empirical)}
    return {**row, "bound": float(bound), "rate": float(rate), "allowed": allowed, "holds": bool(holds)}


def _upper(statement, values, bound, delta, point, **setting) -> dict:
    """Return the row of the statement that values (releases,) exceed a bound with probability at most δ."""
    exceeded, setting = np.mean(values > bound), {"delta": delta, **setting}
    return _row(statement, point, setting, np.quantile(values, 1 - delta), bound, exceeded, delta, trials=len(values))


def _laplace_rows(mechanism, statistics, releases, config, point):
    """Return the rows of proposition 1 and theorem 1, and the row on the disagreement of Laplace's marginals."""
    model, n = mechanism.model, point["n"]
    largest, divergence = np.empty(config.trials), np.empty(config.trials)
    sums = np.zeros((2, model.theta_shape[0]))
    truth = model.pairs(model.posterior(statistics))
    for block, release in releases:
        largest[block.trials] = np.abs(release - statistics).max(axis=-1)
        by_parameter = divergences(truth, model.pairs(mechanism.naive_posterior(release)))
        divergence[block.trials] = by_parameter.sum(axis=-1)
        sums += [by_parameter.sum(axis=0), (by_parameter**2).sum(axis=0)]
        if block.index == 0:
            published = mechanism.project(release)[:CONSISTENCY_RELEASES]
    rows = []
    noise = 2 * len(model.nodes) / mechanism.epsilon
    # c_ij is squared in McDiarmid's inequality, but not squared in the paper's text.
    range_ = difference_bound(config.alpha, config.beta, n)
    widths = {"theorem_1": range_**2, "theorem_1_unsquared": range_}
    for delta in config.delta:
        bound = noise * math.log(2 * model.theta_shape[0] / delta)
        rows.append(_upper("proposition_1", largest, bound, delta, point))
        for statement, width in widths.items():
            bound = math.sqrt(-0.5 * model.theta_shape[0] * width * math.log(delta))
            rows.append(_upper(statement, divergence - divergence.mean(), bound, delta, point))
    # The printed bound n ln((α+Δα)(β+Δβ)) on a parameter's mean divergence, for the parameter that exceeds it most.
    mean = sums[0] / config.trials
    sem = np.sqrt(np.maximum(sums[1] / config.trials - mean**2, 0) / config.trials)
    printed = n * np.log(truth.prod(axis=-1))
    worst = int(np.argmax(mean - printed))
    setting = {"ones": truth[worst, 0] - config.alpha, "zeros": truth[worst, 1] - config.beta}
    holds = mean[worst] <= printed[worst] + LIMIT * sem[worst]
    rows.append(_row("theorem_1_expectation", point, setting, mean[worst], printed[worst], holds=holds))
    return rows, [_consistency("laplace", "published", model, published, point)]


def _fourier_rows(mechanism, statistics, releases, config, point):
    """Return the rows of theorem 3 and corollary 3, and the rows on the disagreement of Fourier's marginals."""
    model, size = mechanism.model, len(closure(mechanism.model))
    widths = np.array([2 ** (len(family) - 1) for family in model.families])
    needed = np.empty(config.trials)
    distances = np.empty((len(config.t), len(model.nodes), config.trials))
    for block, release in releases:
        needed[block.trials] = mechanism.smallest_t(release)
        for j, t in enumerate(config.t):
            raised = replace(mechanism, t=t)
            off = np.abs(raised.counts(release) - statistics)
            distances[j, :, block.trials] = np.add.reduceat(off, 2 * model.offsets[:-1], axis=-1).T
        if block.index == 0:
            published = raised.counts(release)[:CONSISTENCY_RELEASES]
            truncated = mechanism.project(release)[:CONSISTENCY_RELEASES]
    rows = []
    for j, t in enumerate(config.t):
        for delta in config.delta:
            bounds = 4 * size / mechanism.epsilon * (widths * math.log(size / delta) + t * size)
            # The row is about the node nearest to its bound.
            reached = np.quantile(distances[j], 1 - delta, axis=-1)
            worst = int(np.argmax(reached / bounds))
            rows.append(_upper("theorem_3", distances[j, worst], float(bounds[worst]), delta, point, t=t))
        rate, promised = float(np.mean(needed <= t)), -math.expm1(-t)
        holds = rate >= promised - LIMIT * math.sqrt(promised * (1 - promised) / config.trials)
        rows.append(_row("corollary_3", point, {"t": t}, rate, promised, 1 - rate, 1 - promised, holds=holds))
    return rows, [
        _consistency("fourier", "published", model, published, point),
        _consistency("fourier", "truncated", model, truncated, point),
    ]


def _consistency(method, variant, model, counts, point) -> dict:
    return {
        "method": method,
        "variant": variant,
        **point,
        "largest_disagreement": largest_disagreement(model, counts),
        "largest_count": float(np.abs(counts).max()),
    }


def _map_rows(mechanism, statistics, releases, config, point):
    """Return the rows of lemma 4 (as printed, and with the exponent of the mechanism's weights), and an empty list."""
    model = mechanism.model
    scores = mechanism.scores(statistics)
    draws = np.concatenate([release for _, release in releases])
    values = utility(model.pairs(model.posterior(statistics)), config.utility)
    index = np.rint((draws - GRID[0]) / (GRID[1] - GRID[0])).astype(int)
    reached = values[np.arange(len(values)), index]
    top = values.max(axis=-1)
    # The factor of u in the exponent: ε_i/(2Δ_i) in the weights, and ε_i as printed.
    weight, budget = scores.max(axis=-1) / top, mechanism.epsilon / len(model.nodes)
    rows = []
    for share in config.t_shares:
        t = share * top
        outside = np.mean(reached <= top - 2 * t, axis=0)
        mass = np.mean(values > (top - t)[:, None], axis=-1)
        for statement, factor in (("lemma_4", weight), ("lemma_4_printed", np.full_like(weight, budget))):
            bounds = np.exp(-factor * t) / mass
            # Subnormal floats have few digits, and processors differ in the last digit.
            bounds[bounds < np.finfo(float).tiny] = 0.0
            # The row is about the parameter nearest to its bound.
            worst = _worst(outside, bounds)
            setting, missed, bound = {"t_share": share, "t": t[worst]}, outside[worst], bounds[worst]
            allowed = min(float(bound), 1.0)
            rows.append(_row(statement, point, setting, missed, bound, missed, allowed, trials=config.trials))
    return rows, []


def _worst(missed, bounds) -> int:
    """Return the index of the largest ratio of a probability to its bound."""
    # A ratio that overflows is larger than any other.
    with np.errstate(over="ignore", divide="ignore"):
        return int(np.argmax(np.divide(missed, bounds, out=np.zeros_like(bounds), where=missed > 0)))


def tabulate(cells):
    """Return five tables: bounds, table 1, disagreement of marginals, scales of noise, and the loss of one node."""
    import pandas as pd

    bounds, consistency = [], []
    for cell in cells:
        name, graph = parse(cell.config.graph)
        model = BayesianNetwork(graph)
        facts = {"nodes": len(graph), "closure": len(closure(model))}
        for table, array in ((bounds, "bounds"), (consistency, "consistency")):
            frame = _frame(cell.arrays, array)
            frame.insert(2, "graph", name)
            table.append(frame.assign(**facts))
    config = cells[0].config
    bounds = pd.concat([*bounds, pd.DataFrame(guarantees.rows(config))], ignore_index=True)
    upper = bounds.bound / bounds.empirical.where(bounds.empirical > 0)
    lower = bounds.empirical / bounds.bound
    bounds["margin"] = upper.where(bounds.statement != "corollary_3", lower)
    for count in ("nodes", "closure"):
        bounds[count] = bounds[count].astype("Int64")
    columns = ["statement", "graph", "n", "epsilon", "parameter", "empirical", "bound", "holds", "margin"]
    return {
        "bounds": bounds[[*columns, "rate", "allowed", "nodes", "closure"]],
        "table1": table1.table(bounds),
        "consistency": pd.concat(consistency, ignore_index=True),
        "noise_scale": _noise_rows(config.noise_graphs),
        "theorem1": expected_loss.rows(config),
    }


def _noise_rows(networks):
    """Yield the scales of noise at ε = 1, one row per graph and in-degree."""
    for network in networks:
        name, graph = parse(network)
        size, subsets = len(graph), len(closure(BayesianNetwork(graph)))
        degrees = [len(parents) for _, parents in graph]
        for degree in sorted(set(degrees)):
            yield {
                "graph": name,
                "in_degree": degree,
                "laplace": 2.0 * size,
                "fourier_coefficient": 2 * subsets / 2 ** (size / 2),
                "fourier_cell": 2 * subsets / 2 ** ((degree + 1) / 2),
                "nodes": size,
                "closure": subsets,
                "largest_in_degree": max(degrees),
                "average_in_degree": float(np.mean(degrees)),
            }
