"""War logs: events counted per region, month and level of each categorical field.

Every loader of war logs returns `counts` (cells, levels), `region` (cells,) and `month` (cells,), sorted by region and
then by month. The levels of all fields stand one after the other. Cells without events are left out. A study never sees
a single event.
"""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from privpost.datasets import files
from privpost.datasets.catalogue import Dataset

OTHER = "other"
# The columns of a file of counts. A line tells how many events in a region and month have a level of a field.
COLUMNS = ("region", "month", "field", "level", "events")


class WarLogs(NamedTuple):
    """Counts of events per cell, which is a region in a month, with the names of regions, months, fields and levels.

    Attributes:
        counts: (cells, levels) int64, with the levels of all fields one after the other.
        region, month: (cells,) indices into `regions` and `months` (YYYY-MM).
        levels: the public levels of each field.
        truth: states (cells,) from which simulated events were drawn; None for real events.
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
    """Read prepared war logs. Raises ValueError for another kind of data set, and the errors of `prepared.read`."""
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
    """Return the months from the first to the last month of the settings, as YYYY-MM."""
    first, last = (_month_number(dataset.settings[key]) for key in ("first_month", "last_month"))
    if last < first:
        raise ValueError(f"dataset {dataset.name}: last_month is before first_month")
    return [f"{number // 12:04d}-{number % 12 + 1:02d}" for number in range(first, last + 1)]


def _month_number(month: str) -> int:
    return int(month[:4]) * 12 + int(month[5:]) - 1


def fold(word: str) -> str:
    """Return a level's spelling in folded case, with single blanks between words."""
    return " ".join(word.casefold().split())


def code(word: str, codes: dict[str, int]) -> int:
    """Return the code of a level, or the code of `other` if the level is not declared."""
    return codes.get(word, codes[OTHER])


def cells(table: np.ndarray) -> dict[str, np.ndarray]:
    """Return counts, regions and months of the cells with events, from a table of counts (regions, months, levels)."""
    # Which cells are empty depends on the records, as in the paper.
    region, month = np.nonzero(table.sum(axis=2))
    return {
        "counts": table[region, month].astype(np.int64),
        "region": region.astype(np.int16),
        "month": month.astype(np.int16),
    }


def places(dataset: Dataset) -> tuple[dict[str, int], dict[str, int], dict[str, dict[str, int]]]:
    """Return the indices of regions, of months, and of each field's levels among all levels."""
    fields, start = {}, 0
    for field, levels in dataset.public["levels"].items():
        fields[field] = {level: start + index for index, level in enumerate(levels)}
        start += len(levels)
    regions, all_months = (
        {name: i for i, name in enumerate(n)} for n in (dataset.settings["regions"], months(dataset))
    )
    return regions, all_months, fields


def empty(dataset: Dataset) -> np.ndarray:
    """Return a table of counts (regions, months, levels) without events."""
    regions, all_months, fields = places(dataset)
    return np.zeros((len(regions), len(all_months), sum(map(len, fields.values()))), np.int64)


def is_counts(path: Path) -> bool:
    """Whether the first line of a file is the header of a file of counts."""
    with path.open("rb") as handle:
        return handle.readline(100).rstrip() == ",".join(COLUMNS).encode()


def read_counts(path: Path, dataset: Dataset) -> dict[str, np.ndarray]:
    """Read a file of counts into the arrays of `cells`, without regions and months that the settings do not name.

    Raises ValueError, naming file and line, for an unknown field or level, a malformed number, or two lines for one
    level of a cell. Raises ValueError, naming file and cell, if the fields of a cell have different numbers of events.
    """
    regions, all_months, fields = places(dataset)
    table = empty(dataset)
    with path.open(encoding="ascii", newline="") as lines:
        for number, row in files.records(lines, COLUMNS, str(path)):
            if row["region"] not in regions or row["month"] not in all_months:
                continue
            try:
                place = regions[row["region"]], all_months[row["month"]], fields[row["field"]][row["level"]]
                events = files.count(row["events"], at_least=1)
            except KeyError as error:
                raise ValueError(f"{path} line {number}: {error.args[0]!r} is no field or level") from error
            except ValueError as error:
                raise ValueError(f"{path} line {number}: events = {error}") from error
            if table[place]:
                raise ValueError(f"{path} line {number}: the same region, month, field and level as before")
            table[place] = events
    totals = np.stack([table[:, :, list(codes.values())].sum(axis=2) for codes in fields.values()])
    for region, month in np.argwhere((totals != totals[0]).any(axis=0)):
        where = f"{list(regions)[region]} {list(all_months)[month]}"
        raise ValueError(f"{path}: {where}: the fields have different numbers of events, {totals[:, region, month]}")
    return cells(table)


def count_lines(arrays: Mapping[str, np.ndarray], dataset: Dataset) -> Iterator[str]:
    """Yield lines for a file of counts. From this file, `read_counts` makes the given arrays."""
    names = [(field, level) for field, levels in dataset.public["levels"].items() for level in levels]
    all_months = months(dataset)
    yield ",".join(COLUMNS)
    for counts, region, month in zip(arrays["counts"], arrays["region"], arrays["month"], strict=True):
        where = f"{dataset.settings['regions'][region]},{all_months[month]}"
        for place in np.flatnonzero(counts):
            yield f"{where},{','.join(names[place])},{counts[place]}"


def difference(arrays: Mapping[str, np.ndarray], declared: Mapping[str, np.ndarray], dataset: Dataset) -> str:
    """Return, in words, the months in which counts differ from the declared counts, and by how many events."""
    more = _table(arrays, dataset) - _table(declared, dataset)
    events = more[:, :, : len(next(iter(dataset.public["levels"].values())))].sum(axis=(0, 2))
    changed = np.abs(more).sum(axis=(0, 2))
    said = [
        f"{month} has {abs(n)} events {'more' if n > 0 else 'fewer'}" if n else f"{month} has {changes} other counts"
        for month, n, changes in zip(months(dataset), events, changed, strict=True)
        if changes
    ]
    further = f" and {len(said) - 6} further months" if len(said) > 6 else ""
    return f"not the declared counts: {', '.join(said[:6])}{further}"


def _table(arrays: Mapping[str, np.ndarray], dataset: Dataset) -> np.ndarray:
    table = empty(dataset)
    table[arrays["region"], arrays["month"]] = arrays["counts"]
    return table
