"""Tables of any points: rows are told apart by the settings that differ, whatever columns the study has."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

from privpost.__main__ import main as privpost
from privpost.drawing import style, sweep
from privpost.lab import cells, points, request

TABLE = "build/sweeps/*/curve.csv"


def tabulated(toy, monkeypatch, tabulate, *words):
    """Return the points that a sweep gives when the toy study tabulates with `tabulate`."""
    monkeypatch.setattr(toy.study().module(), "tabulate", tabulate)
    asked = request.understand(["-m", "study=toy/curve", *words])
    assert cells.compute_each(asked.study, asked.cells) == {}
    results = list(map(cells.stored, asked.cells))
    return points.tabulate(asked.study, asked.cells, results, map(request.key_of, asked.settings))


def test_every_setting_that_differs_is_a_column(toy, monkeypatch):
    made = tabulated(toy, monkeypatch, lambda found: pd.DataFrame({"mean": [1.0, 2.0]}), "seed=1,2,3", "level=1,4")
    table = made.tables["curve"]
    assert len(table) == 12
    assert list(table) == ["level", "seed", "mean"]
    assert table.groupby(["level", "seed"]).size().eq(2).all()
    assert made.settings == {"level": {"curve": "level"}, "seed": {"curve": "seed"}}


def test_a_range_has_the_numbers_that_a_list_has(toy):
    words = ["-m", "study=toy/curve", "method=a"]
    ranged, listed = (
        request.understand([*words, f"level={values}"]) for values in ("range(0.1,0.5,0.1)", "0.1,0.2,0.3,0.4")
    )
    assert [cell.digest for cell in ranged.cells] == [cell.digest for cell in listed.cells]
    # What a launcher's jobs are told, too.
    assert ranged.runs == listed.runs


def test_an_override_of_one_value_is_a_column_too(toy, monkeypatch):
    made = tabulated(toy, monkeypatch, lambda found: pd.DataFrame({"mean": [1.0]}), "level=3", "seed=1,2")
    assert made.tables["curve"]["level"].tolist() == [3, 3]


def test_an_empty_entry_of_a_swept_setting_is_the_points_own(toy, monkeypatch):
    def two(found):
        return pd.DataFrame({"level": [None, found[0].config.level], "mean": [1.0, 2.0]})

    assert tabulated(toy, monkeypatch, two, "level=1,4").tables["curve"]["level"].tolist() == [1, 1, 4, 4]


def test_an_empty_entry_takes_what_the_point_has_in_its_other_rows(toy, monkeypatch):
    def two(found):
        return pd.DataFrame({"level": [None, 10.0 * found[0].config.level], "mean": [1.0, 2.0]})

    assert tabulated(toy, monkeypatch, two, "level=1,4").tables["curve"]["level"].tolist() == [10, 10, 40, 40]


@pytest.mark.parametrize("entries", [[7.0, 7.0], [1.0, 2.0]], ids=["equal in all points", "several in a point"])
def test_a_column_of_the_settings_name_that_does_not_tell_points_apart_stays_beside_it(toy, monkeypatch, entries):
    made = tabulated(toy, monkeypatch, lambda found: pd.DataFrame({"level": entries}), "level=1,4")
    table = made.tables["curve"]
    assert table["level"].tolist() == entries * 2
    assert table["level_setting"].tolist() == [1, 1, 4, 4]


@pytest.mark.parametrize("joined", [1, 2])
def test_a_table_does_not_depend_on_how_many_points_are_joined_at_once(toy, monkeypatch, joined):
    def some(found):
        """A setting's column with empty entries, one that some points lack, and a text."""
        level = found[0].config.level
        lacking = {} if level == 5 else {"seen": [level, 7]}
        return pd.DataFrame({"level": [None, level / 1], **lacking, "text": ["a", f"{level}"], "empty": [None, None]})

    sweep = ("level=1,4,5", "seed=1,2")
    whole = tabulated(toy, monkeypatch, some, *sweep)
    monkeypatch.setattr(points, "JOINED", joined)
    pieces = tabulated(toy, monkeypatch, some, *sweep)
    pd.testing.assert_frame_equal(pieces.tables["curve"], whole.tables["curve"])
    assert pieces.settings == whole.settings
    assert whole.tables["curve"]["level"].tolist() == [1] * 4 + [4] * 4 + [5] * 4
    # Texts of Arrow would be a piece a point, each of a kilobyte.
    assert whole.tables["curve"]["text"].dtype.storage == "python"


