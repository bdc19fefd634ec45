"""Held-out likelihood of naive Bayes and hidden Markov models on war logs: splits, chains and scores.

All methods of a split see the same held-out cells and, where they read noisy counts, the same noise; so do all studies
of a data set.
"""

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp, xlogy

from privpost.datasets import war_logs
from privpost.distributions.noise import Common
from privpost.experiments.foulds2016 import event_methods
from privpost.experiments.foulds2016.chain_checks import ARRAYS, FIRST, PARTITION_DISTANCE, Monitor, agree, diagnosed
from privpost.experiments.foulds2016.chain_settings import CHAINS, COUNTS, N_STATES
from privpost.experiments.foulds2016.event_methods import SAMPLED, Row, Setup
from privpost.experiments.foulds2016.war_logs import select_fields
from privpost.experiments.ranges import EPSILON, SHARE, TRANSITION
from privpost.lab.schema import Choice, Integer
from privpost.models.event_counts import EventCounts
from privpost.samplers import hidden_markov_gibbs as gibbs

# Settings of all studies of held-out cells.
SPLIT = {
    "dataset": COUNTS,
    "fields": Choice("all", "no_category", says="fields of the war logs that are used"),
    "replication": Integer(at_least=1, says="number of times that each event is counted"),
    "held_out": SHARE.means("share of the cells that each split holds out", "share"),
    "n_states": N_STATES,
    "transition_concentration": TRANSITION,
    "epsilon": EPSILON,
}
# Settings of the study that decide a row of `READ`, which has ε, variant and sampler itself and no Gibbs iterations.
ALIKE = {*SPLIT, *CHAINS, "emission_concentration"} - {"epsilon", "variant", "sampler", "iterations", "burn_in"}
# Methods whose collapsed chains a study takes from the results of another that ran them.
READ = ("non_private", "laplace")
MODELS = Choice("naive_bayes", "hmm", says="`naive_bayes`, or `hmm`, the hidden Markov model")


def rows(config) -> list[Row]:
    """Return the methods at all their settings, from the within axes."""
    return [row for model in config.model for row in event_methods.rows(config, model, config.epsilon)]


def computed(config, sizes, row: Row, results) -> tuple[dict, int] | None:
    """Return the arrays in which a row's chains of the same settings stand, and its place there; None where in none.

    Args:
        sizes: trials, block and seed.
        results: stored cells of studies of held-out cells.
    """
    if row.method not in READ or row.sampler != "collapsed":
        return None
    alike = [getattr(config, name) for name in ALIKE]
    for result in results:
        there = [getattr(result.config, name, None) for name in ALIKE]
        same = there == alike and sizes == {name: result.record["sizes"][name] for name in sizes}
        if same and row in (listed := rows(result.config)):
            return result.arrays, listed.index(row)
    return None


class Data(NamedTuple):
    """Counts (cells, levels), the fields' sizes, and each split's held-out cells.

    `sites` is (splits, held-out cells), `observed` (splits, cells).
    """

    counts: np.ndarray
    sizes: tuple[int, ...]
    sites: np.ndarray
    observed: np.ndarray

    @property
    def test_counts(self) -> np.ndarray:
        return self.counts[self.sites]

    @property
    def test_events(self) -> np.ndarray:
        return self.test_counts[..., : self.sizes[0]].sum(axis=(1, 2))


def shared(config, streams):
    """Return the streams of splits, noise and chains, which are those of the data set in all studies."""
    return streams.shared("foulds2016/held_out", dataset=config.dataset)


def split_cells(config, logs, streams, block) -> Data:
    counts, sizes = select_fields(logs, config.fields)
    counts = counts * config.replication
    n_cells = len(counts)
    n_held = max(1, round(config.held_out * n_cells))
    rng = shared(config, streams)("data", block.index)
    sites = np.sort([rng.permutation(n_cells)[:n_held] for _ in range(block.size)], axis=1)
    observed = np.ones((block.size, n_cells), bool)
    np.put_along_axis(observed, sites, False, axis=1)
    return Data(counts, sizes, sites, observed)


