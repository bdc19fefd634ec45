"""Held-out likelihood of private naive Bayes and hidden Markov models on war logs (Foulds et al. 2016, figure 6)."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp, xlogy

from privpost.datasets import war_logs
from privpost.evaluation.claims import Claim, Why, from_checks
from privpost.evaluation.diagnostics import rhat
from privpost.mechanisms import count_tables, truncated_dirichlet
from privpost.pipeline.schema import Choice, DatasetName, Integer, Real, Schema
from privpost.privacy.accounting import Cost
from privpost.samplers import hidden_markov_gibbs as gibbs
from privpost.studies.foulds2016.war_logs import post_process, select_fields, title, uses_private_metadata

SETTINGS = Schema(
    dataset=DatasetName(),
    fields=Choice("all", "no_category"),
    prior=Choice("tempered", "untempered"),
    replication=Integer(at_least=1),
    held_out=Real(above=0, below=1),
    n_states=Integer(at_least=2),
    iterations=Integer(at_least=2),
    burn_in=Integer(at_least=1),
    transition_concentration=Real(above=0),
    emission_concentration=Real(at_least=1),
    diagnostic_chains=Integer(at_least=1),
    model=Choice("naive_bayes", "hmm"),
    method=Choice("non_private", "laplace", "ops"),
    variant=Choice("paper", "corrected"),
    truncation=Real(above=1),
    epsilon=Real(above=0),
)


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


def _split(config, logs, streams, block) -> Data:
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
    """Return `log_likelihood` (rows, splits), `events` (splits,), `clipped_share` and `rhat` (rows,).

    `log_likelihood` is the log of the held-out cells' likelihood, averaged over the kept samples or, for OPS, of the
    released one; without multinomial coefficients.
    """
    logs = war_logs.load(config.dataset)
    listed = rows(config)
    log_likelihood = np.full((len(listed), config.trials), np.nan)
    clipped, worst = np.full((2, len(listed)), np.nan)
    events = np.empty(config.trials)
    _charge(config, listed, select_fields(logs, config.fields)[1], ledger)
    for block in streams.blocks():
        data = _split(config, logs, streams, block)
        events[block.trials] = data.test_events
        for model, evaluate in (("naive_bayes", _naive_bayes), ("hmm", _hidden_markov)):
            chosen = [index for index, row in enumerate(listed) if row.model == model]
            if not chosen:
                continue
            values, shares, diagnostics = evaluate(config, data, [listed[index] for index in chosen], streams, block)
            log_likelihood[chosen, block.trials] = values
            if block.index == 0:
                clipped[chosen], worst[chosen] = shares, diagnostics
    return {"log_likelihood": log_likelihood, "events": events, "clipped_share": clipped, "rhat": worst}


def _charge(config, listed, sizes, ledger) -> None:
    for row in listed:
        if row.method == "non_private":
            continue
        ledger.open(row.account, Cost("pure", row.epsilon))
        if row.method == "laplace":
            # One release of each field's counts.
            ledger.charge(row.account, Cost("pure", row.epsilon / len(sizes)), len(sizes))
        else:
            ledger.charge(row.account, Cost("pure", count_tables.sampling_cost(sizes, row.truncation, row.epsilon)))


def _naive_bayes(config, data, listed, streams, block):
    """Log-likelihood (rows, splits), share of clipped totals and R-hat (nan: all draws are exact) of K = 1."""
    totals = data.observed @ data.counts
    test = data.test_counts.sum(axis=1)
    unit = streams("mechanism", block.index, model="naive_bayes").laplace(size=totals.shape)
    kept = config.iterations - config.burn_in
    fields = gibbs.Prior(1, data.sizes).fields
    values, shares = np.empty((len(listed), block.size)), np.full(len(listed), np.nan)
    for index, row in enumerate(listed):
        rng = streams("sampler", block.index, model=row.model, method=row.method, **row.key())
        counts, scale, n_draws, lows = totals, 1.0, kept, [0.0] * len(data.sizes)
        if row.method == "laplace":
            noisy = totals + count_tables.noise_scale(row.epsilon, len(data.sizes)) * unit
            counts = post_process(noisy, data.sizes, row.variant)
            shares[index] = np.mean((counts == 0) & (noisy != 0))
        if row.method == "ops":
            scale = count_tables.temperature(data.sizes, row.truncation, row.epsilon)
            n_draws, lows = 1, count_tables.smallest_probabilities(data.sizes, row.truncation)
        alpha = 1 + (config.emission_concentration - 1 + counts) / scale
        alpha = np.broadcast_to(alpha[:, None], (block.size, n_draws, alpha.shape[-1]))
        scores = np.zeros((block.size, n_draws))
        for field, low in zip(fields, lows, strict=True):
            if low > 0:
                draws = truncated_dirichlet.sample(alpha[..., field], low, rng)
            else:
                gammas = rng.standard_gamma(alpha[..., field])
                draws = gammas / gammas.sum(axis=-1, keepdims=True)
            scores += xlogy(test[:, None, field], draws).sum(axis=-1)
        values[index] = logsumexp(scores, axis=1) - math.log(n_draws)
    return values, shares, np.full(len(listed), np.nan)


def _hidden_markov(config, data, listed, streams, block):
    """Log-likelihood (rows, splits), share of clipped counts and largest R-hat of the hidden Markov model.

    The first split runs `diagnostic_chains` chains on the same release; only its first one is evaluated.
    """
    extra = config.diagnostic_chains - 1 if block.index == 0 else 0
    split = np.concatenate([np.arange(block.size), np.zeros(extra, int)])
    observed, sites = data.observed[split], data.sites[split]
    unit = streams("mechanism", block.index, model="hmm").laplace(size=(block.size, *data.counts.shape))
    groups, shares = [], np.full(len(listed), np.nan)
    for index, row in enumerate(listed):
        rng = streams("sampler", block.index, model=row.model, method=row.method, **row.key())
        counts, settings = data.counts, {}
        if row.method == "laplace":
            noisy = data.counts + count_tables.noise_scale(row.epsilon, len(data.sizes)) * unit
            released = post_process(noisy, data.sizes, row.variant)
            shares[index] = np.mean(((released == 0) & (noisy != 0))[data.observed])
            counts = released[split]
        if row.method == "ops":
            settings["temperature"] = count_tables.temperature(data.sizes, row.truncation, row.epsilon)
            settings["lows"] = count_tables.smallest_probabilities(data.sizes, row.truncation)
            settings["prior_temperature"] = settings["temperature"] if config.prior == "tempered" else 1.0
        groups.append(gibbs.Group(counts, observed, rng, **settings))
    del unit
    prior = gibbs.Prior(
        config.n_states, data.sizes, transition=config.transition_concentration, emission=config.emission_concentration
    )
    traces = _traces(config, data, groups, prior, split, sites)
    n_chains, monitored = len(split), [0, *range(block.size, len(split))]
    values, worst = np.empty((len(listed), block.size)), np.full(len(listed), np.nan)
    for index, row in enumerate(listed):
        chains = slice(index * n_chains, (index + 1) * n_chains)
        held_out = traces["held_out"][:, chains]
        averaged = logsumexp(held_out, axis=0) - math.log(len(held_out))
        values[index] = (held_out[-1] if row.method == "ops" else averaged)[: block.size]
        if block.index == 0 and len(traces["held_out"]) >= 4:
            worst[index] = max(float(rhat(trace[:, chains][:, monitored])) for trace in traces.values())
    return values, shares, worst


def _traces(config, data, groups, prior, split, sites) -> dict[str, np.ndarray]:
    """Quantities (kept iterations, chains) that no relabelling moves: held-out likelihood, spread of the states."""
    kept = config.iterations - config.burn_in
    n_chains = len(split)
    test = data.test_counts[split].transpose(0, 2, 1)
    all_sites = np.tile(sites.T, (1, len(groups)))
    held_out, spread = np.empty((2, kept, n_chains * len(groups)))
    run = gibbs.run(groups, data.layout, prior, config.iterations)
    for iteration, state in enumerate(run, start=-config.burn_in):
        if iteration < 0:
            continue
        weights = gibbs.site_prior(state.states, state.transitions, all_sites, data.layout, prior.transition)
        for start in range(0, n_chains * len(groups), n_chains):
            chains = slice(start, start + n_chains)
            scores = state.log_probabilities[chains] @ test
            scores += np.log(weights[:, :, chains]).transpose(2, 1, 0)
            held_out[iteration, chains] = logsumexp(scores, axis=1).sum(axis=1)
        shares = np.stack([(state.states == k).mean(axis=0) for k in range(prior.n_states)])
        spread[iteration] = -xlogy(shares, shares).sum(axis=0)
    return {"held_out": held_out, "spread": spread}


COLUMNS = ["dataset", "stand_in", "variant", "model", "method", "truncation", "epsilon"]


def tabulate(cells):
    """Return the likelihoods, one row per method and setting, and Laplace less OPS per event, paired over splits."""
    import pandas as pd

    likelihoods, differences = [], []
    for cell in cells:
        table, paired = summarise(cell.config, cell.arrays)
        likelihoods.append(table)
        differences.append(paired)
    differences = pd.concat(differences, ignore_index=True)
    likelihoods = pd.concat(likelihoods, ignore_index=True)
    return {"war_logs_likelihood": likelihoods, "war_logs_differences": differences}


def summarise(config, arrays):
    """Return one cell's likelihoods and its paired differences as tables."""
    import pandas as pd

    logs = war_logs.load(config.dataset)
    sizes = select_fields(logs, config.fields)[1]
    listed, events = rows(config), arrays["events"]
    n_splits = len(events)
    plain = {row.model: index for index, row in enumerate(listed) if row.method == "non_private"}
    per_event = arrays["log_likelihood"] / events
    fixed = {"dataset": config.dataset, "stand_in": logs.stand_in}
    private = {"uses_private_metadata": uses_private_metadata(config.dataset)}
    table = []
    for index, row in enumerate(listed):
        values = arrays["log_likelihood"][index]
        # Which cells are held out moves all methods alike; the loss, paired over splits, is free of that.
        loss = per_event[plain[row.model]] - per_event[index] if row.model in plain else np.full(n_splits, np.nan)
        table.append(
            {
                **fixed,
                **row._asdict(),
                "log_likelihood_mean": values.mean(),
                "log_likelihood_sem": values.std(ddof=1) / math.sqrt(n_splits),
                "per_event_mean": per_event[index].mean(),
                "per_event_sem": per_event[index].std(ddof=1) / math.sqrt(n_splits),
                "per_event_loss_mean": loss.mean(),
                "per_event_loss_sem": loss.std(ddof=1) / math.sqrt(n_splits),
                "n_splits": n_splits,
                "clipped_share": arrays["clipped_share"][index],
                **guarantee(config, row, sizes),
                **_convergence(row.model, float(arrays["rhat"][index])),
                **private,
            }
        )
    paired = []
    for i, first in enumerate(listed):
        for j, second in enumerate(listed):
            same = (first.model, first.epsilon) == (second.model, second.epsilon)
            if (first.method, second.method) == ("laplace", "ops") and same:
                difference = per_event[i] - per_event[j]
                paired.append(
                    {
                        **fixed,
                        "variant": first.variant,
                        "model": first.model,
                        "truncation": second.truncation,
                        "epsilon": first.epsilon,
                        "laplace_minus_ops_mean": difference.mean(),
                        "laplace_minus_ops_sem": difference.std(ddof=1) / math.sqrt(n_splits),
                        "n_splits": n_splits,
                        **private,
                    }
                )
    rest = [name for name in table[0] if name not in COLUMNS]
    return pd.DataFrame(table)[COLUMNS + rest], pd.DataFrame(paired)