def test_lists_of_an_axis_within_cells_are_told_apart_though_they_share_values(toy):
    assert privpost(["-m", "study=toy/curve", "order=[2,3],[3,4]"]) == 0
    (path,) = toy.folder.glob(TABLE)
    table = pd.read_csv(path)
    assert set(table["order_setting"]) == {"2.0 3.0", "3.0 4.0"}
    assert not table.duplicated().any()


def test_a_point_whose_results_cannot_be_tabulated_costs_no_other_one_its_rows(toy, monkeypatch, capsys):
    module = toy.study().module()
    tabulate = module.tabulate

    def failing(found):
        if any(cell.config.level == 4 for cell in found):
            raise KeyError("no such level")
        return tabulate(found)

    monkeypatch.setattr(module, "tabulate", failing)
    assert privpost(["-m", "study=toy/curve", "level=1,4,5"]) == 1
    said = capsys.readouterr()
    assert "privpost: a-4: KeyError: 'no such level'" in said.err
    assert "1 of 3 cells" in said.err
    (path,) = toy.folder.glob(TABLE)
    assert set(pd.read_csv(path)["level"]) == {1, 5}


def test_a_table_without_rows_is_left_out_and_named(toy, monkeypatch):
    made = tabulated(toy, monkeypatch, lambda found: pd.DataFrame({"mean": []}), "level=1,4")
    assert made.tables == {}
    assert made.notes(2) == ["The table curve is left out: these points have no row in it."]


def curves(figure) -> list[tuple]:
    """Return panel, colour, line style and marker of every curve of a figure."""
    return [
        (place, str(line.get_color()), line.get_linestyle(), line.get_marker())
        for place, axes in enumerate(figure.axes)
        for line in axes.get_lines()
        if len(line.get_xdata()) > 1 and line.get_linestyle() != "None"
    ]


def product(**axes) -> pd.DataFrame:
    """Return a table with a row for each combination, and measured columns."""
    table = pd.MultiIndex.from_product(axes.values(), names=axes).to_frame(index=False)
    return table.assign(mean=range(len(table)), sem=0.5, released=table.index % 2 == 0, n_repeats=7)


def test_no_two_curves_of_a_panel_look_alike_and_truth_values_are_no_measures():
    axes = {"order": [1.0, 2.0], "alpha": [1.0, 2, 3, 4, 5, 6], "beta": [1.0, 2, 3], "kind": list("ab")}
    with style.context():
        table = product(epsilon=[0.1, 1.0, 10.0, 100.0, 3.0, 4.0, 5.0], **axes)
        parts = sweep.layout(table, ["alpha", "beta"], {*axes, "epsilon"})
        figure, notes = sweep.draw(table, ["alpha", "beta"], {*axes, "epsilon"}, "toy")
    assert parts.x == "epsilon" and parts.measures == ["mean"]
    assert {parts.x, parts.hue, *parts.styles, *parts.facets} == {*axes, "epsilon"}
    found = curves(figure)
    assert len(found) == len(set(found)) == 2 * 6 * 3 * 2
    assert notes == []
    style.close(figure)


def test_many_values_get_a_bar_of_colours_and_words_an_axis():
    with style.context():
        figure, _ = sweep.draw(product(epsilon=[1.0, 2.0], seed=list(range(150))), ["seed"], {"epsilon", "seed"})
        assert len({curve[1] for curve in curves(figure)}) == 150 or len(figure.axes) == 2
        words, _ = sweep.draw(product(kind=["one", "two", "three"]), ["kind"], {"kind"})
    assert [text.get_text() for text in words.axes[0].get_xticklabels()] == ["one", "two", "three"]
    for made in (figure, words):
        style.close(made)


