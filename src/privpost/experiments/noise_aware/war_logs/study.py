"""Held-out likelihood of noise-aware naive Bayes and hidden Markov models on war logs, beside the noise-naive ones.

Splits and releases are drawn anew by the recipe of foulds2016/war_logs_likelihood, with its models and evaluation; what
is added is method `gibbs`, which takes the counts for latent (`samplers.noise_aware_events`).
"""

from __future__ import annotations

import math

from privpost.datasets import war_logs
from privpost.evaluation.summaries import mean_columns
from privpost.experiments.foulds2016.chain_checks import LIMIT, verdict
from privpost.experiments.foulds2016.chain_settings import CHAINS
from privpost.experiments.foulds2016.held_out import MODELS, SPLIT, rows, setups, simulate
from privpost.experiments.foulds2016.war_logs import uses_private_metadata
from privpost.experiments.ranges import CONCENTRATION, EMISSION, METHOD
from privpost.lab.schema import Choice, Real, Schema

__all__ = ["SETTINGS", "simulate", "tabulate"]

SETTINGS = Schema(
    **SPLIT,
    **CHAINS,
    model=MODELS,
    # Chains start from a search by the collapsed sampler, which takes no less.
    emission_concentration=Real(above=0.0625, at_most=CONCENTRATION.at_most, says=EMISSION.says, unit=EMISSION.unit),
    method=Choice("non_private", "laplace", "gibbs", says=METHOD),
)
TABLES = {
    "war_logs": {
        "score": "`joint`: all held-out cells at once; `predictive`: each field of each event by itself",
        "acceptance": "share of the proposals that were accepted [share]",
        "moved": "share of the cells that ever changed their state [share]",
    },
    "war_logs_pairs": {
        "sampler": "sampler of the noise-aware chain; that of the noise-naive one stands in `war_logs`",
        "gain_mean": "score per held-out event, noise-aware less noise-naive; paired over splits [nats per event]",
    },
}


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
        setup = setups(config, logs)
        last = {"n_splits": len(arrays["events"]), "uses_private_metadata": uses_private_metadata(config.dataset)}
        plain = {row.model: index for index, row in enumerate(listed) if row.method == "non_private"}
        states = {"naive_bayes": 1, "hmm": config.n_states}
        places = {(row.model, row.method, row.epsilon): index for index, row in enumerate(listed)}
        checked = [
            _checked(row, arrays, index, setup[row.model].same_law(listed, row)) for index, row in enumerate(listed)
        ]
        for score, name in SCORES.items():
            per_event = arrays[name] / arrays["events"]
            for index, row in enumerate(listed):
                named = {"score": score, "model": row.model, "n_states": states[row.model]}
                named |= {"variant": row.variant, "epsilon": row.epsilon}
                best = per_event[plain[row.model]] if row.model in plain else math.nan
                table.append(
                    {
                        **fixed,
                        **named,
                        "method": row.method,
                        **mean_columns("per_event", per_event[index]),
                        **mean_columns("per_event_loss", best - per_event[index]),
                        "clipped_share": arrays["clipped_share"][index],
                        **checked[index],
                        **last,
                    }
                )
                aware = places.get((row.model, "gibbs", row.epsilon))
                if row.method == "laplace" and aware is not None:
                    gain = mean_columns("gain", per_event[aware] - per_event[index])
                    converged = checked[aware]["converged"] and checked[index]["converged"]
                    named["sampler"] = checked[aware]["sampler"]
                    pairs.append({**fixed, **named, **gain, "converged": converged, **last})
    # Cells that differ in the lengths of chains have each a non-private row, on the same splits: the first one stands.
    key = ["dataset", "score", "model", "n_states", "variant", "epsilon", "method"]
    found = {"war_logs": pd.DataFrame(table).drop_duplicates(key), "war_logs_pairs": pd.DataFrame(pairs)}
    return {name: rows.reset_index(drop=True) for name, rows in found.items()}


def _checked(row, arrays, index: int, same) -> dict:
    """Columns on a row's chains: sampler, convergence, acceptance, and the share of cells that ever changed state."""
    sampler = "joint moves" if row.method == "gibbs" else row.sampler
    ess = {"ess_min": arrays["ess"][index]}
    if row.model == "hmm":
        found = verdict(arrays, index, same)
        moves = {name: arrays[name][index] for name in ("acceptance", "moved")}
        return {"sampling": "mcmc", "sampler": sampler, **found, **ess, **moves}
    worst = arrays["rhat"][index]
    chain = row.method == "gibbs"
    columns: dict = dict.fromkeys(("range_log_joint", "best_log_joint", "below_best", "near"))
    columns["n_chains"] = len(arrays["joint_means"][index])
    reached = not chain or bool(worst < LIMIT)
    kept = {"rhat_max": worst, **columns, "converged": reached, **ess, "acceptance": None, "moved": None}
    return {"sampling": "mcmc" if chain else "exact", "sampler": sampler if chain else None, **kept}


# What a variant of the Laplace mechanism does to noisy counts.
OTHERS = {"paper": "clipped", "corrected": "projected"}
