"""Writes and reads a study's privacy ledger, a small file in results/ that shows what the study's cells charged."""

import hashlib
import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from privpost.lab.store import Result
from privpost.lab.study import Study

# The first six digits are equal on all types of CPU, and enough for any budget. Settings of mechanisms are not rounded,
# so that a mechanism rebuilt from its settings costs the same.
DIGITS = 6


def path_of(study: Study) -> Path | None:
    """Return the path of the study's built ledger, or else of the published ledger, or None if neither exists."""
    places = (study, study.published) if study.scale == "paper" else (study,)
    return next((place.ledger_path for place in places if place.ledger_path.is_file()), None)


def describe(study: Study, results: Iterable[Result]) -> str:
    """Return the text of a study's ledger.json, which has rows of `accounts` and rows of `mechanisms`.

    The kind of an account is its name up to the first slash. A row of `accounts` is about the accounts of one kind.
    Values that differ between accounts are given as [smallest, largest]. `data` names the real data set if all repeats
    of an account are about the same people, and is empty if each repeat draws new data. `published_epsilon` is the cost
    of publishing every repeat. A row of `mechanisms` has a mechanism's settings, cost, budget and kind of account.
    Mechanisms that differ only in numbers share a row. Its field `varied` has the values of each such number, from the
    cheapest mechanism to the dearest. Equal results give equal bytes.
    """
    groups: dict[tuple, list[dict]] = {}
    used: dict[tuple, dict[str, dict]] = {}
    for result in results:
        for row in result.record["ledger"]:
            budget = row["budget"]
            kind = row["account"].split("/")[0]
            key = (row["mechanism"], kind, row["notion"], budget["notion"], budget["order"])
            groups.setdefault(key, []).append({**row, "cell": result.record["digest"]})
            if row["settings"] is not None:
                mechanism = result.record["mechanisms"][row["settings"]]
                entry = {"kind": kind, "accounting": row["accounting"], "mechanism": mechanism, "budget": budget}
                entry |= {name: row[name] for name in ("notion", "epsilon", "order", "delta")}
                used.setdefault((*key, form_of(mechanism)), {})[json.dumps(entry, sort_keys=True)] = entry
    rows = [_row(key, group) for key, group in sorted(groups.items(), key=lambda item: str(item[0]))]
    folded = [_folded(group) for _, group in sorted(used.items(), key=lambda item: str(item[0]))]
    lists = {"accounts": rows, "mechanisms": folded}
    lines = (
        f'"{name}": [\n' + ",\n".join(json.dumps(row, sort_keys=True) for row in entries) + "\n]"
        for name, entries in lists.items()
    )
    return f'{{"study": "{study.name}", ' + ", ".join(lines) + "}\n"


def _folded(group: dict[str, dict]) -> dict:
    """Of rows that differ only in numbers, return the row with the smallest ε. Its `varied` lists these numbers."""
    ordered = [row for _, row in sorted(group.items(), key=lambda item: (float(item[1]["epsilon"]), item[0]))]
    columns = zip(*(dict(_leaves(row)).items() for row in ordered), strict=True)
    values = {column[0][0]: [value for _, value in column] for column in columns}
    return {**ordered[0], "varied": {path: at for path, at in values.items() if any(value != at[0] for value in at)}}


def _leaves(value, path: str = "") -> Iterable[tuple[str, Any]]:
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, item in items:
            yield from _leaves(item, f"{path}/{key}")
    else:
        yield path, value


def alike(first: Path, second: Path) -> bool:
    """Whether two ledgers are equal, except for the last digit of their numbers."""
    one, other = (dict(_leaves(json.loads(path.read_text("utf-8")))) for path in (first, second))
    return one.keys() == other.keys() and all(_near(value, other[path]) for path, value in one.items())


def _near(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=10.0 ** (1 - DIGITS))
    return one == other


def unfolded(row: dict) -> list[dict]:
    """Return the rows that `describe` merged into one row of `mechanisms`, in order of cost."""
    varied = row.get("varied", {})
    numbers = range(max(map(len, varied.values()), default=1))
    fixed = {key: value for key, value in row.items() if key != "varied"}
    return [_exchanged(fixed, {path: values[number] for path, values in varied.items()}) for number in numbers]


def _exchanged(value, leaves: dict[str, Any], path: str = ""):
    if isinstance(value, dict):
        return {key: _exchanged(item, leaves, f"{path}/{key}") for key, item in value.items()}
    if isinstance(value, list):
        return [_exchanged(item, leaves, f"{path}/{key}") for key, item in enumerate(value)]
    return leaves.get(path, value)


def form_of(value) -> str:
    """Return a mechanism's description (`described.describe`) as text, with "number" in place of each number."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{key}:{form_of(item)}" for key, item in sorted(value.items())) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(form_of, value)) + "]"
    return value if isinstance(value, str) and value != "inf" else "number"


def _row(key: tuple, group: list[dict]) -> dict[str, Any]:
    names = ("mechanism", "kind", "charged_notion", "notion", "order")
    ranges = {name: _range(row[name] for row in group) for name in ("releases", "repeats", "epsilon", "delta")}
    budgets = {f"budget_{name}": _range(row["budget"][name] for row in group) for name in ("epsilon", "delta")}
    return {
        **dict(zip(names, key, strict=True)),
        **ranges,
        **budgets,
        "accounts": len({(row["cell"], row["account"]) for row in group}),
        "data": sorted({row["data"] for row in group} - {None}),
        "published_epsilon": _range(row["published"]["epsilon"] for row in group),
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


def contents(studies: Iterable[Study]) -> dict[str, dict[str, list]]:
    """Return the existing ledgers of some studies, by the study's name, in the form that other studies read.

    Among mechanisms that differ only in numbers, `mechanisms` keeps the cheapest, the middle and the dearest. The
    key `alike` of a kept mechanism has all mechanisms of the group.
    """
    paths = {study.name: path_of(study) for study in studies}
    ledgers = {name: json.loads(path.read_text("utf-8")) for name, path in paths.items() if path}
    for ledger in ledgers.values():
        groups = [unfolded(row) for row in ledger["mechanisms"]]
        ledger["mechanisms"] = [
            {**alike[place], "alike": alike}
            for alike in groups
            for place in sorted({0, len(alike) // 2, len(alike) - 1})
        ]
    return ledgers


def digests(studies: Iterable[Study]) -> dict[str, str]:
    """Return a digest of each existing ledger of some studies. A key is "ledger of" and the study's name."""
    paths = {study.name: path_of(study) for study in studies}
    return {f"ledger of {name}": hashlib.sha256(p.read_bytes()).hexdigest()[:12] for name, p in paths.items() if p}


def read(study: Study, rows: str = "accounts") -> list[dict[str, Any]] | None:
    """Return the rows `accounts` or `mechanisms` of the study's ledger, or None if there is no ledger."""
    path = study.ledger_path
    return json.loads(path.read_text(encoding="utf-8")).get(rows, []) if path.is_file() else None
