"""Why one posterior sample can beat the Laplace mechanism on war logs: one change of the experiment at a time."""

import numpy as np

from privpost.datasets import war_logs
from privpost.experiments.foulds2016.war_logs import select_fields
from privpost.experiments.foulds2016.war_logs_likelihood.study import SETTINGS, simulate, summarise
from privpost.privacy import count_tables

__all__ = ["SETTINGS", "simulate", "tabulate"]

TABLES = {
    "war_logs_ablation": {
        "events_per_cell": "mean number of events in a cell [events]",
        "rare_levels_per_event": "levels of a mean event that are too rare for the Laplace mechanism [count]",
    },
    "war_logs_ablation_differences": {},
}


def critical_count(sizes, truncation: float) -> float:
    """Return the m ε at which noise on cells and tempering blur the count of a level equally.

    m is the number of the level's events in a mean cell. In a state with S cells and n = S m such events, the noise has
    variance 2S(2D/ε)², and a draw at temperature T ≈ 2Δ/ε varies like n T counts: they are equal at m ε = 4D²/Δ.
    """
    return 4 * len(sizes) ** 2 / count_tables.log_likelihood_range(sizes, truncation)


def tabulate(cells):
    """Return the likelihoods of all changes, and Laplace less OPS, with events per cell and rare levels."""
    import pandas as pd

    likelihoods, differences = [], []
    for cell in cells:
        config = cell.config
        counts, sizes = select_fields(war_logs.load(config.dataset), config.fields)
        changes = {"fields": config.fields, "prior": config.prior, "replication": config.replication}
        mean = counts.mean(axis=0) * config.replication
        for tables, table in zip((likelihoods, differences), summarise(config, cell.arrays), strict=True):
            if table.empty:
                # A run of one method has no differences.
                continue
            for place, (name, value) in enumerate(changes.items(), start=2):
                table.insert(place, name, value)
            table["events_per_cell"] = mean[: sizes[0]].sum()
            # How many of an event's levels are too rare for the Laplace mechanism at this ε.
            epsilon = table.epsilon.to_numpy(float)
            rare = mean[:, None] * epsilon < critical_count(sizes, config.truncation[0])
            share = (mean[:, None] * rare).sum(axis=0) / mean[: sizes[0]].sum()
            table["rare_levels_per_event"] = np.where(np.isnan(epsilon), np.nan, share)
            tables.append(table.dropna(axis="columns", how="all"))
    return {
        "war_logs_ablation": pd.concat([pd.DataFrame(), *likelihoods], ignore_index=True),
        "war_logs_ablation_differences": pd.concat([pd.DataFrame(), *differences], ignore_index=True),
    }