def setups(config, logs) -> dict[str, Setup]:
    """Return what releases and samples for each model; naive Bayes has one cell and one state."""
    counts, sizes = select_fields(logs, config.fields)
    n = int(counts[:, : sizes[0]].sum()) * config.replication
    concentrations = {"transition": config.transition_concentration, "emission": config.emission_concentration}
    hidden = EventCounts.of(logs.region, sizes, config.n_states, **concentrations)
    return {
        # Draws are exact: it needs only one of the chains' settings.
        "naive_bayes": Setup(
            EventCounts((1,), sizes, 1, **concentrations),
            n,
            tempered_prior=getattr(config, "prior", "tempered") == "tempered",
        ),
        "hmm": Setup.of(config, hidden, n),
    }


def simulate(config, streams, ledger) -> dict:
    """Return `log_likelihood`, `predictive` (rows, splits), `events` (splits,), `clipped_share` (rows,), and `ARRAYS`.

    `log_likelihood` is the log of the held-out cells' likelihood without multinomial coefficients, averaged over the
    samples after burn-in or, for OPS, of the released sample. `predictive` sums the logs of the averaged probability of
    each field of each event, for which few samples are enough even under a wide posterior. `ARRAYS` describe the
    first split's chains, nan where draws are exact or too few; with latent counts they include the distance of the
    chains' partitions. Rows that another study's results have are taken from there (`computed`).
    """
    logs, streams = war_logs.load(config.dataset), shared(config, streams)
    all_rows, models = rows(config), setups(config, logs)
    results = config.results() if hasattr(config, "results") else []
    given = config, {name: getattr(streams, name) for name in ("trials", "block", "seed")}
    known = {index: found for index, row in enumerate(all_rows) if (found := computed(*given, row, results))}
    scores = np.full((2, len(all_rows), config.trials), np.nan)
    names = (*ARRAYS, PARTITION_DISTANCE) if "gibbs" in config.method else ARRAYS
    clipped, checks = np.full(len(all_rows), np.nan), {name: np.full(len(all_rows), np.nan) for name in names}
    events = np.empty(config.trials)
    for index, row in enumerate(all_rows):
        if index not in known:
            models[row.model].open(ledger, [row])
    for block in streams.blocks():
        data = split_cells(config, logs, streams, block)
        events[block.trials] = data.test_events
        for model, evaluate in (("naive_bayes", _naive_bayes), ("hmm", _hidden_markov)):
            places = [index for index, row in enumerate(all_rows) if row.model == model and index not in known]
            if not places:
                continue
            values, shares, diagnostics = evaluate(
                config, data, models[model], [all_rows[index] for index in places], streams, block, ledger
            )
            scores[:, places, block.trials] = values
            if block.index == 0:
                clipped[places] = shares
                for index, diagnosis in zip(places, diagnostics, strict=True):
                    for name, value in diagnosis.items():
                        checks[name][index] = value
    for index, (arrays, place) in known.items():
        scores[:, index] = arrays["log_likelihood"][place], arrays["predictive"][place]
        clipped[index] = arrays["clipped_share"][place]
        for name in ARRAYS:
            checks[name][index] = arrays[name][place]
    return {
        "log_likelihood": scores[0],
        "predictive": scores[1],
        "events": events,
        "clipped_share": clipped,
        **checks,
    }


