"""What the studies on war logs share."""

import functools

import numpy as np

from privpost.datasets import catalogue, war_logs
from privpost.lab.schema import SettingError


def select_fields(logs: war_logs.WarLogs, fields: str) -> tuple[np.ndarray, tuple[int, ...]]:
    """Return the counts of the chosen fields (cells, levels) and the fields' sizes.

    Raises SettingError when nothing is left.
    """
    selected = [field != "category" or fields == "all" for field in logs.levels]
    if not any(selected):
        raise SettingError(f"fields is {fields!r}, but {logs.name} has no other field")
    columns = np.repeat(selected, logs.sizes)
    return logs.counts[:, columns].astype(float), tuple(s for s, keep in zip(logs.sizes, selected, strict=True) if keep)


def uses_private_metadata(dataset: str) -> bool:
    """Return whether cells, regions or spellings of levels were chosen by looking at the records.

    Empty cells are left out of every real data set, as in the paper; simulated ones are whole.
    """
    return catalogue.load(dataset).access != "generated"


@functools.cache
def title(dataset: str) -> str:
    """Return the data set's title, marked where it stands in for the paper's data."""
    declared = catalogue.load(dataset)
    return declared.title + (" (stand-in)" if declared.stand_in else "")