def test_what_does_not_fit_is_said_and_the_legend_is_inside():
    with style.context():
        table = product(epsilon=[1.0, 2.0], method=[f"method {i}" for i in range(6)], alpha=[1.0, 2, 3, 4, 5])
        table[[f"measure_{i}" for i in range(8)]] = [[i * j for j in range(8)] for i in range(len(table))]
        figure, notes = sweep.draw(table, ["alpha"], {"epsilon", "method", "alpha"})
        figure.canvas.draw()
        (legend,) = figure.legends
        box = legend.get_window_extent()
    assert notes == ["The figure shows 6 of 8 rows of panels; the table has all."]
    assert box.x0 >= 0 and box.y0 >= 0 and box.x1 <= figure.bbox.x1
    style.close(figure)


def test_labels_that_are_long_are_told_apart_and_titles_do_not_overlap():
    methods = ["non_private", "laplace", "fourier", "sampler_record", "sampler_attribute", "map"]
    kinds = [f"a supremum over the pairs of neighbours that is {word}" for word in ("exact", "printed")]
    axes = {"epsilon": [1.0, 2.0], "coefficient": [0.2, 0.37], "seed": [1, 2], "supremum": kinds, "method": methods}
    with style.context():
        figure, _ = sweep.draw(product(**axes), ["coefficient", "seed"], set(axes))
        figure.canvas.draw()
        labels = [text.get_text() for text in figure.legends[0].get_texts()]
        boxes = [axes.title.get_window_extent() for axes in figure.axes[:6]]
    assert len(labels) == len(set(labels))
    assert not any("…" in label for label in labels)
    assert all(left.x1 < right.x0 for left, right in itertools.pairwise(boxes))
    style.close(figure)


def test_a_grid_that_is_no_setting_is_the_horizontal_axis():
    """Densities of θ in steps: over n they would be vertical lines, joined by a zigzag."""
    table = product(n=[13, 77], theta=[0.0, 0.25, 0.5, 0.75], draw=[0.0, 1.0])
    with style.context():
        parts = sweep.layout(table, ["n"], {"n"})
        figure, _ = sweep.draw(table, ["n"], {"n"})
        labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert (parts.x, parts.hue, parts.styles, parts.measures) == ("theta", "n", ["draw"], ["mean"])
    assert all(np.all(np.diff(line.get_xdata()) > 0) for axes in figure.axes for line in axes.get_lines())
    assert "draw 0" in labels
    style.close(figure)


def test_rows_that_nothing_tells_apart_are_not_joined_and_what_no_metric_changes_is_drawn_once():
    table = product(n=[13, 77], metric=["kl", "ks"], alpha=[1.0, 2.0])
    table["setting"] = table.n * table.alpha
    twice = pd.concat([table, table.assign(mean=table["mean"] + 0.5)])
    with style.context():
        figure, _ = sweep.draw(table, ["n", "alpha"], {"n", "alpha"})
        again, _ = sweep.draw(twice, ["n", "alpha"], {"n", "alpha"})
    assert [axes.get_ylabel() for axes in figure.axes] == ["mean kl", "mean ks", "setting"]
    assert all(line.get_linestyle() == "None" for line in again.axes[0].get_lines())
    for made in (figure, again):
        style.close(made)


def test_infinite_values_are_left_out_of_the_figure_and_named():
    table = product(n=[13, 77], alpha=[1.0, 2.0])
    with style.context():
        figure, notes = sweep.draw(table.assign(cost=[1.0, 2.0, 3.0, np.inf]), ["n", "alpha"], {"n", "alpha"})
    assert notes == ["The figure leaves out infinite values of cost; the table has all."]
    style.close(figure)


def test_long_curves_of_many_keys_have_markers_too():
    table = product(alpha=list(np.arange(40.0)), n=[1, 3, 10, 100, 1000, 10_000], a0=[0.1, 0.2])
    with style.context():
        figure, _ = sweep.draw(table, ["alpha", "a0"], {"alpha", "n", "a0"})
    found = curves(figure)
    assert len(found) == len(set(found)) == 12
    style.close(figure)