def _convergence(model: str, rhat_max: float) -> dict:
    if model == "naive_bayes":
        return {"sampling": "exact", "rhat_max": "exact"}
    return {"sampling": "mcmc", "rhat_max": "not assessed" if math.isnan(rhat_max) else rhat_max}


def guarantee(config, row: Row, sizes) -> dict:
    """Return under which condition the row's ε holds, the temperature, and the cost if that condition fails."""
    if row.method == "non_private":
        return {"guarantee": None, "temperature": None, "worst_case_epsilon": None}
    if row.method == "laplace":
        return {"guarantee": "unconditional", "temperature": None, "worst_case_epsilon": row.epsilon}
    temperature = count_tables.temperature(sizes, row.truncation, row.epsilon)
    if row.model == "naive_bayes":
        cost = count_tables.sampling_cost(sizes, row.truncation, row.epsilon)
        return {"guarantee": "unconditional", "temperature": temperature, "worst_case_epsilon": cost}
    cost = count_tables.unconverged_cost(sizes, row.truncation, row.epsilon, config.iterations)
    return {"guarantee": "if_converged", "temperature": temperature, "worst_case_epsilon": cost}


# Standard errors of a paired difference over splits. The splits overlap in training and their standard error has few
# degrees of freedom; 5 leaves a joint rate of false alarms below 2 % for 14 comparisons even at 9 degrees (t law).
THRESHOLD = 5.0
SPARSE = ("afghanistan",)


