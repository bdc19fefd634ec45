"""The figure of any sweep: every row is drawn once, nothing is cut, and it says what it hides."""

from __future__ import annotations

import itertools

import looked_at
import numpy as np
import pandas as pd
import pytest

from privpost.drawing import style, sweep


@pytest.fixture(autouse=True)
def in_style():
    import matplotlib.pyplot as plt

    with style.context():
        yield
        plt.close("all")


def product(**axes) -> pd.DataFrame:
    """Return a table with a row for each combination, and measured columns."""
    table = pd.MultiIndex.from_product(axes.values(), names=axes).to_frame(index=False)
    return table.assign(mean=range(1, len(table) + 1), sem=0.5, released=table.index % 2 == 0, n_repeats=7)


def curves(figure) -> list[tuple]:
    """Return panel, colour, dashes and marker of every curve of a figure; caps of bars are none."""
    return [
        (place, line.get_color(), line._unscaled_dash_pattern, line.get_marker())
        for place, axes in enumerate(figure.axes)
        for line in axes.get_lines()
        if len(line.get_xdata()) > 1 and line.get_linestyle() != "None" and line.get_marker() != "_"
    ]


def points(figure) -> int:
    """Return how many points are drawn."""
    return sum(len(points.get_offsets()) for axes in figure.axes for points in axes.collections)


def rows_of(figure) -> list[str]:
    """Return the titles of the rows of panels."""
    return [text.get_text() for axes in figure.axes for text in axes.texts]


def test_no_two_curves_of_a_panel_look_alike_and_truth_values_are_no_measures():
    axes = {"order": [1.0, 2.0], "alpha": [1.0, 2, 3, 4, 5, 6], "beta": [1.0, 2, 3], "kind": list("ab")}
    table = product(epsilon=[0.1, 1.0, 10.0, 100.0, 3.0, 4.0, 5.0], **axes)
    parts = sweep.layout(table, ["alpha", "beta"], {*axes, "epsilon"})
    figure, notes = sweep.draw(table, ["alpha", "beta"], {*axes, "epsilon"}, "toy")
    assert parts.x == "epsilon" and parts.measures == ["mean"]
    assert {parts.x, *parts.lines, *parts.columns} == {*axes, "epsilon"}
    found = curves(figure)
    assert len(found) == len(set(found)) == 2 * 6 * 3 * 2
    assert notes == []


def test_rows_with_empty_keys_are_drawn():
    """A reference without ε is a line across, and rows that lack one key of panels have a panel of their own."""
    table = product(method=["laplace", "ops"], model=list("abc"), tempered=["joint", "likelihood"], n=[1, 2])
    table.loc[(table.model == "a") | (table.method == "laplace"), "tempered"] = None
    table = table.drop_duplicates(["method", "model", "tempered", "n"])
    figure, _ = sweep.draw(table, ["model", "tempered"], {"n", "model"})
    drawn = {tuple(line.get_ydata()) for axes in figure.axes for line in axes.get_lines() if len(line.get_xdata()) == 2}
    values = {value for pair in drawn for value in pair}
    assert set(table["mean"]) <= values and len(figure.axes) == 5
    reference = pd.DataFrame({"method": ["non_private"], "mean": [3.5], "sem": [0.1]})
    figure, _ = sweep.draw(
        pd.concat([product(method=["laplace"], epsilon=[1.0, 2.0]), reference]), ["epsilon"], {"epsilon"}
    )
    assert [3.5, 3.5] in [list(line.get_ydata()) for line in figure.axes[0].get_lines()]


def test_measures_that_have_an_error_are_drawn_first_and_constants_never():
    table = product(n=[10, 100], method=["laplace", "ops"]).assign(temperature=[1, 2, 3, 4], limit=0.5)
    assert sweep.layout(table, ["n"], {"n"}).measures == ["mean"]
    bare = table.drop(columns="sem")
    assert sweep.layout(bare, ["n"], {"n"}).measures == ["mean", "temperature"]
    # What does not change along the axis is no curve.
    assert "asymptote" not in sweep.layout(bare.assign(asymptote=[1, 2, 1, 2]), ["n"], {"n"}).measures


