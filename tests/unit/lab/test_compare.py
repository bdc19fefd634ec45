"""The comparison of built tables with published ones: shapes and words must be equal, numbers close."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from privpost.lab import compare, published
from privpost.lab.schema import SettingError


def frames(*given, **options) -> compare.Comparison:
    return compare.Comparison("t", *compare.compare_frames(*given, **options))


TABLE = pd.DataFrame(
    {"method": ["a", "b"], "n": [10, 20], "loss_mean": [1.0, 2.0], "loss_sem": [0.1, 0.1], "bound": [3.0, np.inf]}
)


@pytest.mark.parametrize(
    ("change", "state", "where"),
    [
        ({}, "equal", ""),
        ({"loss_mean": [1.4, 2.0]}, "within tolerance", "loss_mean in row 1: 1 became 1.4"),
        ({"loss_mean": [1.0, 3.0]}, "outside tolerance", "loss_mean in row 2: 2 became 3"),
        ({"bound": [3.0 * (1 + 1e-9), np.inf]}, "within tolerance", "bound in row 1"),
        ({"bound": [3.001, np.inf]}, "outside tolerance", "bound in row 1: 3 became 3.001"),
        ({"bound": [3.0, 7.0]}, "outside tolerance", "bound in row 2: inf became 7"),
        ({"bound": [np.nan, np.inf]}, "outside tolerance", "bound in row 1"),
        ({"method": ["a", "c"]}, "outside tolerance", "method has other values in 1 rows"),
    ],
)
def test_what_differs_is_told_with_its_place(change, state, where):
    found = frames(TABLE, TABLE.assign(**change))
    assert found.state == state
    assert where in found.where


def test_empty_cells_are_equal():
    old = TABLE.assign(method=[None, "b"])
    assert frames(old, old.copy()).state == "equal"
    assert "method has other values in 1 rows" in frames(old, old.assign(method=[None, "c"])).where


def test_a_standard_error_allows_five_combined_ones_and_itself_a_tenth():
    """The numbers of the tolerance, on both sides of it."""
    allowed = 5 * np.hypot(0.1, 0.1)
    near, far = (TABLE.assign(loss_mean=[1 + share * allowed, 2.0]) for share in (0.999, 1.001))
    assert frames(TABLE, near).state == "within tolerance"
    assert frames(TABLE, far).state == "outside tolerance"
    assert frames(TABLE, TABLE.assign(loss_sem=[0.109, 0.1])).state == "within tolerance"
    assert frames(TABLE, TABLE.assign(loss_sem=[0.112, 0.1])).state == "outside tolerance"


def test_numbers_near_zero_are_rounding():
    """Independent: rounding differs between processors; a share of 1e-12 of the column's largest number is none."""
    table = TABLE.assign(bound=[3.0, 6.9e-18])
    assert frames(table, table.assign(bound=[3.0, 1.4e-17])).state == "within tolerance"
    assert frames(table, table.assign(bound=[3.0, 4e-12])).state == "outside tolerance"


def test_other_rows_and_columns_are_outside():
    assert "2 rows became 1" in frames(TABLE, TABLE.iloc[:1]).where
    more, fewer = frames(TABLE, TABLE.assign(m=1)), frames(TABLE, TABLE.drop(columns=["loss_sem", "n"]))
    assert (more.state, more.where) == ("with other columns", "new column m; all else is equal")
    assert fewer.where == "without the column n, loss_sem; all else is equal"
    assert "1 with other columns (t: new column m; all else is equal)" in compare.sentence([more])
    assert frames(TABLE, TABLE[TABLE.columns[::-1]]).where == "columns in another order; all else is equal"
    far = frames(TABLE, TABLE.assign(m=1, bound=[3.0, 7.0]))
    assert (far.state, far.where) == ("outside tolerance", "new column m; bound in row 2: inf became 7")
    assert frames(TABLE, TABLE.iloc[:1].assign(m=1)).state == "outside tolerance"


def test_a_study_may_state_its_own_tolerance():
    other = TABLE.assign(bound=[3.1, np.inf])
    assert frames(TABLE, other, 0.05).state == "within tolerance"


def test_a_standard_error_of_equal_numbers_is_rounding():
    """2.6e-18 of paired differences that are 0 but for rounding became 2.9e-18 on another processor."""
    table = TABLE.assign(loss_mean=[0.0, 2.0], loss_sem=[2.6e-18, 0.1])
    other = {size: table.assign(loss_sem=[size, 0.1]) for size in (2.9e-18, 0.9e-13, 1.1e-13)}
    states = {size: frames(table, changed).state for size, changed in other.items()}
    assert list(states.values()) == ["within tolerance", "within tolerance", "outside tolerance"]


def test_how_fast_a_machine_was_is_not_compared():
    from privpost.experiments.noise_aware.rivals import study

    other = TABLE.assign(bound=[99.0, np.inf])
    assert frames(TABLE, other, timed=["bound"]).state == "equal"
    assert frames(TABLE, other.assign(loss_mean=[9.0, 9.0]), timed=["bound"]).size > 1
    timed = [column for column, meaning in study.TABLES["rivals"].items() if meaning.endswith(compare.TIMED)]
    assert timed == ["ess_per_second", "seconds"]


def test_the_sentence_counts_and_names_the_largest():
    found = [compare.Comparison("a/b"), compare.Comparison("a/c", 0.3, "x in row 1")]
    assert compare.sentence(found) == "2 tables: 1 equal, 1 within tolerance (largest difference: a/c, x in row 1)"


def test_what_was_altered_by_hand_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = tmp_path / "results/toy/curve/curve.csv"
    table.parent.mkdir(parents=True)
    table.write_text("a\n1\n")
    path = published.RESULTS / "toy/curve/curve.csv"
    with pytest.raises(SettingError, match="does not have the sha256"):
        published.check(path)
    published.write_sums()
    published.check(path)
    table.write_text("a\n2\n")
    with pytest.raises(SettingError, match="does not have the sha256"):
        published.check(path)
