"""`privpost verify`: a rebuild from an empty store, compared with the shipped tables, figures, scores and numbers."""

import argparse
import json
import math
from dataclasses import dataclass, field
from pathlib import Path

from privpost.commands import rebuild
from privpost.lab import compose, grid, tables
from privpost.lab.study import Study
from privpost.report import numbers, scorecard

ROOT = Path("build/verify")
SHOWN = 8


@dataclass
class Comparison:
    """One study's rebuilt tables and figures against the shipped ones; `differences` says in words what moved."""

    study: str
    differences: list[str] = field(default_factory=list)
    rebuilt: bool = True


def main(argv: list[str]) -> int:
    """Rebuild from an empty store into build/verify and compare; returns 0 when all is identical, else 1."""
    parser = argparse.ArgumentParser(
        prog="privpost verify",
        description="Rebuild from an empty store into build/verify and compare with the shipped tables, figures, "
        "verdicts and quoted numbers. "
        "On the type of machine that made them they are identical; on another one rounding differs, and Monte Carlo "
        "results then move by a fraction of their standard error.",
    )
    parser.add_argument("study", nargs="*", help="<paper>/<study>; all studies when none is named")
    parser.add_argument("--cores", type=rebuild.positive, default=2)
    options = parser.parse_args(argv)
    names = [study.name for study in grid.load_studies(options.study or None)]
    arguments = argparse.Namespace(
        study=names, scale="paper", root=str(ROOT), cores=options.cores, profile="default", behind=False, strict=False
    )
    code = rebuild.rebuild(arguments, afresh=True)
    found = [compare(name) for name in names]
    for comparison in found:
        if not comparison.rebuilt:
            print(f"{comparison.study}: not compared, since it could not be rebuilt")
        elif comparison.differences:
            print(f"{comparison.study}: differs from what is shipped")
            for difference in comparison.differences[:SHOWN]:
                print(f"  {difference}")
            if len(comparison.differences) > SHOWN:
                print(f"  and {len(comparison.differences) - SHOWN} more")
        else:
            print(f"{comparison.study}: identical")
    same = [comparison for comparison in found if comparison.rebuilt and not comparison.differences]
    print(f"{len(same)} of {len(found)} studies are identical to what is shipped.")
    scores = compare_scores([comparison.study for comparison in found if comparison.rebuilt])
    for difference in scores:
        print(difference)
    if not scores:
        print("Verdicts, evidence and quoted numbers are those that are shipped.")
    # What could not be rebuilt for want of data that users bring is no difference; a failed job is (status `code`).
    return 1 if code or scores or any(comparison.differences for comparison in found) else 0


def compare(name: str, root: Path = ROOT) -> Comparison:
    """Return how a study's tables and figures under `root` differ from the shipped ones."""
    shipped = grid.load_study(name)
    rebuilt = grid.load_study(name, overrides=compose.rooted(root))
    result = Comparison(name)
    pairs = [(shipped.table_path(table), rebuilt.table_path(table), table) for table in shipped.tables]
    figures = zip(shipped.shipped_figures(), rebuilt.shipped_figures(), strict=True)
    for old, new, table in pairs + [(*pair, "") for pair in figures]:
        if not new.is_file():
            result.rebuilt = False
        elif not old.is_file():
            result.differences.append(f"{old} is not shipped")
        elif old.read_bytes() != new.read_bytes():
            if table:
                result.differences += table_differences(shipped, table, *map(tables.read_table, (old, new)))
            else:
                result.differences.append(f"{old}: other bytes")
    return result


def compare_scores(names: list[str], root: Path = ROOT) -> list[str]:
    """Return how scorecard and quoted numbers of studies rebuilt under `root` differ from the shipped ones, in words.

    Verdicts that changed come first, by name. Compared is what the named studies determine.
    """
    if not names:
        return []
    studies = {study.name: study for study in grid.load_studies(names, overrides=compose.rooted(root))}
    home = Path(grid.load_study(names[0]).config["root"])
    try:
        before, old = scorecard.read(home / "scorecard.csv"), json.loads((home / numbers.FILES[0]).read_bytes())
    except FileNotFoundError as error:
        return [f"Scores are not compared: {error}"]
    after = scorecard.table(scorecard.score(studies.values()))
    found = [f"Verdict of {change}" for change in scorecard.changes(before, after)]
    new = numbers.of_results(studies, {name: grid.expand(study) for name, study in studies.items()}, after)
    ids = set(after.id) - {""}
    whole = set(names) == set(grid.study_names())
    own = {name for name in {*old, *new} if whole or name.split("/")[0] in ids or name.rpartition("/")[0] in studies}
    moved = sorted(name for name in own if old.get(name) != new.get(name) and not name.endswith("/verdict"))
    for name in moved[:SHOWN]:
        found.append(f"Number {name}: {_change(old.get(name), new.get(name))}")
    if len(moved) > SHOWN:
        found.append(f"and {len(moved) - SHOWN} more of {len(own)} numbers")
    return found


def _change(before, after) -> str:
    if not all(isinstance(value, int | float) and math.isfinite(value) for value in (before, after)):
        return f"was {before}, now {after}"
    return f"was {before:.6g}, now {after:.6g} ({(after - before) / max(abs(before), abs(after)):+.2g} relative)"


def table_differences(study: Study, name: str, old, new) -> list[str]:
    """Return in words which cells of a table moved: per point of the sweep and column, by how many standard errors.

    The standard error of a column `x` is the column `x_sem`, or `sem` for `mean`; of both tables, combined. Without
    one, the largest relative difference is given.
    """
    from pandas.api.types import is_numeric_dtype

    if list(old.columns) != list(new.columns):
        return [f"{name}: columns {', '.join(old.columns)} became {', '.join(new.columns)}"]
    if len(old) != len(new):
        return [f"{name}: {len(old)} rows became {len(new)}"]
    axes = [key for key in dict.fromkeys(key for point in grid.points(study) for key in point) if key in old]
    words = [column for column in old if not is_numeric_dtype(old[column]) or column in study.schema]
    for column in words:
        if not old[column].equals(new[column]):
            return [f"{name}: the column {column} has other values"]
    found = []
    for point, rows in old.groupby(axes, dropna=False) if axes else [((), old)]:
        where = ", ".join(f"{axis}={value}" for axis, value in zip(axes, point, strict=True)) or "all rows"
        for column in old:
            if column not in words:
                moved = _moved(column, rows, new.loc[rows.index])
                found += [f"{name}, {where}: {column} {moved}"] * bool(moved)
    return found


def _moved(column: str, old, new) -> str:
    import numpy as np

    before, after = old[column].to_numpy(float), new[column].to_numpy(float)
    differs = ~((before == after) | (np.isnan(before) & np.isnan(after)))
    if not differs.any():
        return ""
    share = f"moved in {differs.sum()} of {len(old)} rows"
    sem = next((name for name in (f"{column}_sem", "sem" if column == "mean" else "") if name in old), None)
    with np.errstate(all="ignore"):
        relative = np.abs(after - before) / np.maximum(np.abs(before), np.abs(after))
        if sem is not None:
            errors = np.abs(after - before) / np.hypot(old[sem].to_numpy(float), new[sem].to_numpy(float))
            if np.isfinite(errors[differs]).all():
                return f"{share}, by at most {errors[differs].max():.2g} standard errors"
    largest = relative[differs].max()
    return (
        f"{share}, by at most {largest:.2g} relative" if np.isfinite(largest) else f"{share}, some to or from nothing"
    )
