"""Who leads where: releases of hidden Markov models on events whose states, emissions and density are known (ours).

Regions are chains over months that start uniformly and stay in a state with a given probability, else move to any other
one; a cell's events have fields of equally many levels, whose probabilities have a symmetric Dirichlet law. All methods
of a trial see the same events and, where they read noisy counts, the same noise.
"""

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp, rel_entr

from privpost.distributions.noise import Common
from privpost.experiments.foulds2016.chain_settings import CHAINS, N_STATES, TEMPERED
from privpost.experiments.foulds2016.event_methods import SAMPLED, Setup
from privpost.experiments.foulds2016.state_labels import matched
from privpost.experiments.foulds2016.who_leads.tables import rows, tabulate
from privpost.experiments.ranges import CONCENTRATION, EMISSION, EPSILON, METHOD, SHARE, TRANSITION, TRUNCATION
from privpost.lab.schema import Choice, Integer, Real, Schema
from privpost.models.event_counts import EventCounts
from privpost.samplers import hidden_markov_collapsed as collapsed
from privpost.samplers import hidden_markov_gibbs as gibbs

__all__ = ["SETTINGS", "simulate", "tabulate"]

CHAIN = {name: setting for name, setting in CHAINS.items() if name != "diagnostic_chains"}
SETTINGS = Schema(
    **CHAIN,
    **TEMPERED,
    regions=Integer(at_least=1, says="regions of the simulated events"),
    months=Integer(at_least=2, says="months of the simulated events"),
    n_fields=Integer(at_least=1, says="D, fields of an event"),
    levels=Integer(at_least=2, says="levels of each field"),
    events_per_level=Real(above=0, at_most=1e4, says="m, mean number of events of a level in a cell", unit="events"),
    true_states=Integer(at_least=1, says="states that generate the events"),
    true_concentration=CONCENTRATION.means("Dirichlet concentration that true emissions are drawn from"),
    persistence=SHARE.means("probability that a region stays in its state from a month to the next"),
    held_out=SHARE.means("share of the cells that is held out", "share"),
    copies=Integer(at_least=1, says="draws of the held-out cells' events that a fit is scored on"),
    n_states=N_STATES,
    transition_concentration=TRANSITION,
    emission_concentration=EMISSION,
    epsilon=EPSILON,
    aware=Choice("none", "hmm", says="models whose noise-aware chains run"),
    private_iterations=Integer(at_least=1, says="Gibbs iterations that share the budget where every update is paid"),
    checked=Integer(at_least=0, says="trials of which a second chain is run on the same release"),
    model=Choice("naive_bayes", "hmm", says="`naive_bayes`, or `hmm`, the hidden Markov model"),
    method=Choice("non_private", "laplace", "ops", "private_gibbs", "gibbs", says=METHOD),
    truncation=TRUNCATION,
)
TABLES = {
    "who_leads": {
        "loss_mean": "log-likelihood per held-out event, how far below the non-private HMM; paired [nats per event]",
        "state_error_mean": "share of cells in another state than the true one, labels matched [share]",
        "emission_error_mean": "KL divergence of an observed cell's true law from the fitted one [nats per event]",
        "states_used_mean": "states that hold a twentieth of the cells in a chain's last sample [count]",
        "chain_gap": "loss of a second chain on the same release less that of the first, mean size [nats per event]",
        "agree": "share of checked trials whose two chains' mean log joints are alike",
        "crossover": "m at which Laplace noise on cells and OPS's tempering blur a level's count equally [events]",
    },
    "who_leads_pairs": {
        "first": "variant of the Laplace mechanism",
        "difference_mean": "loss of OPS less that of Laplace; paired [nats per event]",
        "chain_gap": "mean size by which second chains on the same releases move both losses, summed [nats per event]",
    },
    "who_leads_exponents": {
        "axis": "what the loss is a power of: epsilon or events_per_level",
        "exponent": "slope of the loss's logarithm in that of the axis, least squares over both axes",
        "n_points": "settings that the slopes were fitted to [count]",
    },
}


# A state is in use when it holds this share of the cells.
USED = 0.05
NAMES = ("score", "state_error", "emission_error", "states_used")


class Data(NamedTuple):
    """Trials: true laws (trials, cells, levels), states and events of each cell, counts, held-out cells and copies.

    `states` (trials, cells), `counts` (trials, cells, levels), `sites` (trials, held), `observed` (trials, cells),
    `test` (trials, copies, held, levels).
    """

    laws: np.ndarray
    states: np.ndarray
    counts: np.ndarray
    sites: np.ndarray
    observed: np.ndarray
    test: np.ndarray


def events(config) -> int:
    """Return the public number of events in all cells."""
    return max(1, round(config.events_per_level * config.levels * config.regions * config.months))