def test_words_that_some_rows_lack_are_no_axis_and_do_no_harm():
    table = product(method=["laplace", "ops", "naive"]).assign(variant=[None, "ball", "ball"])
    assert sweep.layout(table, [], set()).x == "method"
    for drawn in (table, table.drop(columns="method")):
        assert sweep.draw(drawn, [], set())[0] is not None


def test_the_table_is_chosen_that_has_measures_with_errors_and_what_was_swept():
    counts = pd.DataFrame({"method": ["a", "b"], "rows": [1, 2]})
    table = product(epsilon=[1.0, 2.0], method=["a", "b"])
    swept = {"counts": [], "bare": ["epsilon"], "measured": ["epsilon"]}
    tables = {"counts": counts, "bare": table.drop(columns="sem"), "measured": table}
    assert sweep.choose(tables, swept, {"epsilon"}) == "measured"
    assert sweep.choose({name: tables[name] for name in ("counts", "bare")}, swept, {"epsilon"}) == "bare"
    many = product(epsilon=[1.0, 2.0], method=list("abcdefgh"), kind=list("abcdefgh"))
    columns = {"many": ["epsilon"], "measured": ["epsilon"]}
    assert sweep.choose({"many": many, "measured": table}, columns, {"epsilon"}) == "measured"


def test_axes_of_more_than_two_decades_are_logarithmic():
    table = product(epsilon=[0.01, 1.0, 10.0], method=["a", "b"])
    figure, _ = sweep.draw(table.assign(mean=[1e-3, 1, 2, 3, 4, 5e3]), ["epsilon"], {"epsilon"})
    assert figure.axes[0].get_xscale() == figure.axes[0].get_yscale() == "log"
    figure, _ = sweep.draw(table.assign(mean=[0, 1e-3, 1, 2, 3, 8e5]), ["epsilon"], {"epsilon"})
    assert figure.axes[0].get_yscale() == "symlog"
    figure, _ = sweep.draw(table.assign(mean=[1, 2, 3, 4, 5, 6]), ["epsilon"], {"epsilon"})
    assert figure.axes[0].get_yscale() == "linear"


def test_curves_that_coincide_are_told():
    table = product(method=["ops", "diffused", "laplace"], n=[1, 2, 3])
    table["mean"] = [1, 2, 3, 1, 2, 3, 4, 5, 6]
    _, notes = sweep.draw(table, ["n"], {"n"})
    assert notes == ["These coincide in mean: OPS = Diffused."]


def test_labels_are_words_and_a_mean_is_named_by_its_metric():
    table = product(metric=["test_error", "log_score"], epsilon_setting=[0.1, 0.2], method=["ops", "laplace"])
    figure, _ = sweep.draw(table.assign(mean=range(8)), ["epsilon_setting"], {"epsilon"}, "", {"mean": "mean of all"})
    assert rows_of(figure) == ["test error", "log score"]
    assert figure.legends[0].get_title().get_text() == "Privacy cost ε (pure DP)"


def test_metrics_share_no_axis_and_a_mean_of_one_metric_is_named_by_it():
    table = product(metric=["test_error", "log_score"], method=["ops", "laplace"])
    figure, _ = sweep.draw(table, ["method"], {"method"})
    assert rows_of(figure) == ["test error", "log score"]
    assert sweep.draw(table[table.method == "ops"], [], {"method"}) == (None, [sweep.NOTHING])
    figure, _ = sweep.draw(table[table.metric == "test_error"], [], {"method"}, labels={"mean": "mean of its metric"})
    assert figure.get_supylabel() == "test error"


def test_there_is_no_figure_where_none_makes_sense():
    many = product(method=[f"m{i}" for i in range(20)], instance=[f"case {i}" for i in range(60)], n=[1, 2])
    figure, notes = sweep.draw(many, ["n"], {"n"})
    assert figure is None and "60 panels with" in notes[0]
    figure, notes = sweep.draw(pd.DataFrame({"method": ["a", "b"], "words": ["x", "y"]}), ["method"], {"method"})
    assert figure is None and "no measured number" in notes[0]


def test_many_numbers_have_a_short_legend_and_words_an_axis():
    figure, _ = sweep.draw(product(epsilon=[1.0, 2.0], seed=list(range(50))), ["seed"], {"epsilon", "seed"})
    assert len(figure.legends[0].get_texts()) <= 8
    words, _ = sweep.draw(product(kind=["one", "two", "three"]), ["kind"], {"kind"})
    assert [text.get_text() for text in words.axes[0].get_xticklabels()] == ["one", "two", "three"]


