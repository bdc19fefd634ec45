"""Compares the tables that a rebuild made with the published tables."""

from collections import Counter
from collections.abc import Sequence
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from pandas.api.types import is_numeric_dtype

from privpost.lab import grid, ledgers, tables
from privpost.lab.published import SUMS, altered, sums
from privpost.lab.study import Study
from privpost.progress import counted, some

# An estimate may differ by this many combined standard errors: rounding differs between processors, and a chain then
# takes another path.
STANDARD_ERRORS = 5.0
# Largest relative difference of a number without a standard error, unless the study's YAML sets `tolerance`.
RELATIVE = 1e-6
# Differences below this share of the largest number of a column are rounding errors.
ROUNDING = 1e-12
# Largest relative difference of a standard error. From 50 repeats, a standard error has itself an error of a tenth.
OF_AN_ERROR = 0.1
# Units at the end of the meaning of a column that was measured with a clock.
TIMED = ("[seconds]", "[1/seconds]")


class Comparison(NamedTuple):
    """The result of comparing a built table with the published table.

    Attributes:
        table: `<paper>/<study>/<table>`.
        size: the largest ratio of a difference to its tolerance; None if nothing is published.
        where: which column and row differ most, and by how much.
        columns: whether the columns or their order changed. Then `size` is about the common columns.
    """

    table: str
    size: float | None = 0.0
    where: str = ""
    columns: bool = False

    @property
    def state(self) -> str:
        """`equal`, `within tolerance`, `outside tolerance`, `with other columns` or `not published`."""
        if self.columns and self.size is not None and self.size <= 1:
            return "with other columns"
        if not self.size:
            return "not published" if self.size is None else "equal"
        return "within tolerance" if self.size <= 1 else "outside tolerance"


def compare(built: Study) -> list[Comparison]:
    """Return a comparison of each built table with the published table. Rows of left-out data sets are ignored."""
    published = built.published
    return [Comparison(f"{built.name}/{name}", *_compare(built, published, name)) for name in built.tables]


def beside(built: Study) -> list[str]:
    """Return the published files, other than tables, that publishing a study would change.

    The files are documents that the study makes from the published tables, and the ledger of the study. A ledger that
    differs only in last digits does not count.
    """
    published = built.published
    texts: dict = {}
    if published.has("documents") and not any(_lacks(published.table_path(name)) for name in published.tables):
        texts = published.module("documents").documents(tables.read_tables(published))
    documents = {published.results / name: text for name, text in texts.items()}
    changed = [path for path, text in documents.items() if _lacks(path) or path.read_text("utf-8") != text]
    return [str(path) for path in (*changed, *[published.ledger_path] * (not _same_ledger(built, published)))]


def _same_ledger(built: Study, published: Study) -> bool:
    path = published.ledger_path
    if grid.left_out(built) or not path.is_file() or built.ledger_path.read_bytes() == path.read_bytes():
        return True
    return not altered(path) and ledgers.alike(built.ledger_path, path)


def _lacks(path: Path) -> bool:
    return not path.is_file() or altered(path)


def _compare(built: Study, published: Study, name: str) -> tuple[Any, ...]:
    path = published.table_path(name)
    if not path.is_file():
        return (inf, f"{path} is not there, but {SUMS} names it") if path in sums() else (None, "")
    if built.table_path(name).read_bytes() == path.read_bytes():
        return 0.0, ""
    if altered(path):
        return inf, f"{path} is not what {SUMS} has the sha256 of"
    new, old = tables.read_table(built.table_path(name)), tables.read_table(path)
    if left_out := grid.left_out(built):
        if "dataset" not in old:
            return None, f"has rows of {', '.join(left_out)}, which no column marks"
        old = old[~old.dataset.isin(left_out)].reset_index(drop=True)
    meanings = getattr(built.module(), "TABLES", {}).get(name, {})
    timed = [column for column, meaning in meanings.items() if meaning.endswith(TIMED)]
    return compare_frames(old, new, float(built.text.get("tolerance", RELATIVE)), timed)


def compare_frames(old: Any, new: Any, relative: float = RELATIVE, timed: Sequence[str] = ()) -> tuple[Any, ...]:
    """Return the size and the place of the largest difference between two tables, as in `Comparison`.

    The ratio is infinite if words or the numbers of rows differ. If column names differ, only common columns are
    compared, and True is returned too. Columns in `timed` hold run times and are not compared. `relative` is the
    relative tolerance of numbers without a standard error.
    """
    if list(old.columns) != list(new.columns):
        both = [column for column in old if column in new]
        changes = {"new column": [*new.columns.drop(both)], "without the column": [*old.columns.drop(both)]}
        changed = " and ".join(f"{what} {', '.join(names)}" for what, names in changes.items() if names)
        size, where = compare_frames(old[both], new[both], relative, timed)
        return size, f"{changed or 'columns in another order'}; {where or 'all else is equal'}", True
    if len(old) != len(new):
        return inf, f"{len(old)} rows became {len(new)}"
    found = [_difference(column, old, new, relative) for column in old if column not in timed]
    return max(found, key=lambda difference: difference[0], default=(0.0, ""))


def _difference(column: str, old: Any, new: Any, relative: float) -> tuple[float, str]:
    """Return the largest ratio of a difference in a column to its tolerance, and the place of this difference."""
    if not all(is_numeric_dtype(frame[column]) and frame[column].dtype != bool for frame in (old, new)):
        # Two empty entries are equal.
        one, other = (frame[column].astype(str).fillna("") for frame in (old, new))
        rows = int((one != other).sum())
        return (inf, f"{column} has other values in {rows} rows") if rows else (0.0, "")
    before, after = old[column].to_numpy(float), new[column].to_numpy(float)
    same = (before == after) | (np.isnan(before) & np.isnan(after))
    if same.all():
        return 0.0, ""
    # Rounding errors near 0 differ between processors.
    largest = np.abs(before[np.isfinite(before)]).max(initial=0.0)
    allowed = np.maximum(relative * np.maximum(np.abs(before), np.abs(after)), ROUNDING * largest)
    if (sem := tables.error_of(column)) in old:
        allowed = np.maximum(allowed, STANDARD_ERRORS * np.hypot(old[sem].to_numpy(float), new[sem].to_numpy(float)))
    if column.endswith("sem"):
        allowed = np.maximum(allowed, OF_AN_ERROR * np.maximum(np.abs(before), np.abs(after)))
    with np.errstate(all="ignore"):
        share = np.where(same, 0.0, np.nan_to_num(np.abs(after - before) / allowed, nan=inf, posinf=inf))
    row = int(share.argmax())
    return float(share[row]), f"{column} in row {row + 1}: {before[row]:.6g} became {after[row]:.6g}"


def sentence(comparisons: Sequence[Comparison]) -> str:
    """Return a summary, such as "71 tables: 70 equal, 1 within tolerance (largest difference: ...)"."""
    count = Counter(comparison.state for comparison in comparisons)
    parts = [f"{count['equal']} equal"]
    if others := [f"{each.table}: {each.where}" for each in comparisons if each.state == "with other columns"]:
        parts.append(f"{len(others)} with other columns ({some(others)})")
    for state, words in (("within tolerance", "within tolerance"), ("outside tolerance", "OUTSIDE tolerance")):
        if count[state]:
            worst = max((each for each in comparisons if each.state == state), key=lambda each: each.size or 0.0)
            parts.append(f"{count[state]} {words} (largest difference: {worst.table}, {worst.where})")
    if count["not published"]:
        parts.append(f"{count['not published']} not compared")
    return f"{counted(len(comparisons), 'table')}: {', '.join(parts)}"