def draw_data(config, size: int, rng) -> Data:
    """Return trials of events, and fresh draws of the events of their held-out cells."""
    n_cells, many = config.regions * config.months, config.true_states
    states = np.empty((size, n_cells), int)
    for cell in range(n_cells):
        drawn = rng.integers(many, size=size)
        if cell % config.months and many > 1:
            other = (states[:, cell - 1] + rng.integers(1, many, size=size)) % many
            drawn = np.where(rng.random(size) < config.persistence, states[:, cell - 1], other)
        states[:, cell] = drawn
    shape = size, many, config.n_fields
    emissions = rng.dirichlet(np.full(config.levels, config.true_concentration), shape)
    laws = emissions[np.arange(size)[:, None], states]
    totals = rng.multinomial(events(config), np.full(n_cells, 1 / n_cells), size)
    n_held = max(1, round(config.held_out * n_cells))
    sites = np.sort([rng.permutation(n_cells)[:n_held] for _ in range(size)], axis=1)
    observed = np.ones((size, n_cells), bool)
    np.put_along_axis(observed, sites, False, axis=1)
    counts = rng.multinomial(totals[..., None], laws).reshape(size, n_cells, -1).astype(float)
    trial = np.arange(size)[:, None]
    test = rng.multinomial(totals[trial, sites][:, None, :, None], laws[trial, sites][:, None],
                           (size, config.copies, n_held, config.n_fields))  # fmt: skip
    test = test.reshape(size, config.copies, n_held, -1).astype(float)
    return Data(laws.reshape(size, n_cells, -1), states, counts, sites, observed, test)


def setups(config) -> dict[str, Setup]:
    """Return for each model the object that makes its releases and samples; naive Bayes has one cell and one state."""
    sizes, n = (config.levels,) * config.n_fields, events(config)
    given = {"transition": config.transition_concentration, "emission": config.emission_concentration}
    hidden = EventCounts((config.months,) * config.regions, sizes, config.n_states, **given)
    return {"naive_bayes": Setup(EventCounts((1,), sizes, 1, **given), n), "hmm": Setup.of(config, hidden, n)}


def simulate(config, streams, ledger) -> dict:
    """Return `NAMES` (rows, trials), and `gap`, `agree` (rows, checked trials).

    `score` is the log-likelihood of the events in held-out cells, without multinomial coefficients, divided by the
    number of events that is expected there. The likelihood is averaged over the samples after burn-in; that of OPS is
    the likelihood under the released sample.
    """
    all_rows, models = rows(config), setups(config)
    results = {name: np.full((len(all_rows), config.trials), np.nan) for name in NAMES}
    checks = {name: np.full((len(all_rows), config.checked), np.nan) for name in ("gap", "agree")}
    for row in all_rows:
        models[row.model].open(ledger, [row])
    for block in streams.blocks():
        data = draw_data(config, block.size, streams("data", block.index))
        noise = {model: Common(streams("mechanism", block.index, model=model)) for model in config.model}
        for index, row in enumerate(all_rows):
            rng = streams("sampler", block.index, model=row.model, method=row.method, **row.key())
            setup = models[row.model]
            evaluate = _hidden_markov if row.model == "hmm" else _naive_bayes
            values, checked = evaluate(config, data, setup, row, noise[row.model], rng, ledger, block)
            for name, value in zip(results, values, strict=True):
                results[name][index, block.trials] = value
            if checked is not None and block.index == 0:
                for name, value in zip(checks, checked, strict=True):
                    checks[name][index] = value
    return {**results, **checks}


def _naive_bayes(config, data, setup, row, noise, rng, ledger, block):
    """Return scores and errors of naive Bayes, which has one state: it sees the totals of all observed cells only.

    Given these totals its draws are exact.
    """
    totals = (data.counts * data.observed[..., None]).sum(axis=1, keepdims=True)
    observed, n_draws = np.ones((block.size, 1), bool), config.iterations - config.burn_in
    watch = _Watch(config, setup, None, data)
    if row.method == "ops":
        sample = ledger.release(row.account, setup.mechanism(row), totals[:, 0], rng, repeats=block.trials).values
        draws = sample[:, None]
    else:
        chains = setup.chains(ledger, row, totals, noise, block.trials, rng, observed, slice(None))
        given = np.broadcast_to(chains.counts, (block.size, n_draws, chains.counts.shape[-1]))
        draws = gibbs.draw_emissions(gibbs.Group(given, observed), given, setup.prior, rng)[0][:, :, None]
    for laws in np.moveaxis(draws, 1, 0):
        watch.score(laws, np.ones((data.sites.shape[1], 1, block.size)))
        watch.fit(np.broadcast_to(laws, data.laws.shape))
    return (watch.value(), np.full(block.size, np.nan), watch.errors(), np.ones(block.size)), None


