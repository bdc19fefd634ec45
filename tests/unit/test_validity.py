"""The list of mistakes names tests that exist."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "validity.md").read_text(encoding="utf-8")


def named(text: str) -> list[tuple[str, str]]:
    return sorted(set(re.findall(r"`(test_\w+\.py)::(test_\w+)`", text)))


def test_every_test_named_exists():
    found = {}
    for path in (ROOT / "tests").rglob("test_*.py"):
        tree = ast.parse(path.read_text())
        found[path.name] = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    missing = [f"{file}::{name}" for file, name in named(TEXT) if name not in found.get(file, ())]
    assert not missing


def test_every_item_is_listed_with_what_prevents_it():
    rows = re.findall(r"^\| (\d+) \| ([^|]+) \| ([^|]+) \|$", TEXT, flags=re.M)
    assert [int(number) for number, _, _ in rows] == list(range(1, 22))
    assert all(mistake.strip() and stop.strip() for _, mistake, stop in rows)
    assert len(named(TEXT)) > 25
