"""The data dictionary: every column of every shipped table and every setting has a line, and no line is idle."""

from __future__ import annotations

import pytest

from privpost.lab import grid
from privpost.report.documents import dictionary


@pytest.fixture
def names(checkout) -> list[tuple[str, str]]:
    studies = grid.load_studies()
    return [*dictionary.columns(studies), *dictionary.settings(studies)]


@pytest.fixture
def known(checkout) -> dict[str, dictionary.Entry]:
    return dictionary.read()


def lacking(known, names) -> list[str]:
    return [f"{place}.{name}" for place, name in names if dictionary.look_up(known, place, name) is None]


def test_no_column_and_no_setting_lacks_a_line(known, names):
    assert len(names) > 1000
    assert lacking(known, names) == [], f"write what these mean into {dictionary.FILE}"


def test_no_line_is_about_nothing(known, names):
    used = {key for place, name in names for key in (name, f"{place}.{name}")}
    assert [key for key in known if key not in used] == []


def test_a_line_that_is_left_out_is_missed(known, names):
    for name, where in (("ks_limit", "bernstein2018/calibration"), ("held_out", "foulds2016/war_logs_likelihood")):
        rest = {key: entry for key, entry in known.items() if key != name}
        assert f"{where}.{name}" in lacking(rest, names)
    # And with it the standard error that leans on it.
    rest = {key: entry for key, entry in known.items() if key != "mmd2_mean"}
    assert lacking(rest, names) == ["bernstein2018/utility.mmd2_mean", "bernstein2018/utility.mmd2_sem"]


def test_one_place_may_mean_something_else_and_errors_follow_their_mean():
    known = {
        "bound": dictionary.Entry("an upper bound", ""),
        "toy/curve.bound": dictionary.Entry("a share", "share"),
        "loss_mean": dictionary.Entry("a loss", "nats"),
    }
    assert dictionary.look_up(known, "toy/curve", "bound").unit == "share"
    assert dictionary.look_up(known, "toy/other", "bound").unit == ""
    assert dictionary.look_up(known, "toy/curve", "loss_sem") == ("standard error of `loss_mean`", "nats")
    assert dictionary.look_up(known, "toy/curve", "other_sem") is None


@pytest.mark.parametrize("line", ["epsilon: what it may cost", "epsilon: '| nats'"])
def test_a_line_without_meaning_or_unit_is_refused(tmp_path, monkeypatch, line):
    monkeypatch.setattr(dictionary, "FILE", tmp_path / "dictionary.yaml")
    dictionary.FILE.write_text(line)
    with pytest.raises(ValueError, match=r"dictionary.yaml: epsilon: .* must be `meaning \| unit`"):
        dictionary.read()
