"""Privacy loss of posterior draws. An adversary chooses the data record by record (Foulds et al. 2016, figure 8)."""

from typing import NamedTuple

import numpy as np
from scipy.special import betaln, logit

from privpost.distributions import truncated_beta
from privpost.evaluation.rows import columns, places
from privpost.experiments.foulds2016 import stopped_chains, stopped_hmm
from privpost.experiments.ranges import A0, ALPHA, BETA, EPSILON, TRUNCATION
from privpost.lab.schema import Integer, Real, Schema, Vector
from privpost.models.conjugate.beta_bernoulli import BetaBernoulli

SETTINGS = Schema(
    # Larger parameters make the densities at the ends of the interval underflow.
    alpha=Real(at_least=0.01, at_most=100, says=ALPHA.says, unit=ALPHA.unit),
    beta=Real(at_least=0.01, at_most=100, says=BETA.says, unit=BETA.unit),
    grid=Integer(at_least=2, says="values of θ at which the loss is computed"),
    largest_n=Integer(at_least=2, says="records that the adversary adds", unit="records"),
    a0=A0,
    records=Integer(at_least=1, says="records of the data sets on which Metropolis chains run", unit="records"),
    states=Integer(at_least=2, says="values of θ on which Metropolis chains move"),
    epsilons=Vector(EPSILON, says="ε of the posteriors that the stopped chains draw from", unit="nats"),
    steps=Vector(Integer(at_least=1), says="steps before a Metropolis chain stops", unit="count"),
    cells=Integer(at_least=1, at_most=6, says="cells of the hidden Markov model with stopped chains"),
    events=Integer(at_least=1, says="events of the hidden Markov model's data sets", unit="events"),
    truncation=TRUNCATION,
    probabilities=Integer(at_least=2, says="grid values of each emission probability"),
    sweeps=Vector(Integer(at_least=1), says="Gibbs sweeps before a chain stops", unit="count"),
)
TABLES = {
    "adversary": {
        "local_epsilon": "local privacy loss of a posterior draw after the n-th record is added [nats]",
        "added": "record that the adversary adds",
        "likelihood_term": "likelihood's part of the local loss [nats]",
        "partition_term": "normalising constant's part of the local loss [nats]",
    },
    "stopped_chains": {
        "epsilon": "ε of the posterior that the chain draws from [nats]",
        "chain": "proposals of the Metropolis chain",
        "start": "start of the chain: `uniform`, or at the `mode`",
        "exact_cost": "pure ε of an exact draw [nats]",
        "distance": "total variation distance of the chain's state from an exact draw [probability]",
        "delta": "smallest δ at which the chain's state is (ε, δ)-DP at the exact draw's ε [probability]",
        "cost": "pure ε of the chain's state [nats]",
        "cost_bound": "bound on `cost` for an independence chain [nats]",
    },
    "stopped_hmm": {
        "epsilon": "ε that the sampler is given [nats]",
        "start": "start of the chain of states: `uniform`, or at the `mode`",
        "nominal_cost": "pure ε that the sampler states for a converged sample of states and emissions [nats]",
        "exact_cost": "pure ε of an exact draw of them, over all data sets [nats]",
        "distance": "total variation distance of the stopped chain's sample from an exact draw [probability]",
        "distance_there": "largest `distance` on the two neighbours that lose most [probability]",
        "delta": "smallest δ at which the stopped chain's sample is (ε, δ)-DP at `exact_cost` [probability]",
        "cost": "pure ε of the stopped chain's sample [nats]",
        "composed_bound": "bound on `cost` by composition of all updates, for a start that ignores the data [nats]",
        "minorised_bound": "bound on `cost` from the share of an exact draw in each sweep [nats]",
    },
}


class LocalEpsilon(NamedTuple):
    """The local ε of each data set, and its two terms: from the likelihoods and from the normalising constants."""

    epsilon: np.ndarray
    likelihood: np.ndarray
    partition: np.ndarray


def _log_partition(model: BetaBernoulli, statistics, a0) -> np.ndarray:
    """Return the log (...) of the posterior's normalising constant on [a0, 1−a0]."""
    parameters = model.posterior(statistics)
    return betaln(parameters[..., 0], parameters[..., 1]) + truncated_beta.log_mass(parameters, a0, 1 - a0)


