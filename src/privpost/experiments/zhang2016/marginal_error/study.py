"""Error of the marginals of privately released Bayesian networks, on small graphs."""

import itertools
from functools import partial

import numpy as np

from privpost.evaluation.rows import columns, private_places
from privpost.evaluation.summaries import mean_columns
from privpost.experiments.ranges import ALPHA, BETA, EPSILON, METHOD, MODEL_ALPHA, MODEL_BETA, UTILITY, N, T
from privpost.experiments.zhang2016.mechanisms import METHODS, configured, target
from privpost.experiments.zhang2016.settings import Network, parse
from privpost.lab.schema import Choice, Real, Schema
from privpost.mechanisms.map_estimate import UTILITIES
from privpost.models.bayesian_network import BayesianNetwork
from privpost.privacy.ledger import Request

SETTINGS = Schema(
    graph=Network(says="directed acyclic graph of the network"),
    alpha=ALPHA,
    beta=BETA,
    model_alpha=MODEL_ALPHA,
    model_beta=MODEL_BETA,
    t=Real(at_least=0, says=T.says),
    utility=Choice(*UTILITIES, says=UTILITY),
    method=Choice("non_private", *METHODS, says=METHOD),
    n=N,
    epsilon=EPSILON,
)
TABLES = {
    "marginal_error": {
        "error_mean": "L1 error of the marginals [probability]",
    },
}


def error(model: BayesianNetwork, released, truth) -> np.ndarray:
    """Return the total variation distance of each node's joint law with its parents, averaged over the nodes.

    Args:
        model: the network.
        released: parameters θ, shape (..., m).
        truth: `cell_probabilities` of the true parameters, shape (..., 2m).
    """
    return np.abs(model.cell_probabilities(released) - truth).sum(axis=-1) / (2 * len(model.nodes))


def simulate(config, streams, ledger) -> dict:
    """Return the errors as `error` (graph, method, n, epsilon, trial)."""
    shape = [len(axis) for axis in (config.graph, config.method, config.n, config.epsilon)]
    errors, parts = np.empty((*shape, config.trials)), []
    for (g, network), (j, n) in itertools.product(enumerate(config.graph), enumerate(config.n)):
        name, graph = parse(network)
        model, opened = BayesianNetwork(graph, config.alpha, config.beta), {}
        for (i, method), (k, epsilon) in itertools.product(enumerate(config.method), enumerate(config.epsilon)):
            if method != "non_private":
                make = partial(configured, method, model, n, epsilon, t=config.t, utility=config.utility)
                account = f"{method}/{name}/n={n}/epsilon={epsilon:g}"
                opened[i, k] = account, ledger.open(account, target(method, model, epsilon), make)
        parts.append((g, j, model, {"graph": network, "n": n}, opened))
    for g, j, model, point, opened in parts:
        errors[g, :, j] = _errors(model, point, opened, config, streams, ledger)
    return {"error": errors}


def _errors(model, point, opened, config, streams, ledger) -> np.ndarray:
    """Return the errors (method, epsilon, trial) for one graph and n; `opened` has account and mechanism by place."""
    errors = np.empty((len(config.method), len(config.epsilon), config.trials))
    for block in streams.blocks():
        rng = streams("data", block.index, **point)
        theta = rng.beta(config.model_alpha, config.model_beta, (block.size, *model.theta_shape))
        statistics = model.sufficient_statistics(model.sample_data(theta, point["n"], rng))
        truth = model.cell_probabilities(theta)
        if "non_private" in config.method:
            mean = model.mean(model.posterior(statistics))
            errors[config.method.index("non_private"), :, block.trials] = error(model, mean, truth)
        requests = []
        for (i, k), (account, mechanism) in opened.items():
            noise = streams("mechanism", block.index, method=config.method[i], epsilon=config.epsilon[k], **point)
            requests.append(Request(account, mechanism, statistics, noise, repeats=block.trials))
        for (i, k), request, release in zip(opened, requests, ledger.release_all(requests), strict=True):
            released, mechanism = release.values, request.mechanism
            if mechanism.releases == "statistics":
                released = model.mean(mechanism.naive_posterior(released))
            errors[i, k, block.trials] = error(model, released, truth)
    return errors


def tabulate(cells):
    """Yield mean errors, and their paired excess over the true posterior's."""
    (cell,) = cells
    for (g, i, j, k), point in private_places(cell.config, "graph", "method", "n", "epsilon"):
        errors, methods = cell.arrays["error"][g], cell.config.method
        name, graph = parse(point.graph)
        row = {"graph": name, "nodes": len(graph), **columns(point, "method", "n", "epsilon")}
        row |= mean_columns("error", errors[i, j, k])
        if point.method != "non_private" and "non_private" in methods:
            row |= mean_columns("excess", errors[i, j, k] - errors[methods.index("non_private"), j, k])
        yield {**row, "n_repeats": point.trials}
