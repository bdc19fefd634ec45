"""Held-out likelihood of private naive Bayes and hidden Markov models on war logs (Foulds et al. 2016, figure 6)."""

from __future__ import annotations

import math

import numpy as np

from privpost.datasets import war_logs
from privpost.evaluation.summaries import mean_columns
from privpost.pipeline.schema import Choice, DatasetName, Integer, Real, Schema
from privpost.privacy import count_tables
from privpost.studies.foulds2016.held_out import Row, rows, simulate
from privpost.studies.foulds2016.war_logs import select_fields, uses_private_metadata

__all__ = ["SETTINGS", "guarantee", "rows", "simulate", "summarise", "tabulate"]

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
        # Which cells are held out moves all methods alike; the loss, paired over splits, is free of that.
        loss = per_event[plain[row.model]] - per_event[index] if row.model in plain else np.full(n_splits, np.nan)
        table.append(
            {
                **fixed,
                **row._asdict(),
                **mean_columns("log_likelihood", arrays["log_likelihood"][index]),
                **mean_columns("per_event", per_event[index]),
                **mean_columns("per_event_loss", loss),
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
                paired.append(
                    {
                        **fixed,
                        "variant": first.variant,
                        "model": first.model,
                        "truncation": second.truncation,
                        "epsilon": first.epsilon,
                        **mean_columns("laplace_minus_ops", per_event[i] - per_event[j]),
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
