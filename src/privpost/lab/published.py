"""What is published: which files, their sha256 in one small file, and the times of the run that made them."""

import csv
import functools
import hashlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from privpost.lab import store
from privpost.lab.project import PUBLISHED
from privpost.lab.schema import SettingError
from privpost.lab.study import Cell

RESULTS = PUBLISHED / "results"
# As `sha256sum --check` reads it, from within results/. Times are no results and not in it.
SUMS = RESULTS / "SHA256SUMS"
TIMES = RESULTS / "times.csv"
COLUMNS = ("study", "cell", "wall_seconds", "peak_mib")
# In build/: which cells the tables were made of, by which code, and what tables and ledger were then.
BUILT_COLUMNS = (*COLUMNS, "digest", "code", "files")
COVERED = (".csv", ".json", ".md")
# Assumed for a cell whose study has no published time.
DEFAULT_SECONDS = 5.0
# Measured on one machine: a rebuild gives other numbers.
MEASURED = ("times.csv", "benchmarks.csv", "scale.csv")


def covered() -> list[Path]:
    """Return the published files whose sha256 is kept."""
    paths = sorted(path for path in RESULTS.rglob("*") if path.suffix in COVERED and path.is_file())
    return [path for path in paths if path.name not in MEASURED]


def sum_of(path: Path) -> str:
    """Return a file's sha256."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def write_sums() -> None:
    """Write the sha256 of every published result."""
    lines = (f"{sum_of(path)}  {path.relative_to(RESULTS).as_posix()}\n" for path in covered())
    store.write_text(SUMS, "".join(lines))


def sums() -> dict[str, str]:
    """Return the recorded sha256 of each published result, by its path below results/; empty where none is kept."""
    return _sums(os.stat(SUMS).st_mtime_ns, str(SUMS.resolve())) if SUMS.is_file() else {}


@functools.cache
def _sums(mtime: int, path: str) -> dict[str, str]:
    # A file of another shape names nothing, so that every result counts as altered.
    lines = Path(path).read_text(encoding="utf-8", errors="replace").splitlines()
    pairs = (line.split("  ", 1) for line in lines if "  " in line)
    return {name: digest for digest, name in pairs}


def altered(path: Path) -> bool:
    """Whether a file is a published result that is not the one whose sha256 is kept."""
    if not path.is_relative_to(RESULTS) or path.name in MEASURED:
        return False
    return sums().get(path.relative_to(RESULTS).as_posix()) != sum_of(path)


def check(path: Path) -> None:
    """Raise SettingError for a published result that was altered by hand."""
    if altered(path):
        raise SettingError(
            f"{path} does not have the sha256 that {SUMS} names: take it back from Git, or publish it again "
            "(make reproduce, make publish)"
        )


def read_times(path: Path = TIMES) -> list[dict[str, str]]:
    """Return rows of study, cell, wall_seconds and peak_mib (in build/ also digest); none without such a file."""
    if not path.is_file():
        return []
    with path.open(encoding="utf-8") as handle:
        return list(csv.DictReader(handle))


def expected_seconds() -> dict[tuple[str, str], float]:
    """Return how long each cell took in the published run, by study and slug."""
    return {(row["study"], row["cell"]): max(float(row["wall_seconds"]), 0.001) for row in read_times()}


def expected(cells: Iterable[Cell], scale: str) -> dict[str, float]:
    """Return how long each cell may take, in seconds by digest: as published, else as its study's cells on average.

    At another scale than the published one nothing is known, and all cells count the same.
    """
    known = expected_seconds() if scale == "paper" else {}
    studies: dict[str, list[float]] = {}
    for (study, _), seconds in known.items():
        studies.setdefault(study, []).append(seconds)
    usual = {study: sum(seconds) / len(seconds) for study, seconds in studies.items()}
    default = DEFAULT_SECONDS if scale == "paper" else 1.0
    return {c.digest: known.get((c.study, c.slug), usual.get(c.study, default)) for c in cells}


def times_text(rows: Iterable[dict], columns: Sequence[str] = COLUMNS) -> str:
    """Return rows of times as CSV, by study."""
    lines = [",".join(str(row[name]) for name in columns) for row in sorted(rows, key=lambda row: str(row["study"]))]
    return "\n".join([",".join(columns), *lines]) + "\n"