def local_epsilon(model: BetaBernoulli, statistics, a0, grid: int) -> LocalEpsilon:
    """Return the local ε of data sets X: the largest |ln p(θ|X) − ln p(θ|X')| over neighbours X' and a grid of θ.

    A neighbour X' has one success fewer or more. The log-ratio is ±logit θ + ln(Z(X')/Z(X)), where Z is the
    normalising constant. Each of the two terms is at most Δ = ln((1−a0)/a0) in absolute value.

    Args:
        model: the prior before truncation.
        statistics: numbers (..., 2) of successes and failures, of at least one record.
        a0: lower end of the interval [a0, 1−a0] of θ. It is broadcast against the leading axes of `statistics`.
        grid: number of values of θ.
    """
    statistics, a0 = np.asarray(statistics, float), np.asarray(a0, float)
    step = np.array([[-1.0, 1.0], [1.0, -1.0]])
    neighbours = statistics[..., None, :] + step
    exists = (neighbours >= 0).all(axis=-1)
    neighbours = np.where(exists[..., None], neighbours, statistics[..., None, :])
    log_partition = _log_partition(model, statistics, a0)
    partition = _log_partition(model, neighbours, a0[..., None]) - log_partition[..., None]
    theta = a0[..., None] + (1 - 2 * a0[..., None]) * np.linspace(0, 1, grid)
    # The likelihood ratio p(X|θ)/p(X'|θ) is θ/(1−θ) if X' has one success fewer, and (1−θ)/θ if it has one more.
    likelihood = logit(theta)[..., None, :] * np.array([1.0, -1.0])[:, None]
    difference = np.where(exists[..., None], likelihood + partition[..., None], 0.0)
    flat = np.abs(difference).reshape(*difference.shape[:-2], -1)
    place = flat.argmax(axis=-1)[..., None]
    sign = np.sign(np.take_along_axis(difference.reshape(flat.shape), place, axis=-1))[..., 0]
    terms = (
        np.take_along_axis(np.broadcast_to(term, difference.shape).reshape(flat.shape), place, axis=-1)[..., 0] * sign
        for term in (likelihood, partition[..., None])
    )
    return LocalEpsilon(flat.max(axis=-1), *terms)


def simulate(config, streams, ledger) -> dict:
    """Return privacy losses on the adversary's path, and losses of stopped chains. Nothing is released.

    The local ε `epsilon`, its terms `likelihood` and `partition`, and `added` have shape (a0, n). The adversary adds
    the outcome with the higher local ε, and `added` is true for a success. `stopped` has the losses of Metropolis
    chains, and `hidden` the losses of Gibbs chains.
    """
    model, a0 = BetaBernoulli(config.alpha, config.beta), np.array(config.a0)
    shape = (len(a0), config.largest_n)
    epsilon, likelihood, partition = np.empty((3, *shape))
    added = np.empty(shape, bool)
    statistics = np.zeros((len(a0), 2))
    outcomes = np.array([[1.0, 0.0], [0.0, 1.0]])
    for step in range(config.largest_n):
        losses = local_epsilon(model, statistics[:, None, :] + outcomes, a0[:, None], config.grid)
        # A success is added if both outcomes have the same local ε up to rounding.
        failure = (losses.epsilon[:, 1] > losses.epsilon[:, 0] + 1e-12).astype(int)
        epsilon[:, step], likelihood[:, step], partition[:, step] = (
            np.take_along_axis(values, failure[:, None], axis=1)[:, 0] for values in losses
        )
        added[:, step] = failure == 0
        statistics += outcomes[failure]
    paths = {"epsilon": epsilon, "likelihood": likelihood, "partition": partition, "added": added}
    return {**paths, "stopped": stopped_chains.simulate(config), "hidden": stopped_hmm.simulate(config)}


def tabulate(cells):
    """Return three tables: the local ε by a0 and n, and the privacy losses of stopped Metropolis and Gibbs chains."""
    return {
        "adversary": _paths(cells),
        "stopped_chains": _losses(cells, "stopped", stopped_chains.axes, stopped_chains.COLUMNS),
        "stopped_hmm": _losses(cells, "hidden", stopped_hmm.axes, stopped_hmm.COLUMNS),
    }


def _losses(cells, name: str, axes, columns):
    """Return the array `name` (epsilons, rows, columns) of all cells as a table with columns for ε and `axes`."""
    import pandas as pd

    tables = []
    for cell in cells:
        named = {"epsilon": cell.config.epsilons, **axes(cell.config)}
        index = pd.MultiIndex.from_product(named.values(), names=named)
        tables.append(pd.DataFrame(cell.arrays[name].reshape(-1, len(columns)), index, columns).reset_index())
    return pd.concat(tables, ignore_index=True)


def _paths(cells):
    for cell in cells:
        for at, point in places(cell.config, "a0", "n", n=range(1, cell.config.largest_n + 1)):
            # Digits beyond the twelfth are rounding errors.
            epsilon, likelihood, partition = (
                np.round(cell.arrays[name][at], 12) for name in ("epsilon", "likelihood", "partition")
            )
            yield {
                **columns(point, "a0", "n"),
                "local_epsilon": epsilon,
                "added": "success" if cell.arrays["added"][at] else "failure",
                "likelihood_term": likelihood,
                "partition_term": partition + 0.0,
            }
