"""Log joint density of a hidden Markov model, to compare and trace chains."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import gammaln

from privpost.samplers.hidden_markov import gibbs


def log_joint(
    state: gibbs.State, law: gibbs.Law, layout: gibbs.Layout, prior: gibbs.Prior
) -> tuple[np.ndarray, np.ndarray]:
    """Return the tempered log-likelihood (chains,) and log-prior (chains,) of each chain, up to constants.

    Without bounds in `law`, the emissions are integrated out, so only `state.states` is read. With bounds, the
    log-likelihood is given the states and the emissions, and the log-prior includes the prior of the emissions.
    """
    b = (prior.emission - 1) / law.prior_temperature
    totals = np.maximum(gibbs.state_totals(law.counts, state.states, law.observed, prior.n_states), 0.0)
    totals /= law.temperature
    a, n_states = prior.transition, prior.n_states
    moves = gibbs.transition_counts(state.states, layout, n_states)
    rows = (gammaln(moves + a) - math.lgamma(a)).sum(axis=1)
    rows += math.lgamma(n_states * a) - gammaln(moves.sum(axis=1) + n_states * a)
    before = (rows.sum(axis=0) - layout.first.sum() * math.log(n_states)) / law.prior_temperature
    if law.lows is not None:
        logs = state.log_probabilities
        return (totals * logs).sum(axis=(1, 2)), before + b * logs.sum(axis=(1, 2))
    likelihood = (gammaln(totals + 1 + b) - gammaln(1 + b)).sum(axis=(1, 2))
    for field, size in zip(prior.fields, prior.sizes, strict=True):
        whole = size * (1 + b)
        likelihood -= (gammaln(totals[..., field].sum(axis=-1) + whole) - gammaln(whole)).sum(axis=1)
    return likelihood, before
