"""No file and no function is longer than a reader can follow."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Lines, comments and docstrings included.
FILE, FUNCTION, TESTS = 400, 60, 500


def too_long(source: str, file: int, function: int | None = None) -> list[str]:
    """Return what has more lines than it may: the file, and functions by their names."""
    lines = {"the file": len(source.splitlines())} if len(source.splitlines()) > file else {}
    for node in ast.walk(ast.parse(source)) if function else ():
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = node.end_lineno - node.lineno + 1
            lines |= {node.name: length} if length > function else {}
    return [f"{name}: {length} lines" for name, length in lines.items()]


def test_files_and_functions_are_short():
    long = {path: too_long(path.read_text(encoding="utf-8"), FILE, FUNCTION) for path in ROOT.glob("src/**/*.py")}
    long |= {path: too_long(path.read_text(encoding="utf-8"), TESTS) for path in ROOT.glob("tests/**/*.py")}
    assert len(long) > 300
    assert {str(path.relative_to(ROOT)): found for path, found in long.items() if found} == {}


def test_a_long_file_and_a_long_function_are_found():
    assert too_long("x = 1\n" * 4, 4) == []
    assert too_long("x = 1\n" * 5, 4) == ["the file: 5 lines"]
    method = "class A:\n    def f(self):\n" + 3 * "        x = 1\n"
    assert too_long(method, 9, 4) == []
    assert too_long(method, 9, 3) == ["f: 4 lines"]
