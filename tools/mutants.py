"""Mutation testing: small faults in a study or a mechanism, one at a time; does one of its quick tests fail?

    python tools/mutants.py foulds2016/efficiency mechanisms/laplace [--every 3] [--limit 5] [--of cost,calibrate]
    python tools/mutants.py --changed origin/main --seconds 120

A name is a study (its study.py and claims.py) or a module below src/privpost. The tests are those that import the
module or name the study, or a study that uses the module; outside of the experiments also the others of its room. None
takes more than `--limit` seconds. A fault meets the tests that run its function. A fault that none of them sees is
printed as it stands in the file. equivalent_mutants.txt lists the survivors that change nothing, each with the reason.
`--changed` takes the files that differ from where the branch left a commit, those with most new lines first;
`--seconds` tries faults for so long, in a random order that is the same every time.

Libraries (mutmut, cosmic-ray) start Python anew for each mutant, which here takes longer than the tests. This program
collects and runs the tests once, and forks that process for each fault, which gives the function its changed code.
"""

import argparse
import contextlib
import functools
import gc
import math
import multiprocessing
import os
import random
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import IO, Self

import pytest
from faults import mutants

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ROOT / "src"
PACKAGE = SOURCES / "privpost"
TESTS = ROOT / "tests" / "unit"
TURNS = ROOT / "tests" / "workflow" / "test_claims_turn.py"
EQUIVALENT = ROOT / "tools" / "equivalent_mutants.txt"
# Seconds that a mutant may take in addition to three times the tests' time.
SPARE = 10.0
# Processor seconds after which no more tests of a file are tried.
LONGEST = 90.0
# The fewest seconds that a file gets; it is skipped if less than half of them are left.
WORTH = 30.0
# The largest share of a file's seconds for choosing tests.
SHARE_OF_TESTS = 0.4
# Tests of all classes of a room, or of all studies.
CONTRACTS = {"test_gate_of_studies.py", "test_mechanisms.py", "test_models.py", "test_seeded_faults.py"}
CONTRACTS |= {"test_verdicts.py", TURNS.name}


