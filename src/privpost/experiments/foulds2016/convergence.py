"""Convergence of chains on the hidden states of war logs: R-hat and bulk ESS of traces that ignore state labels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy.special import xlogy

from privpost.evaluation.diagnostics import diagnose
from privpost.samplers.hidden_markov import gibbs
from privpost.samplers.hidden_markov.joint import log_joint

# Chains with a larger R-hat have not converged (Vehtari et al. 2021 recommend 1.01 for final inference).
LIMIT = 1.05
ARRAYS = ("rhat", "ess", "log_joint")


class Diagnosis:
    """Records three traces after burn-in: log joint, log-likelihood, and entropy of the share of cells in each state.

    Args:
        law: counts and temperatures of all chains.
        chains: indices of the watched chains, which must run on the same data.
    """

    def __init__(self, law: gibbs.Law, layout: gibbs.Layout, prior: gibbs.Prior, chains: Sequence[int], burn_in: int):
        chains = list(chains)
        own = law.counts if np.ndim(law.counts) == 2 else law.counts[chains]
        self._law = replace(law, counts=own, observed=law.observed[chains])
        self._given, self._chains, self._burn_in = (layout, prior), chains, burn_in
        self._traces: list[np.ndarray] = []

    def __call__(self, iteration: int, state: gibbs.State) -> None:
        if iteration < self._burn_in:
            return
        states, (layout, prior) = state.states[:, self._chains], self._given
        own = state._replace(states=states, log_probabilities=state.log_probabilities[self._chains])
        likelihood, log_prior = log_joint(own, self._law, layout, prior)
        shares = np.stack([(states == k).mean(axis=0) for k in range(prior.n_states)])
        self._traces.append(np.stack([likelihood + log_prior, likelihood, -xlogy(shares, shares).sum(axis=0)]))

    def summary(self, *more) -> dict[str, float]:
        """Return the worst R-hat and bulk ESS of the traces and of `more` traces, and the mean log joint."""
        traces = np.stack(self._traces, axis=1)
        worst, effective = diagnosed([*traces, *more])
        return {"rhat": worst, "ess": effective, "log_joint": float(traces[0].mean())}


def diagnosed(traces) -> tuple[float, float]:
    """Return the largest R-hat and the smallest bulk ESS of traces (draws, chains), or nan for fewer than 4 draws."""
    if len(traces[0]) < 4:
        return math.nan, math.nan
    values, effective = [], []
    # If no chain of a trace moves, R-hat is 1 for equal chains and infinite for others.
    # R-hat uses ranks. Rounding errors must not distinguish states that are equal up to labels.
    for trace in (np.round(trace, 6) for trace in traces):
        if (np.ptp(trace, axis=0) < 1e-9 * (1 + np.abs(trace).max())).all():
            values.append(1.0 if np.ptp(trace) < 1e-9 * (1 + np.abs(trace).max()) else math.inf)
        else:
            hat, bulk, _ = map(float, diagnose(trace))
            values.append(hat)
            effective.append(bulk)
    return max(values), min(effective, default=math.nan)


def verdict(rhat: float, ess: float) -> dict:
    """Return the columns `rhat_max`, `ess_bulk` and `converged`. An unknown R-hat or ESS (nan) becomes None."""
    known = {"rhat_max": rhat, "ess_bulk": ess}
    return {name: None if math.isnan(value) else float(value) for name, value in known.items()} | {
        "converged": bool(rhat < LIMIT)
    }