# A chain whose R-hat is above this can't be taken as converged.
CONVERGED = 1.05


def qualified(claim: Claim, likelihoods) -> Claim:
    """Return a claim on HMMs that says in test, evidence and reason how far its chains have converged.

    `likelihoods` are the rows of the likelihood table that the claim is about. Chains of any method may be unconverged;
    for OPS that also voids ε.
    """
    import pandas as pd

    chains = likelihoods[likelihoods.model == "hmm"]
    evidence, words = {}, {}
    for method, rows_of_method in chains.groupby("method"):
        values = pd.to_numeric(rows_of_method.rhat_max, errors="coerce").dropna()
        words[method] = f"{values.max():.2f}" if len(values) else "not assessed"
        evidence[f"largest R-hat, {method}"] = float(values.max()) if len(values) else "not assessed"
        if len(values):
            evidence[f"settings with R-hat above {CONVERGED:g}, {method}"] = (
                f"{(values > CONVERGED).sum()} of {len(values)}"
            )
    listed = ", ".join(f"{words[method]} ({method})" for method in sorted(words, reverse=True))
    condition = f"OPS's epsilon is claimed only if its chain has converged; largest R-hat {listed}"
    return replace(
        claim,
        test=f"{claim.test}. {condition}",
        evidence={**claim.evidence, **evidence},
        reason=f"{claim.reason}. {condition}" if claim.reason else "",
        why=f"{claim.why} {condition}." if claim.why else "",
    )


