"""Error of the marginals of privately released Bayesian networks, on small graphs."""

from __future__ import annotations

import itertools
import math

import numpy as np

from privpost.mechanisms.fourier import FourierMechanism
from privpost.mechanisms.map_estimate import UTILITIES, MapMechanism
from privpost.mechanisms.network_laplace import NetworkLaplace
from privpost.mechanisms.network_sampling import AttributeSampler, RecordSampler
from privpost.models.bayesian_network import BayesianNetwork
from privpost.pipeline.schema import Choice, Integer, Real, Schema
from privpost.privacy.accounting import Cost
from privpost.studies.zhang2016.settings import Network, parse

SETTINGS = Schema(
    graph=Network(),
    alpha=Real(above=0),
    beta=Real(above=0),
    model_alpha=Real(above=0),
    model_beta=Real(above=0),
    t=Real(at_least=0),
    utility=Choice(*UTILITIES),
    method=Choice("non_private", "laplace", "fourier", "sampler_record", "sampler_attribute", "map"),
    n=Integer(at_least=1),
    epsilon=Real(above=0),
)


def error(model: BayesianNetwork, released, truth) -> np.ndarray:
    """Return the total variation distance of each node's joint law with its parents, averaged over the nodes.

    Args:
        model: the network.
        released: parameters θ, shape (..., m).
        truth: `cell_probabilities` of the true parameters, shape (..., 2m).
    """
    return np.abs(model.cell_probabilities(released) - truth).sum(axis=-1) / (2 * len(model.nodes))


def simulate(config, streams, ledger) -> dict:
    """Return `error` (graph, method, n, epsilon, trial), see `error`."""
    shape = [len(axis) for axis in (config.graph, config.method, config.n, config.epsilon)]
    errors = np.empty((*shape, config.trials))
    for g, network in enumerate(config.graph):
        name, graph = parse(network)
        model = BayesianNetwork(graph, config.alpha, config.beta)
        for j, n in enumerate(config.n):
            errors[g, :, j] = _errors(model, {"graph": network, "n": n}, f"{name}/n={n}", config, streams, ledger)
    return {"error": errors}


def _errors(model, point, account, config, streams, ledger) -> np.ndarray:
    """Return the errors (method, epsilon, trial) for one graph and number of records."""
    errors = np.empty((len(config.method), len(config.epsilon), config.trials))
    mechanisms = {
        (i, k): _mechanism(method, model, point["n"], epsilon, config)
        for i, method in enumerate(config.method)
        for k, epsilon in enumerate(config.epsilon)
    }
    for (i, k), mechanism in mechanisms.items():
        if mechanism is not None:
            name = f"{config.method[i]}/{account}/epsilon={config.epsilon[k]:g}"
            # The attribute-level reading costs a record more than its ε.
            ledger.open(name, mechanism.cost())
            ledger.charge(name, mechanism.cost())
    for block in streams.blocks():
        rng = streams("data", block.index, **point)
        theta = rng.beta(config.model_alpha, config.model_beta, (block.size, *model.theta_shape))
        statistics = model.sufficient_statistics(model.sample_data(theta, point["n"], rng))
        truth = model.cell_probabilities(theta)
        for (i, k), mechanism in mechanisms.items():
            if mechanism is None and k > 0:
                errors[i, k, block.trials] = errors[i, 0, block.trials]
                continue
            noise = streams("mechanism", block.index, method=config.method[i], epsilon=config.epsilon[k], **point)
            errors[i, k, block.trials] = error(model, _released(model, mechanism, statistics, noise), truth)
    return errors


def _released(model, mechanism, statistics, rng):
    if mechanism is None:
        return model.mean(model.posterior(statistics))
    release = mechanism.perturb(statistics, rng)
    return release if mechanism.releases == "sample" else model.mean(mechanism.posterior(release))


def _mechanism(method, model, n, epsilon, config):
    budget = Cost("pure", epsilon)
    if method == "laplace":
        return NetworkLaplace.calibrate(model, n, budget)
    if method == "fourier":
        return FourierMechanism.calibrate(model, n, budget, t=config.t, variant="paper")
    if method == "map":
        return MapMechanism.calibrate(model, n, budget, utility=config.utility)
    if method == "sampler_record":
        return RecordSampler(model, n, epsilon)
    if method == "sampler_attribute":
        return AttributeSampler(model, n, epsilon)
    return None


def tabulate(cells):
    """Return mean errors, and their paired excess over the true posterior's."""
    import pandas as pd

    (cell,) = cells
    config, rows = cell.config, []
    axes = (config.graph, config.method, config.n, config.epsilon)
    for (g, network), (i, method), (j, n), (k, epsilon) in itertools.product(*map(enumerate, axes)):
        if method == "non_private" and k > 0:
            continue
        errors = cell.arrays["error"][g]
        name, graph = parse(network)
        row = {"graph": name, "nodes": len(graph), "method": method, "n": n}
        row["epsilon"] = None if method == "non_private" else epsilon
        row |= _mean("error", errors[i, j, k])
        if method != "non_private" and "non_private" in config.method:
            row |= _mean("excess", errors[i, j, k] - errors[config.method.index("non_private"), j, k])
        rows.append({**row, "n_repeats": config.trials})
    return pd.DataFrame(rows)


def _mean(name, values) -> dict:
    return {f"{name}_mean": float(values.mean()), f"{name}_sem": float(values.std(ddof=1) / math.sqrt(len(values)))}
