"""Mutation testing: small faults in a study or a mechanism, one at a time; does one of its quick tests fail?

    python workflow/mutants.py foulds2016/efficiency mechanisms/laplace [--every 3] [--limit 5] [--of cost,calibrate]
    python workflow/mutants.py --changed origin/main --seconds 120

A name is a study (its study.py and claims.py) or a module below src/privpost. The tests are those that import the
module or name the study, and of these the ones that take at most `--limit` seconds. A fault that none of them sees is
printed as it stands in the file. Survivors that change nothing stand in equivalent_mutants.txt, with the reason.
With `--changed` the files are those that differ from where the branch left a commit, those with most new lines first;
with `--seconds` faults are tried in a random order, the same every time, for so long.

Libraries (mutmut, cosmic-ray) start Python anew for each mutant, which takes longer here than the tests do. This one
forks a process that has numpy, scipy and pandas already, gives it the changed module, and leaves the files alone.
"""

import argparse
import ast
import copy
import importlib.abc
import importlib.util
import math
import os
import random
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import CodeType

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCES, TESTS, EQUIVALENT = ROOT / "src", ROOT / "tests" / "unit", ROOT / "workflow" / "equivalent_mutants.txt"
PACKAGE, TURNS = SOURCES / "privpost", ROOT / "tests" / "workflow" / "test_claims_turn.py"
# What a mutant may take beside twice the time of the tests, and what is imported before any is made.
SPARE = 10.0
# All tests of a file are tried for so long at most.
LONGEST = 60.0
# What a file gets of a limited time at least, if half of that is left, and the share that choosing tests may take.
WORTH, SHARE_OF_TESTS = 30.0, 0.4
# No fault is tried in less.
QUICKEST = 0.1
# Tests of all classes of a room, or of all studies.
CONTRACTS = {"test_gate_of_studies.py", "test_mechanisms.py", "test_models.py", "test_seeded_faults.py"}
CONTRACTS |= {"test_verdicts.py", TURNS.name}
HEAVY = ("numpy", "scipy.stats", "scipy.optimize", "pandas", "hypothesis", "yaml", "mpmath", "hydra", "numba")
# Instances of the contract tests and words: to change them is no fault.
SPARED = {"examples", "__repr__", "__post_init__", "name", "recorded", "options"}
OPERATORS = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult}
OPERATORS |= {ast.FloorDiv: ast.Div, ast.MatMult: ast.Add, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd}
COMPARISONS = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq}
COMPARISONS |= {ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In}
NAMES = {"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum", "log": "log1p", "exp": "expm1"}
NAMES |= {"any": "all", "all": "any", "floor": "ceil", "ceil": "floor", "sum": "max", "mean": "max", "abs": "negative"}


