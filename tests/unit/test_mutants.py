"""`make mutants`: which faults are made, and that a changed module is the one that runs."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = '''
def smaller(a, b):
    """Return the smaller one."""
    if a < b:
        return a
    raise ValueError(a + b)


def divergence(p, q):
    return sum(kl(p, q)) * 2
'''


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("mutants", ROOT / "workflow/mutants.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_fault_is_made_once_and_texts_of_errors_are_left_alone(tool):
    changes = [f"{place}: {change}" for place, change, _ in tool.mutants(SOURCE)]
    assert sorted(changes) == [
        "10 divergence: 2 → 3",
        "10 divergence: kl(p, q) → kl(q, p)",
        "10 divergence: sum(kl(p, q)) * 2 → sum(kl(p, q)) / 2",
        "10 divergence: sum(kl(p, q)) → max(kl(p, q))",
        "4 smaller: a < b → a <= b",
    ]


def test_a_fault_is_in_the_module_that_is_imported_and_in_that_process_alone(tool, tmp_path, monkeypatch):
    path = tmp_path / "mutated_module.py"
    path.write_text("def largest():\n    return max(1, 2)\n")
    monkeypatch.syspath_prepend(tmp_path)
    # The tree has its fault until the next one is asked for.
    tree = next(tree for _, change, tree in tool.mutants(path.read_text()) if change == "max(1, 2) → min(1, 2)")

    def found():
        sys.meta_path.insert(0, tool.Changed("mutated_module", path, tree))
        return importlib.import_module("mutated_module").largest()

    assert tool.in_child(found, 20) == 1
    assert importlib.import_module("mutated_module").largest() == 2


def test_a_mutant_that_hangs_is_ended(tool):
    def forever():
        while True:
            pass

    assert tool.in_child(forever, 0.2) == -1
