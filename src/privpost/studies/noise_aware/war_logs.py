"""Held-out likelihood of noise-aware naive Bayes and hidden Markov models on war logs, beside the noise-naive ones.

Model, splits, releases and evaluation are those of foulds2016/war_logs_likelihood; what is added is method `gibbs`,
which takes the counts for latent (`samplers.noise_aware_events`).
"""

from __future__ import annotations

import math
from dataclasses import replace

from privpost.datasets import war_logs
from privpost.evaluation.claims import Claim, Why, from_checks
from privpost.pipeline.schema import Choice, DatasetName, Integer, Real, Schema
from privpost.studies.foulds2016.held_out import rows, simulate
from privpost.studies.foulds2016.war_logs import select_fields, title, uses_private_metadata

__all__ = ["SETTINGS", "claims", "numbers", "simulate", "tabulate"]

SETTINGS = Schema(
    dataset=DatasetName(),
    fields=Choice("all", "no_category"),
    replication=Integer(at_least=1),
    held_out=Real(above=0, below=1),
    n_states=Integer(at_least=2),
    iterations=Integer(at_least=2),
    burn_in=Integer(at_least=1),
    naive_bayes_thinning=Integer(at_least=1),
    transition_concentration=Real(above=0),
    emission_concentration=Real(above=0),
    diagnostic_chains=Integer(at_least=1),
    model=Choice("naive_bayes", "hmm"),
    method=Choice("non_private", "laplace", "gibbs"),
    variant=Choice("paper", "corrected"),
    epsilon=Real(above=0),
)


def prior_epsilon(counts, sizes, n_states: int) -> float:
    """ε below which a flat prior hides the most frequent level of some field of counts (cells, levels).

    Under Dir(1, …, 1) a level of V has more than a share p with probability (1 − p)^(V − 1). Laplace noise of scale
    2D/ε lets a cell's m events of that level say at most m ε/(2D) for it. A state that holds one of K parts of its n p
    events loses the level where (V − 1)(−ln(1 − p)) > (n p/K) ε/(2D).
    """
    largest, start = 0.0, 0
    for size in sizes:
        totals = counts[:, start : start + size].sum(axis=0)
        share = totals.max() / totals.sum()
        cost = (size - 1) * -math.log1p(-share)
        largest = max(largest, 2 * len(sizes) * cost * n_states / totals.max())
        start += size
    return largest


# Array of `simulate` behind each score.
SCORES = {"joint": "log_likelihood", "predictive": "predictive"}


def tabulate(cells):
    """Return the scores per held-out event (`war_logs`) and noise-aware less noise-naive ones (`war_logs_pairs`).

    Score `joint` is the log of the likelihood of all held-out cells at once, averaged over samples, as in the paper;
    `predictive` takes each field of each event by itself. Differences are paired over splits.
    """
    import pandas as pd

    table, pairs = [], []
    for cell in cells:
        config, arrays = cell.config, cell.arrays
        listed = rows(config)
        logs = war_logs.load(config.dataset)
        fixed = {"dataset": config.dataset, "stand_in": logs.stand_in}
        counts, sizes = select_fields(logs, config.fields)
        counts = counts * config.replication
        last = {"n_splits": len(arrays["events"]), "uses_private_metadata": uses_private_metadata(config.dataset)}
        plain = {row.model: index for index, row in enumerate(listed) if row.method == "non_private"}
        states = {"naive_bayes": 1, "hmm": config.n_states}
        places = {(row.model, row.method, row.epsilon): index for index, row in enumerate(listed)}
        for score, name in SCORES.items():
            per_event = arrays[name] / arrays["events"]
            for index, row in enumerate(listed):
                named = {"score": score, "model": row.model, "n_states": states[row.model]}
                named |= {"variant": row.variant, "epsilon": row.epsilon}
                table.append(
                    {
                        **fixed,
                        **named,
                        "method": row.method,
                        **_mean("per_event", per_event[index]),
                        **_mean("per_event_loss", per_event[plain[row.model]] - per_event[index]),
                        "clipped_share": arrays["clipped_share"][index],
                        "sampling": "mcmc" if row.model == "hmm" or row.method == "gibbs" else "exact",
                        "rhat_max": arrays["rhat"][index],
                        "ess_min": arrays["ess"][index],
                        "prior_epsilon": prior_epsilon(counts, sizes, states[row.model]),
                        **last,
                    }
                )
                aware = places.get((row.model, "gibbs", row.epsilon))
                if row.method == "laplace" and aware is not None:
                    pairs.append({**fixed, **named, **_mean("gain", per_event[aware] - per_event[index]), **last})
    return {"war_logs": pd.DataFrame(table), "war_logs_pairs": pd.DataFrame(pairs)}