def test_what_does_not_fit_is_said_and_meanings_are_labels():
    table = product(epsilon=[1.0, 2.0], method=[f"method {i}" for i in range(6)]).drop(columns="sem")
    table[[f"measure_{i}" for i in range(8)]] = [[i * j for j in range(1, 9)] for i in range(len(table))]
    figure, notes = sweep.draw(table, [], {"epsilon", "method"}, labels={"mean": "what was found on average"})
    assert notes[0] == "The figure shows 6 of 9 rows of panels; the table has all."
    assert rows_of(figure)[0] == "what was found on\naverage"


def test_nothing_is_cut_off_or_printed_over_other_things():
    methods = ["non_private", "laplace", "fourier", "sampler_record", "sampler_attribute", "map"]
    kinds = [f"a supremum over the pairs of neighbours that is {word}" for word in ("exact", "printed")]
    axes = {"epsilon": [1.0, 2.0], "coefficient": [0.2, 0.37], "seed": [1, 2], "supremum": kinds, "method": methods}
    figure, _ = sweep.draw(
        product(**axes), ["coefficient", "seed"], set(axes), "a study/with a long name, table of all"
    )
    for dpi in (72, 150, 300):
        assert looked_at.faults(figure, dpi) == [], dpi
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert len(labels) == len(set(labels)) and not any("…" in label for label in labels)


def test_a_grid_that_is_no_setting_is_the_horizontal_axis():
    """Densities of θ in steps: over n they would be vertical lines, joined by a zigzag."""
    table = product(n=[13, 77], theta=[0.0, 0.25, 0.5, 0.75], draw=[0.0, 1.0])
    parts = sweep.layout(table, ["n"], {"n"})
    figure, _ = sweep.draw(table, ["n"], {"n"})
    assert parts.x == "theta" and set(parts.lines) == {"n", "draw"} and parts.measures == ["mean"]
    assert all(np.all(np.diff(line.get_xdata()) > 0) for axes in figure.axes for line in axes.get_lines())


def test_rows_that_nothing_tells_apart_are_not_joined():
    table = product(n=[13, 77], metric=["kl", "ks"], alpha=[1.0, 2.0])
    again, _ = sweep.draw(pd.concat([table, table.assign(mean=table["mean"] + 0.5)]), ["n", "alpha"], {"n", "alpha"})
    assert curves(again) == [] and points(again) >= 2 * len(table)


def test_infinite_values_are_left_out_of_the_figure_and_named():
    table = product(n=[13, 77], alpha=[1.0, 2.0]).drop(columns="sem")
    _, notes = sweep.draw(table.assign(cost=[1.0, 2.0, 3.0, np.inf]), ["n", "alpha"], {"n", "alpha"})
    assert notes == ["The figure leaves out infinite values of cost; the table has all."]


def test_boxes_of_titles_do_not_meet():
    table = product(
        n=[1, 2, 3],
        model=[f"a model with a long name, number {i}" for i in range(5)],
        method=["ops", "map"],
        kind=list("ab"),
    )
    figure, _ = sweep.draw(table, ["n"], {"n"})
    style.lay_out(figure)
    figure.canvas.draw()
    boxes = [axes.title.get_window_extent() for axes in figure.axes[:5]]
    assert all(left.x1 <= right.x0 + 1 for left, right in itertools.pairwise(boxes))


def test_points_of_one_method_have_different_markers():
    table = product(variant=list("abc"), method=["ops", "map"], runs=["all", "stealthy"])
    figure, _ = sweep.draw(table, [], {"variant"})
    shapes = {
        points.get_paths()[0].vertices.tobytes()
        for points in figure.axes[0].collections
        if len(points.get_offsets()) > 1
    }
    assert len(shapes) == 4 or len({handle.get_marker() for handle in figure.legends[0].legend_handles}) == 4


