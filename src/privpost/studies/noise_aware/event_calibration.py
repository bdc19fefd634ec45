"""Calibration of posteriors of event models under Laplace-released counts, on data drawn from the models' own prior.

In every trial emissions, states, totals and counts are drawn from the prior, and released as on war logs. U is the
quantile of an emission probability in its posterior: the probability of the first level in the state of the first cell,
which no relabelling of states moves. It is averaged over a chain's conditional beta laws, which leaves little of the
noise of draws in it. `kl` is the divergence of the predictive law of the first field in that cell, the posterior mean,
from the true one; no other predictive law has a smaller mean over the prior than the true posterior's.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import betainc, rel_entr

from privpost.evaluation.calibration import ks_limit, ks_p_value, ks_statistic
from privpost.evaluation.diagnostics import ess_bulk, rhat
from privpost.pipeline.schema import Choice, Integer, Real, Schema, Vector
from privpost.privacy import count_tables
from privpost.privacy.accounting import Cost
from privpost.samplers import chain, noise_aware_events
from privpost.samplers import hidden_markov_gibbs as gibbs
from privpost.studies.foulds2016.held_out import Row
from privpost.studies.foulds2016.war_logs import post_process

SETTINGS = Schema(
    transition_concentration=Real(above=0),
    emission_concentration=Real(at_least=1),
    iterations=Integer(at_least=5),
    burn_in=Integer(at_least=1),
    n=Integer(at_least=1),
    n_states=Integer(at_least=1),
    regions=Integer(at_least=1),
    months=Integer(at_least=1),
    sizes=Vector(Integer(at_least=2)),
    method=Choice("non_private", "laplace", "gibbs", "exact"),
    variant=Choice("paper", "corrected"),
    epsilon=Real(above=0),
)


def rows(config) -> list[Row]:
    """Return the methods at all their settings; `exact` for one state and one field only."""
    model = "naive_bayes" if config.n_states == 1 else "hmm"
    listed = []
    for method in config.method:
        if method == "non_private":
            listed.append(Row(model, method, None, None, None))
            continue
        if method == "exact" and (config.n_states, config.regions * config.months, len(config.sizes)) != (1, 1, 1):
            continue
        for epsilon in config.epsilon:
            variants = config.variant if method == "laplace" else [None]
            listed += [Row(model, method, variant, None, epsilon) for variant in variants]
    return listed


def draw_data(config, layout, size, rng) -> tuple[np.ndarray, np.ndarray]:
    """Return true emissions (trials, levels) of the first cell's state, and counts (trials, cells, levels)."""
    n_states, n_cells = config.n_states, len(layout.first)
    moves = rng.dirichlet(np.full(n_states, config.transition_concentration), (size, n_states))
    states = np.empty((size, n_cells), int)
    for cell, first in enumerate(layout.first):
        law = np.full((size, n_states), 1 / n_states) if first else moves[np.arange(size), states[:, cell - 1]]
        states[:, cell] = np.minimum((law.cumsum(axis=1) <= rng.random((size, 1))).sum(axis=1), n_states - 1)
    # All ways to spread the events over the cells are equally likely.
    totals = rng.multinomial(config.n, rng.dirichlet(np.ones(n_cells), size))
    emissions, counts = [], []
    for n_levels in config.sizes:
        probabilities = rng.dirichlet(np.full(n_levels, config.emission_concentration), (size, n_states))
        of_cells = np.take_along_axis(probabilities, states[..., None], axis=1)
        counts.append(rng.multinomial(totals, of_cells))
        emissions.append(of_cells[:, 0])
    return np.concatenate(emissions, axis=-1), np.concatenate(counts, axis=-1).astype(float)


def simulate(config, streams, ledger) -> dict:
    """Return `quantiles` and `kl` (rows, trials), and `rhat` and `ess` (rows,), the medians over trials.

    Both diagnose the trace of the probability's conditional mean, from the halves of a trial's one chain; nan where no
    chain was run, where draws are independent, or too few.
    """
    listed = rows(config)
    layout = gibbs.Layout.of(np.repeat(np.arange(config.regions), config.months))
    quantiles, kl = np.empty((2, len(listed), config.trials))
    diagnostics = np.full((2, len(listed)), np.nan)
    for row in listed:
        if row.epsilon is not None and row.method != "exact":
            ledger.open(row.account, Cost("pure", row.epsilon))
            ledger.charge(row.account, Cost("pure", row.epsilon / len(config.sizes)), len(config.sizes))
    for block in streams.blocks():
        truth, counts = draw_data(config, layout, block.size, streams("data", block.index))
        unit = streams("mechanism", block.index).laplace(size=counts.shape)
        chains = [index for index, row in enumerate(listed) if row.method != "exact"]
        found = _run(config, layout, counts, unit, truth, [listed[index] for index in chains], streams, block)
        quantiles[chains, block.trials], kl[chains, block.trials] = found[:2]
        if block.index == 0:
            diagnostics[:, chains] = found[2]
        for index in set(range(len(listed))) - set(chains):
            scale = count_tables.noise_scale(listed[index].epsilon, 1)
            law = noise_aware_events.count_probabilities((counts + scale * unit)[:, 0], config.n, scale)
            quantiles[index, block.trials] = noise_aware_events.probability_cdf(law, truth[:, 0], config.sizes[0])
            kl[index, block.trials] = np.nan
    return {"quantiles": quantiles, "kl": kl, "rhat": diagnostics[0], "ess": diagnostics[1]}


