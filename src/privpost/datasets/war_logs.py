"""War logs: events counted per region, month and level of each categorical field; nothing finer leaves this module.

Every loader of war logs gives the same arrays, which `load` returns with their names:
`counts` (cells, levels of all fields one after the other), `region` (cells,) and `month` (cells,), in the order of
regions and then months, cells without events left out. A study never sees an event.
"""

import os
from typing import NamedTuple

import numpy as np

from privpost.datasets.catalogue import Dataset

OTHER = "other"


class WarLogs(NamedTuple):
    """Counts of events per cell (a region in a month), with the names of regions, months, fields and levels.

    `counts` is (cells, levels) int64, the fields' levels one after the other; `region` and `month` are (cells,)
    indices into `regions` and `months` (YYYY-MM); `levels` maps each field to its public levels. `truth` holds the
    states (cells,) from which simulated events were drawn, and is None for real ones.
    """

    name: str
    stand_in: bool
    counts: np.ndarray
    region: np.ndarray
    month: np.ndarray
    regions: list[str]
    months: list[str]
    levels: dict[str, list[str]]
    truth: np.ndarray | None

    @property
    def sizes(self) -> list[int]:
        """Number of levels of each field."""
        return [len(levels) for levels in self.levels.values()]


def load(
    name: str, prepared: str | os.PathLike[str] = "data/prepared", conf: str | os.PathLike[str] | None = None
) -> WarLogs:
    """Read prepared war logs.

    Raises ValueError for another kind of data set, and what `prepared.read` raises.
    """
    from privpost.datasets import catalogue
    from privpost.datasets import prepared as store

    dataset = catalogue.load(name, conf)
    arrays = store.read(name, dataset, prepared=prepared)
    if "counts" not in arrays or "month" not in arrays:
        raise ValueError(f"dataset = {name!r}: has no counts per region and month")
    return WarLogs(
        name,
        dataset.stand_in,
        arrays["counts"],
        arrays["region"].astype(int),
        arrays["month"].astype(int),
        dataset.settings["regions"],
        months(dataset),
        dataset.public["levels"],
        arrays.get("state"),
    )


def months(dataset: Dataset) -> list[str]:
    """Return the months from the settings' first to their last, as YYYY-MM."""
    first, last = (_month_number(dataset.settings[key]) for key in ("first_month", "last_month"))
    if last < first:
        raise ValueError(f"dataset {dataset.name}: last_month is before first_month")
    return [f"{number // 12:04d}-{number % 12 + 1:02d}" for number in range(first, last + 1)]


def _month_number(month: str) -> int:
    return int(month[:4]) * 12 + int(month[5:]) - 1


def fold(word: str) -> str:
    """Return a level's spelling with case and blanks folded."""
    return " ".join(word.casefold().split())


def code(word: str, codes: dict[str, int]) -> int:
    """Return the code of a level, `other` for one that is not declared."""
    return codes.get(word, codes[OTHER])


def cells(table: np.ndarray) -> dict[str, np.ndarray]:
    """Return the arrays of the non-empty cells of a table of counts.

    `table` is (regions, months, levels); the levels of the first field sum to the number of events. Leaving empty
    cells out depends on the records, as in the paper.
    """
    region, month = np.nonzero(table.sum(axis=2))
    return {
        "counts": table[region, month].astype(np.int64),
        "region": region.astype(np.int16),
        "month": month.astype(np.int16),
    }