def _mean(name: str, values) -> dict:
    """Return mean and standard error of values (splits,) under a name."""
    return {f"{name}_mean": values.mean(), f"{name}_sem": values.std(ddof=1) / math.sqrt(len(values))}


# Standard errors of a paired difference over splits, as in war_logs_likelihood. A comparison that must be passed in
# every row needs no allowance for their number; at 3 degrees of freedom one passes by chance in less than 1 % of cases.
THRESHOLD = 5.0
# What is next to no difference, in nats per event.
LITTLE = 0.05
# What the joint score of 100 dependent draws misses against 100 independent ones, in nats per event.
NEGLIGIBLE = 0.001
# A chain whose R-hat is above this can't be taken as converged.
CONVERGED = 1.05
NAMES = {"naive_bayes": "naive Bayes", "hmm": "HMM"}
OTHERS = {"paper": "clipped", "corrected": "projected"}
WHY_PRIOR = "docs/noise_aware_war_logs.md#why-it-can-lose"
OUTCOMES = "docs/noise_aware_war_logs.md#on-war-logs-noise_awarewar_logs"


def claims(tables) -> list[Claim]:
    """Score N9 (naive Bayes) and N10 (hidden Markov models, by their number of states) on every data set."""
    table, pairs = tables["war_logs"], tables["war_logs_pairs"]
    scored = []
    for (dataset, model, n_states), rows_of_model in pairs.groupby(["dataset", "model", "n_states"], sort=True):
        chains = table[(table.dataset == dataset) & (table.model == model) & (table.n_states == n_states)]
        scored.append(_claim(dataset, model, n_states, rows_of_model, chains))
    return sorted(scored, key=lambda claim: (len(claim.id.split("-")[0]), claim.id))


def _claim(dataset, model, n_states, rows_of_model, chains) -> Claim:
    checks, evidence = {}, {}
    smallest = rows_of_model.epsilon.min()
    for (score, variant), part in rows_of_model.groupby(["score", "variant"]):
        other = OTHERS[variant]
        ahead = part.gain_mean > THRESHOLD * part.gain_sem
        behind = _is_behind(part)
        checks[_ahead(other, score)] = bool(ahead[part.epsilon == smallest].all())
        checks[_behind(other, score)] = not behind.any()
        for row in part.itertuples():
            name = f"{score} score, {other}, epsilon = {row.epsilon:g}"
            evidence[f"gain per event, {name}"] = row.gain_mean
            evidence[f"its standard error, {name}"] = row.gain_sem
    words = []
    for method, values in chains[chains.sampling == "mcmc"].groupby("method").rhat_max:
        assessed = values.dropna()
        worst = float(assessed.max()) if len(assessed) else "not assessed"
        evidence[f"largest R-hat, {method}"] = worst
        evidence[f"rows with R-hat above {CONVERGED:g}, {method}"] = f"{(values > CONVERGED).sum()} of {len(values)}"
        words.append(f"{worst if isinstance(worst, str) else f'{worst:.2f}'} ({method})")
    condition = f"Chains may not have converged; largest R-hat {', '.join(words)}"
    kind = NAMES[model] if model == "naive_bayes" else f"{NAMES[model]} of {n_states} states"
    claim = from_checks(
        f"N9-{dataset}" if model == "naive_bayes" else f"N10-{dataset}-{n_states}",
        "ours",
        f"{title(dataset)}: noise-aware inference of the {kind} gains held-out likelihood over noisy counts taken for "
        "counts at the smallest epsilon, and loses none at larger ones.",
        "score per held-out event, noise-aware minus noise-naive, paired over splits, against clipped and projected "
        f"counts, by the likelihood of all held-out cells (joint) and by each field of each event (predictive): above "
        f"{THRESHOLD:g} standard errors at the smallest epsilon, at none below -{THRESHOLD:g} of them and "
        f"-{NEGLIGIBLE:g} nats. {condition}",
        checks,
        evidence,
        whys=_whys(rows_of_model[rows_of_model.epsilon == smallest], rows_of_model, chains),
        variant="paper, corrected",
        stand_in=bool(chains.stand_in.any()),
    )
    return replace(claim, reason=f"{claim.reason}. {condition}") if claim.reason else claim


