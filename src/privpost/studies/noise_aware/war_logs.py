"""Held-out likelihood of noise-aware naive Bayes and hidden Markov models on war logs, beside the noise-naive ones.

Model, splits, releases and evaluation are those of foulds2016/war_logs_likelihood; what is added is method `gibbs`,
which takes the counts for latent (`samplers.noise_aware_events`).
"""

from __future__ import annotations

import math
from dataclasses import replace

from privpost.datasets import war_logs
from privpost.evaluation.claims import Claim, from_checks
from privpost.pipeline.schema import Choice, DatasetName, Integer, Real, Schema
from privpost.studies.foulds2016.held_out import rows, simulate
from privpost.studies.foulds2016.war_logs import title, uses_private_metadata

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
        fixed = {"dataset": config.dataset, "stand_in": war_logs.load(config.dataset).stand_in}
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
# A chain whose R-hat is above this can't be taken as converged.
CONVERGED = 1.05
NAMES = {"naive_bayes": "naive Bayes", "hmm": "HMM"}


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
        other = {"paper": "clipped", "corrected": "projected"}[variant]
        ahead = part.gain_mean > THRESHOLD * part.gain_sem
        behind = part.gain_mean < -THRESHOLD * part.gain_sem
        checks[f"ahead of {other} counts at epsilon = {smallest:g} ({score} score)"] = bool(
            ahead[part.epsilon == smallest].all()
        )
        checks[f"behind {other} counts at no epsilon ({score} score)"] = not behind.any()
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
        f"{THRESHOLD:g} standard errors at the smallest epsilon, below -{THRESHOLD:g} at none. {condition}",
        checks,
        evidence,
        variant="paper, corrected",
        stand_in=bool(chains.stand_in.any()),
    )
    return replace(claim, reason=f"{claim.reason}. {condition}") if claim.reason else claim


def numbers(tables) -> dict:
    """Return the scores per event by data set, model with its number of states, score, method and epsilon."""
    found: dict = {}
    for row in tables["war_logs"].itertuples():
        method = row.method if row.method != "laplace" else {"paper": "clipped", "corrected": "projected"}[row.variant]
        epsilon = "" if math.isnan(row.epsilon) else f"/{row.epsilon:g}"
        name = f"{row.dataset}/{row.model}_{row.n_states}/{row.score}/{method}{epsilon}"
        found[name] = row.per_event_mean
        found[f"{name}/sem"] = row.per_event_loss_sem
    return found