def claims(tables) -> list[Claim]:
    """Score F7 on every data set, F8 on the dense ones and F9 on the sparse one, each by itself."""
    table, likelihoods = tables["war_logs_differences"], tables["war_logs_likelihood"]
    scored = []
    for dataset, rows_of_data in table.groupby("dataset", sort=True):
        for model, score in (("naive_bayes", _naive_bayes_claim), ("hmm", _sparse if dataset in SPARSE else _dense)):
            rows_of_model = rows_of_data[(rows_of_data.model == model) & (rows_of_data.variant == "paper")]
            if len(rows_of_model):
                corrected = rows_of_data[(rows_of_data.model == model) & (rows_of_data.variant == "corrected")]
                own = likelihoods[likelihoods.dataset == dataset]
                claim = score(dataset, bool(rows_of_data.stand_in.iloc[0]), rows_of_model, corrected, own)
                scored.append(qualified(claim, own) if model == "hmm" else claim)
    return sorted(scored, key=lambda claim: claim.id)


def _evidence(*parts) -> dict:
    evidence = {}
    for rows_of_variant in parts:
        for row in rows_of_variant.itertuples():
            name = f"{row.variant}, M = {row.truncation:g}, epsilon = {row.epsilon:g}"
            evidence[f"Laplace minus OPS per event, {name}"] = row.laplace_minus_ops_mean
            evidence[f"its standard error, {name}"] = row.laplace_minus_ops_sem
    return evidence


# What is lost against the non-private model where noise hardly matters, in nats per event.
LITTLE = 0.05
WHY_OPS_LEADS = "docs/foulds2016_war_logs.md#why-ops-leads-at-small-ε-against-the-paper"
OUTCOMES = "docs/foulds2016_war_logs.md#what-the-data-sets-say"


def _ahead(row) -> str:
    return f"Laplace ahead at epsilon = {row.epsilon:g} (M = {row.truncation:g})"


def _tie(paper, likelihoods) -> Why:
    """Explain the settings that are undecided although both releases are about as good as no noise at all."""
    undecided = paper[paper.laplace_minus_ops_mean.abs() <= THRESHOLD * paper.laplace_minus_ops_sem]
    model = likelihoods[(likelihoods.model == paper.model.iloc[0]) & (likelihoods.variant != "corrected")]
    lost = model[model.epsilon.isin(undecided.epsilon)]
    lost = lost[(lost.method == "laplace") | lost.truncation.isin(undecided.truncation)].per_event_loss_mean
    return Why(
        f"A tie in {len(undecided)} of {len(paper)} settings, since there is next to nothing to be ahead of: with this "
        f"many events of few levels both releases lose at most {lost.max():.2g} nats per event against the non-private "
        "model.",
        tuple(_ahead(row) for row in undecided.itertuples()),
        OUTCOMES,
        when=len(lost) > 0 and lost.max() < LITTLE,
    )


