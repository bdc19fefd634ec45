"""What docs/performance.md shows: the benchmarks against their bars, and growth."""

from collections.abc import Mapping
from pathlib import Path

from privpost.evaluation.rows import markdown
from privpost.lab.plan import Plan

COLUMNS = ("what", "against", "ratio", "bar", "met", "ours", "theirs", "unit", "machine", "note")
ABSENT = "Not measured in this checkout: `make bench`."


def values(plan: Plan) -> Mapping[str, str]:
    """Return the tables by their placeholders."""
    return {
        "performance/benchmarks": benchmarks(plan.root / "benchmarks.csv"),
        "performance/growth": growth(plan.root / "growth.csv"),
    }


def benchmarks(path: Path) -> str:
    """Return the benchmarks as a table: ratio, bar, verdict, and the absolute values behind the ratio."""
    import pandas as pd

    if not path.is_file():
        return ABSENT
    table = pd.read_csv(path, keep_default_na=False)
    if lacking := [name for name in COLUMNS if name not in table]:
        return f"{path} is of an earlier layout, without {', '.join(lacking)}: `make bench` writes it anew."
    rows = []
    for row in table.itertuples():
        verdict = {"True": "met", "False": "missed"}.get(str(row.met), "not measured" if row.bar else "no bar")
        behind = f"{row.ours}, {row.theirs} {row.unit}" if row.ours != "" and row.theirs != "" else ""
        bar = row.bar.replace(">=", "≥").replace("<=", "≤")
        ratio = f"{float(row.ratio):.3g}" if row.ratio != "" else ""
        rows.append((row.what, row.against, ratio, bar, verdict, behind, row.note))
    machines = "; ".join(dict.fromkeys(table.machine[table.machine != ""]))
    head = ("what", "against", "ratio", "bar", "", "ours, theirs", "note")
    return markdown(head, rows) + f"\n\nMachine: {machines}."


def growth(path: Path) -> str:
    """Return the fitted exponents as a table."""
    import pandas as pd

    if not path.is_file():
        return ABSENT
    table = pd.read_csv(path)
    rows = []
    for (axis, what), curve in table.groupby(["axis", "what"], sort=False):
        fitted = curve[curve.fitted]
        sizes = f"{fitted['size'].min():g} to {fitted['size'].max():g}"
        rows.append((axis, what, sizes, f"{curve.exponent.iloc[0]:.2f}"))
    return markdown(("axis", "what is timed", "sizes", "exponent"), rows)
