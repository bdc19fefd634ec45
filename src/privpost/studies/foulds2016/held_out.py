"""Held-out likelihood of naive Bayes and hidden Markov models on war logs: splits, releases, chains and scores.

All methods of a split see the same held-out cells and, where they read noisy counts, the same release.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp, xlogy

from privpost.datasets import war_logs
from privpost.distributions import truncated_dirichlet
from privpost.evaluation.diagnostics import ess_bulk, rhat
from privpost.privacy import count_tables
from privpost.privacy.accounting import Cost
from privpost.samplers import chain, noise_aware_events
from privpost.samplers import hidden_markov_gibbs as gibbs
from privpost.studies.foulds2016.war_logs import post_process, select_fields


class Row(NamedTuple):
    """One method at one setting: variant is the Laplace mechanism's, truncation that of OPS."""

    model: str
    method: str
    variant: str | None
    truncation: float | None
    epsilon: float | None

    @property
    def account(self) -> str:
        """The name of the row in the ledger."""
        named = [f"{key}={value:g}" if key != "variant" else value for key, value in self.key().items() if value]
        return "/".join([self.model, self.method, *named])

    def key(self) -> dict:
        """What, beside the model and the method, names the row's random streams."""
        return {"variant": self.variant, "truncation": self.truncation, "epsilon": self.epsilon}


def rows(config) -> list[Row]:
    """Return the methods at all their settings, from the within axes."""
    listed = []
    for model in config.model:
        for method in config.method:
            if method == "non_private":
                listed.append(Row(model, method, None, None, None))
            for epsilon in config.epsilon:
                if method == "laplace":
                    listed += [Row(model, method, variant, None, epsilon) for variant in config.variant]
                if method == "gibbs":
                    listed.append(Row(model, method, None, None, epsilon))
                if method == "ops":
                    listed += [Row(model, method, None, truncation, epsilon) for truncation in config.truncation]
    return listed


class Data(NamedTuple):
    """Counts (cells, levels), the fields' sizes, which cells are neighbours, and each split's held-out cells.

    `sites` is (splits, held-out cells), `observed` (splits, cells).
    """

    counts: np.ndarray
    sizes: tuple[int, ...]
    layout: gibbs.Layout
    sites: np.ndarray
    observed: np.ndarray

    @property
    def test_counts(self) -> np.ndarray:
        return self.counts[self.sites]

    @property
    def test_events(self) -> np.ndarray:
        return self.test_counts[..., : self.sizes[0]].sum(axis=(1, 2))


def split_cells(config, logs, streams, block) -> Data:
    counts, sizes = select_fields(logs, config.fields)
    counts = counts * config.replication
    n_cells = len(counts)
    n_held = max(1, round(config.held_out * n_cells))
    rng = streams("data", block.index)
    sites = np.sort([rng.permutation(n_cells)[:n_held] for _ in range(block.size)], axis=1)
    observed = np.ones((block.size, n_cells), bool)
    np.put_along_axis(observed, sites, False, axis=1)
    return Data(counts, sizes, gibbs.Layout.of(logs.region), sites, observed)


def simulate(config, streams, ledger) -> dict:
    """Return `log_likelihood`, `predictive` (rows, splits), `events` (splits,), `clipped_share`, `rhat`, `ess` (rows,).

    `log_likelihood` is the log of the held-out cells' likelihood, averaged over the kept samples or, for OPS, of the
    released one; without multinomial coefficients. `predictive` takes each field of each event by itself: the sum of
    the logs of its averaged probability, for which a few samples do for a wide posterior as well as for a narrow one.
    `rhat` and `ess` are the worst of the first split's chains, nan where draws are exact or too few to say.
    """
    logs = war_logs.load(config.dataset)
    listed = rows(config)
    scores = np.full((2, len(listed), config.trials), np.nan)
    clipped, worst, effective = np.full((3, len(listed)), np.nan)
    events = np.empty(config.trials)
    _charge(config, listed, select_fields(logs, config.fields)[1], ledger)
    for block in streams.blocks():
        data = split_cells(config, logs, streams, block)
        events[block.trials] = data.test_events
        for model, evaluate in (("naive_bayes", _naive_bayes), ("hmm", _hidden_markov)):
            chosen = [index for index, row in enumerate(listed) if row.model == model]
            if not chosen:
                continue
            values, shares, diagnostics = evaluate(config, data, [listed[index] for index in chosen], streams, block)
            scores[:, chosen, block.trials] = values
            if block.index == 0:
                clipped[chosen], worst[chosen], effective[chosen] = shares, *diagnostics
    return {
        "log_likelihood": scores[0],
        "predictive": scores[1],
        "events": events,
        "clipped_share": clipped,
        "rhat": worst,
        "ess": effective,
    }


