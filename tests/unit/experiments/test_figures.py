"""Every figure of every study, drawn from the published tables with an unknown data set and an unknown method."""

from __future__ import annotations

import re

import looked_at
import pandas as pd
import pytest

from privpost.drawing import figures, style
from privpost.lab import grid, tables
from privpost.report import captions

STUDIES = [name for name in grid.study_names() if grid.load_study(name).figures]
UNKNOWN = "made_up"
# Tiles of the winners alone: a copy of another method wins nowhere.
WINNERS = [("beta_bernoulli", "method")]
COPIED = ("laplace", "diffused", "gibbs", "naive")


def with_unknown(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table with one more data set and one more method, whose rows are copies of those of a known one."""
    for column, sources in (("dataset", ()), ("method", COPIED)):
        if column in table:
            source = next((name for name in sources if (table[column] == name).any()), table[column].dropna().iloc[0])
            table = pd.concat([table, table[table[column] == source].assign(**{column: UNKNOWN})], ignore_index=True)
    return table


def words(figure) -> str:
    return " ".join(re.sub(r"\s+", " ", text.get_text()) for text in looked_at.texts(figure))


@pytest.mark.parametrize("name", STUDIES)
def test_nothing_is_cut_off_and_the_unknown_is_shown(name):
    study = grid.load_study(name)
    whole = {table: with_unknown(frame) for table, frame in tables.read_tables(study).items()}
    functions = figures.functions(study.module("figures"))
    assert list(functions) == study.figures
    shown: dict[tuple[str, str], bool] = {}
    for stem, function in functions.items():
        with style.context():
            figure = figures.draw(function, whole)
            assert figure.get_figwidth() <= style.WIDTH, stem
            assert looked_at.faults(figure) == [], stem
            text = words(figure)
            style.close(figure)
        for table in figures.parameters(function):
            for column in {"dataset", "method"} & set(whole[table]):
                shown[table, column] = shown.get((table, column), False) or "Made up" in text
    hidden = [key for key, seen in shown.items() if not seen and key not in WINNERS]
    assert hidden == [], "an unknown value appears at the end, never nowhere"


def unsaid(given: dict[str, pd.DataFrame], text: str) -> list[str]:
    """Return what a figure's text, with its caption, lacks: the notion of its ε, and numbers that do not vary."""
    lacking = []
    for name, column in ((name, column) for name in given for column in ("epsilon", "order", "delta", "n")):
        values = given[name][column].dropna().unique() if column in given[name] else ()
        if column == "epsilon" and len(values) and not re.search(r"pure|DP\b|[Dd]ifferential|Rényi", text):
            lacking.append(f"{name}: no notion of privacy")
        if len(values) == 1:
            number = float(values[0])
            forms = {f"{number:g}", f"{number:,g}", style.power(number), f"{number:,.0f}" * (number >= 1)} - {""}
            if not any(re.search(rf"(?<![\d.]){re.escape(form)}(?![\d.]*\d)", text) for form in forms):
                lacking.append(f"{name}: {column} = {number:g}")
    return lacking


@pytest.mark.parametrize("name", STUDIES)
def test_what_does_not_vary_is_printed_and_so_is_the_notion_of_privacy(name):
    study = grid.load_study(name)
    frames, said = tables.read_tables(study), captions.of_study(study)
    for stem, function in figures.functions(study.module("figures")).items():
        given = {table: frames[table] for table in figures.parameters(function)}
        with style.context():
            figure = figures.draw(function, frames)
            text = f"{words(figure)} {said[stem].alternative}"
            style.close(figure)
        assert unsaid(given, text) == [], stem


def test_a_number_that_is_not_printed_is_found():
    given = {"one": pd.DataFrame({"epsilon": [0.1, 0.1], "n": [10, 20], "delta": 1e-6, "order": 2})}
    assert unsaid(given, "ε = 0.1 (pure DP), δ = 10⁻⁶, λ = 2") == []
    lacking = unsaid(given, "ε = 0.15, δ = 10⁻⁵, λ = 20")
    assert lacking == ["one: no notion of privacy", "one: epsilon = 0.1", "one: order = 2", "one: delta = 1e-06"]
