"""Held-out likelihood of private naive Bayes and hidden Markov models on war logs (Foulds et al. 2016, figure 6)."""

import numpy as np

from privpost.datasets import war_logs
from privpost.evaluation.summaries import mean_columns
from privpost.experiments.foulds2016.chain_checks import verdict
from privpost.experiments.foulds2016.chain_settings import CHAINS, TEMPERED
from privpost.experiments.foulds2016.event_methods import Row, Setup
from privpost.experiments.foulds2016.held_out import MODELS, SPLIT, rows, setups, simulate
from privpost.experiments.foulds2016.war_logs import uses_private_metadata
from privpost.experiments.ranges import EMISSION, METHOD, TRUNCATION
from privpost.lab.schema import Choice, Integer, Schema

__all__ = ["SETTINGS", "guarantee", "rows", "simulate", "summarise", "tabulate"]

SETTINGS = Schema(
    **SPLIT,
    **CHAINS,
    **TEMPERED,
    model=MODELS,
    prior=Choice("tempered", "untempered", says="whether OPS's temperature is on the prior too"),
    emission_concentration=EMISSION,
    private_iterations=Integer(at_least=1, says="Gibbs iterations that share the budget where every update is paid"),
    method=Choice("non_private", "laplace", "ops", "private_gibbs", says=METHOD),
    truncation=TRUNCATION,
)
TABLES = {
    "war_logs_likelihood": {
        "ops_minus_paid_mean": "log-likelihood per held-out event, OPS less private_gibbs; paired [nats per event]",
    },
    "war_logs_differences": {},
}


COLUMNS = ["dataset", "stand_in", "variant", "model", "n_states", "method", "sampler", "truncation", "epsilon"]


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
    setup = setups(config, logs)
    all_rows, events = rows(config), arrays["events"]
    n_splits = len(events)
    plain = {(row.model, row.sampler): index for index, row in enumerate(all_rows) if row.method == "non_private"}
    per_event = arrays["log_likelihood"] / events
    fixed = {"dataset": config.dataset, "stand_in": logs.stand_in}
    private = {"uses_private_metadata": uses_private_metadata(config.dataset)}
    table = []
    for index, row in enumerate(all_rows):
        # The choice of held-out cells affects all methods alike; the loss, paired over splits, does not depend on it.
        # A chain that pays for its updates is compared with the better reference.
        sampler = "collapsed" if row.method == "private_gibbs" else row.sampler
        reference = plain.get((row.model, sampler))
        loss = np.full(n_splits, np.nan) if reference is None else per_event[reference] - per_event[index]
        checked = _convergence(row, arrays, index, setup[row.model].same_law(all_rows, row))
        table.append(
            {
                **fixed,
                **row._asdict(),
                "n_states": setup[row.model].prior.n_states,
                **mean_columns("log_likelihood", arrays["log_likelihood"][index]),
                **mean_columns("per_event", per_event[index]),
                **mean_columns("per_event_loss", loss),
                **mean_columns("ops_minus_paid", _cost_of_paying(all_rows, index, per_event)),
                "n_splits": n_splits,
                "clipped_share": arrays["clipped_share"][index],
                **guarantee(setup[row.model], row, checked["converged"]),
                **checked,
                **private,
            }
        )
    paired = []
    for i, first in enumerate(all_rows):
        for j, second in enumerate(all_rows):
            same = (first.model, first.epsilon, first.sampler) == (second.model, second.epsilon, second.sampler)
            if (first.method, second.method) == ("laplace", "ops") and same:
                paired.append(
                    {
                        **fixed,
                        "variant": first.variant,
                        "model": first.model,
                        "n_states": setup[first.model].prior.n_states,
                        "sampler": first.sampler,
                        "truncation": second.truncation,
                        "epsilon": first.epsilon,
                        **mean_columns("laplace_minus_ops", per_event[i] - per_event[j]),
                        "n_splits": n_splits,
                        "converged": table[i]["converged"] and table[j]["converged"],
                        **private,
                    }
                )
    # Rows of collapsed chains have columns that others lack.
    rest = [name for name in dict.fromkeys(name for row in table for name in row) if name not in COLUMNS]
    return pd.DataFrame(table)[COLUMNS + rest], pd.DataFrame(paired)


def _cost_of_paying(all_rows, index: int, per_event) -> np.ndarray:
    """Return OPS's score less that of the row's chain, which pays for its updates, by split; nan for other rows."""
    row, difference = all_rows[index], np.full(per_event.shape[1], np.nan)
    sample = row._replace(method="ops", sampler="collapsed")
    if row.method == "private_gibbs" and sample in all_rows:
        difference = per_event[all_rows.index(sample)] - per_event[index]
    return difference


def _convergence(row: Row, arrays, index: int, same) -> dict:
    if row.model == "naive_bayes":
        return dict.fromkeys(("rhat_max", "range_log_joint", "best_log_joint", "below_best", "near"), None) | {
            "sampling": "exact", "rhat_max": "exact", "n_chains": 1, "converged": True,
        }  # fmt: skip
    if row.method == "private_gibbs":
        return {"sampling": "paid updates", "rhat_max": "not needed", "n_chains": 1, "converged": True}
    return {"sampling": "mcmc", **verdict(arrays, index, same)}


def guarantee(setup: Setup, row: Row, converged: bool) -> dict:
    """Return the condition under which the row's ε holds, the temperature, and the cost if the condition fails.

    `not_converged` means that the condition was seen to fail.
    """
    if row.method == "non_private":
        return {"guarantee": None, "temperature": None, "iterations": None, "worst_case_epsilon": None}
    mechanism = setup.mechanism(row)
    condition, worst = "unconditional", mechanism.cost().epsilon
    if row.method == "ops" and row.model != "naive_bayes":
        condition = "if_converged" if converged else "not_converged"
        worst = mechanism.unconverged_cost()
    return {
        "guarantee": condition,
        "temperature": getattr(mechanism, "temperature", None),
        "iterations": None if row.method == "laplace" else mechanism.iterations,
        "worst_case_epsilon": worst,
    }