def _charge(config, listed, sizes, ledger) -> None:
    for row in listed:
        if row.method == "non_private":
            continue
        ledger.open(row.account, Cost("pure", row.epsilon))
        if row.method in ("laplace", "gibbs"):
            # One release of each field's counts.
            ledger.charge(row.account, Cost("pure", row.epsilon / len(sizes)), len(sizes))
        else:
            ledger.charge(row.account, Cost("pure", count_tables.sampling_cost(sizes, row.truncation, row.epsilon)))


def _naive_bayes(config, data, listed, streams, block):
    """Both scores (2, rows, splits), share of clipped totals, and (R-hat, ESS) of K = 1, nan where draws are exact."""
    totals = data.observed @ data.counts
    test = data.test_counts.sum(axis=1)
    unit = streams("mechanism", block.index, model="naive_bayes").laplace(size=totals.shape)
    kept = config.iterations - config.burn_in
    fields = gibbs.Prior(1, data.sizes).fields
    values, shares = np.empty((2, len(listed), block.size)), np.full(len(listed), np.nan)
    diagnostics = np.full((2, len(listed)), np.nan)
    for index, row in enumerate(listed):
        rng = streams("sampler", block.index, model=row.model, method=row.method, **row.key())
        counts, scale, n_draws, lows = totals, 1.0, kept, [0.0] * len(data.sizes)
        if row.method == "gibbs":
            scale = count_tables.noise_scale(row.epsilon, len(data.sizes))
            trace, mean = _noise_aware_bayes(config, data, totals + scale * unit, scale, test, rng, block)
            values[0, index] = logsumexp(trace[:, : block.size], axis=0) - math.log(len(trace))
            values[1, index] = xlogy(test, mean[: block.size]).sum(axis=-1)
            if block.index == 0:
                diagnostics[:, index] = _diagnosed([trace[:, [0, *range(block.size, trace.shape[1])]]])
            continue
        if row.method == "laplace":
            noisy = totals + count_tables.noise_scale(row.epsilon, len(data.sizes)) * unit
            counts = post_process(noisy, data.sizes, row.variant)
            shares[index] = np.mean((counts == 0) & (noisy != 0))
        if row.method == "ops":
            scale = count_tables.temperature(data.sizes, row.truncation, row.epsilon)
            n_draws, lows = 1, count_tables.smallest_probabilities(data.sizes, row.truncation)
        alpha = 1 + (config.emission_concentration - 1 + counts) / scale
        alpha = np.broadcast_to(alpha[:, None], (block.size, n_draws, alpha.shape[-1]))
        scores, predictive = np.zeros((block.size, n_draws)), np.zeros(block.size)
        for field, low in zip(fields, lows, strict=True):
            if low > 0:
                draws = truncated_dirichlet.sample(alpha[..., field], low, rng)
            else:
                gammas = rng.standard_gamma(alpha[..., field])
                draws = gammas / gammas.sum(axis=-1, keepdims=True)
            scores += xlogy(test[:, None, field], draws).sum(axis=-1)
            predictive += xlogy(test[:, field], draws.mean(axis=1)).sum(axis=-1)
        values[:, index] = logsumexp(scores, axis=1) - math.log(n_draws), predictive
    return values, shares, diagnostics


