"""Figures in seaborn: everything in a table is drawn, errors are 95 % intervals, and two processes write one SVG."""

from __future__ import annotations

import os
import subprocess
import sys

import looked_at
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex

from privpost.datasets import catalogue
from privpost.drawing import facets, style


@pytest.fixture(autouse=True)
def in_style():
    import matplotlib.pyplot as plt

    with style.context():
        yield
        plt.close("all")


def table(**axes) -> pd.DataFrame:
    made = pd.MultiIndex.from_product(axes.values(), names=axes).to_frame(index=False)
    return made.assign(mean=np.arange(1.0, len(made) + 1), sem=0.5)


def labels(figure) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


def drawn(axes) -> list[tuple]:
    """Return colour, marker and values of y of every curve of a panel."""
    lines = [line for line in axes.lines if len(line.get_xdata()) > 1 and line.get_marker() not in "_|"]
    return [(to_hex(line.get_color()), line.get_marker(), list(line.get_ydata())) for line in lines]


def test_values_have_their_order_and_the_unknown_comes_last():
    assert facets.ordered(["toy", "ops", "laplace", "ops", None], "method") == ["laplace", "ops", "toy"]
    assert facets.ordered(["new", "mnist", "abalone"], "dataset") == ["abalone", "mnist", "new"]
    assert facets.ordered([3.0, np.nan, 1.0]) == [1.0, 3.0]
    assert facets.ordered(["b", "a", "c"], "variant", {"c": "first", "a": "then"}) == ["c", "a", "b"]


def test_titles_of_data_sets_come_from_their_files():
    assert catalogue.title("mnist") == "MNIST, 3 against 8"
    assert catalogue.title("abalone") == catalogue.load("abalone").title
    assert catalogue.title("made_up") == "Made up"
    sizes = pd.DataFrame({"dataset": ["made_up", "abalone", "abalone"], "n_train": [5, 2784, None]})
    assert facets.sized(sizes) == {"abalone": f"{catalogue.title('abalone')}\nn = 2,784", "made_up": "Made up\nn = 5"}
    # A title is no part of what a digest is about.
    assert not {"title", "short"} & set(catalogue.load("mnist").identity())


def test_an_epsilon_says_its_notion_and_what_is_fixed_is_said_once():
    rows = pd.DataFrame({"epsilon": [0.1, None, 0.1], "n": 1000, "delta": [1e-6, 1e-5, None]})
    assert facets.fixed(rows, "epsilon", "delta", "n") == "ε = 0.1 (pure DP), n = 1,000"
    assert facets.words("delta", 1e-6) == "δ = 10⁻⁶" and facets.words("log_epsilon", -2.0) == "ln ε = −2"


def test_rows_without_a_panels_value_are_in_all_and_those_without_x_are_lines_across():
    rows = table(method=["ops", "laplace"], order=[2.0, 3.0], epsilon=[0.1, 1.0])
    reference = pd.DataFrame({"method": ["non_private"], "mean": [9.0], "sem": [1.0]})
    grid = facets.lines(facets.named(pd.concat([rows, reference])), "epsilon", "mean", "sem", col="order")
    assert [axes.get_title() for axes in grid.axes.flat] == ["λ = 2", "λ = 3"]
    for place, axes in enumerate(grid.axes.flat):
        ops, laplace = (list(rows[rows.method == name]["mean"])[2 * place :][:2] for name in ("ops", "laplace"))
        assert drawn(axes) == [
            ("#000000", "o", [9.0, 9.0]), (style.LOOKS["laplace"].color, "s", laplace),
            (style.LOOKS["ops"].color, "^", ops),
        ]  # fmt: skip
    figure = facets.finish(grid, "It does", "x", "y")
    assert labels(figure) == ["Non-private", "Laplace", "OPS"] and figure.get_suptitle() == "It does"


@pytest.mark.parametrize("error", ["sem", ("low", "high")])
def test_errors_are_95_percent_intervals(error):
    rows = pd.DataFrame({"method": "laplace", "n": [1, 2], "mean": [10.0, 20.0], "sem": [1.0, 2.0]})
    rows = rows.assign(low=rows["mean"] - 1.96 * rows["sem"], high=rows["mean"] + 1.96 * rows["sem"])
    grid = facets.lines(facets.named(rows), "n", "mean", error)
    ends = np.concatenate([path.vertices for path in grid.ax.collections[0].get_paths()])[:, 1]
    assert ends.min() == pytest.approx(10 - 1.96) and ends.max() == pytest.approx(20 + 2 * 1.96)
    bars = facets.dots(facets.named(rows.assign(row=["a", "b"])), "mean", "row", error).ax.collections[-1].get_paths()
    assert np.array([path.vertices[:, 0] for path in bars]) == pytest.approx(np.array([[8.04, 11.96], [16.08, 23.92]]))


