"""`make mutants`: which faults are made, and that a changed module is the one that runs."""

from __future__ import annotations

import importlib
import shutil
import subprocess
import sys
import weakref
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = '''
def smaller(a, b):
    """Return the smaller one."""
    if a < b:
        return a
    raise ValueError(a + b)


def divergence(p, q):
    return sum(kl(p, q)) * 2


def paired(p):
    return zip(p, strict=True)
'''


@pytest.fixture(scope="module")
def tool():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "tools")
        return importlib.import_module("mutants")


def test_every_fault_is_made_once_and_texts_of_errors_are_left_alone(tool):
    changes = [f"{place}: {change}" for place, change, _ in tool.mutants(SOURCE)]
    assert sorted(changes) == [
        "10 divergence: 2 → 3",
        "10 divergence: kl(p, q) → kl(q, p)",
        "10 divergence: sum(kl(p, q)) * 2 → sum(kl(p, q)) / 2",
        "10 divergence: sum(kl(p, q)) → max(kl(p, q))",
        "4 smaller: a < b → a <= b",
    ]


def test_a_fault_is_in_the_functions_of_that_process_alone_and_nothing_remembered_hides_it(tool, tmp_path, monkeypatch):
    path = tmp_path / "mutated_module.py"
    path.write_text(
        "import functools\n\n@functools.cache\ndef largest():\n    return max(1, 2)\n\n"
        "class Pair:\n    def smallest(self):\n        return [min(3, x) for x in (4, 5)][0]\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("mutated_module")
    assert (module.largest(), module.Pair().smallest()) == (2, 3)

    # Another test in this process may leave a weak reference to an object that is gone.
    deleted = weakref.proxy(type("Deleted", (), {})())
    assert type(deleted) is weakref.ProxyType

    def values(change):
        tree = next(tree for _, made, tree in tool.mutants(path.read_text()) if made == change)
        tool.put_in_place(compile(tree, str(path), "exec"))
        return 10 * module.largest() + module.Pair().smallest()

    assert tool.in_child(lambda: values("max(1, 2) → min(1, 2)"), 20) == 13
    assert tool.in_child(lambda: values("min(3, x) → max(3, x)"), 20) == 24
    assert (module.largest(), module.Pair().smallest()) == (2, 3)


def test_only_functions_that_are_named_get_faults(tool):
    assert {place for place, _, _ in tool.mutants(SOURCE, of={"smaller"})} == {"4 smaller"}


def test_a_mutant_that_hangs_is_ended(tool):
    def forever():
        while True:
            pass

    assert tool.in_child(forever, 0.2) < 0


def test_a_mutant_that_sleeps_is_ended(tool):
    assert tool.in_child(lambda: tool.time.sleep(60), 0.05) < 0
    assert tool.in_child(lambda: tool.time.sleep(60), 60, tool.time.monotonic() + 0.1) < 0


@pytest.fixture
def repository(tool, tmp_path, monkeypatch):
    """A repository with three commits on `main`, and a function that runs Git in it."""
    if shutil.which("git") is None:
        pytest.skip("no Git")
    package = tmp_path / "src" / "privpost"
    package.mkdir(parents=True)
    monkeypatch.setattr(tool, "ROOT", tmp_path)
    monkeypatch.setattr(tool, "SOURCES", package.parent)
    monkeypatch.setattr(tool, "PACKAGE", package)

    def git(*words, cwd=tmp_path):
        identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", *identity, *words], cwd=cwd, check=True, capture_output=True)

    git("init", "-q", "-b", "main")
    for name in ("first", "second", "third"):
        (package / f"{name}.py").write_text("a = 1\n")
        git("add", "-A")
        git("commit", "-q", "-m", name)
    return git


def changed_names(tool, base="main"):
    return [path.name for path in tool.changed(base)]


def test_changed_files_are_those_since_the_branch_left_with_most_new_lines_first(tool, repository, tmp_path):
    assert changed_names(tool) == ["third.py"]
    repository("checkout", "-q", "-b", "branch", "HEAD~1")
    (tmp_path / "src/privpost/first.py").write_text("a = 2\n")
    (tmp_path / "src/privpost/second.py").unlink()
    (tmp_path / "src/privpost/fourth.py").write_text("a = 1\nb = 2\n")
    (tmp_path / "notes.py").write_text("a = 1\n")
    repository("add", "-A")
    repository("commit", "-q", "-m", "fourth")
    assert changed_names(tool) == ["fourth.py", "first.py"]
    # Without the branch to compare with, what the last commit changed.
    repository("branch", "-D", "main")
    assert changed_names(tool) == ["fourth.py", "first.py"]


@pytest.mark.parametrize("history", ["shallow", "nothing changed", "no repository"])
def test_where_nothing_can_be_compared_or_nothing_changed_it_is_said_and_is_no_error(
    tool, repository, tmp_path, monkeypatch, capsys, history
):
    monkeypatch.setattr(sys, "argv", ["mutants.py", "--changed", "main", "--seconds", "120"])
    expected = "no history to compare with\n"
    if history == "shallow":
        repository("clone", "-q", "--depth", "1", f"file://{tmp_path}", str(tmp_path / "clone"))
        monkeypatch.setattr(tool, "ROOT", tmp_path / "clone")
    elif history == "no repository":
        shutil.rmtree(tmp_path / ".git")
        monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    else:
        repository("commit", "-q", "--allow-empty", "-m", "nothing")
        expected = "no module of the package to examine\n"
    assert tool.main() == 0
    assert capsys.readouterr().out == expected


def test_tests_are_those_of_a_module_that_name_it_and_falsified_tables_for_claims(tool):
    def names(path, study=None):
        return {Path(test).name for test in tool.tests_of(tool.PACKAGE / path, study)}

    assert {"test_mechanisms.py", "test_additive_noise.py"} <= names("mechanisms/laplace.py")
    assert "test_verdicts.py" not in names("mechanisms/laplace.py")
    # Imports may take several lines.
    assert "test_posterior_draws.py" in names("mechanisms/exponential.py")
    # One of another room imports its class.
    assert "test_noise_aware_regression.py" in names("mechanisms/moments_laplace.py")
    # A module that several studies share has the tests of studies.
    assert "test_state_labels.py" in names("experiments/foulds2016/state_labels.py")
    # Those that recompute cells of a study that uses it come before those that import it, and there are no others.
    shared = [Path(test).name for test in tool.tests_of(tool.PACKAGE / "experiments/foulds2016/held_out.py", None)]
    assert shared.index("test_recomputed_war_logs.py") < shared.index("test_war_logs_studies.py")
    assert "test_foulds2016_beta.py" not in shared
    assert tool.users(tool.PACKAGE / "experiments/noise_aware/rivals/tasks.py") == ["noise_aware/rivals"]
    # By way of the splits, which import it.
    assert "foulds2016/war_logs_likelihood" in tool.users(tool.PACKAGE / "experiments/foulds2016/convergence.py")
    claims, study = (names(f"experiments/geumlek2017/theorem16/{part}.py", "geumlek2017/theorem16")
                     for part in ("claims", "study"))  # fmt: skip
    assert claims - study == {"test_claims_turn.py"} and "test_recomputed_audit.py" in study
    # Of claims those at their limits come first, but for the falsified tables.
    path = tool.PACKAGE / "experiments/geumlek2017/theorem16/claims.py"
    first, second, *_ = (Path(test).name for test in tool.tests_of(path, "geumlek2017/theorem16"))
    assert (first, second) == ("test_claims_turn.py", "test_limits_geumlek2017.py")


def test_an_abstract_class_has_the_contract_tests_of_those_that_inherit_from_it(tool):
    assert {"LaplaceMechanism", "GaussianMechanism"} <= set(tool.heirs(["AdditiveNoiseMechanism"]))
    assert "GaussianMechanism" not in tool.heirs(["LaplaceMechanism"])


@pytest.mark.parametrize(
    ("total", "killed", "sampled", "low"),
    [
        (100, 90, False, False),
        (100, 89, False, True),
        (100, 85, True, False),
        (100, 83, True, True),
        (0, 0, True, False),
    ],
)
def test_a_sample_is_too_low_by_two_standard_errors(tool, total, killed, sampled, low):
    assert tool.too_low(total, killed, sampled) == low


TOY = """
def double(x):
    return 2 * x


def half(x):
    return x / 2


def unseen(x):
    return x - 1
"""
TOY_TESTS = """
import os
import time

from toy import double, half

PROCESS = os.getpid()


def test_double():
    assert double(3) == 6


def test_double_more_slowly():
    time.sleep(0.01)
    assert double(1) == 2


def test_half():
    assert half(0) == 0


def test_that_fails():
    assert half(2) == 2


def test_that_fails_in_a_fork():
    assert half(0) == 0 and os.getpid() == PROCESS


def test_of_nothing():
    pass
"""


@pytest.fixture
def toy(tool, tmp_path):
    """A function that examines a module of three functions, in a process of its own; returns what is printed."""
    (tmp_path / "toy.py").write_text(TOY)
    (tmp_path / "test_toy.py").write_text(TOY_TESTS)
    script = tmp_path / "examine.py"

    def run(seconds: str, equivalent: str = "") -> list[str]:
        script.write_text(
            f"""
import sys
from pathlib import Path
from types import SimpleNamespace
sys.path[:0] = [{str(ROOT / "tools")!r}, {str(tmp_path)!r}]
import mutants
folder = Path({str(tmp_path)!r})
mutants.ROOT = mutants.PACKAGE = mutants.SOURCES = folder
mutants.tests_of = lambda *words: [str(folder / "test_toy.py")]
given = SimpleNamespace(of="", every=1, limit=2.0)
print(mutants.examined(folder / "toy.py", None, given, {seconds}, {{{equivalent!r}}}))
"""
        )
        done = subprocess.run(
            [sys.executable, script], check=False, cwd=tmp_path, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    return run


def test_a_fault_meets_the_tests_that_run_its_function_and_survivors_are_printed(toy):
    """By hand: of the product and its 2 both faults are seen, of the quotient at 0 neither (0 · 2 and 0 / 3 are 0), and
    nothing runs the third function; tests that fail without a fault, here or in a fork, do not count."""
    first, *survivors, counts = toy("float('inf')")
    assert first.startswith("toy.py: 6 faults, 3 tests in ")
    assert survivors == [
        "  7 half: x / 2 → x * 2",
        "  7 half: 2 → 3",
        "  11 unseen: x - 1 → x + 1 (no test runs it)",
        "  11 unseen: 1 → 2 (no test runs it)",
    ]
    assert counts == "(6, 2, 0)"


def test_equivalent_faults_are_not_tried_and_a_file_is_left_once_its_time_is_over(toy):
    assert toy("float('inf')", "toy.py half: 2 → 3 in return x / 2")[-1] == "(5, 2, 1)"
    assert toy("0.0")[-1] == "(0, 0, 0)"


def test_a_fault_that_is_named_equivalent_is_one_of_a_line_that_stands_in_its_file(tool):
    """Where the line has changed, somebody has to look again."""
    lines = (ROOT / "tools/equivalent_mutants.txt").read_text().splitlines()
    assert len(set(map(tool.without_comment, lines))) == len(lines)
    gone = []
    for line in map(tool.without_comment, lines):
        source = (ROOT / line.split(" ")[0]).read_text().splitlines()
        places = {f" in {tool.without_comment(each.strip())}" for each in source if each.strip()}
        gone += [line] * (not line.endswith(tuple(places)))
    assert gone == []
