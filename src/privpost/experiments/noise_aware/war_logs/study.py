"""Held-out likelihood of noise-aware naive Bayes and hidden Markov models on war logs, beside the noise-naive ones.

Models, splits, releases and evaluation are those of foulds2016/war_logs_likelihood, whose results are read where their
settings are the same. The method `gibbs` is added, whose counts are latent (`samplers.noise_aware_events`).
"""

from __future__ import annotations

import math

from privpost.datasets import war_logs
from privpost.evaluation.summaries import mean_columns
from privpost.experiments.foulds2016.chain_checks import LIMIT, PARTITION_DISTANCE, verdict
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
    # The search for a start is by the collapsed sampler, which takes no smaller one.
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
# How a variant of the Laplace mechanism processes noisy counts.
OTHERS = {"paper": "clipped", "corrected": "projected"}


def tabulate(cells):
    """Return the scores per held-out event (`war_logs`) and noise-aware less noise-naive ones (`war_logs_pairs`).

    Score `joint` is the log of the likelihood of all held-out cells at once, averaged over samples, as in the paper;
    `predictive` takes each field of each event by itself. Differences are paired over splits.
    """
    import pandas as pd

    table, pairs = [], []
    for cell in cells:
        logs = war_logs.load(cell.config.dataset)
        fixed = {"dataset": cell.config.dataset, "stand_in": logs.stand_in}
        private = uses_private_metadata(cell.config.dataset)
        shared = {"n_splits": len(cell.arrays["events"]), "uses_private_metadata": private}
        all_rows, setup = rows(cell.config), setups(cell.config, logs)
        checked = [
            _checked(row, cell.arrays, index, setup[row.model].same_law(all_rows, row))
            for index, row in enumerate(all_rows)
        ]
        table += [{**fixed, **row, **shared} for row in _scores(cell, all_rows, checked)]
        pairs += [{**fixed, **row, **shared} for row in _gains(cell, all_rows, checked)]
    # Cells with chains of different length have a non-private row each, on the same splits: the first one stays.
    key = ["dataset", "score", "model", "n_states", "variant", "epsilon", "method"]
    tables = {"war_logs": pd.DataFrame(table).drop_duplicates(key), "war_logs_pairs": pd.DataFrame(pairs)}
    return {name: frame.reset_index(drop=True) for name, frame in tables.items()}


def _named(cell, all_rows):
    """Yield index, row, first columns and scores per event (rows, splits) of every score and row."""
    states = {"naive_bayes": 1, "hmm": cell.config.n_states}
    for score, name in SCORES.items():
        per_event = cell.arrays[name] / cell.arrays["events"]
        for index, row in enumerate(all_rows):
            first = {"score": score, "model": row.model, "n_states": states[row.model]}
            yield index, row, {**first, "variant": row.variant, "epsilon": row.epsilon}, per_event


def _scores(cell, all_rows, checked):
    plain = {row.model: index for index, row in enumerate(all_rows) if row.method == "non_private"}
    for index, row, named, per_event in _named(cell, all_rows):
        best = per_event[plain[row.model]] if row.model in plain else math.nan
        yield {
            **named,
            "method": row.method,
            **mean_columns("per_event", per_event[index]),
            **mean_columns("per_event_loss", best - per_event[index]),
            "clipped_share": cell.arrays["clipped_share"][index],
            **checked[index],
        }


def _gains(cell, all_rows, checked):
    places = {(row.model, row.method, row.epsilon): index for index, row in enumerate(all_rows)}
    for index, row, named, per_event in _named(cell, all_rows):
        aware = places.get((row.model, "gibbs", row.epsilon))
        if row.method == "laplace" and aware is not None:
            gain = mean_columns("gain", per_event[aware] - per_event[index])
            converged = checked[aware]["converged"] and checked[index]["converged"]
            yield {**named, "sampler": checked[aware]["sampler"], **gain, "converged": converged}


def _checked(row, arrays, index: int, same) -> dict:
    """Return the columns on a row's chains: sampler, convergence, acceptance, and the share of cells that moved."""
    sampler = "joint moves" if row.method == "gibbs" else row.sampler
    ess = {"ess_min": arrays["ess"][index]}
    if row.model == "hmm":
        moves = {name: arrays[name][index] for name in ("acceptance", "moved")}
        return {"sampling": "mcmc", "sampler": sampler, **verdict(arrays, index, same), **ess, **moves}
    worst, chain = arrays["rhat"][index], row.method == "gibbs"
    unknown: dict = dict.fromkeys(("range_log_joint", "best_log_joint", "below_best", "near", PARTITION_DISTANCE))
    return {
        "sampling": "mcmc" if chain else "exact",
        "sampler": sampler,
        "rhat_max": worst,
        **unknown,
        "n_chains": int(arrays["n_chains"][index]) if chain else 1,
        "converged": not chain or bool(worst < LIMIT),
        **ess,
        "acceptance": None,
        "moved": None,
    }