def functions_in(code: CodeType) -> Iterator[CodeType]:
    """Yield the code of every function that a module's code defines."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from functions_in(constant)


def put_in_place(code: CodeType) -> None:
    """Give the functions of a loaded module the code of a changed one, and empty the caches of all functions."""
    new = {(changed.co_qualname, changed.co_firstlineno): changed for changed in functions_in(code)}
    for item in gc.get_objects():
        # Not isinstance: it asks the object, and a weak reference to a deleted object answers with an error.
        if type(item) is functools._lru_cache_wrapper:
            item.cache_clear()
        elif type(item) is FunctionType and item.__code__.co_filename == code.co_filename:
            key = item.__code__.co_qualname, item.__code__.co_firstlineno
            if key in new and new[key] != item.__code__:
                item.__code__ = new[key]


@contextlib.contextmanager
def printing() -> Iterator[IO[str]]:
    """Silence standard output, where Pytest writes, and yield a file that still prints there."""
    sys.stdout.flush()
    with os.fdopen(os.dup(1), "w") as printed, open(os.devnull, "w") as nothing:
        os.dup2(nothing.fileno(), 1)
        try:
            yield printed
        finally:
            os.dup2(printed.fileno(), 1)


def in_child(work: Callable[[], int], limit: float, end: float = math.inf) -> int:
    """Run a function of no arguments in a forked process and return its status.

    It is negative after `limit` processor seconds, after ten times as many by the clock, or at the time `end`.
    """
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(limit), math.ceil(limit)))
        silent = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silent, 1), os.dup2(silent, 2)
        status = 3
        try:
            status = int(work())
        finally:
            os._exit(status)
    end = min(end, time.monotonic() + 10 * limit)
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return -1


def without_comment(line: str) -> str:
    """Return a line up to its comment: of equivalent_mutants.txt it is the reason."""
    return line.partition(" # ")[0].rstrip()


def spent() -> float:
    """Return the processor seconds of this process and of the processes that it waited for."""
    return sum(os.times()[:4])


class Tests:
    """A plugin that runs a file's collected tests, and calls a function with itself in place of Pytest's own run.

    It notes which functions of the file each test runs, and how long the test takes.
    """

    def __init__(self, path: Path, subjects: list[str], limit: float, longest: float, then: Callable[[Self], None]):
        self.path, self.subjects, self.limit, self.longest, self.then = str(path), subjects, limit, longest, then
        self.items, self.reached, self.took = [], {}, {}

    def pytest_collection_modifyitems(self, items):
        # Contract tests run on all subjects; only those about these subjects count.
        plain = [item for item in items if item.path.name not in CONTRACTS]
        mine = [item for item in items if any(name in item.nodeid for name in self.subjects)]
        # Tests on falsified tables see most faults of claims: they come first, as time may be short.
        items[:] = dict.fromkeys([item for item in mine if item.path == TURNS] + plain + mine)

    def pytest_runtestloop(self, session):
        end = spent() + self.longest
        for item in session.items:
            if spent() > end:
                break
            if self.passes(item) and self.reached[item] and self.took[item] <= self.limit:
                self.items.append(item)
        self.items.sort(key=self.took.__getitem__)
        self.leave_out_failing()
        self.then(self)
        return True

    def leave_out_failing(self) -> None:
        """Leave out tests that fail in a fork without a fault, since others left something behind: they see any."""
        unchanged = compile(Path(self.path).read_text(encoding="utf-8"), self.path, "exec")
        limit, place = SPARE + 3 * sum(self.took[item] for item in self.items), multiprocessing.Value("i", 0)

        def work() -> int:
            put_in_place(unchanged)
            for place.value, item in enumerate(self.items):
                if self.run([item]):
                    return 1
            return 0

        while self.items and in_child(work, limit):
            del self.items[place.value]

    def passes(self, item) -> bool:
        """Return whether a test passes twice. Only the second run is timed: the first may set things up."""
        functions: set[str] = set()

        def note(frame: FrameType, event: str, argument: object) -> None:
            if event == "call" and frame.f_code.co_filename == self.path:
                functions.add(frame.f_code.co_name)

        sys.setprofile(note)
        try:
            status = self.run([item])
        finally:
            sys.setprofile(None)
        self.reached[item], start = functions, spent()
        if status or not functions:
            return False
        status, self.took[item] = self.run([item]), spent() - start
        return not status

    def run(self, items) -> int:
        """Run tests until one fails; returns the number of failures."""
        for item in items:
            session = item.session
            before = session.testsfailed
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
            if session.testsfailed > before:
                return 1
        return 0

    def of(self, function: str) -> list:
        """Return the tests that run a function, the quickest first."""
        return [item for item in self.items if function in self.reached[item]]


def tests_of(path: Path, study: str | None) -> list[str]:
    """Return the tests of a file, the most telling first.

    For a study: the tests on falsified tables (claims only), then the tests that name it, of claims those at their
    limits first. For another module of the experiments: the tests that name it or a study that uses it. For others: the
    room's contract tests, tests of the room that import it, tests anywhere that import one of its classes, the room's
    others.
    """

    def naming(words: str, tests: list[Path]) -> list[Path]:
        return [test for test in tests if re.search(words, test.read_text(encoding="utf-8"))]

    if PACKAGE / "experiments" in path.parents:
        named = [f"{each}|{each.replace('/', '.')}\\b|{each.replace('/', ' import .*')}\\b" for each in users(path)]
        own = [] if study else [rf"{path.parent.name}(\.| import .*)\b{path.stem}\b"]
        tests = naming("|".join(own + named) or "no study", sorted((TESTS / "experiments").rglob("test_*.py")))
        # Tests that recompute cells see most faults, and of claims those at their limits: they come first, as time may
        # be short.
        mine = naming("|".join(own) or "no module", tests)
        telling = "limits" if path.name == "claims.py" else "recomputed"
        tests = sorted(tests, key=lambda test: (telling not in test.name, test not in mine))
        return list(map(str, [TURNS] * (study is not None and path.name == "claims.py") + tests))
    defined = re.findall(r"^(?:class|def) (\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    room = TESTS.joinpath(*path.relative_to(PACKAGE).parts[:-1][:1])
    classes = "|".join(name for name in defined if name[0].isupper()) or "no class"
    tests = [test for test in [room / f"test_{room.name}.py"] if test.is_file()]
    imports, names = r"import (?:\([^)]*|[^\n]*)\b", "|".join([path.stem, *defined])
    tests += naming(rf"{imports}({names})\b", sorted(room.rglob("test_*.py")))
    tests += naming(rf"{imports}({classes})\b", sorted(TESTS.rglob("test_*.py")))
    tests += sorted(room.rglob("test_*.py"))
    return list(dict.fromkeys(map(str, tests)))


def users(path: Path) -> list[str]:
    """Return the study that a file belongs to, or the studies that use a module of the experiments, directly or not."""
    texts = {other: other.read_text(encoding="utf-8") for other in (PACKAGE / "experiments").rglob("*.py")}
    studies, new = set(), {path}
    while new:
        studies |= {study_of(each) for each in new} - {None}
        imports = [
            rf"from {'.'.join(each.parent.relative_to(SOURCES).parts)}(\.| import (\([^)]*|[^\n]*)\b){each.stem}\b"
            for each in new
            if study_of(each) is None
        ]
        new = {other for other, text in texts.items() if imports and re.search("|".join(imports), text)}
        for other in new:
            texts.pop(other)
    return sorted(studies)


def heirs(names: list[str]) -> list[str]:
    """Return classes and their subclasses, whose contract tests cover them too."""
    classes = [re.findall(r"^class (\w+)\(([^)]*)\)", path.read_text(), re.MULTILINE) for path in PACKAGE.rglob("*.py")]
    bases = {name: set(re.findall(r"\w+", of)) for pairs in classes for name, of in pairs}
    new = set(names)
    while more := {name for name, of in bases.items() if of & new} - new:
        new |= more
    return sorted(new)


def examined(path: Path, study: str | None, given: argparse.Namespace, seconds: float, equivalent: set[str]) -> tuple:
    """Return the numbers of tried, killed and equivalent mutants, and print the survivors."""
    end, counts = time.monotonic() + seconds, [0, 0, 0]
    source = path.read_text(encoding="utf-8")
    subjects = [study] if study else heirs(re.findall(r"^class (\w+)", source, re.MULTILINE))
    of = [word for word in given.of.split(",") if word]
    numbers = list(range(0, sum(1 for _ in mutants(source, of)), given.every))
    if math.isfinite(seconds):
        random.Random(0).shuffle(numbers)
    lines, compiled = [line.strip() for line in source.splitlines()], {}
    for number, (place, change, tree) in enumerate(mutants(source, of)):
        if number % given.every == 0:
            compiled[number] = place, change, compile(tree, str(path), "exec")

    def attack(tests: Tests) -> None:
        print(f"{path.relative_to(ROOT)}: {len(numbers)} faults, {len(tests.items)} tests in "
              f"{sum(tests.took[item] for item in tests.items):.1f} s", file=printed, flush=True)  # fmt: skip
        for place, change, code in (compiled[number] for number in numbers):
            if time.monotonic() > end:
                return
            line, function = place.split()
            if (
                without_comment(f"{path.relative_to(ROOT)} {function}: {change} in {lines[int(line) - 1]}")
                in equivalent
            ):
                counts[2] += 1
                continue
            items = tests.of(function)

            def work(code=code, items=items):
                put_in_place(code)
                return tests.run(items)

            took = sum(tests.took[item] for item in items)
            status = in_child(work, SPARE + 3 * took, end) if items else 0
            if status < 0 and time.monotonic() > end:
                return
            counts[0] += 1
            counts[1] += status != 0
            if status == 0:
                print(f"  {place}: {change}{'' if items else ' (no test runs it)'}", file=printed, flush=True)

    files = tests_of(path, study)
    with printing() as printed:
        tests = Tests(path, subjects, given.limit, min(LONGEST, SHARE_OF_TESTS * seconds), attack)
        if files:
            pytest.main(["-q", "-p", "no:cacheprovider", *files], plugins=[tests])
    return tuple(counts)


def changed(base: str) -> list[Path] | None:
    """Return the package's modules that differ from where this branch left a commit, those with most new lines first.

    None if there is nothing to compare with, as in a clone without history.
    """

    def git(*words: str) -> str:
        done = subprocess.run(["git", *words], capture_output=True, text=True, cwd=ROOT, check=False)
        return done.stdout.strip() if done.returncode == 0 else ""

    start, head = git("merge-base", base, "HEAD"), git("rev-parse", "HEAD")
    if start in ("", head):
        # On the default branch, or where it is unknown: what the last commit changed.
        start = git("rev-parse", "--verify", "--quiet", "HEAD~1")
    if not start:
        return None
    lines = git("diff", "--numstat", "--no-renames", start, "--", str(PACKAGE)).splitlines()
    sizes = {ROOT / path: int(new) for new, _, path in (line.split("\t") for line in lines) if path.endswith(".py")}
    return sorted((path for path in sizes if path.is_file()), key=lambda path: -sizes[path])


def study_of(path: Path) -> str | None:
    """Return the study that a file belongs to as study.py or claims.py, or None."""
    within = path.name in ("study.py", "claims.py") and (path.parent / "study.py").is_file()
    return "/".join(path.parts[-3:-1]) if within else None


def named(names: list[str]) -> list[Path]:
    """Return the files of studies and modules."""
    paths = []
    for name in names:
        folder = PACKAGE / "experiments" / name
        study = (folder / "study.py").is_file()
        paths += [folder / "study.py", folder / "claims.py"] if study else [PACKAGE / f"{name}.py"]
    return [path for path in paths if path.is_file()]


def too_low(total: int, killed: int, sampled: bool) -> bool:
    """Whether fewer than nine of ten mutants are killed; in a sample, fewer by more than two standard errors."""
    return killed < 0.9 * total - (2 * math.sqrt(0.09 * total) if sampled else 0)


def main() -> int:
    """Examine what is named or has changed; return 1 if fewer than nine of ten mutants of a file are killed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--changed", metavar="COMMIT", help="examine the files that differ from where HEAD left it")
    parser.add_argument("--every", type=int, default=1, help="try only every n-th mutant")
    parser.add_argument("--of", default="", help="functions to change, with commas between them")
    parser.add_argument("--limit", type=float, default=5.0, help="seconds that a test may take")
    parser.add_argument("--seconds", type=float, default=math.inf, help="seconds that all may take")
    given = parser.parse_args()
    end = time.monotonic() + given.seconds
    paths = changed(given.changed) if given.changed else named(given.names)
    if not paths:
        print("no history to compare with" if paths is None else "no module of the package to examine")
        return 0
    os.chdir(ROOT)
    sys.path.insert(0, str(SOURCES))
    lines = EQUIVALENT.read_text(encoding="utf-8").splitlines() if EQUIVALENT.is_file() else []
    equivalent = {without_comment(line) for line in lines}
    rows = []
    for index, path in enumerate(paths):
        left = end - time.monotonic()
        if left < WORTH / 2:
            print(f"no time for {', '.join(str(path.relative_to(ROOT)) for path in paths[index:])}")
            break
        seconds = min(left, max(WORTH, left / (len(paths) - index)))
        rows.append((path, *examined(path, study_of(path), given, seconds, equivalent)))
    print(f"\n{'file':60} mutants  killed  equivalent  score")
    for path, total, killed, same in rows:
        share = f"{killed / total:.0%}" if total else "none tried"
        print(f"{path.relative_to(PACKAGE)!s:60} {total:7} {killed:7} {same:11} {share:>6}")
    return int(any(too_low(total, killed, math.isfinite(given.seconds)) for _, total, killed, _ in rows))


if __name__ == "__main__":
    sys.exit(main())