def _naive_bayes(config, data, setup, all_rows, streams, block, ledger):
    """Return both scores (2, rows, splits), clipped shares, and checks for K = 1, empty where draws are exact."""
    totals = (data.observed @ data.counts)[:, None]
    test = data.test_counts.sum(axis=1)
    noise = Common(streams("mechanism", block.index, model="naive_bayes"))
    n_draws = config.iterations - config.burn_in
    values, shares = np.empty((2, len(all_rows), block.size)), np.full(len(all_rows), np.nan)
    diagnostics: list[dict] = [{} for _ in all_rows]
    split = _chains(block, config.diagnostic_chains)
    for index, row in enumerate(all_rows):
        rng = streams("sampler", block.index, model=row.model, method=row.method, **row.key())
        if row.method == "ops":
            draws = ledger.release(row.account, setup.mechanism(row), totals[:, 0], rng, repeats=block.trials).values
        else:
            of_chain = split if row.method == "gibbs" else np.arange(block.size)
            observed = np.ones((len(of_chain), 1), bool)
            # The held-out cells together may hold any number of events.
            chains = setup.chains(ledger, row, totals, noise, block.trials, rng, observed, of_chain, n_held=1)
            shares[index] = chains.clipped
            if row.method == "gibbs":
                trace, mean = _noise_aware_bayes(config, setup, chains, test[split], ledger, block)
                values[0, index] = logsumexp(trace[:, : block.size], axis=0) - math.log(len(trace))
                values[1, index] = xlogy(test, mean[: block.size]).sum(axis=-1)
                if block.index == 0:
                    diagnosis = diagnosed([trace[:, [0, *range(block.size, trace.shape[1])]]])
                    diagnostics[index] = dict(zip(ARRAYS, (*diagnosis, config.diagnostic_chains), strict=False))
                continue
            given = np.broadcast_to(chains.counts, (block.size, n_draws, totals.shape[-1]))
            draws = gibbs.draw_emissions(gibbs.Group(given, observed), given, setup.prior, rng)[0]
        scores, predictive = np.zeros(draws.shape[:2]), np.zeros(block.size)
        for field in setup.prior.fields:
            scores += xlogy(test[:, None, field], draws[..., field]).sum(axis=-1)
            predictive += xlogy(test[:, field], draws[..., field].mean(axis=1)).sum(axis=-1)
        values[:, index] = logsumexp(scores, axis=1) - math.log(draws.shape[1]), predictive
    return values, shares, diagnostics


def _noise_aware_bayes(config, setup, chains, test, ledger, block) -> tuple[np.ndarray, np.ndarray]:
    """Return held-out log-likelihoods (draws, chains) and mean probabilities (chains, levels) for K = 1."""
    n_draws = config.iterations - config.burn_in
    trace, mean = np.empty((n_draws, len(test))), np.zeros(test.shape)

    def watch(iteration, state):
        if iteration >= config.burn_in:
            trace[iteration - config.burn_in] = (state.log_probabilities[:, 0] * test).sum(axis=1)
            mean[:] += state.probabilities[:, 0] / n_draws

    replace(setup, iterations=config.iterations, burn_in=config.burn_in).run(ledger, [chains], [watch], block.trials)
    return trace, mean


def _chains(block, number: int) -> np.ndarray:
    """The split of each chain: one chain per split, and for the diagnostics `number` in all on the first split."""
    extra = number - 1 if block.index == 0 else 0
    return np.concatenate([np.arange(block.size), np.zeros(extra, int)])


