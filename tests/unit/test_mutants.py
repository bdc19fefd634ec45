"""`make mutants`: which faults are made, and that a changed module is the one that runs."""

from __future__ import annotations

import importlib
import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

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
    spec = importlib.util.spec_from_file_location("mutants", ROOT / "workflow/mutants.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_fault_is_made_once_and_texts_of_errors_are_left_alone(tool):
    changes = [f"{place}: {change}" for place, change, _ in tool.mutants(SOURCE)]
    assert sorted(changes) == [
        "10 divergence: 2 → 3",
        "10 divergence: kl(p, q) → kl(q, p)",
        "10 divergence: sum(kl(p, q)) * 2 → sum(kl(p, q)) / 2",
        "10 divergence: sum(kl(p, q)) → max(kl(p, q))",
        "4 smaller: a < b → a <= b",
    ]


def test_a_fault_is_in_the_module_that_is_imported_and_in_that_process_alone(tool, tmp_path, monkeypatch):
    path = tmp_path / "mutated_module.py"
    path.write_text("def largest():\n    return max(1, 2)\n")
    monkeypatch.syspath_prepend(tmp_path)
    tree = next(tree for _, change, tree in tool.mutants(path.read_text()) if change == "max(1, 2) → min(1, 2)")
    code = compile(tree, str(path), "exec")

    def found():
        sys.meta_path.insert(0, tool.Changed("mutated_module", path, code))
        return importlib.import_module("mutated_module").largest()

    assert tool.in_child(found, 20) == 1
    assert importlib.import_module("mutated_module").largest() == 2


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
    claims, study = (names(f"experiments/geumlek2017/theorem16/{part}.py", "geumlek2017/theorem16")
                     for part in ("claims", "study"))  # fmt: skip
    assert claims - study == {"test_claims_turn.py"} and "test_recomputed_audit.py" in study


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


def test_a_file_is_left_once_its_time_is_over(tool, tmp_path, monkeypatch):
    """Of forty faults that take three seconds each by a clock of the test's, ten seconds try three, and no limit all:
    what the fourth one was ended by was not a test."""
    path, now = tmp_path / "many.py", [0.0]
    path.write_text(f"def f():\n    return {list(range(40))}\n")
    for name in ("PACKAGE", "SOURCES", "ROOT"):
        monkeypatch.setattr(tool, name, tmp_path)
    monkeypatch.setattr(tool, "tests_of", lambda *words: [])
    monkeypatch.setattr(tool, "quick_tests", lambda *words: (["a test"], 0.0))
    monkeypatch.setattr(tool, "time", SimpleNamespace(monotonic=lambda: now[0]))

    def killed(work, limit, end):
        now[0] += 3
        return 1 if now[0] <= end else -1

    monkeypatch.setattr(tool, "in_child", killed)
    given = SimpleNamespace(of="", every=1, limit=2.0)
    assert tool.examined(path, None, given, 10.0, set()) == (3, 3, 0)
    assert tool.examined(path, None, given, float("inf"), set()) == (40, 40, 0)
