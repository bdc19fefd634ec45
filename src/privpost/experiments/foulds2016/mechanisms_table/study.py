"""The comparison of two mechanisms in table 1 of Foulds et al. (2016), and a check of its constants by enumeration."""

import itertools

import numpy as np

from privpost.evaluation.rows import columns, framed, places
from privpost.experiments.foulds2016.bits import calibrated, limit
from privpost.experiments.ranges import A0, ALPHA, BETA, EPSILON, METHOD, N
from privpost.lab.schema import Choice, Integer, Schema
from privpost.mechanisms.base import Mechanism
from privpost.privacy.accounting.costs import Cost
from privpost.privacy.accounting.gibbs import chain_cost, scan_cost

SETTINGS = Schema(
    alpha=ALPHA,
    beta=BETA,
    a0=A0,
    n=Integer(at_least=1, at_most=12, says=N.says, unit=N.unit),
    iterations=Integer(at_least=1, says="iterations of the Gibbs chain of the case study"),
    updates=Integer(at_least=1, says="updates that are paid for in one iteration"),
    method=Choice("laplace", "ops", says=METHOD),
    epsilon=EPSILON,
)
TABLES = {
    "table1": {
        "sensitivity": "sensitivity of the mechanism, in the paper's words",
        "sensitivity_value": "value of the sensitivity for bits",
        "sensitivity_brute_force": "sensitivity as the maximum over all neighbouring data sets",
        "epsilon_brute_force": "largest log-ratio over all neighbouring data sets [nats]",
        "n_brute_force": "records of the data sets that are enumerated [records]",
        "statistics": "what the mechanism releases, in the paper's words",
        "release": "what is released, in the paper's words",
        "are_sample": "asymptotic relative efficiency of one sample, in the paper's words",
        "are_sample_value": "asymptotic relative efficiency of one sample",
        "are_mean": "asymptotic relative efficiency of the mean, in the paper's words",
        "are_mean_value": "asymptotic relative efficiency of the mean",
        "gibbs": "what a Gibbs chain costs, in the paper's words",
        "gibbs_epsilon": "ε of all updates of a Gibbs chain [nats]",
        "gibbs_epsilon_if_converged": "ε of the last state of a Gibbs chain if the chain has converged [nats]",
        "gibbs_iterations": "iterations of the Gibbs chain [count]",
    },
}

# Entries of the paper's table that are words.
WORDS = {
    "laplace": {
        "sensitivity": "sup ‖S(x) − S(x')‖₁",
        "statistics": "noised",
        "release": "statistics",
        "are_sample": "2",
        "are_mean": "1",
        "gibbs": "once",
    },
    "ops": {
        "sensitivity": "sup |ln p(x|θ) − ln p(x'|θ)|",
        "statistics": "rescaled by 1/T",
        "release": "one sample",
        "are_sample": "1 + T",
        "are_mean": "not released",
        "gibbs": "per update (unless converged)",
    },
}


def data_sets(mechanism: Mechanism) -> np.ndarray:
    """Return all data sets (2^n, n) of n bits."""
    return np.array(list(itertools.product(mechanism.model.records, repeat=mechanism.n)))


def _neighbours(n: int):
    """Yield, for each bit, the indices (2^n,) of all data sets, and of the data sets with this bit flipped."""
    index = np.arange(2**n)
    for bit in range(n):
        yield index, index ^ (1 << bit)


def largest_change(mechanism: Mechanism) -> float:
    """Return the largest change of the mechanism's query between any two neighbouring data sets of n bits."""
    values = np.stack([mechanism.query(data) for data in data_sets(mechanism)])
    size = {
        "l1": lambda change: np.abs(change).sum(axis=-1),
        "log-likelihood ratio": lambda change: np.abs(change).max(axis=-1),
    }[mechanism.norm]
    return max(float(size(values[a] - values[b]).max()) for a, b in _neighbours(mechanism.n))


def largest_loss(mechanism: Mechanism, releases) -> float:
    """Return the largest log-ratio of a release's densities, over releases (number, *release_shape) and neighbours."""
    statistics = mechanism.model.sufficient_statistics(data_sets(mechanism))
    log_density = mechanism.log_density(np.asarray(releases)[None], statistics[:, None])
    return max(float(np.abs(log_density[a] - log_density[b]).max()) for a, b in _neighbours(mechanism.n))


def releases(mechanism: Mechanism) -> np.ndarray:
    """Return values of θ, or counts from −1 to n + 1, that include the worst case of a mechanism's privacy loss."""
    if mechanism.releases == "statistics":
        axis = np.linspace(-1.0, mechanism.n + 1.0, 2 * mechanism.n + 5)
        return np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    return np.linspace(mechanism.a0, 1 - mechanism.a0, 101)


def gibbs_cost(mechanism: Mechanism, iterations: int, updates: int) -> Cost:
    """Return the cost of a Gibbs chain that uses the mechanism in its updates and need not converge."""
    # Released statistics are paid for once, and samples at each update.
    if mechanism.releases == "statistics":
        return mechanism.cost()
    return chain_cost(scan_cost([mechanism.cost()] * updates), iterations)


def simulate(config, streams, ledger) -> dict:
    """Return the numbers of table 1 as arrays over (method, epsilon). Nothing is released."""
    points = [point for _, point in places(config, "method", "epsilon")]
    numbers = [_numbers(calibrated(point.method, config, config.n, point.epsilon), config) for point in points]
    shape = len(config.method), len(config.epsilon)
    return {name: np.array([of_point[name] for of_point in numbers]).reshape(shape) for name in numbers[0]}


def _numbers(mechanism: Mechanism, config) -> dict[str, float]:
    return {
        "sensitivity_value": mechanism.sensitivity,
        "sensitivity_brute_force": largest_change(mechanism),
        "epsilon_brute_force": largest_loss(mechanism, releases(mechanism)),
        "temperature": getattr(mechanism, "temperature", np.nan),
        "are_sample_value": limit(mechanism, "sample"),
        "are_mean_value": limit(mechanism, "mean") if mechanism.releases == "statistics" else np.nan,
        "gibbs_epsilon": gibbs_cost(mechanism, config.iterations, config.updates).epsilon,
        "gibbs_epsilon_if_converged": mechanism.cost().epsilon,
    }


def tabulate(cells):
    """Return table 1, a row per mechanism and ε, with the paper's words and our numbers for binary data."""
    (cell,) = cells
    rows = []
    for at, point in places(cell.config, "method", "epsilon"):
        # Digits beyond the twelfth are rounding errors.
        numbers = {name: float(f"{values[at]:.12g}") for name, values in cell.arrays.items()}
        settings = {"a0": point.a0 if point.method == "ops" else None, "n_brute_force": point.n}
        row = {**columns(point, "method", "epsilon"), **settings, **WORDS[point.method], **numbers}
        rows.append({**row, "gibbs_iterations": point.iterations})
    names = ["method", "epsilon", "a0", "sensitivity", "sensitivity_value", "sensitivity_brute_force"]
    names += ["epsilon_brute_force", "n_brute_force", "statistics", "temperature", "release"]
    names += ["are_sample", "are_sample_value", "are_mean", "are_mean_value", "gibbs"]
    return framed(rows, *names)
