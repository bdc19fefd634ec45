"""The lists of mistakes and of faults name tests that exist."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "validity.md").read_text(encoding="utf-8")
FAULTS = (ROOT / "docs" / "faults.md").read_text(encoding="utf-8")


def named(text: str) -> list[tuple[str, str]]:
    return sorted(set(re.findall(r"`(test_\w+\.py)::(test_\w+)`", text)))


@pytest.mark.parametrize("text", [TEXT, FAULTS], ids=["validity", "faults"])
def test_every_test_named_exists(text):
    found = {}
    for path in (ROOT / "tests").rglob("test_*.py"):
        tree = ast.parse(path.read_text())
        found[path.name] = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    missing = [f"{file}::{name}" for file, name in named(text) if name not in found.get(file, ())]
    assert not missing


def test_every_item_is_listed_with_what_prevents_it():
    rows = re.findall(r"^\| (\d+) \| ([^|]+) \| ([^|]+) \|$", TEXT, flags=re.M)
    assert [int(number) for number, _, _ in rows] == list(range(1, 22))
    assert all(mistake.strip() and stop.strip() for _, mistake, stop in rows)
    assert len(named(TEXT)) > 25


def test_every_fault_is_listed_with_what_happens_what_survives_and_a_test():
    rows = re.findall(r"^\| (.+) \|$", FAULTS, flags=re.M)
    rows = [row.split(" | ") for row in rows if not row.startswith(("fault |", "input |", "what differs |"))]
    assert {len(row) for row in rows} == {3, 4}
    assert all(cell.strip() for row in rows for cell in row)
    assert all(named(row[-1]) for row in rows)
