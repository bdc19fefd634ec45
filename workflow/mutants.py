"""Mutation testing: small faults in a study or a mechanism, one at a time; does one of its quick tests fail?

    python workflow/mutants.py foulds2016/efficiency mechanisms/laplace [--every 3] [--limit 2]

A name is a study (its study.py and claims.py) or a module below src/privpost. The tests are those that import the
module or name the study, and of these the ones that take at most `--limit` seconds. A fault that none of them sees is
printed as it stands in the file. Survivors that change nothing stand in equivalent_mutants.txt, with the reason.

Libraries (mutmut, cosmic-ray) start Python anew for each mutant, which takes longer here than the tests do. This one
forks a process that has numpy, scipy and pandas already, gives it the changed module, and leaves the files alone.
"""

import argparse
import ast
import copy
import importlib.abc
import importlib.util
import os
import re
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCES, TESTS, EQUIVALENT = ROOT / "src", ROOT / "tests" / "unit", ROOT / "workflow" / "equivalent_mutants.txt"
# What a mutant may take beside twice the time of the tests, and what is imported before any is made.
SPARE = 10.0
# All tests of a file are tried for so long at most.
LONGEST = 60.0
# Tests of all classes of a room, or of all studies.
CONTRACTS = {"test_gate_of_studies.py", "test_mechanisms.py", "test_models.py", "test_seeded_faults.py"}
CONTRACTS |= {"test_verdicts.py"}
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
    # Errors, warnings, annotations and texts are left alone, and functions within functions have their own turn.
    if isinstance(parent, ast.Raise | ast.Assert | ast.FunctionDef | ast.JoinedStr | ast.Import | ast.ImportFrom):
        return
    for field, value in ast.iter_fields(parent):
        if field in ("annotation", "returns"):
            continue
        for index, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if isinstance(child, ast.AST):
                yield name, parent, field, index
                yield from _within(name, child)


def mutants(source: str) -> Iterator[tuple[str, str, ast.Module]]:
    """Yield place, change and syntax tree of every mutant of a module."""
    tree = ast.parse(source)
    for name, parent, field, index in places(tree):
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
    """Imports one module from a syntax tree."""

    def __init__(self, name: str, path: Path, tree: ast.Module):
        self.name, self.path, self.tree = name, path, tree

    def find_spec(self, name, path=None, target=None):
        return importlib.util.spec_from_file_location(name, self.path, loader=self) if name == self.name else None

    def exec_module(self, module):
        exec(compile(self.tree, str(self.path), "exec"), module.__dict__)


class Times:
    """A plugin that notes what each test took, by its id; failures take for ever. It ends the tests after a while."""

    def __init__(self, subjects: list[str]):
        self.taken: dict[str, float] = {}
        self.end, self.subjects = time.monotonic() + LONGEST, subjects

    def pytest_collection_modifyitems(self, items):
        # Contracts run on all subjects: those of others are left out.
        every = [item for item in items if item.path.name not in CONTRACTS]
        items[:] = every + [item for item in items if any(name in item.nodeid for name in self.subjects)]
        items[:] = list(dict.fromkeys(items))

    def pytest_runtest_setup(self, item):
        if time.monotonic() > self.end:
            item.session.shouldstop = f"the tests take more than {LONGEST:g} s"

    def pytest_runtest_logreport(self, report):
        took = report.duration if report.outcome != "failed" else float("inf")
        self.taken[report.nodeid] = self.taken.get(report.nodeid, 0.0) + took


def in_child(work, limit: float) -> int:
    """Run a function of no arguments in a forked process; returns its status, or −1 after the time limit."""
    child = os.fork()
    if child == 0:
        silent = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silent, 1), os.dup2(silent, 2)
        status = 3
        try:
            status = int(work())
        finally:
            os._exit(status)
    end = time.monotonic() + limit
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return -1


