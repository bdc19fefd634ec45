"""`make quick`: a changed module runs its contract tests, and does not pass without any test."""

import importlib.util
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).resolve().parents[2]
NEW = "src/privpost/mechanisms/new_noise.py"
DEEP = "src/privpost/mechanisms/deep/deep_noise.py"


@pytest.fixture
def module():
    """The script."""
    spec = importlib.util.spec_from_file_location("quick", ROOT / "tools/quick.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def quick(module, monkeypatch, tmp_path):
    """The script in a folder with one mechanism, one contract test and one test that imports nothing of it."""
    for path, text in {
        NEW: "class NewNoise:\n    pass\n",
        "src/privpost/progress.py": "",
        "tests/unit/mechanisms/test_mechanisms.py": "from privpost import discovery\n",
        "tests/unit/test_other.py": "import numpy\n",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    monkeypatch.chdir(tmp_path)
    called = []

    def run(*paths, status=0):
        called.clear()
        monkeypatch.setattr(module, "changed", lambda: [Path(path) for path in paths])
        call = lambda words: called.append(words[2:]) or (status if "pytest" in words else 0)  # noqa: E731
        monkeypatch.setattr(module, "subprocess", SimpleNamespace(call=call))
        return module.main(), [words for words in called if words[0] == "pytest"]

    return run


def test_a_new_mechanism_runs_the_contract_tests_with_its_class(quick):
    only = "(not test_mechanisms.py or NewNoise)"
    contract = ["pytest", "-q", "-x", "tests/unit/mechanisms/test_mechanisms.py", "-k", only]
    assert quick(NEW) == (0, [contract])
    assert quick(NEW, status=1) == (1, [contract])


def test_a_mechanism_in_a_folder_runs_the_tests_that_import_its_class_from_the_room(quick):
    Path(DEEP).parent.mkdir()
    Path(DEEP).write_text("class DeepNoise:\n    pass\n")
    importing = Path("tests/unit/test_deep.py")
    importing.write_text("from privpost.mechanisms import DeepNoise\n")
    chosen = "(not test_mechanisms.py or DeepNoise)"
    contract = ["pytest", "-q", "-x", str(importing), "tests/unit/mechanisms/test_mechanisms.py", "-k", chosen]
    assert quick(DEEP) == (0, [contract])


def test_a_module_without_a_test_is_not_green(quick, capsys):
    assert quick("src/privpost/progress.py")[0] == 5
    assert "No test ran for src/privpost/progress.py" in capsys.readouterr().out
    # pytest says with 5 that it has chosen none.
    assert quick(NEW, status=5)[0] == 5


def test_where_nothing_changed_that_tests_see_it_is_said(quick, capsys):
    assert quick("README.md") == (0, [])
    assert "No test ran: neither code nor tests differ" in capsys.readouterr().out


def test_a_study_runs_its_most_specific_files_and_of_tests_of_all_studies_its_own(quick, tmp_path):
    shared = "from privpost.experiments.paper.shared import draw\n"
    for path, text in {
        **{f"conf/study/paper/{name}.yaml": "" for name in ("first", "second", "third")},
        "src/privpost/experiments/paper/shared.py": "def draw():\n    pass\n",
        "src/privpost/experiments/paper/first/study.py": shared,
        "src/privpost/experiments/paper/second/study.py": "",
        "tests/unit/experiments/test_all.py": "names = ['paper/first', 'paper/second', 'paper/third']\n",
        "tests/unit/experiments/test_second.py": "name = 'paper/second'\n",
        **{f"tests/unit/experiments/test_first_{number}.py": "name = 'paper/first'\n" for number in range(4)},
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    files = [f"tests/unit/experiments/test_first_{number}.py" for number in range(4)]
    run = ["pytest", "-q", "-x", *files, "-k", "not (paper/second or paper/third)"]
    # Its code, its settings, and what it imports from its paper's folder.
    for path in ("experiments/paper/first/study.py", "experiments/paper/shared.py"):
        assert quick(f"src/privpost/{path}") == (0, [run])
    assert quick("conf/study/paper/first.yaml") == (0, [run])
    files = ["tests/unit/experiments/test_second.py", "tests/unit/experiments/test_all.py"]
    assert quick("conf/study/paper/second.yaml")[1] == [
        ["pytest", "-q", "-x", *files, "-k", "not (paper/first or paper/third)"]
    ]


def test_changed_files_are_new_ones_and_those_since_the_branch_left(module, tmp_path, monkeypatch):
    if shutil.which("git") is None:
        pytest.skip("no Git")
    monkeypatch.chdir(tmp_path)

    def git(*words):
        identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", *identity, *words], check=True, capture_output=True)

    def commit(name):
        git("add", "-A")
        git("commit", "-q", "-m", name)

    git("init", "-q", "-b", "main")
    for name in ("first", "second", "third"):
        Path(f"{name}.py").write_text("a = 1\n")
        Path("on_main.py").write_text(f"name = {name!r}\n")
        commit(name)
    git("checkout", "-q", "-b", "branch", "HEAD~1")
    Path("first.py").write_text("a = 2\n")
    Path("second.py").unlink()
    Path("fourth.py").write_text("a = 1\nb = 2\n")
    commit("fourth")
    assert module.changed("main") == [Path("first.py"), Path("fourth.py")] and module.changed() == []
    Path("new.py").touch()
    Path("first.py").write_text("a = 3\n")
    assert module.changed() == [Path("new.py"), Path("first.py")]
