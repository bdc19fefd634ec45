"""The developer's loop: the tests of what changed since the last commit, and one study at toy size."""

import ast
import re
import subprocess
import sys
from pathlib import Path

PACKAGE, TESTS, STUDIES = Path("src/privpost"), Path("tests/unit"), Path("conf/study")
EXPERIMENTS = PACKAGE / "experiments"
QUICKEST = "geumlek2017/rdp_curves"
NO_TEST = 5
# The most test files that are run for an edited study.
MOST = 4


def changed(base: str = "HEAD") -> list[Path]:
    """Return the files that differ from where this branch left a commit, those with most new lines first."""

    def git(*words: str) -> list[str]:
        return subprocess.run(["git", *words, "-z"], check=True, stdout=subprocess.PIPE, text=True).stdout.split("\0")

    lines = [line.split("\t") for line in git("diff", "--numstat", "--no-renames", "--merge-base", base) if line]
    sizes = {Path(path): int(new.replace("-", "0")) for new, _, path in lines}
    new = [Path(path) for path in git("ls-files", "--others", "--exclude-standard") if path]
    return [*new, *sorted((path for path in sizes if path.is_file()), key=lambda path: -sizes[path])]


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
    """Return how tests may name a module of the package: by its full name, or by a class from its package."""
    module = ".".join(("privpost", *path.relative_to(PACKAGE).with_suffix("").parts))
    packages = [module.rsplit(".", above)[0] for above in range(1, module.count(".") + 1)]
    return {module, *(f"{package}.{name}" for package in packages for name in classes(path))}


def all_studies() -> set[str]:
    """Return the names of all studies."""
    return {f"{path.parent.name}/{path.stem}" for path in STUDIES.glob("*/*.yaml")}


def of_studies(names: set[str]) -> list[str]:
    """Return a run of the tests of some studies: of the files that name one the `MOST` that name fewest others.

    Tests that are repeated for every study are run for these alone.
    """
    known = all_studies()
    mentioned = {test: imported(test) for test in sorted((TESTS / "experiments").rglob("test_*.py"))}
    naming = [str(test) for test, words in mentioned.items() if words & names]
    files = sorted(naming, key=lambda test: len(mentioned[Path(test)] & known))[:MOST]
    others = " or ".join(sorted(name for name in known if not any(name in own for own in names)))
    return [*files, "-k", f"not ({others})"] if files and others else files


def classes(path: Path) -> list[str]:
    """Return the classes that a module defines."""
    return re.findall(r"^class (\w+)", path.read_text(), re.MULTILINE)


def contracts(modules: list[Path]) -> list[list[str]]:
    """Return the runs of contract tests on some modules. These find their subjects by place, and import none."""
    runs = []
    for room in sorted({path.relative_to(PACKAGE).parts[0] for path in modules}):
        test = TESTS / room / f"test_{room}.py"
        names = [name for path in modules if path.relative_to(PACKAGE).parts[0] == room for name in classes(path)]
        if test.is_file() and names:
            runs.append([str(test), "-k", f"not {test.name} or {' or '.join(names)}"])
    return runs


def modules_of(paths: list[Path]) -> list[Path]:
    """Return the modules of the package among some files."""
    return [path for path in paths if path.suffix == ".py" and path.is_relative_to(PACKAGE)]


def studies_of(paths: list[Path]) -> set[str]:
    """Return the studies that some files belong to, and those that import one of them from their paper's folder."""
    own = {f"{path.parent.name}/{path.stem}" for path in paths if path.is_relative_to(STUDIES)}
    modules = [path for path in modules_of(paths) if EXPERIMENTS in path.parents]
    shared = {name for path in modules for name in known_as(path)}
    modules += [path for path in EXPERIMENTS.rglob("*.py") if imported(path) & shared]
    return (own | {"/".join(path.relative_to(EXPERIMENTS).parts[:2]) for path in modules}) & all_studies()


def runs_of(paths: list[Path]) -> list[list[str]]:
    """Return the runs of tests for some files: of those that import one, of studies, and of contracts."""
    modules = modules_of(paths)
    names = {name for path in modules if not studies_of([path]) for name in known_as(path)}
    of_classes = contracts(modules)
    apart = {run[0] for run in of_classes} - set(map(str, paths))
    tests = [str(test) for test in sorted(TESTS.rglob("test_*.py")) if test in paths or imported(test) & names]
    own = [test for test in tests if test not in apart]
    return [run for run in (own, of_studies(studies_of(paths)), *of_classes) if run]


def main() -> int:
    """Run the tests and the study; return the first exit status that is not 0, or `NO_TEST` if no test ran."""
    paths = changed()
    modules, runs = modules_of(paths), runs_of(paths)
    statuses = [subprocess.call([sys.executable, "-m", "pytest", "-q", "-x", *run]) for run in runs]
    if modules and not any(status != NO_TEST for status in statuses):
        print(f"No test ran for {', '.join(map(str, modules))}: nothing imports them, and no contract covers them.")
        return NO_TEST
    if not runs:
        print("No test ran: neither code nor tests differ from the last commit.", flush=True)
    study = min(studies_of(paths), default=QUICKEST)
    rebuild = ["privpost", "-m", f"study={study}", "scale=smoke", "fresh=true"]
    statuses.append(subprocess.call([sys.executable, "-m", *rebuild]))
    return next((status for status in statuses if status not in (0, NO_TEST)), 0)


if __name__ == "__main__":
    sys.exit(main())
