"""The grammar of panels: everything in a table is drawn, and errors are 95 % intervals."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

from privpost.datasets import catalogue
from privpost.drawing import panels, style


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


def test_values_have_their_order_and_the_unknown_comes_last():
    assert panels.ordered(["toy", "ops", "laplace", "ops", None], "method") == ["laplace", "ops", "toy"]
    assert panels.ordered(["new", "mnist", "abalone"], "dataset") == ["abalone", "mnist", "new"]
    assert panels.ordered([3.0, np.nan, 1.0]) == [1.0, 3.0]
    assert panels.ordered(["b", "a", "c"], "variant", {"c": "first", "a": "then"}) == ["c", "a", "b"]


def test_titles_of_data_sets_come_from_their_files():
    assert catalogue.title("mnist") == "MNIST, 3 against 8"
    assert catalogue.title("abalone") == catalogue.load("abalone").title
    assert catalogue.title("made_up") == "Made up"
    # A title is no part of what a digest is about.
    assert not {"title", "short"} & set(catalogue.load("mnist").identity())


def test_rows_without_a_panels_key_are_in_all_and_those_without_x_are_lines_across():
    rows = table(method=["laplace"], order=[2.0, 3.0], epsilon=[0.1, 1.0])
    reference = pd.DataFrame({"method": ["non_private"], "mean": [9.0], "sem": [1.0]})
    made = panels.panels(pd.concat([rows, reference]), "epsilon", "mean", "sem", columns="order")
    assert [axes.get_title() for axes, *_ in made] == ["λ = 2", "λ = 3"]
    for axes, _, _ in made:
        assert [9.0, 9.0] in [list(line.get_ydata()) for line in axes.lines]
    panels.legend(made.figure)
    assert labels(made.figure) == ["Non-private", "Laplace"]


def test_no_row_is_lost_where_some_lack_one_of_several_keys():
    rows = pd.DataFrame({"model": ["a", "a", "b"], "tempered": ["x", "y", None], "n": 1, "mean": [1.0, 2.0, 3.0]})
    assert panels.values_of(rows, ("model", "tempered")) == [("a", "x"), ("a", "y"), ("b", None)]
    found = [
        panels.rows_of(rows, ("model", "tempered"), value) for value in panels.values_of(rows, ("model", "tempered"))
    ]
    assert sorted(itertools.chain(*(part["mean"] for part in found))) == [1.0, 2.0, 3.0]
    # Those that lack a key of panels which others have belong to these.
    rows.loc[2, "model"] = "a"
    assert panels.values_of(rows, ("model", "tempered")) == [("a", "x"), ("a", "y")]
    assert panels.values_of(rows.assign(tempered=None), "tempered") == [None]


@pytest.mark.parametrize("bars", [True, False])
def test_errors_are_95_percent_intervals(bars):
    rows = pd.DataFrame({"method": "laplace", "n": [1, 2], "mean": [10.0, 20.0], "sem": [1.0, 2.0]})
    made = panels.panels(rows, "n", "mean", "sem", bars=bars)
    collection = made.axes[0, 0].collections[0]
    ends = np.concatenate([path.vertices for path in collection.get_paths()])[:, 1]
    assert ends.min() == pytest.approx(10 - 1.96) and ends.max() == pytest.approx(20 + 2 * 1.96)


def test_lines_differ_and_hollow_markers_are_those_that_are_not_solid():
    rows = table(method=["laplace", "ops"], variant=list("abcdef"), n=[1, 2, 3])
    looks = panels.looks(rows, ("method", "variant"))
    assert len({tuple(sorted((k, str(v)) for k, v in look.items() if k != "label")) for look in looks.values()}) == 12
    made = panels.panels(rows.assign(good=rows.n < 3), "n", "mean", lines=("method", "variant"), solid="good")
    hollow = [line for line in made.axes[0, 0].lines if line.get_linestyle() == "None"]
    assert len(hollow) == 12 and all(list(line.get_xdata()) == [3] for line in hollow)


def test_losses_are_taken_against_the_reference_at_the_same_keys():
    rows = table(method=["non_private", "laplace"], dataset=["a", "b"])
    assert panels.excess(rows, "mean", ["dataset"])["mean"].tolist() == [2.0, 2.0]
    with pytest.raises(ValueError, match="several rows with equal dataset"):
        panels.excess(pd.concat([rows, rows]), "mean", ["dataset"])


def test_a_legend_is_as_wide_as_its_figure_and_has_each_label_once():
    rows = table(
        method=["laplace", "ops", "fourier", "gaussian", "diffused"],
        variant=["with a rather long name", "short"],
        n=[1, 2],
    )
    made = panels.panels(rows, "n", "mean", lines=("method", "variant"), size=(style.NARROW, 1.5))
    panels.legend(made.figure)
    with style.laid_out(made.figure, 100):
        made.figure.canvas.draw()
        box = made.figure.legends[0].get_window_extent()
    assert box.x0 >= 0 and box.y0 >= 0 and box.x1 <= made.figure.bbox.x1
    assert len(labels(made.figure)) == len(set(labels(made.figure))) == 10


def test_an_answer_is_printed_only_where_it_holds():
    figure, _ = panels.grid(1, 1, 1)
    panels.message(figure, "It does", False)
    assert not figure.get_suptitle()
    panels.message(figure, "It does", True)
    assert figure.get_suptitle() == "It does"
