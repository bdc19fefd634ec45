"""Quotations from tables: cells, extremes, counts and small tables."""

from __future__ import annotations

import pytest

from privpost.report import templates
from privpost.report.quotes import Quotes

TABLE = """\
method,prior,epsilon,mean,sem
ops,"Beta(1, 1)",0.1,0.25,0.01
ops,"Beta(1, 1)",2.15443,-0.5,0.02
laplace,"Beta(1, 1)",0.1,0.75,0.03
laplace,"Beta(1, 1)",2.15443,1.5,0.04
non_private,"Beta(2, 2)",,0.125,
"""


@pytest.fixture
def quotes(tmp_path) -> Quotes:
    (tmp_path / "paper").mkdir()
    (tmp_path / "paper" / "table.csv").write_text(TABLE)
    return Quotes(tmp_path, {"cells": 12})


@pytest.mark.parametrize(
    ("quotation", "text"),
    [
        ("cells", "12"),
        ("paper/table[method=ops, epsilon=0.1].mean | .3f", "0.250"),
        ("paper/table[method=ops, epsilon=2.154].mean | .1f", "−0.5"),
        ("paper/table[epsilon=].mean", "0.125"),
        ("paper/table[method=ops, epsilon>1].mean ± sem | .2f", "−0.50 ± 0.02"),
        ("paper/table[prior=Beta(2, 2)].method", "non_private"),
        ("largest paper/table[method!=laplace].mean", "0.25"),
        ("smallest paper/table[].mean", "−0.5"),
        ("median paper/table[method=ops or non_private].mean", "0.125"),
        ("count paper/table[method=ops or laplace, epsilon<=1]", "2"),
        ("constant 0.05", "0.05"),
    ],
)
def test_quotations(quotes, quotation, text):
    assert templates.render(f"{{{{ {quotation} }}}}", quotes) == text


def test_a_table_repeats_what_has_no_place_on_its_axis(quotes):
    text = templates.render(
        "{{ table paper/table[] rows method (method) columns epsilon (ε) value mean | .2f }}", quotes
    )
    assert text.splitlines() == [
        "| method | ε = 0.1 | ε = 2.154 |",
        "| --- | --- | --- |",
        "| OPS | 0.25 | −0.50 |",
        "| Laplace | 0.75 | 1.50 |",
        "| True posterior | 0.12 | 0.12 |",
    ]


def test_a_table_of_the_largest_of_several_rows(quotes):
    quotation = "table paper/table[epsilon>0] rows prior columns epsilon value largest mean"
    text = templates.render(f"{{{{ {quotation} | .2f }}}}", quotes)
    assert text.splitlines()[2:] == ["| Beta(1, 1) | 0.75 | 1.50 |"]


def test_cells_of_rows_that_are_not_sound_stand_in_brackets(quotes):
    quotes.tables["paper/table"] = quotes._rows("", "paper/table", "").assign(sound=lambda rows: rows["mean"] > 0)
    quotation = "table paper/table[] rows method (method) columns epsilon (ε) value mean ± sem unless sound"
    lines = templates.render(f"{{{{ {quotation} | .2f }}}}", quotes).splitlines()
    assert [line.count("(") for line in lines] == [0, 0, 1, 0, 0]
    assert "| (−0.50 ± " in lines[2]


@pytest.mark.parametrize(
    ("quotation", "message"),
    [
        ("paper/table[method=ops].mean", "2 rows fit, but one value is quoted"),
        ("paper/table[method=gaussian].mean", "0 rows fit"),
        ("paper/table[epsilon=].median", "'median' is none of the columns method, prior"),
        ("paper/table[order=2].mean", "'order=2' is no condition on the columns"),
        ("largest paper/table[method=gaussian].mean", "no row fits"),
        ("table paper/table[] rows prior columns epsilon value mean", "two rows fit at epsilon = 0.1"),
        ("table paper/table[] rows order columns epsilon value mean", "the table has no column order"),
        ("cels", r"no number 'cels'\. Did you mean 'cells'"),
    ],
)
def test_a_quotation_that_does_not_fit_stops_the_build(quotes, quotation, message):
    with pytest.raises(ValueError, match=message):
        templates.render(f"{{{{ {quotation} }}}}", quotes)