def test_names_of_one_method_have_its_colour_and_other_dashes_and_hollow_markers_are_not_solid():
    rows = table(method=["laplace", "ops"], variant=list("abc"), n=[1, 2, 3]).assign(dataset="mnist")
    named = facets.named(rows, "variant", names={"a": ""})
    look = facets.looks(named, "method")
    assert look["hue_order"] == ["Laplace", "Laplace, b", "Laplace, c", "OPS", "OPS, b", "OPS, c"]
    assert len(set(zip(look["palette"].values(), look["dashes"].values(), strict=True))) == 6
    # Alone the non-private method is dashed; here a dash is a variant, whatever the method.
    dashes = facets.looks(facets.named(rows.replace("ops", "non_private"), "variant", names={"a": ""}))["dashes"]
    assert [dashes[f"Non-private{part}"] for part in ("", ", b", ", c")] == [
        look["dashes"][name] for name in look["hue_order"][:3]
    ]
    grid = facets.lines(named.assign(good=named.n < 3), "n", "mean", solid="good")
    hollow = [line for line in grid.ax.lines if line.get_markerfacecolor() == "white"]
    assert len(hollow) == 6 and all(list(line.get_xdata()) == [3] for line in hollow)


def test_other_columns_than_methods_have_shades_and_words():
    grid = facets.lines(table(order=[10.0, 1.0], n=[1, 2]), "n", "mean", hue="order")
    figure = facets.finish(grid, "", "n", "mean", note="Bars: ends")
    assert figure.legends[0].get_title().get_text() == "Records n\nBars: ends" and figure.get_supylabel() == "mean"
    assert labels(figure) == ["λ = 1", "λ = 10"] and len({color for color, *_ in drawn(grid.ax)}) == 2


def test_tiles_have_numbers_upwards_and_words_downwards():
    rows = table(epsilon=[0.1, 1.0], n=[10, 100]).assign(text=list("abcd"))
    axes = facets.tiles(rows, "n", "epsilon", "mean", "text").ax
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["1", "0.1"]
    assert [text.get_text() for text in axes.texts] == ["c", "d", "a", "b"]
    axes = facets.tiles(rows.assign(kind=rows.epsilon.map({0.1: "one", 1: "two"})), "n", "kind", "mean").ax
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["one", "two"]


def test_a_tile_that_is_missing_moves_no_other():
    rows = table(kind=["a", "b"], epsilon=[0.1, 1.0], n=[10, 100]).assign(text=list("abcdefgh"))
    grid = facets.tiles(rows[(rows.kind == "a") | (rows.n == 100)], "n", "epsilon", "mean", "text", col="kind")
    words = {text.get_text(): text.get_position() for text in grid.axes.flat[1].texts}
    assert words["h"] == (1.5, 0.5) and words["f"] == (1.5, 1.5)


def test_losses_are_taken_against_the_reference_at_the_same_keys():
    rows = table(method=["non_private", "laplace"], dataset=["a", "b"])
    assert facets.excess(rows, "mean", ["dataset"])["mean"].tolist() == [2.0, 2.0]
    with pytest.raises(ValueError, match="several rows with equal dataset"):
        facets.excess(pd.concat([rows, rows]), "mean", ["dataset"])


def test_a_legend_is_as_wide_as_its_figure_and_has_each_label_once():
    methods = ["laplace", "ops", "fourier", "gaussian", "diffused"]
    rows = table(method=methods, variant=["with a rather long name", "short"], n=[1, 2])
    grid = facets.lines(facets.named(rows, "variant"), "n", "mean", size=(style.NARROW, 1.5))
    figure = facets.finish(grid, "", "Records n", "mean")
    style.lay_out(figure)
    figure.canvas.draw()
    box = figure.legends[0].get_window_extent()
    assert box.x0 >= 0 and box.y0 >= 0 and box.x1 <= figure.bbox.x1
    assert len(labels(figure)) == len(set(labels(figure))) == 10


@pytest.mark.parametrize("below", [True, False])
def test_a_label_longer_than_the_figure_is_high_is_broken(below):
    grid = facets.lines(facets.named(table(method=["ops", "laplace"], n=[1, 2])), "n", "mean")
    figure = facets.finish(grid, "It does", "n", 12 * "quite long ", below=below)
    assert looked_at.faults(figure) == []


DRAW = """
import sys
import pandas as pd
from pathlib import Path
from privpost.drawing import facets, style
with style.context():
    table = pd.DataFrame({"method": ["ops", "laplace"] * 2, "n": [1, 1, 9, 9], "mean": [1, 2, 3, 4], "order": 2})
    grid = facets.lines(facets.named(table), "n", "mean", col="order", xscale="log")
    style.save(facets.finish(grid, "Answer", "n", "mean"), Path(sys.argv[1]))
"""


def test_two_processes_write_the_same_svg(tmp_path, monkeypatch):
    """This one, which may have drawn before, and a new one with hashes of its own."""
    environment = {**os.environ, "PYTHONHASHSEED": "1"}
    subprocess.run([sys.executable, "-W", "error", "-c", DRAW, tmp_path / "1.svg"], env=environment, check=True)
    monkeypatch.setattr(sys, "argv", ["draw", tmp_path / "2.svg"])
    exec(DRAW, {})
    assert (tmp_path / "1.svg").read_bytes() == (tmp_path / "2.svg").read_bytes()
