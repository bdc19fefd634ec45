"""`make quick`: a changed module runs its contract tests, and does not pass without any test."""

import importlib.util
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).resolve().parents[2]
NEW = "src/privpost/mechanisms/new_noise.py"
DEEP = "src/privpost/mechanisms/deep/deep_noise.py"


@pytest.fixture
def quick(monkeypatch, tmp_path):
    """The script in a folder with one mechanism, one contract test and one test that imports nothing of it."""
    spec = importlib.util.spec_from_file_location("quick", ROOT / "tools/quick.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
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
    contract = ["pytest", "-q", "-x", "tests/unit/mechanisms/test_mechanisms.py", "-k", "NewNoise"]
    assert quick(NEW) == (0, [contract])
    assert quick(NEW, status=1) == (1, [contract])


def test_a_mechanism_in_a_folder_runs_the_tests_that_import_its_class_from_the_room(quick):
    Path(DEEP).parent.mkdir()
    Path(DEEP).write_text("class DeepNoise:\n    pass\n")
    importing = Path("tests/unit/test_deep.py")
    importing.write_text("from privpost.mechanisms import DeepNoise\n")
    contract = ["pytest", "-q", "-x", "tests/unit/mechanisms/test_mechanisms.py", "-k", "DeepNoise"]
    assert quick(DEEP) == (0, [["pytest", "-q", "-x", str(importing)], contract])


def test_a_module_without_a_test_is_not_green(quick, capsys):
    assert quick("src/privpost/progress.py")[0] == 5
    assert "No test ran for src/privpost/progress.py" in capsys.readouterr().out
    # pytest says with 5 that it has chosen none.
    assert quick(NEW, status=5)[0] == 5


def test_where_nothing_changed_that_tests_see_it_is_said(quick, capsys):
    assert quick("README.md") == (0, [])
    assert "No test ran: neither code nor tests differ" in capsys.readouterr().out
