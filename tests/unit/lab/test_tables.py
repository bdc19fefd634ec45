"""Tables of any points: rows are told apart by the settings that differ, whatever columns the study has."""

from __future__ import annotations

import pandas as pd
import pytest

from privpost.__main__ import main as privpost
from privpost.lab import cells, request, tables

TABLE = "build/sweeps/*/curve.csv"


def tabulated(toy, monkeypatch, tabulate, *words):
    """Return the tables that a sweep gives when the toy study tabulates with `tabulate`."""
    monkeypatch.setattr(toy.study().module(), "tabulate", tabulate)
    asked = request.understand(["-m", "study=toy/curve", *words])
    assert cells.compute_each(asked.study, asked.cells) == {}
    results = list(map(cells.stored, asked.cells))
    return tables.of_points(asked.study, asked.cells, results, map(request.key_of, asked.settings))


def test_every_setting_that_differs_is_a_column(toy, monkeypatch):
    made = tabulated(toy, monkeypatch, lambda some: pd.DataFrame({"mean": [1.0, 2.0]}), "seed=1,2,3", "level=1,4")
    table = made.tables["curve"]
    assert len(table) == 12
    assert list(table) == ["level", "seed", "mean"]
    assert table.groupby(["level", "seed"]).size().eq(2).all()
    assert made.columns == {"curve": ["level", "seed"]}


def test_a_range_has_the_numbers_that_a_list_has(toy):
    words = ["-m", "study=toy/curve", "method=a"]
    ranged, listed = (
        request.understand([*words, f"level={values}"]) for values in ("range(0.1,0.5,0.1)", "0.1,0.2,0.3,0.4")
    )
    assert [cell.digest for cell in ranged.cells] == [cell.digest for cell in listed.cells]


def test_an_override_of_one_value_is_a_column_too(toy, monkeypatch):
    made = tabulated(toy, monkeypatch, lambda some: pd.DataFrame({"mean": [1.0]}), "level=3", "seed=1,2")
    assert made.tables["curve"]["level"].tolist() == [3, 3]


@pytest.mark.parametrize(
    "entries", [[None, 1.0], [7.0, 7.0], [1.0, 2.0]], ids=["an average", "another value", "several in a point"]
)
def test_a_column_that_does_not_hold_the_points_value_stays_beside_it(toy, monkeypatch, entries):
    """An empty entry may be an average over the setting: it does not take the point's value."""
    made = tabulated(toy, monkeypatch, lambda some: pd.DataFrame({"level": entries, "mean": 1.0}), "level=1,4")
    table = made.tables["curve"]
    assert table["level"].tolist()[1] == entries[1]
    assert table["level_setting"].tolist() == [1, 1, 4, 4]
    assert made.columns == {"curve": ["level_setting"]}


@pytest.mark.parametrize("joined", [1, 2])
def test_a_table_does_not_depend_on_how_many_points_are_joined_at_once(toy, monkeypatch, joined):
    def some(results):
        """A setting's column with empty entries, one that some points lack, and a text."""
        level = results[0].config.level
        lacking = {} if level == 5 else {"seen": [level, 7]}
        return pd.DataFrame({"level": [None, level / 1], **lacking, "text": ["a", f"{level}"], "empty": [None, None]})

    sweep = ("level=1,4,5", "seed=1,2")
    whole = tabulated(toy, monkeypatch, some, *sweep)
    monkeypatch.setattr(tables, "JOINED", joined)
    pieces = tabulated(toy, monkeypatch, some, *sweep)
    pd.testing.assert_frame_equal(pieces.tables["curve"], whole.tables["curve"])
    assert pieces.columns == whole.columns
    assert whole.tables["curve"]["level_setting"].tolist() == [1] * 4 + [4] * 4 + [5] * 4


def test_lists_of_an_axis_within_cells_are_told_apart_though_they_share_values(toy):
    assert privpost(["-m", "study=toy/curve", "order=[2,3],[3,4]"]) == 0
    (path,) = toy.folder.glob(TABLE)
    table = pd.read_csv(path)
    assert set(table["order_setting"]) == {"2.0 3.0", "3.0 4.0"}
    assert not table.duplicated().any()


def test_a_point_whose_results_cannot_be_tabulated_costs_no_other_one_its_rows(toy, monkeypatch, capsys):
    module = toy.study().module()
    tabulate = module.tabulate

    def failing(some):
        if any(cell.config.level == 4 for cell in some):
            raise KeyError("no such level")
        return tabulate(some)

    monkeypatch.setattr(module, "tabulate", failing)
    assert privpost(["-m", "study=toy/curve", "level=1,4,5"]) == 1
    said = capsys.readouterr()
    assert "privpost: level=4.0: KeyError: 'no such level'" in said.err
    assert "1 of 3 cells" in said.err
    (path,) = toy.folder.glob(TABLE)
    assert set(pd.read_csv(path)["level"]) == {1, 5}


def test_a_table_without_rows_is_left_out(toy, monkeypatch):
    made = tabulated(toy, monkeypatch, lambda some: pd.DataFrame({"mean": []}), "level=1,4")
    assert made.tables == {}
