"""Afghan war diary: events of 2004 to 2009, counted per regional command, month and level of five fields.

The file is the repository's counts, the published release, or an extract of the release with a header. All three files
give equal arrays.
"""

import csv
import itertools
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from privpost.datasets import files, war_logs
from privpost.datasets.catalogue import Dataset
from privpost.datasets.war_logs import difference

__all__ = ["difference", "parse"]

CASUALTIES = {
    "friendly_or_host": ("FriendlyWIA", "FriendlyKIA", "HostNationWIA", "HostNationKIA"),
    "civilian": ("CivilianWIA", "CivilianKIA"),
    "enemy": ("EnemyWIA", "EnemyKIA", "EnemyDetained"),
}
ASKED = ("region", "date", "type", "category", *itertools.chain(*CASUALTIES.values()))
# The columns of the release, which has no header.
RELEASE = (
    *("ReportKey", "date", "type", "category", "TrackingNumber", "Title", "Summary", "region", "AttackOn"),
    *("ComplexAttack", "ReportingUnit", "UnitName", "TypeOfUnit", *itertools.chain(*CASUALTIES.values())),
    *("MGRS", "Latitude", "Longitude", "OriginatorGroup", "UpdatedByGroup", "CCIR", "Sigact", "Affiliation"),
    *("DColor", "Classification"),
)
# Degrees within which the extract and the counts lie; 702 events of the release lie elsewhere or have no coordinates.
LATITUDES, LONGITUDES = (29.0, 39.0), (60.0, 75.0)


def parse(paths: dict[str, Path], dataset: Dataset) -> dict[str, np.ndarray]:
    """Count the file's events: `counts` (cells, levels) int64, `region` and `month` (cells,) int16.

    A field of casualties tells whether their number is above 0 (Foulds et al. 2016, section 5). Events of other regions
    or months, and events of the release outside the country, are left out. Raises ValueError naming file and line.
    """
    (path,) = paths.values()
    if war_logs.is_counts(path):
        return war_logs.read_counts(path, dataset)
    regions, months, fields = war_logs.places(dataset)
    table = war_logs.empty(dataset)
    for number, row in _events(path):
        if row["region"] not in regions or row["date"][:7] not in months:
            continue
        words = [war_logs.fold(row["type"].replace("-", " ")), war_logs.fold(row["category"])]
        for columns in CASUALTIES.values():
            try:
                hurt = any(files.count(row[column] or "0") > 0 for column in columns)
            except ValueError as error:
                raise ValueError(f"{path} line {number}: a count of casualties is not a number ({error})") from error
            words.append("casualties" if hurt else "none")
        for codes, word in zip(fields.values(), words, strict=True):
            level = war_logs.code(word, codes) if war_logs.OTHER in codes else codes[word]
            table[regions[row["region"]], months[row["date"][:7]], level] += 1
    return war_logs.cells(table)


def _events(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the line number and the fields of each event of the release, or of an extract with a header."""
    with path.open(encoding="latin-1", newline="") as lines:
        reader = csv.reader(lines)
        try:
            if len(first := next(reader, [])) != len(RELEASE):
                lines.seek(0)
                yield from files.records(lines, ASKED, str(path))
                return
            for row in itertools.chain([first], reader):
                if len(row) != len(RELEASE):
                    raise ValueError(f"{path} line {reader.line_num}: {len(row)} fields, expected {len(RELEASE)}")
                event = dict(zip(RELEASE, row, strict=True))
                if _inside(event["Latitude"], LATITUDES) and _inside(event["Longitude"], LONGITUDES):
                    yield reader.line_num, event
        except csv.Error as error:
            raise ValueError(f"{path} line {reader.line_num + 1}: damaged ({error})") from error


def _inside(degrees: str, bounds: tuple[float, float]) -> bool:
    try:
        return bounds[0] <= float(degrees) <= bounds[1]
    except ValueError:
        return False
