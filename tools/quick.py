"""Runs the tests that concern changes since the last commit, and one study at toy size."""

import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

PACKAGE, TESTS, STUDIES = Path("src/privpost"), Path("tests/unit"), Path("conf/study")
QUICKEST = "geumlek2017/rdp_curves"
NO_TEST = 5
# Largest number of test files that are run for an edited study.
MOST = 4


def changed(base: str = "HEAD") -> list[Path]:
    """Return new files, and files that differ from the commit at which this branch left `base`."""
    new = ["git", "ls-files", "--others", "--exclude-standard", "-z"]
    differing = ["git", "diff", "--name-only", "--no-renames", "--diff-filter=d", "--merge-base", base, "-z"]
    texts = [subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout for words in (new, differing)]
    return [Path(path) for text in texts for path in text.split("\0") if path]


def modules_of(paths: Sequence[Path]) -> list[Path]:
    """Return the modules of the package among some files."""
    return [path for path in paths if path.suffix == ".py" and path.is_relative_to(PACKAGE)]


def studies_of(paths: Sequence[Path]) -> list[str]:
    """Return the studies that some files concern."""
    # A file in the folder of a paper concerns all of the paper's studies that name this file.
    for shared in [path for path in paths if path.parent.parent == PACKAGE / "experiments"]:
        users = shared.parent.glob("*/*.py")
        paths = [*paths, *(user for user in users if re.search(rf"\b{shared.stem}\b", user.read_text()))]
    place = re.compile(rf"(?:{STUDIES}|{PACKAGE}/experiments)/(\w+/\w+)(?:\.yaml|/\w+\.py)")
    return sorted({found[1] for path in paths if (found := place.fullmatch(str(path)))})


def tests_of(paths: Sequence[Path]) -> list[str]:
    """Return pytest's arguments for the tests that concern some files.

    These are: tests among the files; tests that import one of the modules or a class in it; the contract tests of a
    module's package; and, for each study, the `MOST` test files that name the fewest other studies.
    """
    tests = {test: test.read_text() for test in sorted(TESTS.rglob("test_*.py"))}
    files, classes, only = [path for path in paths if path in tests], {}, []
    for path in (path for path in modules_of(paths) if not studies_of([path])):
        room, *inner = path.relative_to(PACKAGE).with_suffix("").parts
        package, _, name = ".".join(("privpost", room, *inner)).rpartition(".")
        defined = re.findall(r"^class (\w+)", path.read_text(), re.MULTILINE)
        importing = rf"{package}\.{name}\b|{package} import [\w\s,(]*\b{name}\b"
        importing += "".join(rf"|from privpost[\w.]* import [\w\s,(]*\b{one}\b" for one in defined)
        files += [test for test, text in tests.items() if re.search(importing, text)]
        classes.setdefault(TESTS / room / f"test_{room}.py", []).extend(defined)
    for contract, names in classes.items():
        if contract in tests and names and contract not in paths:
            files.append(contract)
            only.append(f"(not {contract.name} or {' or '.join(names)})")
    known, studies = studies_of([*STUDIES.glob("*/*.yaml")]), studies_of(paths)
    for study in studies:
        naming = (test for test, text in tests.items() if study in text and TESTS / "experiments" in test.parents)
        files += sorted(naming, key=lambda test: sum(other in tests[test] for other in known))[:MOST]
    if studies and (others := [study for study in known if study not in studies]):
        only.append(f"not ({' or '.join(others)})")
    return [*dict.fromkeys(map(str, files)), *(["-k", " and ".join(only)] if files and only else [])]


def main() -> int:
    """Run the tests and the study, and return the exit status. It is `NO_TEST` if no test covers a changed module."""
    paths = changed()
    modules, words = modules_of(paths), tests_of(paths)
    status = subprocess.call([sys.executable, "-m", "pytest", "-q", "-x", *words]) if words else NO_TEST
    if modules and status == NO_TEST:
        print(f"No test ran for {', '.join(map(str, modules))}: nothing imports them, and no contract covers them.")
        return NO_TEST
    if not words:
        print("No test ran: neither code nor tests differ from the last commit.", flush=True)
    study = min(studies_of(paths), default=QUICKEST)
    rebuild = ["privpost", "-m", f"study={study}", "scale=smoke", "fresh=true"]
    return subprocess.call([sys.executable, "-m", *rebuild]) or (status if status != NO_TEST else 0)


if __name__ == "__main__":
    sys.exit(main())
