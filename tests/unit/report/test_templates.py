"""Filters that write numbers, and the detection of typed numbers."""

from __future__ import annotations

import pytest
from typed_numbers import bare_numbers

from privpost.report import templates


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("0.123456", "0.1235"),
        ("12", "12"),
        ("-2.5 | fixed(1)", "−2.5"),
        ("0.000123 | scientific", "1.2e−04"),
        ("75.0 | duration", "75 s"),
        ("150.0 | duration", "2 min"),
        ("7200.0 | duration", "2.0 h"),
        ("0.5 | percent", "50 %"),
        ("true", "True"),
        ('"0.05"', "0.05"),
    ],
)
def test_numbers_are_written_for_readers(expression, text):
    assert templates.environment().from_string(f"{{{{ {expression} }}}}").render() == text


def test_a_function_that_is_not_called_stops_the_build():
    with pytest.raises(TypeError, match="is a function: call it"):
        templates.environment().from_string("{{ f }}").render(f=test_numbers_are_written_for_readers)


def test_an_estimate_without_an_error_is_no_estimate():
    with pytest.raises(ValueError, match="has no standard error"):
        templates.pm(templates.Estimate(0.5))


@pytest.mark.parametrize(
    "text",
    ["took 12 s", "in 3.5 minutes", "falls by 20 %", "20% of", "a ratio of 0.31", "13 claims", "4 MB", "2,784 rows"]
    + [f"{number} {what}" for number in (3, 5000) for what in ("draws", "releases", "splits", "trials", "data sets")],
)
def test_bare_numbers_are_found(text):
    assert bare_numbers(text)


@pytest.mark.parametrize(
    "text",
    ["`sleep 3 s`", "{{ total(3.5) | duration }}", "{% if 3.5 %}", "Mironov 2012", "[x](fig3.5.png)", "two claims"],
)
def test_other_numbers_are_left_alone(text):
    assert bare_numbers(text) == []
