"""Every figure of every study, drawn from the published tables with an unknown data set and an unknown method."""

from __future__ import annotations

import re

import looked_at
import pandas as pd
import pytest

from privpost.drawing import facets, figures, style
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


# What a figure prints where all rows of a table have one value of it.
FIXED = ("epsilon", "order", "delta", "n")
NOTION = re.compile(r"\b[Pp]ure\b|DP\b|Rényi")


def unsaid(tables: dict[str, pd.DataFrame], text: str) -> list[str]:
    """Return the fixed settings of tables whose value a text lacks."""
    fixed = {
        (column, table[column].dropna().unique()[0])
        for table in tables.values()
        for column in {*FIXED} & {*table}
        if table[column].nunique() == 1
    }
    said = [facets.words(column, value).removesuffix(" (pure DP)") for column, value in fixed]
    return [words for words in said if words not in text]


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
        given = {table: whole[table] for table in figures.parameters(function)}
        assert unsaid(given, text) == [], stem
        private = any("epsilon" in table for table in given.values())
        assert not private or NOTION.search(f"{text} {captions.of_study(study)[stem].alternative}"), stem
        for table in figures.parameters(function):
            for column in {"dataset", "method"} & set(whole[table]):
                shown[table, column] = shown.get((table, column), False) or "Made up" in text
    hidden = [key for key, seen in shown.items() if not seen and key not in WINNERS]
    assert hidden == [], "an unknown value appears at the end, never nowhere"


def test_a_fixed_setting_that_no_text_has_is_found():
    table = pd.DataFrame({"epsilon": [0.1, None], "n": [10, 20]})
    assert unsaid({"toy": table}, "n = 10, ε = 0.5") == ["ε = 0.1"] and unsaid({"toy": table}, "ε = 0.1") == []