def test_a_second_swept_key_has_panels_and_more_than_four_combinations_of_a_method_have_too():
    table = product(epsilon=[0.1, 1.0, 10.0], n=[10, 20], method=["ops", "map"], kind=list("abcde"), order=[1.0, 2.0])
    parts = sweep.layout(table, ["epsilon", "n"], {"epsilon", "n", "order"})
    assert (parts.x, parts.lines, set(parts.columns)) == ("epsilon", ["method", "order"], {"n", "kind"})


def test_a_column_that_repeats_the_swept_setting_and_p_values_and_limits_are_no_measures():
    table = product(epsilon_setting=[0.1, 1.0], method=["non_private", "ops"])
    table["epsilon"] = table.epsilon_setting.where(table.method == "ops")
    table = table.drop(columns="sem").assign(z2_p=[1e-9, 0.1, 0.2, 0.3], mean_limit=[4.0, 5.0, 4.0, 5.0])
    assert sweep.layout(table, ["epsilon_setting"], {"epsilon"}).measures == ["mean"]
    figure, _ = sweep.draw(table, ["epsilon_setting"], {"epsilon"})
    limits = [line for line in figure.axes[0].get_lines() if line.get_label() == "Limit"]
    assert [list(line.get_ydata()) for line in limits] == [[5.0, 5.0]]


def test_the_title_has_what_was_not_swept_and_the_number_of_trials():
    table = product(epsilon=[0.1, 1.0], method=["laplace", "ops"]).assign(n=500, order=2.0)
    figure, _ = sweep.draw(table, ["epsilon"], {"epsilon", "n"}, "a study, smoke scale")
    assert figure.get_suptitle().replace("\n", " ") == "a study, smoke scale; n = 500; 7 trials; bars: 95 % intervals"
    # Overrides that the whole sweep has, also those of a column that the table lacks or that are no settings.
    table = table.assign(dataset="loans", variant="corrected", epsilon=None, epsilon_setting=2.0, seed=3, trials=7)
    swept = ["dataset", "variant", "epsilon_setting", "seed", "trials", "n"]
    figure, _ = sweep.draw(table, swept, {"epsilon", "n", "dataset", "variant"}, "a study")
    words = "ε = 2 (pure DP), n = 500, dataset = Loans, variant = corrected, seed = 3; 7 trials"
    assert figure.get_suptitle().replace("\n", " ") == f"a study; {words}; bars: 95 % intervals"


@pytest.mark.parametrize(
    ("values", "scale"),
    [([1.0, 2.0, 4.0, 8.0], "log"), ([1.0, 5.0, 10.0], "log"), ([1.0, 2.0, 3.0], "linear"), ([-1.0, 0, 1], "linear")],
)
def test_axes_of_settings_are_logarithmic_where_values_are_geometric_or_span_a_decade(values, scale):
    figure, _ = sweep.draw(product(alpha=values, method=["a", "b"]), ["alpha"], {"alpha"})
    assert figure.axes[0].get_xscale() == scale


def test_an_epsilon_beside_a_delta_is_not_called_pure():
    table = product(n=[1, 2], epsilon=[0.1, 1.0], method=["laplace", "ops"]).assign(delta=1e-6)
    figure, _ = sweep.draw(table, ["n", "epsilon"], {"epsilon", "delta", "n"})
    assert [axes.get_title() for axes in figure.axes] == ["ε = 0.1", "ε = 1"] and "δ = 10⁻⁶" in figure.get_suptitle()


def test_a_note_on_curves_that_coincide_has_two_lines_at_most():
    table = product(method=list(style.LOOKS)[:20], n=[1, 2, 3])
    table["mean"] = 2.0 * table.n
    _, notes = sweep.draw(table, ["n"], {"n"})
    assert len(notes) == 1 and len(notes[0]) <= sweep.LONGEST and notes[0].endswith("; and others.")


def test_a_swept_key_is_the_axis_before_another_of_as_many_values_and_equal_labels_are_told_apart():
    table = product(n=[1, 2], delta=[0.1, 0.2, None], method=["laplace", "ops"]).assign(other=range(12))
    assert sweep.layout(table, ["n"], {"n", "delta"}).x == "n"
    table = table.drop(columns="sem").dropna()
    figure, _ = sweep.draw(table, ["n"], {"n", "delta"}, labels={"mean": "a loss", "other": "a loss"})
    assert rows_of(figure) == ["a loss", "a loss, other"]
