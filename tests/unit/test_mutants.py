"""`make mutants`: which modules and tests mutmut gets, and when the tests see too few faults."""

import importlib
import sys
from pathlib import Path

import pytest

pytest.importorskip("mutmut")
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def tool(checkout, monkeypatch):
    """The script."""
    monkeypatch.syspath_prepend(ROOT / "tools")
    yield importlib.import_module("mutants")
    for name in ("mutants", "quick"):
        sys.modules.pop(name, None)


def test_a_name_is_a_study_or_a_module(tool):
    assert Path("src/privpost/experiments/foulds2016/efficiency/study.py") in tool.named("foulds2016/efficiency")
    assert tool.named("evaluation/summaries") == [Path("src/privpost/evaluation/summaries.py")]
    with pytest.raises(SystemExit, match="STUDY=mechanisms/laplas: no study, and no module below src/privpost"):
        tool.named("mechanisms/laplas")


def test_modules_get_their_tests_and_those_of_studies_serve_studies_only(tool):
    assert tool.tests_of(tool.named("evaluation/summaries")) == ["tests/unit/evaluation/test_summaries.py"]
    files = tool.tests_of(tool.named("foulds2016/efficiency"))
    assert "tests/unit/experiments/test_recomputed_mechanisms.py" in files and len(files) <= tool.quick.MOST + 2
    assert "not (audit/audit or " in files[-1] and "foulds2016/efficiency" not in files[-1]
    (mechanism,) = Path("src/privpost/mechanisms").rglob("laplace.py")
    words = tool.tests_of([mechanism])
    assert not [word for word in words if "experiments" in word]
    assert words[-1] == "(not test_mechanisms.py or LaplaceMechanism)"


SAMPLES = [(80, 20, 0, False), (79, 21, 0, True), (72, 28, 9, False), (71, 29, 9, True)]


@pytest.mark.parametrize(("killed", "survived", "unchecked", "low"), SAMPLES)
def test_a_sample_is_too_low_by_two_standard_errors(tool, capsys, killed, survived, unchecked, low):
    """Of a hundred faults four fifths are seen, and two standard errors are eight; what no test runs does not count."""
    stats = dict.fromkeys(("timeout", "segfault", "suspicious", "skipped"), 0)
    stats |= {"killed": killed, "survived": survived, "no_tests": 50, "total": 150 + unchecked}
    assert tool.too_few(stats) is low
    assert f"see {killed} of 100 faults that were tried, of {100 + unchecked};" in capsys.readouterr().out
