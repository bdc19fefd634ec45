"""What YAML and editors make of a text, and files that are no CSV in UTF-8: one line says what to do."""

from __future__ import annotations

import gzip

import pytest
from release_cases import content

HEAD = "model: {}\nn: 4\nepsilon: 1\n"


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("columns:\n  no: {levels: [a, b]}\n", "the name of a column: YAML reads an unquoted yes, no, true"),
        ("columns:\n  2020: {levels: [a, b]}\n", "YAML reads 2020 as a number, not a text; quote it"),
        ("columns:\n  null: {levels: [a, b]}\n", "YAML reads an unquoted null or ~"),
        ("columns:\n  2020-01-31: {levels: [a, b]}\n", "YAML reads 2020-01-31 as a date, not a text; quote it"),
        ("columns:\n  x: {levels: [a, null]}\n", "levels: YAML reads an unquoted null or ~"),
        ("columns:\n  x: {levels: [a, b], missing_texts: [no]}\n", "missing_texts: YAML reads an unquoted yes, no"),
        ("columns:\n  x: {levels: [a, b], missing_texts: [999]}\n", "missing_texts: YAML reads 999 as a number"),
        ("columns:\n  x: {levels: [a, b], missing_texts: [~]}\n", "missing_texts: YAML reads an unquoted null"),
        ("columns:\n  x: {levels: [a, b], missing_texts: ['NaN', '']}\n", "'' is always missing; leave it out"),
        ("columns:\n  x: {levels: [a, b], missing: {impute: no}}\n", "impute: YAML reads an unquoted yes, no"),
        ("columns:\n  x: {levels: [a, b], missing: {impute: null}}\n", "impute: YAML reads an unquoted null"),
        ("columns:\n  x: {levels: [a, b], missing: {impute: 2020-01-31}}\n", "impute: YAML reads 2020-01-31 as a date"),
    ],
)
def test_a_text_that_yaml_reads_as_something_else_is_to_be_quoted(folder, text, hint):
    folder.specify(HEAD.format("beta_bernoulli") + text)
    status, out, err = folder.run()
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert hint in err


@pytest.mark.parametrize(("parent", "hint"), [("no", "as False; quote it"), ("1", "YAML reads 1 as a number")])
def test_parents_are_texts(folder, parent, hint):
    columns = "columns:\n  'no': {levels: [a, b]}\n  x: {levels: [a, b], parents: [" + parent + "]}\n"
    folder.specify(HEAD.format("bayesian_network") + columns)
    status, _, err = folder.run()
    assert (status, "parents: " in err, hint in err) == (2, True, True)


@pytest.mark.parametrize(
    ("model", "row"), [("beta_bernoulli", "smokes\nyes\n no\n"), ("bounded_sum", "minutes\n1\n2 \n")]
)
def test_blanks_around_a_value_are_named(folder, model, row):
    folder.specify(content(model))
    folder.data(row)
    status, _, err = folder.run()
    assert status == 2
    assert "row 2, column" in err
    assert "has blanks around its value, which count, and must hold" in err
    folder.data(row.replace(" no", " nope").replace("2 ", "two "))
    assert "blanks" not in folder.run()[2]


@pytest.mark.parametrize(
    ("written", "hint"),
    [
        (lambda text: gzip.compress(text.encode()), "data.csv is compressed with gzip; unpack it first"),
        (lambda text: text.encode("utf-16"), "data.csv is UTF-16 text, but must be UTF-8"),
        (lambda text: text.encode("utf-16-le"), "data.csv is UTF-16 text, but must be UTF-8"),
        (lambda text: text.encode("utf-16-be"), "data.csv is UTF-16 text, but must be UTF-8"),
    ],
)
def test_a_file_that_is_no_utf8_says_what_it_is(folder, written, hint):
    folder.specify(content("beta_bernoulli"))
    (folder.path / "data.csv").write_bytes(written("smokes\nno\nyes\nno\nno\n"))
    status, out, err = folder.run()
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert hint in err
