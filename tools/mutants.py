"""Runs mutmut on named or changed modules, and shows small faults that no quick test notices.

    python tools/mutants.py foulds2016/efficiency mechanisms/noise/laplace
    python tools/mutants.py --base origin/main --seconds 300

mutmut's settings are in pyproject.toml. This script adds the paths of the modules and of their tests. Results are in
mutants/.
"""

import argparse
import json
import math
import shutil
import signal
import sys
import time
from pathlib import Path

import quick
from mutmut.__main__ import cli
from mutmut.configuration import config

# Share of faults that tests have to notice, and largest number of examined modules of a branch.
SHARE, MOST = 0.8, 4


def named(name: str) -> list[Path]:
    """Return the modules of the named study, or the named module in src/privpost."""
    modules = sorted((quick.PACKAGE / "experiments" / name).glob("*.py")) or [quick.PACKAGE / f"{name}.py"]
    if not modules[0].is_file():
        sys.exit(f"STUDY={name}: no study, and no module below {quick.PACKAGE} such as mechanisms/noise/laplace")
    return modules


def tests_of(modules: list[Path]) -> list[str]:
    """Return pytest's arguments for the tests of some modules."""
    # Tests of studies are run for modules of studies alone.
    return [word for word in quick.tests_of(modules) if "experiments" not in word or quick.studies_of(modules)]


def too_few(stats: dict[str, int]) -> bool:
    """Print how many of the tried faults are noticed by tests, and return whether these are too few."""
    # For a sample of faults, two standard errors are allowed for chance.
    seen = sum(stats[how] for how in ("killed", "timeout", "segfault", "suspicious"))
    tried, tested = seen + stats["survived"], stats["total"] - stats["no_tests"] - stats["skipped"]
    print(f"Tests see {seen} of {tried} faults that were tried, of {tested}; `.venv/bin/mutmut show <name>` shows one.")
    return seen < SHARE * tried - (2 * math.sqrt(SHARE * (1 - SHARE) * tried) if tried < tested else 0)


def main() -> int:
    """Run mutmut, name the faults that no test notices, and return 1 if there are too many."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--base", default="main", help="without names: the modules that differ from where HEAD left it")
    parser.add_argument("--seconds", type=int, default=0, help="end after so many")
    given = parser.parse_args()
    modules = [path for name in given.names for path in named(name)]
    modules = modules or quick.modules_of(quick.changed(given.base))[:MOST]
    if not modules:
        print(f"no module of the package differs from {given.base}")
        return 0
    config().only_mutate = list(map(str, modules))
    config().pytest_add_cli_args_test_selection += tests_of(modules)
    shutil.rmtree("mutants", ignore_errors=True)
    # After an interrupt, mutmut stops and keeps its results.
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.alarm(given.seconds)
    end = time.monotonic() + (given.seconds or math.inf)
    try:
        cli(["run"], standalone_mode=False)
    except SystemExit:
        if time.monotonic() < end:
            raise
        print(f"no fault was tried: the tests take longer than {given.seconds} s")
        return 0
    for command in ("results", "export-cicd-stats"):
        cli([command], standalone_mode=False)
    return int(too_few(json.loads(Path("mutants/mutmut-cicd-stats.json").read_text())))


if __name__ == "__main__":
    sys.exit(main())
