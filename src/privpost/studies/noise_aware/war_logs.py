"""Held-out likelihood of noise-aware naive Bayes and hidden Markov models on war logs, beside the noise-naive ones.

Model, splits, releases and evaluation are those of foulds2016/war_logs_likelihood; what is added is method `gibbs`,
which takes the counts for latent (`samplers.noise_aware_events`).
"""

from __future__ import annotations

import math

from privpost.datasets import war_logs
from privpost.evaluation.claims import Claim
from privpost.pipeline.schema import Choice, DatasetName, Integer, Real, Schema
from privpost.studies.foulds2016.held_out import rows, simulate
from privpost.studies.foulds2016.war_logs import uses_private_metadata

__all__ = ["SETTINGS", "claims", "simulate", "tabulate"]

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
        places = {(row.model, row.method, row.epsilon): index for index, row in enumerate(listed)}
        for score, name in SCORES.items():
            per_event = arrays[name] / arrays["events"]
            for index, row in enumerate(listed):
                named = {"score": score, "model": row.model, "variant": row.variant, "epsilon": row.epsilon}
                table.append(
                    {
                        **fixed,
                        **named,
                        "method": row.method,
                        **_mean("per_event", per_event[index]),
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


def claims(tables) -> list[Claim]:
    return []