def variants(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the faults that a node can have."""
    made = copy.deepcopy(node)
    if isinstance(made, ast.BinOp) and type(made.op) in OPERATORS:
        made.op = OPERATORS[type(made.op)]()
        yield made
    elif isinstance(made, ast.Compare) and type(made.ops[0]) in COMPARISONS:
        made.ops[0] = COMPARISONS[type(made.ops[0])]()
        yield made
    elif isinstance(made, ast.BoolOp):
        made.op = ast.Or() if isinstance(made.op, ast.And) else ast.And()
        yield made
    elif isinstance(made, ast.UnaryOp):
        yield made.operand
    elif isinstance(made, ast.Constant) and type(made.value) is bool:
        yield ast.Constant(not made.value)
    elif isinstance(made, ast.Constant) and type(made.value) in (int, float):
        yield ast.Constant(made.value + 1)
    elif isinstance(made, ast.IfExp):
        yield made.body
        yield made.orelse
    elif isinstance(made, ast.AugAssign) and type(made.op) in OPERATORS:
        made.op = OPERATORS[type(made.op)]()
        yield made
    elif isinstance(made, ast.Call):
        own = made.func
        name = own.attr if isinstance(own, ast.Attribute) else getattr(own, "id", "")
        if name in NAMES:
            setattr(own, "attr" if isinstance(own, ast.Attribute) else "id", NAMES[name])
            yield made
        elif len(made.args) > 1 and not any(isinstance(each, ast.Starred) for each in made.args[:2]):
            # Two arguments change places, as those of a divergence.
            made.args[:2] = made.args[1::-1]
            yield made


def places(tree: ast.Module) -> Iterator[tuple[str, ast.AST, str, int | None]]:
    """Yield the function, parent, field and index of every expression or statement that may get a fault."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef) and function.name not in SPARED:
            for statement in function.body:
                yield from _within(function.name, statement)


def _within(name: str, parent: ast.AST) -> Iterator[tuple[str, ast.AST, str, int | None]]:
    # Errors, warnings, annotations and texts are left alone, and functions within functions have their own turn. That
    # lists are of one length is no arithmetic.
    if isinstance(parent, ast.Raise | ast.Assert | ast.FunctionDef | ast.JoinedStr | ast.Import | ast.ImportFrom):
        return
    if isinstance(parent, ast.keyword) and parent.arg == "strict":
        return
    for field, value in ast.iter_fields(parent):
        if field in ("annotation", "returns"):
            continue
        for index, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if isinstance(child, ast.AST):
                yield name, parent, field, index
                yield from _within(name, child)


def mutants(source: str, of: Iterable[str] = ()) -> Iterator[tuple[str, str, ast.Module]]:
    """Yield place, change and syntax tree of every mutant of a module, or of those in functions with certain names. The
    tree has its fault until the next one is asked for."""
    tree = ast.parse(source)
    for name, parent, field, index in places(tree):
        if of and name not in of:
            continue
        held = getattr(parent, field)
        node = held if index is None else held[index]
        for changed in variants(node):
            ast.copy_location(changed, node)
            if index is None:
                setattr(parent, field, changed)
            else:
                held[index] = changed
            line = getattr(node, "lineno", getattr(parent, "lineno", 0))
            yield f"{line} {name}", f"{ast.unparse(node)} → {ast.unparse(changed)}", ast.fix_missing_locations(tree)
            if index is None:
                setattr(parent, field, node)
            else:
                held[index] = node


class Changed(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports one module from code that is given."""

    def __init__(self, name: str, path: Path, code: CodeType):
        self.name, self.path, self.code = name, path, code

    def find_spec(self, name, path=None, target=None):
        return importlib.util.spec_from_file_location(name, self.path, loader=self) if name == self.name else None

    def exec_module(self, module):
        exec(self.code, module.__dict__)


def spent() -> float:
    """Return the seconds that this process and those that it waited for have had of the processor."""
    return sum(os.times()[:4])


class Times:
    """A plugin that notes what each part of a test took, with its id; failures take for ever. It ends the tests after
    a while. All of it is time of the processor, as other work may slow tests down."""

    def __init__(self, notes: Path, subjects: list[str], longest: float):
        self.notes, self.subjects, self.end, self.last = notes, subjects, spent() + longest, spent()

    def pytest_collection_modifyitems(self, items):
        # Contracts run on all subjects: those of others are left out.
        every = [item for item in items if item.path.name not in CONTRACTS]
        items[:] = every + [item for item in items if any(name in item.nodeid for name in self.subjects)]
        items[:] = list(dict.fromkeys(items))

    def pytest_runtest_setup(self, item):
        if spent() > self.end:
            item.session.shouldstop = "the tests take too long"

    def pytest_runtest_logstart(self):
        self.last = spent()

    def pytest_runtest_logreport(self, report):
        took, self.last = spent() - self.last if report.outcome != "failed" else math.inf, spent()
        with self.notes.open("a", encoding="utf-8") as file:
            file.write(f"{took}\t{report.nodeid}\n")


def in_child(work, limit: float, end: float = math.inf) -> int:
    """Run a function of no arguments in a forked process; returns its status, negative after so many seconds of
    the processor or ten times as many of the clock, or when `end` has come."""
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
        time.sleep(0.02)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return -1


def tests_of(path: Path, study: str | None) -> list[str]:
    """Return the tests that name a study, for its claims before them those on falsified tables. Of a module: the tests
    of its own room that import it or what it defines, and the contract tests of that room, which find their subjects by
    place; then those of other rooms that import one of its classes.
    """

    def naming(words: str, tests: list[Path]) -> list[Path]:
        return [test for test in tests if re.search(words, test.read_text(encoding="utf-8"))]

    if study is not None:
        paper, own = study.split("/")
        named = rf"{study}|{paper}\.{own}\b|{paper} import .*\b{own}\b"
        # Recomputed cells see most: they come first where time is short.
        every = sorted(
            (TESTS / "experiments").rglob("test_*.py"), key=lambda test: ("recomputed" not in test.name, test)
        )
        return list(map(str, [TURNS] * (path.name == "claims.py") + naming(named, every)))
    defined = re.findall(r"^(?:class|def) (\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    room = TESTS.joinpath(*path.relative_to(PACKAGE).parts[:-1][:1])
    classes = "|".join(name for name in defined if name[0].isupper()) or "no class"
    tests = [test for test in [room / f"test_{room.name}.py"] if test.is_file()]
    imports, every = r"import (?:\([^)]*|[^\n]*)\b", "|".join([path.stem, *defined])
    tests += naming(rf"{imports}({every})\b", sorted(room.rglob("test_*.py")))
    tests += naming(rf"{imports}({classes})\b", sorted(TESTS.rglob("test_*.py")))
    return list(dict.fromkeys(map(str, tests)))


def heirs(names: list[str]) -> list[str]:
    """Return classes and those that inherit from them, whose contract tests are theirs too."""
    every = [re.findall(r"^class (\w+)\(([^)]*)\)", path.read_text(), re.MULTILINE) for path in PACKAGE.rglob("*.py")]
    bases = {name: set(re.findall(r"\w+", of)) for found in every for name, of in found}
    new = set(names)
    while more := {name for name, of in bases.items() if of & new} - new:
        new |= more
    return sorted(new)


def quick_tests(files: list[str], subjects: list[str], limit: float, seconds: float) -> tuple[list[str], float]:
    """Return the tests that pass within the limit, the quickest first, and the time that they take together."""
    if not files:
        return [], 0.0
    with tempfile.TemporaryDirectory() as folder:
        notes = Path(folder) / "taken"
        notes.write_text("")
        times, end = Times(notes, subjects, LONGEST), time.monotonic() + seconds
        in_child(lambda: pytest.main(["-q", "-p", "no:cacheprovider", *files], plugins=[times]), LONGEST + SPARE, end)
        lines = notes.read_text(encoding="utf-8").splitlines()
    taken: dict[str, float] = {}
    for took, test in (line.split("\t") for line in lines):
        taken[test] = taken.get(test, 0.0) + float(took)
    quick = {test: took for test, took in taken.items() if took <= limit}
    return sorted(quick, key=quick.__getitem__), sum(quick.values())


def examined(path: Path, study: str | None, given: argparse.Namespace, seconds: float, equivalent: set[str]) -> tuple:
    """Return the numbers of mutants, of killed and of equivalent ones, and print the survivors."""
    end = time.monotonic() + seconds
    name = ".".join(path.relative_to(SOURCES).with_suffix("").parts)
    source = path.read_text(encoding="utf-8")
    subjects = [study] if study else heirs(re.findall(r"^class (\w+)", source, re.MULTILINE))
    tests, took = quick_tests(tests_of(path, study), subjects, given.limit, SHARE_OF_TESTS * seconds)
    of = [word for word in given.of.split(",") if word]
    numbers = range(0, sum(1 for _ in mutants(source, of)), given.every)
    print(f"{path.relative_to(ROOT)}: {len(numbers)} faults, {len(tests)} tests in {took:.1f} s", flush=True)
    if math.isfinite(seconds):
        numbers = random.Random(0).sample(numbers, min(len(numbers), int(seconds / QUICKEST)))
    chosen = set(numbers)
    made = {
        number: (place, change, compile(tree, str(path), "exec"))
        for number, (place, change, tree) in enumerate(mutants(source, of))
        if number in chosen
    }
    total = killed = same = 0
    lines = source.splitlines()
    for place, change, code in (made[number] for number in numbers):
        if time.monotonic() > end:
            break
        line, function = place.split()
        if f"{path.relative_to(ROOT)} {function}: {change} in {lines[int(line) - 1].strip()}" in equivalent:
            same += 1
            continue

        def work(code=code):
            sys.meta_path.insert(0, Changed(name, path, code))
            return pytest.main(["-x", "-q", "-p", "no:cacheprovider", *tests])

        status = in_child(work, SPARE + 3 * took, end) if tests else 0
        if status < 0 and time.monotonic() > end:
            break
        total += 1
        if status == 0:
            print(f"  {place}: {change}", flush=True)
        else:
            killed += 1
    return total, killed, same


def changed(base: str) -> list[Path] | None:
    """Return the package's modules that differ from where this branch left a commit, those with most new lines first;
    None where there is nothing to compare with, as in a clone without history."""

    def git(*words: str) -> str:
        done = subprocess.run(["git", *words], capture_output=True, text=True, cwd=ROOT, check=False)
        return done.stdout.strip() if done.returncode == 0 else ""

    start, head = git("merge-base", base, "HEAD"), git("rev-parse", "HEAD")
    if start in ("", head):
        # On the default branch itself, or where it is not known: what the last commit changed.
        start = git("rev-parse", "--verify", "--quiet", "HEAD~1")
    if not start:
        return None
    lines = git("diff", "--numstat", "--no-renames", start, "--", str(PACKAGE)).splitlines()
    sizes = {ROOT / path: int(new) for new, _, path in (line.split("\t") for line in lines) if path.endswith(".py")}
    return sorted((path for path in sizes if path.is_file()), key=lambda path: -sizes[path])


def study_of(path: Path) -> str | None:
    """Return the study that a file is the arithmetic or the claims of."""
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
    """Whether less than nine of ten mutants are killed, in a sample by more than two standard errors."""
    return killed < 0.9 * total - (2 * math.sqrt(0.09 * total) if sampled else 0)


def main() -> int:
    """Examine what is named or has changed; returns 1 where less than nine of ten mutants are killed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--changed", metavar="COMMIT", help="examine the files that differ from where HEAD left it")
    parser.add_argument("--every", type=int, default=1, help="take every so manieth mutant only")
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
    for module in HEAVY:
        importlib.import_module(module)
    listed = EQUIVALENT.read_text(encoding="utf-8").splitlines() if EQUIVALENT.is_file() else []
    equivalent = {line.split(" # ")[0] for line in listed}
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