def _is_behind(part):
    return part.gain_mean < -(THRESHOLD * part.gain_sem).clip(lower=NEGLIGIBLE)


def _ahead(other, score) -> str:
    return f"ahead of {other} counts at the smallest epsilon ({score} score)"


def _behind(other, score) -> str:
    return f"behind {other} counts at no epsilon ({score} score)"


def _whys(first, rows_of_model, chains) -> list[Why]:
    """Explain the failures at the smallest ε: nothing to gain, a gain within its error, or a prior that is too even."""
    hidden, smallest = float(chains.prior_epsilon.iloc[0]), float(first.epsilon.iloc[0])
    not_ahead = first[first.gain_mean <= THRESHOLD * first.gain_sem]
    losing = rows_of_model[_is_behind(rows_of_model)]
    tied = not_ahead[not_ahead[["gain_mean", "gain_sem"]].abs().max(axis=1) < LITTLE]
    behind = not_ahead.index.intersection(losing.index)
    unclear = not_ahead.drop(tied.index.union(behind))
    return [
        Why(
            f"There is next to nothing to gain: both differ by less than {LITTLE:g} nats per event.",
            tuple(_ahead(OTHERS[row.variant], row.score) for row in tied.itertuples()),
            OUTCOMES,
            when=len(tied) > 0,
        ),
        Why(
            f"The gain ({_span(unclear.gain_mean)} nats per event) differs too much between "
            f"{int(first.n_splits.iloc[0])} splits, whose releases and chains are independent, to be told from chance.",
            tuple(_ahead(OTHERS[row.variant], row.score) for row in unclear.itertuples()),
            OUTCOMES,
            when=len(unclear) > 0,
        ),
        Why(
            "The flat prior is wrong for these data, and with this many states it decides: below epsilon = "
            f"{hidden:.2g} it costs more to give a state's most frequent category its share than the noise lets the "
            "state's cells say for it. Projection keeps the largest noisy counts and drops the others, which suits few "
            "frequent levels.",
            (
                *(_ahead(OTHERS[row.variant], row.score) for row in first.loc[behind].itertuples()),
                *(_behind(OTHERS[row.variant], row.score) for row in losing.itertuples()),
            ),
            WHY_PRIOR,
            when=hidden > smallest and len(losing) > 0,
        ),
    ]


def _span(values) -> str:
    """Return the smallest and the largest of some values in words."""
    return f"{values.min():+.2f} to {values.max():+.2f}" if len(values) else ""


def numbers(tables) -> dict:
    """Return the scores per event by data set, model with its number of states, score, method and epsilon."""
    found: dict = {}
    for row in tables["war_logs"].itertuples():
        method = row.method if row.method != "laplace" else OTHERS[row.variant]
        epsilon = "" if math.isnan(row.epsilon) else f"/{row.epsilon:g}"
        name = f"{row.dataset}/{row.model}_{row.n_states}/{row.score}/{method}{epsilon}"
        found[name] = row.per_event_mean
        found[f"{name}/sem"] = row.per_event_loss_sem
        found[f"{row.dataset}/{row.model}_{row.n_states}/prior_epsilon"] = row.prior_epsilon
    return found
