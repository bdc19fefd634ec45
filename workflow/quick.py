"""The developer's loop: tests that import what changed since the last commit, and one study at toy size."""

import ast
import re
import subprocess
import sys
from pathlib import Path

PACKAGE, TESTS, STUDIES = Path("src/privpost"), Path("tests/unit"), Path("conf/study")
QUICKEST = "geumlek2017/rdp_curves"


def changed() -> list[Path]:
    """Return the files that differ from the last commit, new ones included."""
    command = ["git", "status", "--porcelain", "--untracked-files=all", "--no-renames", "-z"]
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [path for path in (Path(line[3:]) for line in listed.split("\0") if line) if path.is_file()]


def imported(test: Path) -> set[str]:
    """Return every word of a test's imports: modules, packages and names."""
    nodes = [node for node in ast.walk(ast.parse(test.read_text())) if isinstance(node, ast.Import | ast.ImportFrom)]
    modules = [getattr(node, "module", None) or "" for node in nodes]
    return {word for name in [*modules, *(a.name for n in nodes for a in n.names)] for word in name.split(".")}


def main() -> int:
    """Run the tests and the study; returns the first exit status that is not 0."""
    paths = changed()
    modules = [path for path in paths if path.suffix == ".py" and path.is_relative_to(PACKAGE)]
    words = {word for path in modules for word in (path.stem, *re.findall(r"^class (\w+)", path.read_text(), re.M))}
    tests = [test for test in sorted(TESTS.rglob("test_*.py")) if test in paths or imported(test) & words]
    names = [f"{path.parent.name}/{path.stem}" for path in paths]
    study = next((name for name in names if (STUDIES / f"{name}.yaml").is_file()), QUICKEST)
    commands = [["pytest", "-q", "-x", *map(str, tests)]] * bool(tests)
    commands += [["privpost", "reproduce", study, "--scale", "smoke", "--behind"]]
    return next(filter(None, (subprocess.call([sys.executable, "-m", *words]) for words in commands)), 0)


if __name__ == "__main__":
    sys.exit(main())