def _hidden_markov(config, data, setup, row, noise, rng, ledger, block):
    """Return scores and errors, and how second chains on the first trials' releases differ."""
    if row.method == "gibbs":
        setup = replace(setup, iterations=config.iterations, burn_in=config.burn_in)
    chains = setup.chains(ledger, row, data.counts, noise, block.trials, rng, data.observed, slice(None))
    watch = _Watch(config, setup, row, data)
    (release,) = setup.run(ledger, [chains], [watch], block.trials)
    final_state = release.info.state
    wrong = [_wrong(*pair) for pair in zip(final_state.states.T, data.states, strict=True)]
    used = sum((final_state.states == k).mean(axis=0) >= USED for k in range(config.n_states))
    values = watch.value(), np.array(wrong), watch.errors(), used
    if row.method == "private_gibbs" or not config.checked or block.index:
        return values, None
    first = slice(config.checked)
    again = chains._replace(observed=chains.observed[first], counts=chains.counts[first])
    if chains.latent is not None:
        return values, None
    second = _Watch(config, setup, row, Data(*(part[first] for part in data)))
    setup.follow(again, second)
    joints = watch.joints(setup, chains, first), second.joints(setup, again, first)
    means, spread = np.array([part.mean(axis=0) for part in joints]), np.mean([p.std(axis=0) for p in joints], axis=0)
    return values, (second.value() - values[0][first], np.abs(means[0] - means[1]) <= np.maximum(1.0, 5 * spread))


def _wrong(states, truth) -> float:
    """The share of cells in another state than the true one, after the best matching of labels."""
    n_states = max(states.max(), truth.max()) + 1
    return float(np.mean(matched(states, truth, n_states)[states] != truth))


class _Watch:
    """Scores chains after burn-in on held-out cells, and stores their mean fitted laws and their states."""

    def __init__(self, config, setup, row, data: Data):
        self._config, self._setup, self._row, self._data = config, setup, row, data
        self._burn_in = setup.length(row)[1] if row else 0
        self._fitted, self._scores, self._states = 0.0, [], []

    def __call__(self, iteration: int, state) -> None:
        if iteration < self._burn_in:
            return
        self._states.append(state.states.copy())
        if self._row.method in SAMPLED and iteration + 1 < self._setup.length(self._row)[0]:
            # Only the last sample is released.
            return
        data, setup = self._data, self._setup
        given = state.states, state.transitions, data.sites.T, setup.layout, setup.prior.transition
        self.score(state.probabilities, gibbs.site_prior(*given))
        chain = np.arange(len(data.sites))[:, None]
        self.fit(state.probabilities[chain, state.states.T])

    def score(self, laws, weights) -> None:
        """Store the log-likelihoods of the held-out events under one sample, for `value` to average.

        Args:
            laws: probabilities of the levels in each state, shape (trials, K, levels).
            weights: probabilities of the states of each held-out cell, shape (held, K, trials).
        """
        trials, copies, held, levels = self._data.test.shape
        scores = np.log(laws) @ self._data.test.reshape(trials, -1, levels).transpose(0, 2, 1)
        scores = scores.reshape(trials, -1, copies, held) + np.log(weights).transpose(2, 1, 0)[:, :, None]
        self._scores.append(logsumexp(scores, axis=1).sum(axis=-1))

    def fit(self, laws) -> None:
        """Add one sample's laws of all cells (trials, cells, levels) to the sum that `errors` makes a mean of."""
        self._fitted = self._fitted + laws

    def value(self) -> np.ndarray:
        """The score (trials,): see `simulate`."""
        expected = events(self._config) * self._data.sites.shape[1] / self._data.states.shape[1]
        averaged = logsumexp(self._scores, axis=0) - math.log(len(self._scores))
        return averaged.mean(axis=-1) / expected

    def errors(self) -> np.ndarray:
        """KL divergence of the true laws from the mean fitted ones, mean over observed cells (trials,)."""
        observed = self._data.observed
        divergences = rel_entr(self._data.laws, self._fitted / len(self._scores)).sum(axis=-1)
        return (divergences * observed).sum(axis=1) / observed.sum(axis=1)

    def joints(self, setup, chains, first) -> np.ndarray:
        """Collapsed log joints (samples, chains) of the first chains, under the law that they sample from."""
        law = setup.law(chains._replace(counts=chains.counts[first], observed=chains.observed[first]))
        states = [sample[:, first] for sample in self._states]
        return np.stack([collapsed.log_joint(s, law, setup.layout, setup.prior).sum(axis=0) for s in states])
