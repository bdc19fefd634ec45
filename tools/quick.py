"""The developer's loop: the tests of what changed since the last commit, and one study at toy size."""

import ast
import re
import subprocess
import sys
from pathlib import Path

PACKAGE, TESTS, STUDIES = Path("src/privpost"), Path("tests/unit"), Path("conf/study")
QUICKEST = "geumlek2017/rdp_curves"
NO_TEST = 5
# The most test files that are run for an edited study.
MOST = 4


def changed() -> list[Path]:
    """Return the files that differ from the last commit, new ones included."""
    command = ["git", "status", "--porcelain", "--untracked-files=all", "--no-renames", "-z"]
    status = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [path for path in (Path(line[3:]) for line in status.split("\0") if line) if path.is_file()]


def imported(test: Path) -> set[str]:
    """Return the modules that a test imports, and names of modules and classes of the package that it mentions."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(test.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {f"{node.module}.{alias.name}" for alias in node.names} | {str(node.module)}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            # Tests load studies by their names.
            names |= {node.value}
    return names


def known_as(path: Path) -> set[str]:
    """Return how tests may name a module of the package: by its full name, or by a class from a package around it."""
    parts = ("privpost", *path.relative_to(PACKAGE).with_suffix("").parts)
    around = [".".join(parts[:end]) for end in range(1, len(parts))]
    return {".".join(parts), *(f"{package}.{name}" for package in around for name in classes(path))}


def of_studies(names: set[str], known: set[str]) -> list[Path]:
    """Return the tests of some studies: of all that name one the `MOST` that name fewest others."""
    mentioned = {test: imported(test) for test in sorted((TESTS / "experiments").rglob("test_*.py"))}
    naming = [test for test, words in mentioned.items() if words & names]
    return sorted(naming, key=lambda test: len(mentioned[test] & known))[:MOST]


def classes(path: Path) -> list[str]:
    """Return the classes that a module defines."""
    return re.findall(r"^class (\w+)", path.read_text(), re.MULTILINE)


def contracts(modules: list[Path]) -> list[list[str]]:
    """Return the runs of contract tests. These find their subjects by place, and import none of them."""
    runs = []
    for room in sorted({path.relative_to(PACKAGE).parts[0] for path in modules}):
        test = TESTS / room / f"test_{room}.py"
        names = [name for path in modules if path.relative_to(PACKAGE).parts[0] == room for name in classes(path)]
        if test.is_file() and names:
            runs.append([str(test), "-k", " or ".join(names)])
    return runs


def main() -> int:
    """Run the tests and the study; return the first exit status that is not 0, or `NO_TEST` if no test ran."""
    paths = changed()
    modules = [path for path in paths if path.suffix == ".py" and path.is_relative_to(PACKAGE)]
    studies = {path.parent.name + "/" + path.stem for path in STUDIES.glob("*/*.yaml")}
    changed_studies = {f"{path.parent.name}/{path.stem}" for path in paths if path.is_relative_to(STUDIES)}
    changed_studies |= {"/".join(path.parts[-3:-1]) for path in modules} & studies
    of_no_study = [path for path in modules if "/".join(path.parts[-3:-1]) not in studies]
    names = {name for path in of_no_study for name in known_as(path)}
    tests = [test for test in sorted(TESTS.rglob("test_*.py")) if test in paths or imported(test) & names]
    tests += [test for test in of_studies(changed_studies, studies) if test not in tests]
    runs = ([list(map(str, tests))] if tests else []) + contracts(modules)
    statuses = [subprocess.call([sys.executable, "-m", "pytest", "-q", "-x", *run]) for run in runs]
    if modules and not any(status != NO_TEST for status in statuses):
        print(f"No test ran for {', '.join(map(str, modules))}: nothing imports them, and no contract covers them.")
        return NO_TEST
    if not runs:
        print("No test ran: neither code nor tests differ from the last commit.", flush=True)
    study = min(changed_studies, default=QUICKEST)
    rebuild = ["privpost", "-m", f"study={study}", "scale=smoke", "fresh=true"]
    statuses.append(subprocess.call([sys.executable, "-m", *rebuild]))
    return next((status for status in statuses if status not in (0, NO_TEST)), 0)


if __name__ == "__main__":
    sys.exit(main())
