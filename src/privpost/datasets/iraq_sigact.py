"""Iraq SIGACT (ESOC): incidents per governorate, month and type of attack."""

from pathlib import Path

import numpy as np

from privpost.datasets import files, war_logs
from privpost.datasets.catalogue import Dataset
from privpost.datasets.war_logs import difference

__all__ = ["difference", "parse"]

COLUMNS = {
    "IED attack": "ied_attack",
    "IED cleared": "ied_clear",
    "direct fire": "df",
    "indirect fire": "idf",
    "suicide": "suicide",
}


def parse(paths: dict[str, Path], dataset: Dataset) -> dict[str, np.ndarray]:
    """Read the counts: `counts` (cells, 6) int64, `region` and `month` (cells,) int16.

    In a file of ESOC, the total minus the named types is the level `other`. Raises ValueError naming file and line.
    """
    (path,) = paths.values()
    if war_logs.is_counts(path):
        return war_logs.read_counts(path, dataset)
    levels = dataset.public["levels"]["attack_type"]
    regions, months, _ = war_logs.places(dataset)
    table = war_logs.empty(dataset)
    columns = ["governorate", "year_month", "SIGACT", *COLUMNS.values()]
    with path.open(encoding="ascii", newline="") as lines:
        for number, row in files.records(lines, columns, str(path)):
            if row["governorate"] not in regions or row["year_month"] not in months:
                continue
            try:
                named = {level: files.count(row[column]) for level, column in COLUMNS.items()}
                rest = files.count(row["SIGACT"]) - sum(named.values())
            except ValueError as error:
                raise ValueError(f"{path} line {number}: a count is not a number ({error})") from error
            if rest < 0:
                raise ValueError(f"{path} line {number}: the types of attack exceed the total")
            counts = {**named, war_logs.OTHER: rest}
            table[regions[row["governorate"]], months[row["year_month"]]] = [counts[level] for level in levels]
    return war_logs.cells(table)