def tests_of(path: Path, study: str | None) -> list[str]:
    """Return the tests that name a study; or those of a module's own room that import it or one of its classes, and the
    contract tests of that room, which find their subjects by place."""
    if study is None:
        names = "|".join(
            [path.stem, *re.findall(r"^(?:class|def) (\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)]
        )
        words, room = re.compile(rf"import [^\n]*\b({names})\b"), TESTS / path.parent.name
    else:
        paper, own = study.split("/")
        words = re.compile(rf"{study}|{paper}\.{own}\b|{paper} import .*\b{own}\b")
        room = TESTS / "experiments"
    contract = f"test_{room.name}.py"
    tests = sorted(room.rglob("test_*.py"))
    return [str(test) for test in tests if test.name == contract or words.search(test.read_text(encoding="utf-8"))]


def quick_tests(files: list[str], subjects: list[str], limit: float) -> tuple[list[str], float]:
    """Return the tests that pass within the limit, the quickest first, and the time that they take together."""
    notes = ROOT / "build" / "mutants.txt"
    notes.parent.mkdir(exist_ok=True)

    def work():
        times = Times(subjects)
        pytest.main(["-q", "-p", "no:cacheprovider", *files], plugins=[times])
        notes.write_text("\n".join(f"{took}\t{test}" for test, took in times.taken.items()))
        return 0

    in_child(work, 5 * LONGEST)
    taken = sorted((float(took), test) for took, test in (line.split("\t") for line in notes.read_text().splitlines()))
    kept = [(took, test) for took, test in taken if took <= limit]
    return [test for _, test in kept], sum(took for took, _ in kept)


def examined(path: Path, study: str | None, every: int, limit: float, equivalent: set[str]) -> tuple:
    """Return the numbers of mutants, of killed and of equivalent ones, and print the survivors."""
    name = ".".join(path.relative_to(SOURCES).with_suffix("").parts)
    source = path.read_text(encoding="utf-8")
    subjects = [study] if study else re.findall(r"^class (\w+)", source, re.MULTILINE)
    tests, took = quick_tests(tests_of(path, study), subjects, limit)
    print(f"{path.relative_to(ROOT)}: {len(tests)} tests in {took:.1f} s", flush=True)
    total = killed = same = 0
    lines = source.splitlines()
    for number, (place, change, tree) in enumerate(mutants(source)):
        if number % every:
            continue
        line, function = place.split()
        if f"{path.relative_to(ROOT)} {function}: {change} in {lines[int(line) - 1].strip()}" in equivalent:
            same += 1
            continue

        def work(tree=tree):
            sys.meta_path.insert(0, Changed(name, path, tree))
            return pytest.main(["-x", "-q", "-p", "no:cacheprovider", *tests])

        total += 1
        if not tests or in_child(work, SPARE + 3 * took) == 0:
            print(f"  {place}: {change}", flush=True)
        else:
            killed += 1
    return total, killed, same


def main() -> int:
    """Examine what is named; returns 1 where less than nine of ten mutants are killed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="+")
    parser.add_argument("--every", type=int, default=1, help="take every so manieth mutant only")
    parser.add_argument("--limit", type=float, default=2.0, help="seconds that a test may take")
    given = parser.parse_args()
    os.chdir(ROOT)
    sys.path.insert(0, str(SOURCES))
    for module in HEAVY:
        importlib.import_module(module)
    listed = EQUIVALENT.read_text(encoding="utf-8").splitlines() if EQUIVALENT.is_file() else []
    equivalent = {line.split(" # ")[0] for line in listed}
    rows = []
    for name in given.names:
        folder = SOURCES / "privpost" / "experiments" / name
        study = name if (folder / "study.py").is_file() else None
        paths = [folder / "study.py", folder / "claims.py"] if study else [SOURCES / "privpost" / f"{name}.py"]
        rows += [
            (path, *examined(path, study, given.every, given.limit, equivalent)) for path in paths if path.is_file()
        ]
    print(f"\n{'file':60} mutants  killed  equivalent  score")
    for path, total, killed, same in rows:
        share = killed / total if total else 1.0
        print(f"{path.relative_to(SOURCES / 'privpost')!s:60} {total:7} {killed:7} {same:11} {share:6.0%}")
    return int(any(killed < 0.9 * total for _, total, killed, _ in rows))


if __name__ == "__main__":
    sys.exit(main())