def _run(config, layout, counts, unit, truth, listed, streams, block):
    """Quantiles and divergences (rows, trials), and (R-hat, ESS) (2, rows), of one chain per row and trial."""
    prior = gibbs.Prior(
        config.n_states,
        tuple(config.sizes),
        transition=config.transition_concentration,
        emission=config.emission_concentration,
    )
    observed = np.ones(counts.shape[:2], bool)
    groups, latents, rngs = [], [], []
    for row in listed:
        rngs.append(streams("sampler", block.index, method=row.method, **row.key()))
        used, latent = counts, None
        if row.epsilon is not None:
            scale = count_tables.noise_scale(row.epsilon, len(config.sizes))
            noisy = counts + scale * unit
            if row.method == "gibbs":
                n_events = np.full(block.size, config.n)
                latent = noise_aware_events.LatentCounts(noisy, observed, prior, scale, n_events)
                used = latent.start()
            else:
                used = post_process(noisy, config.sizes, row.variant)
        groups.append(gibbs.Group(used, observed))
        latents.append(latent)
    kept, first = config.iterations - config.burn_in, prior.fields[0]
    cdf, mean = np.zeros((len(listed), block.size)), np.zeros((len(listed), block.size, config.sizes[0]))
    trace = np.empty((kept, len(listed), block.size))
    b = config.emission_concentration
    run = chain.run(noise_aware_events.Chains(groups, latents, layout, prior), rngs, draws=config.iterations)
    for iteration, (state, _) in enumerate(run, start=-config.burn_in):
        if iteration < 0:
            continue
        for index, counted in enumerate(state.counts):
            states = state.states[:, index * block.size : (index + 1) * block.size]
            member = (states == states[0]).T[:, None].astype(float)
            alpha = b + (member @ counted)[:, 0, first]
            total = alpha.sum(axis=-1)
            cdf[index] += betainc(alpha[:, 0], total - alpha[:, 0], truth[:, 0]) / kept
            mean[index] += alpha / total[:, None] / kept
            trace[iteration, index] = alpha[:, 0] / total
    kl = rel_entr(truth[:, first], mean).sum(axis=-1)
    diagnostics = np.full((2, len(listed)), np.nan)
    for index, row in enumerate(listed):
        if row.model == "hmm" or row.method == "gibbs":
            chains = trace[:, index][:, None]
            diagnostics[:, index] = np.nanmedian(rhat(chains)), np.nanmedian(ess_bulk(chains))
    return np.clip(cdf, 0.0, 1.0), kl, diagnostics


def tabulate(cells):
    """Return calibration and divergence by method (`event_calibration`), and paired differences from noise-aware."""
    import pandas as pd

    table, pairs = [], []
    for cell in cells:
        config, arrays = cell.config, cell.arrays
        listed = rows(config)
        limit = ks_limit(config.trials)
        places = {(row.method, row.epsilon): index for index, row in enumerate(listed)}
        for index, row in enumerate(listed):
            named = {"model": row.model, "n": config.n, "variant": row.variant, "epsilon": row.epsilon}
            values, kl = arrays["quantiles"][index], arrays["kl"][index]
            statistic = float(ks_statistic(values))
            exact = places.get(("exact", row.epsilon)) if row.method == "gibbs" else None
            table.append(
                {
                    **named,
                    "method": row.method,
                    "sampling": "mcmc" if row.model == "hmm" or row.method == "gibbs" else "exact",
                    "ks": statistic,
                    "ks_limit": limit,
                    "p_value": float(ks_p_value(statistic, config.trials)),
                    "oracle_difference": math.nan
                    if exact is None
                    else float(np.abs(values - arrays["quantiles"][exact]).mean()),
                    "kl_mean": kl.mean(),
                    "kl_sem": kl.std(ddof=1) / math.sqrt(config.trials),
                    "rhat_median": arrays["rhat"][index],
                    "ess_median": arrays["ess"][index],
                    "n_trials": config.trials,
                }
            )
            aware = places.get(("gibbs", row.epsilon))
            if row.method == "laplace" and aware is not None:
                gain = kl - arrays["kl"][aware]
                pairs.append(
                    {
                        **named,
                        "kl_gain_mean": gain.mean(),
                        "kl_gain_sem": gain.std(ddof=1) / math.sqrt(config.trials),
                        "n_trials": config.trials,
                    }
                )
    return {"event_calibration": pd.DataFrame(table), "event_calibration_pairs": pd.DataFrame(pairs)}


def numbers(tables) -> dict:
    """Return KS statistics and divergences by model, n, method and epsilon."""
    found: dict = {}
    for row in tables["event_calibration"].itertuples():
        method = row.method if row.method != "laplace" else {"paper": "clipped", "corrected": "projected"}[row.variant]
        epsilon = "" if math.isnan(row.epsilon) else f"/{row.epsilon:g}"
        name = f"{row.model}_{row.n}/{method}{epsilon}"
        found[f"{name}/ks"] = row.ks
        if not math.isnan(row.kl_mean):
            found[f"{name}/kl"] = row.kl_mean
        if not math.isnan(row.oracle_difference):
            found[f"{name}/oracle_difference"] = row.oracle_difference
        if not math.isnan(row.rhat_median):
            found[f"{name}/rhat"] = row.rhat_median
    found["ks_limit"] = float(tables["event_calibration"].ks_limit.iloc[0])
    return found