def _ops_leads(paper) -> Why:
    """Explain why OPS is ahead of the hidden Markov model's Laplace release at small ε."""
    behind = paper[paper.laplace_minus_ops_mean < -THRESHOLD * paper.laplace_minus_ops_sem]
    undecided = paper[paper.laplace_minus_ops_mean.abs() <= THRESHOLD * paper.laplace_minus_ops_sem]
    first = paper.loc[paper.groupby("truncation").epsilon.idxmin()]
    smallest = first[first.laplace_minus_ops_mean < -THRESHOLD * first.laplace_minus_ops_sem]
    gaps = ", ".join(f"{-row.laplace_minus_ops_mean:.2f} (M = {row.truncation:g})" for row in smallest.itertuples())
    between = f" Where the lead changes hands {len(undecided)} settings are undecided." if len(undecided) else ""
    explained = [_ahead(row) for part in (behind, undecided) for row in part.itertuples()]
    explained += [
        f"its lead is largest at the smallest epsilon (M = {row.truncation:g})" for row in smallest.itertuples()
    ]
    return Why(
        f"OPS leads at small epsilon, at epsilon = {first.epsilon.min():g} by {gaps} nats per event: noise on every "
        "cell's counts has a variance of order 1/epsilon², tempering one of order 1/epsilon, so that Laplace wins only "
        f"on levels with many events per cell, and most levels of the five fields have few (F8-why).{between}",
        tuple(explained),
        WHY_OPS_LEADS,
        when=len(smallest) > 0,
    )


def _naive_bayes_claim(dataset, stand_in, paper, corrected, likelihoods) -> Claim:
    checks = {
        _ahead(row): row.laplace_minus_ops_mean > THRESHOLD * row.laplace_minus_ops_sem for row in paper.itertuples()
    }
    return from_checks(
        f"F7-{dataset}",
        "section 5, figure 6",
        f"{title(dataset)}: with naive Bayes the Laplace mechanism is ahead of OPS at every epsilon.",
        f"held-out log-likelihood per event, paired over splits: Laplace minus OPS above {THRESHOLD:g} standard errors "
        "at every epsilon, against both truncations",
        checks,
        _evidence(paper, corrected),
        whys=[_tie(paper, likelihoods)],
        stand_in=stand_in,
    )


def _dense(dataset, stand_in, paper, corrected, likelihoods) -> Claim:
    checks = {}
    for truncation, rows_of_truncation in paper.groupby("truncation"):
        ordered = rows_of_truncation.sort_values("epsilon")
        for row in ordered.itertuples():
            checks[_ahead(row)] = row.laplace_minus_ops_mean > THRESHOLD * row.laplace_minus_ops_sem
        gaps = ordered.laplace_minus_ops_mean.to_numpy()
        checks[f"its lead is largest at the smallest epsilon (M = {truncation:g})"] = bool(
            gaps.argmax() == 0 and gaps[0] > 0
        )
    return from_checks(
        f"F8-{dataset}",
        "section 5, figure 6",
        f"{title(dataset)}: where cells hold many events, the HMM's Laplace release is ahead of OPS, most at small "
        "epsilon.",
        f"held-out log-likelihood per event, paired over splits: Laplace minus OPS above {THRESHOLD:g} standard errors "
        "at every epsilon against both truncations, and largest at the smallest epsilon",
        checks,
        _evidence(paper, corrected),
        whys=[_ops_leads(paper), _tie(paper, likelihoods)],
        stand_in=stand_in,
    )


def _sparse(dataset, stand_in, paper, corrected, likelihoods) -> Claim:
    checks = {}
    for epsilon, rows_of_epsilon in paper.groupby("epsilon"):
        # Behind neither by more than noise, or ahead, with the better of the two truncations.
        behind = rows_of_epsilon.laplace_minus_ops_mean > THRESHOLD * rows_of_epsilon.laplace_minus_ops_sem
        checks[f"OPS not behind at epsilon = {epsilon:g}"] = not behind.all()
    return from_checks(
        f"F9-{dataset}",
        "section 5, figure 6",
        f"{title(dataset)}: with few events per cell, OPS competes with the HMM's Laplace release.",
        "held-out log-likelihood per event, paired over splits: at every epsilon, for at least one truncation, Laplace "
        f"minus OPS is not above {THRESHOLD:g} standard errors",
        checks,
        _evidence(paper, corrected),
        stand_in=stand_in,
    )
