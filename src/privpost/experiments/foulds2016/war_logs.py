"""What studies on war logs share: selection of fields, private metadata, titles."""

import functools

import numpy as np

from privpost.datasets import catalogue, war_logs
from privpost.lab.schema import SettingError


def select_fields(logs: war_logs.WarLogs, fields: str) -> tuple[np.ndarray, tuple[int, ...]]:
    """Return counts (cells, levels) and sizes of the chosen fields; raises SettingError when no field remains."""
    selected = [field != "category" or fields == "all" for field in logs.levels]
    if not any(selected):
        raise SettingError(f"fields is {fields!r}, but {logs.name} has no other field")
    columns = np.repeat(selected, logs.sizes)
    return logs.counts[:, columns].astype(float), tuple(s for s, keep in zip(logs.sizes, selected, strict=True) if keep)


def uses_private_metadata(dataset: str) -> bool:
    """Return whether cells, regions or spellings of levels were read off the records.

    As in the paper, real data sets leave out empty cells; simulated ones do not.
    """
    return catalogue.load(dataset).access != "generated"


@functools.cache
def title(dataset: str) -> str:
    """Return a data set's title, marked if it stands in for the paper's data."""
    declared = catalogue.load(dataset)
    return declared.title + (" (stand-in)" if declared.stand_in else "")
