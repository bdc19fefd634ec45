"""Rows of tables by the values of their columns, and tables as Markdown."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from privpost.evaluation.rows import markdown, one, select

TABLE = pd.DataFrame({"method": ["ops", "ops", "laplace"], "n": [1, 2, 2], "epsilon": [0.1, math.nan, math.nan]})


def test_rows_have_all_of_the_values_and_none_stands_for_an_empty_cell():
    assert list(select(TABLE, method="ops").index) == [0, 1]
    assert list(select(TABLE, method="ops", n=2).index) == [1]
    assert list(select(TABLE, epsilon=None).index) == [1, 2]
    assert select(TABLE, method="gibbs").empty


def test_the_only_row_is_the_only_one():
    assert one(TABLE, n=2, method="laplace").name == 2
    for values in ({"n": 2}, {"n": 3}):
        with pytest.raises(ValueError, match="expected one"):
            one(TABLE, **values)


def test_bars_and_line_ends_stay_inside_a_cell():
    assert markdown(["a", "b"], [["x|y", "1\n2"]]) == "| a | b |\n| --- | --- |\n| x\\|y | 1 2 |"
