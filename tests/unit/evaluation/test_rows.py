"""Rows of tables by the values of their columns, and tables as Markdown."""

from __future__ import annotations

import math
from collections import namedtuple
from types import SimpleNamespace

import pandas as pd
import pytest

from privpost.evaluation.rows import columns, framed, markdown, one, places, private_places, rendered, select

TABLE = pd.DataFrame({"method": ["ops", "ops", "laplace"], "n": [1, 2, 2], "epsilon": [0.1, math.nan, math.nan]})


def test_rows_have_all_of_the_values_and_none_stands_for_an_empty_cell():
    assert list(select(TABLE, method="ops").index) == [0, 1]
    assert list(select(TABLE, method="ops", n=2).index) == [1]
    assert list(select(TABLE, epsilon=None).index) == [1, 2]
    assert select(TABLE, method="gibbs").empty


def test_a_frame_has_the_named_columns_first_and_leaves_none_out():
    frame = framed(({"b": k, "c": k} if k else {"a": k} for k in range(2)), "b", "d", "a")
    assert list(frame) == ["b", "d", "a", "c"]
    assert frame.c.tolist()[1] == 1 and frame.d.isna().all()


def test_the_only_row_is_the_only_one():
    assert one(TABLE, n=2, method="laplace").name == 2
    for values in ({"n": 2}, {"n": 3}):
        with pytest.raises(ValueError, match="expected one"):
            one(TABLE, **values)


def test_bars_and_line_ends_stay_inside_a_cell():
    assert markdown(["a", "b"], [["x|y", "1\n2"]]) == "| a | b |\n| --- | --- |\n| x\\|y | 1 2 |"


def test_a_table_is_rendered_by_headings_and_what_stands_under_them():
    shown = (("method", lambda row: row.method.upper()), ("n", lambda row: row.n + 1), ("n", lambda row: row.n))
    assert rendered(TABLE[:1], shown) == "| method | n | n |\n| --- | --- | --- |\n| OPS | 2 | 1 |\n"


SETTINGS = SimpleNamespace(n=5, epsilon=[0.1, 1.0], method=["non_private", "ops"])


def test_places_are_in_the_order_of_arrays_and_give_the_values_of_axes():
    found = list(places(SETTINGS, "metric", "epsilon", metric=("error", "likelihood", "time")))
    assert [at for at, _ in found] == [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1)]
    assert columns(found[1][1], "metric", "n", "epsilon") == {"metric": "error", "n": 5, "epsilon": 1.0}
    assert SETTINGS.epsilon == [0.1, 1.0]


def test_a_named_tuple_gives_its_fields():
    line = namedtuple("line", "method variant")
    ((at, point),) = places(SETTINGS, "line", line=[line("map", "mass")])
    assert at == (0,) and columns(point, "method", "variant") == {"method": "map", "variant": "mass"}


def test_the_true_posterior_has_one_place_without_an_epsilon():
    found = [(at, point.method, point.epsilon) for at, point in private_places(SETTINGS, "epsilon", "method")]
    assert found == [((0, 0), "non_private", None), ((0, 1), "ops", 0.1), ((1, 1), "ops", 1.0)]
