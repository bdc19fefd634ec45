"""Colours of hidden states in the war logs' figures: one for each meaning, in all data sets."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from privpost.experiments.foulds2016.war_logs_states import figures
from privpost.lab import grid, tables


def emissions(*states: tuple[str, int, dict[str, float]]) -> pd.DataFrame:
    """Return a table of non-private emissions: data set, state and probabilities of levels of a first field."""
    given = {"method": "non_private", "start": "seeded"}
    first = [
        {**given, "dataset": dataset, "state": state, "field": "type", "level": level, "probability": value}
        for dataset, state, levels in states
        for level, value in levels.items()
    ]
    # A second field, which would say otherwise.
    second = [{**row, "field": "category", "probability": 1 - row["probability"]} for row in first]
    return pd.DataFrame(first + second)


def test_a_state_is_named_by_the_level_that_sets_it_apart_and_equal_names_have_equal_colours():
    """By hand: `b` is likelier than `a` in state 1 of x, too, but sets it apart from state 2 less."""
    table = emissions(
        ("x", 1, {"a": 0.4, "b": 0.5, "c": 0.1}),
        ("x", 2, {"a": 0.1, "b": 0.6, "c": 0.3}),
        ("y", 1, {"a": 0.1, "b": 0.1, "c": 0.8}),
        ("y", 2, {"a": 0.3, "b": 0.5, "c": 0.2}),
    )
    looks = figures._colors(table)
    assert {key: words for key, (words, _) in looks.items()} == {
        ("x", 1): "a", ("x", 2): "c", ("y", 1): "c", ("y", 2): "b",
    }  # fmt: skip
    colors = {key: color for key, (_, color) in looks.items()}
    assert colors["x", 2] == colors["y", 1]
    assert len(set(colors.values())) == 3


def test_two_states_of_one_data_set_never_share_a_colour():
    """By hand: `a` sets both states 1 and 2 apart from the third, and their names say which is which."""
    table = emissions(("x", 1, {"a": 0.9, "b": 0.1}), ("x", 2, {"a": 0.8, "b": 0.2}), ("x", 3, {"a": 0.0, "b": 1.0}))
    looks = figures._colors(table)
    assert [words for words, _ in looks.values()] == ["a, state 1", "a, state 2", "b"]
    assert len({color for _, color in looks.values()}) == 3


def lightness(color: str) -> float:
    """Return L* of CIELAB from the sRGB formulas of IEC 61966-2-1."""
    parts = np.array([int(color[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    luminance = linear @ (0.2126, 0.7152, 0.0722)
    return 116 * luminance ** (1 / 3) - 16


def test_states_of_one_data_set_differ_in_grey():
    """In the published tables, by at least 10 in lightness: a difference that areas side by side show in print."""
    study = grid.load_study("foulds2016/war_logs_states")
    looks = figures._colors(tables.read_tables(study)["war_logs_emissions"])
    assert len(looks) >= 8
    for dataset in {name for name, _ in looks}:
        values = sorted(lightness(color) for (name, _), (_, color) in looks.items() if name == dataset)
        assert min(np.diff(values)) >= 10, dataset


def test_published_meanings_are_those_of_the_dense_part_and_the_whole():
    """Two states of the dense part of Afghanistan mean what states of the whole mean, and have their colours."""
    study = grid.load_study("foulds2016/war_logs_states")
    looks = figures._colors(tables.read_tables(study)["war_logs_emissions"])
    whole = {look for (name, _), look in looks.items() if name == "afghanistan"}
    dense = {look for (name, _), look in looks.items() if name == "afghanistan_dense"}
    assert {words for words, _ in whole & dense} == {"non combat event", "enemy action"}
    assert lightness("#777777") == pytest.approx(50, abs=0.1)