def _noise_aware_bayes(config, data, noisy, scale, test, rng, block) -> tuple[np.ndarray, np.ndarray]:
    """Held-out log-likelihood (kept draws, chains) and mean probabilities (chains, levels) of K = 1 given noisy totals.

    Every draw takes `naive_bayes_thinning` sweeps.
    """
    split = _chains(config, block)
    prior = gibbs.Prior(1, data.sizes, emission=config.emission_concentration)
    observed = np.ones((len(split), 1), bool)
    n_events = (data.observed @ data.counts[:, : data.sizes[0]]).sum(axis=1)
    latent = noise_aware_events.LatentCounts(noisy[split][:, None], observed, prior, scale, n_events[split])
    group = gibbs.Group(latent.start(), observed)
    burn_in, kept = config.burn_in * config.naive_bayes_thinning, config.iterations - config.burn_in
    trace, mean = np.empty((kept, len(split))), np.zeros((len(split), sum(data.sizes)))
    chains = noise_aware_events.Chains([group], [latent], gibbs.Layout.of([0]), prior)
    run = chain.run(chains, [rng], draws=config.iterations * config.naive_bayes_thinning)
    for sweep, (state, _) in enumerate(run, start=-burn_in):
        if sweep >= 0 and sweep % config.naive_bayes_thinning == 0:
            trace[sweep // config.naive_bayes_thinning] = (state.log_probabilities[:, 0] * test[split]).sum(axis=1)
            mean += np.exp(state.log_probabilities[:, 0]) / kept
    return trace, mean


def _chains(config, block) -> np.ndarray:
    """The split of each chain: one chain a split, and more of the first split, for the diagnostics."""
    extra = config.diagnostic_chains - 1 if block.index == 0 else 0
    return np.concatenate([np.arange(block.size), np.zeros(extra, int)])


def _diagnosed(traces) -> tuple[float, float]:
    """Largest R-hat and smallest bulk ESS of traces (draws, chains); nan for fewer than 4 draws."""
    if len(traces[0]) < 4:
        return math.nan, math.nan
    return max(float(rhat(trace)) for trace in traces), min(float(ess_bulk(trace)) for trace in traces)


def _hidden_markov(config, data, listed, streams, block):
    """Both scores (2, rows, splits), share of clipped counts and (largest R-hat, smallest ESS) of the HMM.

    The first split runs `diagnostic_chains` chains on the same release; only its first one is evaluated.
    """
    split = _chains(config, block)
    observed, sites = data.observed[split], data.sites[split]
    unit = streams("mechanism", block.index, model="hmm").laplace(size=(block.size, *data.counts.shape))
    n_events = (data.observed @ data.counts[:, : data.sizes[0]]).sum(axis=1)
    prior = gibbs.Prior(
        config.n_states, data.sizes, transition=config.transition_concentration, emission=config.emission_concentration
    )
    groups, latents, rngs, shares = [], [], [], np.full(len(listed), np.nan)
    for index, row in enumerate(listed):
        rngs.append(streams("sampler", block.index, model=row.model, method=row.method, **row.key()))
        counts, latent, settings = data.counts, None, {}
        if row.method == "gibbs":
            scale = count_tables.noise_scale(row.epsilon, len(data.sizes))
            noisy = (data.counts + scale * unit)[split]
            latent = noise_aware_events.LatentCounts(noisy, observed, prior, scale, n_events[split])
            counts = latent.start()
        if row.method == "laplace":
            noisy = data.counts + count_tables.noise_scale(row.epsilon, len(data.sizes)) * unit
            released = post_process(noisy, data.sizes, row.variant)
            shares[index] = np.mean(((released == 0) & (noisy != 0))[data.observed])
            counts = released[split]
        if row.method == "ops":
            settings["temperature"] = count_tables.temperature(data.sizes, row.truncation, row.epsilon)
            settings["lows"] = count_tables.smallest_probabilities(data.sizes, row.truncation)
            settings["prior_temperature"] = settings["temperature"] if config.prior == "tempered" else 1.0
        groups.append(gibbs.Group(counts, observed, **settings))
        latents.append(latent)
    del unit
    chains = noise_aware_events.Chains(groups, latents, data.layout, prior)
    run = chain.run(chains, rngs, draws=config.iterations)
    released_only = np.repeat([row.method == "ops" for row in listed], len(split))
    traces, predictive = _traces(config, data, run, released_only, prior, split, sites)
    n_chains, monitored = len(split), [0, *range(block.size, len(split))]
    values, diagnostics = np.empty((2, len(listed), block.size)), np.full((2, len(listed)), np.nan)
    for index, row in enumerate(listed):
        chains = slice(index * n_chains, (index + 1) * n_chains)
        held_out = traces["held_out"][:, chains]
        averaged = logsumexp(held_out, axis=0) - math.log(len(held_out))
        values[0, index] = (held_out[-1] if row.method == "ops" else averaged)[: block.size]
        values[1, index] = predictive[chains][: block.size]
        if block.index == 0:
            diagnostics[:, index] = _diagnosed([trace[:, chains][:, monitored] for trace in traces.values()])
    return values, shares, diagnostics


def _traces(config, data, run, released_only, prior, split, sites) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Quantities (kept iterations, chains) that no relabelling moves, and the fields' predictive score (chains,).

    The quantities are the held-out likelihood and the spread of the states. `released_only` (chains,) marks the chains
    of which only the last sample may be used.
    """
    kept = config.iterations - config.burn_in
    n_chains, n_all = len(split), len(released_only)
    test = data.test_counts[split].transpose(0, 2, 1)
    all_sites = np.tile(sites.T, (1, n_all // n_chains))
    held_out, spread = np.empty((2, kept, n_all))
    predictive = np.zeros((n_all, sites.shape[1], sum(prior.sizes)))
    for iteration, (state, _) in enumerate(run, start=-config.burn_in):
        if iteration < 0:
            continue
        weights = gibbs.site_prior(state.states, state.transitions, all_sites, data.layout, prior.transition)
        for start in range(0, n_all, n_chains):
            chains = slice(start, start + n_chains)
            scores = state.log_probabilities[chains] @ test
            scores += np.log(weights[:, :, chains]).transpose(2, 1, 0)
            held_out[iteration, chains] = logsumexp(scores, axis=1).sum(axis=1)
            if iteration == kept - 1 or not released_only[start]:
                share = 1.0 if released_only[start] else 1 / kept
                predictive[chains] += (
                    weights[:, :, chains].transpose(2, 0, 1) @ np.exp(state.log_probabilities[chains]) * share
                )
        shares = np.stack([(state.states == k).mean(axis=0) for k in range(prior.n_states)])
        spread[iteration] = -xlogy(shares, shares).sum(axis=0)
    tests = np.tile(data.test_counts[split], (n_all // n_chains, 1, 1))
    return {"held_out": held_out, "spread": spread}, xlogy(tests, predictive).sum(axis=(1, 2))