def _hidden_markov(config, data, setup, all_rows, streams, block, ledger):
    """Return both scores (2, rows, splits), clipped shares and checks (maps of `ARRAYS`) of the hidden Markov model.

    The first split runs `diagnostic_chains` chains on the same release, but only `FIRST` where these disagree; only the
    first chain is evaluated.
    """
    split = _chains(block, min(FIRST, config.diagnostic_chains))
    observed, sites, test = data.observed[split], data.sites[split], data.test_counts[split]
    noise = Common(streams("mechanism", block.index, model="hmm"))
    monitored = [0, *range(block.size, len(split))]
    values, clipped, diagnostics = np.empty((2, len(all_rows), block.size)), [], []
    for index, row in enumerate(all_rows):
        named = {"model": row.model, "n_states": setup.prior.n_states, "method": row.method}
        rng = streams("sampler", block.index, **named, **row.key())
        chains = setup.chains(ledger, row, data.counts, noise, block.trials, rng, observed, split)
        trace = _Trace(setup, row, chains, sites, test, monitored if block.index == 0 else [])
        (release,) = setup.run(ledger, [chains], [trace], block.trials)
        if row.method in SAMPLED:
            # The released sample is scored, emissions and states; the trace of its chain is for diagnosis.
            evaluated, final_state = slice(block.size), release.info.state
            released = np.log(release.values), final_state.states[:, evaluated], final_state.transitions[..., evaluated]
            values[0, index], weights = _score(*released, sites[evaluated], test[evaluated], setup)
            law = _law(weights, released[0])
        else:
            values[0, index] = (logsumexp(trace.held_out, axis=0) - math.log(len(trace.held_out)))[: block.size]
            law = trace.predictive[: block.size]
        values[1, index] = xlogy(test[: block.size], law).sum(axis=(1, 2))
        clipped.append(chains.clipped)
        checks, more = trace.checks(), config.diagnostic_chains - len(monitored)
        if checks and more > 0 and agree(checks):
            given, again = chains.of_first(more), np.zeros(more, int)
            second = _Trace(setup, row, given, sites[again], test[again], list(range(more)))
            setup.follow(given, second)
            checks = trace.checks(second)
        diagnostics.append(checks)
    return values, np.array(clipped), diagnostics


def _score(log_probabilities, states, transitions, sites, test, setup) -> tuple[np.ndarray, np.ndarray]:
    """Return the log-likelihood (chains,) of held-out cells given all other states, and the law (sites, K, chains) of
    their states.

    Args:
        log_probabilities, states, transitions: fields of a `State`.
        sites: held-out cells (chains, sites).
        test: their counts (chains, sites, levels).
    """
    weights = gibbs.site_prior(states, transitions, sites.T, setup.layout, setup.prior.transition)
    scores = log_probabilities @ test.transpose(0, 2, 1)
    scores += np.log(weights).transpose(2, 1, 0)
    return logsumexp(scores, axis=1).sum(axis=1), weights


def _law(weights, log_probabilities) -> np.ndarray:
    """Return the probabilities (chains, sites, levels) of the levels in the held-out cells."""
    return weights.transpose(2, 0, 1) @ np.exp(log_probabilities)


class _Trace:
    """Watches a row's chains after burn-in, and checks the `monitored` ones for convergence.

    Attributes:
        held_out: held-out log-likelihood (iterations after burn-in, chains).
        predictive: mean law of levels (chains, sites, levels) where the chain may be averaged.
    """

    def __init__(self, setup, row, chains, sites, test, monitored):
        iterations, self._burn_in = setup.length(row)
        self._n_draws, self._given = iterations - self._burn_in, (sites, test, setup)
        self.held_out = np.empty((self._n_draws, len(sites)))
        self.predictive = None if row.method in SAMPLED else np.zeros(test.shape)
        self._monitored, self._monitor = monitored, None
        # A chain that pays for its updates need not converge.
        if monitored and row.method != "private_gibbs":
            law = setup.law(chains), setup.layout, setup.prior
            self._monitor = Monitor(*law, self._burn_in, monitored, partitions=chains.latent is not None)

    def __call__(self, iteration: int, state: gibbs.State) -> None:
        draw = iteration - self._burn_in
        if draw < 0:
            return
        self.held_out[draw], weights = _score(state.log_probabilities, state.states, state.transitions, *self._given)
        if self.predictive is not None:
            self.predictive += _law(weights, state.log_probabilities) * (1 / self._n_draws)
        if self._monitor is not None:
            self._monitor(iteration, state)

    def checks(self, *others) -> dict:
        """`ARRAYS` of the chains monitored here and by others, the held-out likelihood among their traces."""
        if self._monitor is None:
            return {}
        held_out = np.concatenate([trace.held_out[:, trace._monitored] for trace in (self, *others)], axis=1)
        return self._monitor.summary(held_out, others=[trace._monitor for trace in others])
