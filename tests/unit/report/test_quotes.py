"""Quotations from tables: cells, extremes, counts and small tables."""

from __future__ import annotations

import pytest

from privpost.report import scorecard, templates
from privpost.report.quotes import Quotes
from privpost.report.scorecard import Scored

TABLE = """\
method,prior,epsilon,n,mean,sem,sound
ops,"Beta(1, 1)",0.1,2999,0.25,0.01,True
ops,"Beta(1, 1)",2.15443,3000,-0.5,0.02,False
laplace,"Beta(1, 1)",0.1,3000,0.75,0.03,True
laplace,"Beta(1, 1)",2.15443,3000,1.5,0.04,True
non_private,"Beta(2, 2)",,3000,0.125,,True
"""


@pytest.fixture
def quotes(tmp_path, claim) -> Quotes:
    (tmp_path / "paper").mkdir()
    (tmp_path / "paper/table.csv").write_text(TABLE)
    evidence = {"largest": {"paper": 0.25}, "bound": float("inf")}
    scorecard.write([Scored("paper/one", [claim("G1", evidence=evidence)])], tmp_path / "scorecard.csv")
    return Quotes(tmp_path)


def render(quotes: Quotes, text: str) -> str:
    return templates.environment().from_string(text).render(quotes.names())


@pytest.mark.parametrize(
    ("quotation", "text"),
    [
        ('cell("paper/table", "mean", method="ops", epsilon=0.1) | fixed(3)', "0.250"),
        ('cell("paper/table", "mean", method="ops", epsilon=2.154) | fixed(1)', "−0.5"),
        ('cell("paper/table", "mean", epsilon=none)', "0.125"),
        ('cell("paper/table", "mean", method="ops", epsilon=above(1)) | pm(2)', "−0.50 ± 0.02"),
        ('cell("paper/table", "mean", method="ops", n=3000)', "−0.5"),
        ('cell("paper/table", "method", prior="Beta(2, 2)")', "non_private"),
        ('cell("paper/table", "n", prior="Beta(2, 2)")', "3000"),
        ('largest("paper/table", "mean", method=unlike("laplace"))', "0.25"),
        ('smallest("paper/table", "mean")', "−0.5"),
        ('median("paper/table", "mean", method=["ops", "non_private"])', "0.125"),
        ('total("paper/table", "mean", method="laplace")', "2.25"),
        ('count("paper/table", sound=true)', "4"),
        ('verdict("G1")', "holds"),
        ('number("G1/largest/paper") | percent', "25 %"),
        ('number("G1/bound") | digits', "inf"),
    ],
)
def test_quotations(quotes, quotation, text):
    assert render(quotes, f"{{{{ {quotation} }}}}") == text


def test_a_build_quotes_the_published_table_of_a_benchmark(checkout, quotes):
    """No rebuild makes such a table, though the documents of a build quote it."""
    assert render(quotes, '{{ cell("scale", "size", what="compute a shard") | fixed(0) }}') == "1000"
    with pytest.raises(FileNotFoundError, match=r"other\.csv does not exist"):
        render(quotes, '{{ cell("other", "size") }}')


def test_a_table_repeats_what_has_no_place_on_its_axis(quotes):
    text = render(quotes, '{{ pivot("paper/table", rows="method", columns="epsilon", value="mean") | fixed }}')
    assert text.splitlines() == [
        "| method | ε = 0.1 | ε = 2.154 |",
        "| --- | --- | --- |",
        "| OPS | 0.25 | −0.50 |",
        "| Laplace | 0.75 | 1.50 |",
        "| Non-private | 0.12 | 0.12 |",
    ]


def test_a_table_of_the_largest_of_several_rows_under_headings_of_its_own(quotes):
    call = 'pivot("paper/table", {"prior": "law"}, {"epsilon": "budget"}, "mean", how="largest", epsilon=above(0))'
    lines = render(quotes, f"{{{{ {call} | digits(1) }}}}").splitlines()
    assert lines[0] == "| law | budget = 0.1 | budget = 2.154 |"
    assert lines[2:] == ["| Beta(1, 1) | 0.8 | 2 |"]


def test_cells_of_rows_that_are_not_sound_stand_in_brackets(quotes):
    call = 'pivot("paper/table", "method", "epsilon", "mean", unless="sound", method=["ops", "laplace"])'
    lines = render(quotes, f"{{{{ {call} | pm(2) }}}}").splitlines()
    assert [line.count("(") for line in lines] == [0, 0, 1, 0]
    assert "| (−0.50 ± 0.02) |" in lines[2]
    assert "(−0.5) |" in render(quotes, f"{{{{ {call} | digits(2) }}}}")


@pytest.mark.parametrize(
    ("quotation", "message"),
    [
        ('cell("paper/table", "mean", method="ops")', "paper/table, method='ops': 2 rows fit, but one value is quoted"),
        ('cell("paper/table", "mean", method="gaussian")', "0 rows fit"),
        ('cell("paper/table", "median", epsilon=none)', "'median' is none of the columns method, prior"),
        ('cell("paper/table", "mean", order=2)', "'order' is none of the columns"),
        ('cell("paper/table", "n", prior="Beta(2, 2)") | pm', ""),
        ('largest("paper/table", "mean", method="gaussian")', "no row fits"),
        ('pivot("paper/table", "prior", "epsilon", "mean")', "two rows fit at epsilon = 0.1"),
        ('pivot("paper/table", "order", "epsilon", "mean")', "the table has no column order"),
        ('number("G1/largest/papr")', r"no number 'G1/largest/papr'\. Did you mean 'G1/largest/paper'"),
        ('cell("paper/table", "mean", epsilon=none) | fixd', "No filter named 'fixd'"),
        ("cels()", "'cels' is undefined"),
    ],
)
def test_a_quotation_that_does_not_fit_stops_the_build(quotes, quotation, message):
    from jinja2 import TemplateError

    if not message:
        assert render(quotes, f"{{{{ {quotation} }}}}") == "3000"
        return
    with pytest.raises((ValueError, TemplateError), match=message):
        render(quotes, f"{{{{ {quotation} }}}}")


def test_what_was_quoted_is_remembered(quotes):
    render(quotes, '{{ largest("paper/table", "mean") }}{{ verdict("G1") }}')
    assert list(quotes.asked) == [("paper/table", "mean"), ("scorecard", "G1/verdict")]


@pytest.mark.parametrize(
    ("value", "count", "text"),
    [(6047.2, 3, "6,050"), (-909.66, 2, "−910"), (4.7e-10, 2, "4.7e−10"), (2.5e8, 2, "2.5e+08"), (0.853, 3, "0.853")],
)
def test_numbers_with_few_digits_are_written_out(value, count, text):
    assert templates.digits(value, count) == text
