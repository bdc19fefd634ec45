"""Whether chains on the states of war logs have converged: traces that are free of labels, and the test."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from scipy.special import xlogy

from privpost.evaluation.diagnostics import LARGEST_RHAT, diagnose
from privpost.samplers import hidden_markov_collapsed as collapsed
from privpost.samplers import hidden_markov_gibbs as gibbs

# With a larger R-hat chains have not converged, and no claim rests on them.
LIMIT = LARGEST_RHAT
# A chain's mean log joint may be this far below the best: standard deviations within chains, and at least so many nats.
DEVIATIONS, NATS = 5.0, 1.0
ARRAYS = ("rhat", "ess", "joint_means", "joint_deviation", "joint_best", "moved", "acceptance")


class Monitor:
    """Watches some chains after burn-in: collapsed log joint, log-likelihood, entropy of occupancy, and moves.

    All are of the chains' own law, with its temperatures and truncation.

    Args:
        law: what the group's chains run on.
        chains: the watched chains, which run on the same data.
    """

    def __init__(self, law: gibbs.Group, layout: gibbs.Layout, prior: gibbs.Prior, burn_in: int, chains):
        self._chains, self._burn_in, self._given = list(chains), burn_in, (layout, prior)
        self._law = replace(law, observed=law.observed[self._chains])
        self.traces: list[np.ndarray] = []
        self._states, self._moved, self._accepted = None, np.zeros(self._law.observed.shape, bool), []

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
        self._moved |= False if self._states is None else self._states != states.T
        self._states = states.T.copy()
        shares = np.stack([(states == k).mean(axis=0) for k in range(prior.n_states)])
        self.traces.append(np.stack([joint, likelihood, -xlogy(shares, shares).sum(axis=0)]))

    def summary(self, *more) -> dict[str, np.ndarray]:
        """Return `ARRAYS` of these traces, and of more traces (draws, chains)."""
        joint, likelihood, entropy = np.stack(self.traces, axis=1)
        worst, effective = diagnosed([joint, likelihood, entropy, *more])
        deviation = joint.std(axis=0).mean()
        # Share of observed cells that ever changed state after burn-in, and of joint moves that were accepted.
        moves = self._moved[self._law.observed].mean(), np.mean(self._accepted) if self._accepted else math.nan
        values = worst, effective, joint.mean(axis=0), deviation, joint.max(), *moves
        return dict(zip(ARRAYS, map(np.asarray, values), strict=True))


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

    Args:
        arrays: `ARRAYS` of all rows along the first axis.
        index: the row.
        same: rows whose chains have the same law, by any sampler; `best_log_joint` is the best among them.
    """
    means, best = arrays["joint_means"][index], float(np.max(arrays["joint_best"][list(same)]))
    worst = float(arrays["rhat"][index])
    below = best - float(means.min())
    near = below <= max(NATS, DEVIATIONS * float(arrays["joint_deviation"][index]))
    return {
        "rhat_max": "not assessed" if math.isnan(worst) else worst,
        "range_log_joint": float(np.ptp(means)),
        "best_log_joint": best,
        "n_chains": len(means),
        "below_best": below,
        "near": near,
        "converged": bool(worst < LIMIT and near),
    }
