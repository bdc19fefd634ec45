"""The months in which regions of war logs change their state for the last time, with or without one level."""

import numpy as np


def without_level(logs, level: str):
    """Return the logs without one level of a field and without cells that become empty. `none` keeps all levels."""
    if level == "none":
        return logs
    columns = np.array([word != level for levels in logs.levels.values() for word in levels])
    counts = logs.counts[:, columns]
    full = counts.sum(axis=1) > 0
    levels = {field: [word for word in levels if word != level] for field, levels in logs.levels.items()}
    parts = {name: getattr(logs, name)[full] for name in ("region", "month")}
    return logs._replace(counts=counts[full], levels=levels, truth=None, **parts)


def turning_months(logs, states) -> np.ndarray:
    """Return for each region the index of the month from which it keeps its last state, or nan if it never changes."""
    turns = np.full(len(logs.regions), np.nan)
    for region in range(len(logs.regions)):
        cells = np.flatnonzero(logs.region == region)
        elsewhere = np.flatnonzero(states[cells] != states[cells[-1]]) if len(cells) else []
        if len(elsewhere):
            turns[region] = logs.month[cells[elsewhere[-1] + 1]]
    return turns


def turns(logs, months) -> list[dict]:
    """Return one dict per region: the region's name and the name of its month in `turning_months` (None for nan)."""
    named = (None if np.isnan(month) else logs.months[int(month)] for month in months)
    return [{"region": region, "month": month} for region, month in zip(logs.regions, named, strict=True)]
