"""When the states of regions in war logs turn for good, and what a change in what is recorded has to do with it."""

import numpy as np


def without_level(logs, level: str):
    """The logs without one level of a field, and without cells that held nothing else."""
    columns = np.array([one != level for levels in logs.levels.values() for one in levels])
    counts = logs.counts[:, columns]
    full = counts.sum(axis=1) > 0
    levels = {field: [one for one in levels if one != level] for field, levels in logs.levels.items()}
    return logs._replace(counts=counts[full], region=logs.region[full], month=logs.month[full], levels=levels)


def turning_months(logs, states) -> np.ndarray:
    """Index of the month from which on each region keeps the state of its last month; nan where it has no other."""
    turns = np.full(len(logs.regions), np.nan)
    for region in range(len(logs.regions)):
        cells = np.flatnonzero(logs.region == region)
        other = np.flatnonzero(states[cells] != states[cells[-1]]) if len(cells) else []
        if len(other):
            turns[region] = logs.month[cells[other[-1] + 1]]
    return turns


def turns(logs, months) -> list[dict]:
    """Regions and the months in which they turn, by name, from `turning_months`."""
    named = (None if np.isnan(month) else logs.months[int(month)] for month in months)
    return [{"region": region, "month": month} for region, month in zip(logs.regions, named, strict=True)]
