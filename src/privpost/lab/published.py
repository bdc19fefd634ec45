"""The sha256 of the published files, and the times of the run that made the published results."""

import csv
import functools
import hashlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from privpost.lab.project import PUBLISHED
from privpost.lab.schema import SettingError

RESULTS, FIGURES = PUBLISHED / "results", PUBLISHED / "figures"
# Checksums of figures (as ../figures) and of results, but not of times, for `sha256sum --check` within results/.
SUMS = RESULTS / "SHA256SUMS"
TIMES = RESULTS / "times.csv"
# The digest identifies a cell from which the tables were made.
COLUMNS = ("study", "cell", "wall_seconds", "peak_mib", "digest")
# Times in build/ also have a digest of the code, and a digest of the tables and the ledger that this code wrote.
BUILT_COLUMNS = (*COLUMNS, "code", "files")
COVERED = (".csv", ".json", ".md", ".svg")
# Tables with times, which depend on the machine: a rebuild gives other numbers.
MEASURED = ("times.csv", "benchmarks.csv", "scale.csv", "optional_methods.csv")


def covered() -> list[Path]:
    """Return the published files whose sha256 is recorded."""
    paths = [path for folder in (RESULTS, FIGURES) for path in sorted(folder.rglob("*")) if path.is_file()]
    return [path for path in paths if path.suffix in COVERED and path.name not in MEASURED]


def sum_of(path: Path) -> str:
    """Return a file's sha256."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def write_sums() -> None:
    """Write the sha256 of every published result and figure."""
    lines = (f"{sum_of(path)}  {os.path.relpath(path, RESULTS)}\n" for path in covered())
    # Imported here because it loads numpy, which the help of the command line does not need.
    from privpost.lab import store

    store.write_text(SUMS, "".join(lines))


def sums() -> dict[Path, str]:
    """Return the recorded sha256 of each published result and figure, by its path."""
    if not SUMS.is_file():
        return {}
    return dict(_sums(SUMS.read_text(encoding="utf-8", errors="replace")))


# Each table that is read is checked, so the same text comes again and again.
@functools.lru_cache(maxsize=1)
def _sums(text: str) -> dict[Path, str]:
    # A malformed file has no entries, so every result then counts as altered.
    pairs = (line.split("  ", 1) for line in text.splitlines() if "  " in line)
    return {Path(os.path.normpath(RESULTS / name)): digest for digest, name in pairs}


def altered(path: Path) -> bool:
    """Whether a file is a published result or figure whose sha256 differs from the recorded sha256."""
    if not (path.is_relative_to(RESULTS) or path.is_relative_to(FIGURES)) or path.name in MEASURED:
        return False
    return sums().get(path) != sum_of(path)


def check(path: Path) -> None:
    """Raise SettingError for a published result or figure that was altered by hand."""
    if altered(path):
        raise SettingError(
            f"{path} does not have the sha256 that {SUMS} names: restore it from Git, or publish it again "
            "(make reproduce, make publish)"
        )


def read_times(path: Path = TIMES) -> list[dict[str, str]]:
    """Return the rows of a file of times, or no rows if the file is missing. Files in build/ have `BUILT_COLUMNS`."""
    if not path.is_file():
        return []
    with path.open(encoding="utf-8") as handle:
        return list(csv.DictReader(handle))


def expected_seconds() -> dict[str, dict[str, list[float]]]:
    """Return the seconds of the published run's cells, by study and slug. Cells that share a slug are in one list."""
    seconds: dict[str, dict[str, list[float]]] = {}
    for row in read_times():
        of_slug = seconds.setdefault(row["study"], {}).setdefault(row["cell"], [])
        of_slug.append(max(float(row["wall_seconds"]), 0.001))
    return seconds


def times_text(rows: Iterable[dict], columns: Sequence[str] = COLUMNS) -> str:
    """Return rows of times as CSV text, sorted by study."""
    rows = sorted(rows, key=lambda row: str(row["study"]))
    lines = [",".join(str(row.get(name, "")) for name in columns) for row in rows]
    return "\n".join([",".join(columns), *lines]) + "\n"
