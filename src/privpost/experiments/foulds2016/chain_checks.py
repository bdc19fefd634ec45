"""Whether chains on the states of war logs have converged: traces that are free of labels, and the test."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy.special import xlogy

from privpost.evaluation.diagnostics import LARGEST_RHAT, diagnose
from privpost.samplers import hidden_markov_collapsed as collapsed
from privpost.samplers import hidden_markov_gibbs as gibbs

# With a larger R-hat chains have not converged, and no claim rests on them.
LIMIT = LARGEST_RHAT
# How far below the best a chain's mean log joint may be: standard deviations within chains, or nats if that is more.
DEVIATIONS = 5.0
NATS = 1.0
# Chains at one place differ by rounding, which is another on another processor: fewer nats than this are none.
ROUNDING = 1e-6
ARRAYS = ("rhat", "ess", "n_chains", "joint_lowest", "joint_range", "joint_deviation", "joint_best", "moved",
          "acceptance", "islands", "met")  # fmt: skip
# With latent counts, partitions of the cells decide instead of the log joint, and this array is added to `ARRAYS`.
PARTITION_DISTANCE = "partition_distance"
# Chains with partitions further apart have not converged.
APART = 0.05
# Draws of a chain that give its partition.
DRAWS = 1000
# So many chains run first; the rest of a study's `diagnostic_chains` run only where these agree.
FIRST = 4


class Monitor:
    """Watches some chains after burn-in: collapsed log joint, log-likelihood, entropy of occupancy, and moves.

    All refer to the law that the chains sample from, with its temperatures and truncation.

    Args:
        law: what the group's chains run on.
        chains: the watched chains, which run on the same data.
        partitions: whether the summary has the distance of the chains' partitions.
    """

    def __init__(
        self, law: gibbs.Group, layout: gibbs.Layout, prior: gibbs.Prior, burn_in: int, chains, partitions=False
    ):
        self._chains, self._burn_in, self._given = list(chains), burn_in, (layout, prior)
        self._partitions, self._draws = partitions, []
        self._law = replace(law, observed=law.observed[self._chains])
        self.traces: list[np.ndarray] = []
        self._states, self._moved, self._accepted = None, np.zeros(self._law.observed.shape, bool), []
        self._searched = np.full((1, 2), math.nan)

    def __call__(self, iteration: int, state: gibbs.State) -> None:
        if iteration < self._burn_in:
            return
        states, (layout, prior), (counts,) = state.states[:, self._chains], self._given, state.counts
        counts = counts if counts.ndim == 2 else counts[self._chains]
        likelihood, log_prior = collapsed.log_joint(states, replace(self._law, counts=counts), layout, prior)
        joint = likelihood + log_prior
        if hasattr(state, "log_joint"):
            # With latent counts the release is part of the joint.
            joint = state.log_joint[self._chains]
            self._accepted.append(state.accepted[self._chains].mean())
        if getattr(state, "search", None) is not None:
            self._searched = state.search[self._chains]
        self._moved |= False if self._states is None else self._states != states.T
        self._states = states.T.copy()
        if self._partitions:
            self._draws.append(self._states.astype(np.int16))
        shares = np.stack([(states == k).mean(axis=0) for k in range(prior.n_states)])
        self.traces.append(np.stack([joint, likelihood, -xlogy(shares, shares).sum(axis=0)]))

    def summary(self, *more, others: Sequence[Monitor] = ()) -> dict[str, float]:
        """The values that `ARRAYS` names, from the traces of all monitors and from `more` traces (draws, chains).

        `joint_lowest` and `joint_range` describe the chains' mean log joints; `moved` is the share of observed cells
        that ever changed state after burn-in, `acceptance` the share of joint moves; `islands` is the most that a chain
        searched before enough of them agreed, `met` the share of chains where they did.
        """
        monitors = [self, *others]
        joint, likelihood, entropy = np.concatenate([np.stack(monitor.traces, axis=1) for monitor in monitors], axis=2)
        worst, effective = diagnosed([joint, likelihood, entropy, *more])
        means, searched = joint.mean(axis=0), np.concatenate([monitor._searched for monitor in monitors])
        moved = np.concatenate([monitor._moved[monitor._law.observed] for monitor in monitors]).mean()
        accepted = np.concatenate([monitor._accepted for monitor in monitors])
        values = worst, effective, len(means), means.min(), np.ptp(means), joint.std(axis=0).mean(), joint.max(), moved
        values += accepted.mean() if len(accepted) else math.nan, searched[:, 0].max(), searched[:, 1].mean()
        checks = dict(zip(ARRAYS, map(float, values), strict=True))
        if self._partitions:
            seen, n_states = self._law.observed[0], self._given[1].n_states
            drawn = [np.stack(monitor._draws)[..., seen].swapaxes(0, 1) for monitor in monitors]
            tables = [together(chain, n_states) for chain in np.concatenate(drawn)]
            checks[PARTITION_DISTANCE] = partition_distance(tables)
        return checks


def together(states, n_states: int) -> np.ndarray:
    """Return the share of a chain's draws (draws, cells) in which two cells are in one state, (cells, cells)."""
    sample = states[:: -(-len(states) // DRAWS)]
    member = (sample[:, None] == np.arange(n_states)[:, None]).reshape(-1, sample.shape[1]).astype(np.float32)
    return member.T @ member / len(sample)


def partition_distance(chains) -> float:
    """Return how far the partitions of two chains are apart at most, by what `together` says of each chain.

    The share of the pairs of cells put into one state, in a draw of each chain, on which the two chains differ,

        Σ |P_ij − Q_ij| / Σ (P_ij + Q_ij)  over pairs of cells i < j,

    0 for equal laws of partitions and 1 where no pair is together in both. States need no matching, and cells of
    uncertain state count less.
    """
    pairs = np.stack([chain[np.triu_indices(len(chain), 1)] for chain in chains])
    apart = 0.0
    for first, second in itertools.combinations(pairs, 2):
        apart = max(apart, float(np.abs(first - second).sum() / max((first + second).sum(), 1e-300)))
    return apart


def agree(checks: dict[str, float]) -> bool:
    """Whether chains count as converged by what `Monitor.summary` says of them alone."""
    return verdict({name: np.array([value]) for name, value in checks.items()}, 0, [0])["converged"]


def diagnosed(traces) -> tuple[float, float]:
    """Return the largest R-hat and the smallest bulk ESS of traces (draws, chains); nan for fewer than 4 draws.

    If no chain moves, R-hat is 1 when all are at the same place, and infinite otherwise.
    """
    if len(traces[0]) < 4:
        return math.nan, math.nan
    values, effective = [], []
    # R-hat uses ranks: equal states with other labels must not differ by rounding.
    for trace in (np.round(trace, 6) for trace in traces):
        if (np.ptp(trace, axis=0) < 1e-9 * (1 + np.abs(trace).max())).all():
            values.append(1.0 if np.ptp(trace) < 1e-9 * (1 + np.abs(trace).max()) else math.inf)
        else:
            hat, bulk, _ = map(float, diagnose(trace))
            values.append(hat)
            effective.append(bulk)
    return max(values), min(effective, default=math.nan)


def verdict(arrays, index: int, same) -> dict:
    """Return the columns on a row's chains, whose meanings are in `experiments.columns`.

    Chains have converged where R-hat is below `LIMIT` and they are near the best log joint or, where counts are latent,
    agree on the partition: the log joint of some 10⁴ counts varies by hundreds of nats in any partition.

    Args:
        arrays: `ARRAYS` of all rows along the first axis.
        index: the row.
        same: rows whose chains have the same law, by any sampler; `best_log_joint` is the best among them.
    """
    checks = {name: float(arrays[name][index]) for name in ARRAYS if name in arrays}
    best = float(np.max(arrays["joint_best"][list(same)]))
    distances = best - checks["joint_lowest"], checks["joint_range"]
    below, spread = (0.0 if abs(nats) < ROUNDING else nats for nats in distances)
    near = below <= max(NATS, DEVIATIONS * checks["joint_deviation"])
    apart = {name: float(arrays[name][index]) for name in (PARTITION_DISTANCE,) if name in arrays}
    agreed = near if math.isnan(apart.get(PARTITION_DISTANCE, math.nan)) else apart[PARTITION_DISTANCE] < APART
    return {
        "rhat_max": "not assessed" if math.isnan(checks["rhat"]) else checks["rhat"],
        "range_log_joint": spread,
        "best_log_joint": best,
        "n_chains": int(checks["n_chains"]),
        "below_best": below,
        "near": near,
        **{name: None if math.isnan(value) else value for name, value in apart.items()},
        "converged": bool(checks["rhat"] < LIMIT and agreed),
        **{name: None if math.isnan(checks[name]) else checks[name] for name in ("islands", "met")},
    }
