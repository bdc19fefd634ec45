"""No file, no function and no folder is larger than a reader can follow."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Lines, comments and docstrings included.
FILE, FUNCTION, TESTS = 400, 60, 500
# Files of code in one folder of the sources.
FOLDER = 20


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


def crowded(folder: Path, most: int) -> dict[str, int]:
    """Return the folders of code with more files than they may have, and how many they have."""
    counts = Counter(path.parent for path in folder.rglob("*") if path.suffix in (".py", ".pyi"))
    return {str(path.relative_to(folder)): count for path, count in counts.items() if count > most}


def test_folders_have_few_files():
    assert crowded(ROOT / "src", FOLDER) == {}


def test_a_crowded_folder_is_found(tmp_path):
    (tmp_path / "samplers/logistic").mkdir(parents=True)
    for name in ("samplers/a.py", "samplers/logistic/a.py", "samplers/logistic/b.py", "samplers/logistic/c.pyi"):
        (tmp_path / name).touch()
    assert crowded(tmp_path, 2) == {"samplers/logistic": 3}
    assert crowded(tmp_path, 3) == {}


def test_a_long_file_and_a_long_function_are_found():
    assert too_long("x = 1\n" * 4, 4) == []
    assert too_long("x = 1\n" * 5, 4) == ["the file: 5 lines"]
    method = "class A:\n    def f(self):\n" + 3 * "        x = 1\n"
    assert too_long(method, 9, 4) == []
    assert too_long(method, 9, 3) == ["f: 4 lines"]
