"""A study's privacy ledger as a small shipped file, so that a reader needs no cell to see what was charged."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from privpost.pipeline.grid import Study
from privpost.pipeline.store import Result

# Six digits: below the differences between CPU types, above anything that matters in a budget.
DIGITS = 6


def path_of(study: Study) -> Path:
    """Return where the study's ledger is shipped."""
    return study.grid_path().with_name(study.name.split("/")[1] + ".ledger.json")


def describe(study: Study, results: Iterable[Result]) -> str:
    """Return the text of a study's .ledger.json: its cells' accounts, gathered by kind, notion and order.

    The kind of an account is its name up to the first slash. Each row has the number of accounts, the releases per
    account, ε (and δ) charged per release, the budget's ε, and the largest share of a budget that was spent; what
    differs between the accounts is given as [smallest, largest]. No times and no versions: the same results give the
    same bytes.
    """
    groups: dict[tuple, list[dict]] = {}
    for result in results:
        for row in result.record["ledger"]:
            budget = row["budget"]
            key = (row["account"].split("/")[0], row["notion"], budget["notion"], budget["order"])
            groups.setdefault(key, []).append({**row, "cell": result.record["digest"]})
    rows = [_row(key, group) for key, group in sorted(groups.items(), key=lambda item: str(item[0]))]
    lines = [json.dumps(row, sort_keys=True) for row in rows]
    return f'{{"study": "{study.name}", "accounts": [\n' + ",\n".join(lines) + "\n]}\n"


def _row(key: tuple, group: list[dict]) -> dict[str, Any]:
    kind, charged, notion, order = key
    return {
        "kind": kind,
        "charged_notion": charged,
        "notion": notion,
        "order": order,
        "accounts": len({(row["cell"], row["account"]) for row in group}),
        "releases": _range(row["releases"] for row in group),
        "epsilon": _range(row["epsilon"] for row in group),
        "delta": _range(row["delta"] for row in group),
        "budget_epsilon": _range(row["budget"]["epsilon"] for row in group),
        "budget_delta": _range(row["budget"]["delta"] for row in group),
        "largest_share_spent": _digits(max(_share(row) for row in group)),
    }


def _share(row: dict) -> float:
    spent, budget = float(row["spent"]["epsilon"]), float(row["budget"]["epsilon"])
    return 0.0 if spent == 0 else spent / budget if budget != float("inf") else 0.0


def _range(values: Iterable) -> list | None:
    numbers = [float(value) for value in values if value is not None]
    return [_digits(min(numbers)), _digits(max(numbers))] if numbers else None


def _digits(number: float) -> float | str:
    return "inf" if number == float("inf") else float(f"{number:.{DIGITS}g}")


def read(study: Study) -> list[dict[str, Any]] | None:
    """Return the rows of the shipped ledger, or None where a checkout has none."""
    path = path_of(study)
    return json.loads(path.read_text(encoding="utf-8"))["accounts"] if path.is_file() else None
