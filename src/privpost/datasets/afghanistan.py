"""Afghan war diary: events of 2004 to 2009, counted per regional command, month and level of five fields."""

import itertools
from pathlib import Path

import numpy as np

from privpost.datasets import files, war_logs
from privpost.datasets.catalogue import Dataset

CASUALTIES = {
    "friendly_or_host": ("FriendlyWIA", "FriendlyKIA", "HostNationWIA", "HostNationKIA"),
    "civilian": ("CivilianWIA", "CivilianKIA"),
    "enemy": ("EnemyWIA", "EnemyKIA", "EnemyDetained"),
}


def parse(paths: dict[str, Path], dataset: Dataset) -> dict[str, np.ndarray]:
    """Count the file's events: `counts` (cells, levels) int64, `region` and `month` (cells,) int16.

    A field of casualties is binary, any count above 0 (Foulds et al. 2016, section 5); an empty count reads as 0.
    Events of other regions or months are left out. Raises ValueError naming file and line.
    """
    (path,) = paths.values()
    levels = dataset.public["levels"]
    regions = {name: index for index, name in enumerate(dataset.settings["regions"])}
    months = {name: index for index, name in enumerate(war_logs.months(dataset))}
    codes = [{level: index for index, level in enumerate(levels[field])} for field in levels]
    offsets = np.cumsum([0, *(len(field) for field in codes)])
    table = np.zeros((len(regions), len(months), offsets[-1]), np.int64)
    columns = ["region", "date", "type", "category", *itertools.chain(*CASUALTIES.values())]
    with path.open(encoding="ascii", newline="") as lines:
        for number, row in files.records(lines, columns, str(path)):
            if row["region"] not in regions or row["date"][:7] not in months:
                continue
            words = [war_logs.fold(row["type"].replace("-", " ")), war_logs.fold(row["category"])]
            for fields in CASUALTIES.values():
                try:
                    hurt = any(files.count(row[field] or "0") > 0 for field in fields)
                except ValueError as error:
                    raise ValueError(
                        f"{path} line {number}: a count of casualties is not a number ({error})"
                    ) from error
                words.append("casualties" if hurt else "none")
            for field, word, offset in zip(codes, words, offsets, strict=False):
                level = war_logs.code(word, field) if war_logs.OTHER in field else field[word]
                table[regions[row["region"]], months[row["date"][:7]], offset + level] += 1
    return war_logs.cells(table)
