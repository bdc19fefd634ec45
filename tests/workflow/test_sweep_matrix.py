"""Any two points of any study give a table whose rows can be told apart, and a figure.

By default a sample: the sweeps that compare, and those that leave the grid. `PRIVPOST_MATRIX=1` takes every study with
each of its axes, one scalar setting and two seeds; `PRIVPOST_MATRIX=<paper>/<study>` one study.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from privpost.commands import sweeps
from privpost.drawing import style
from privpost.lab import cells, grid, request, schema, tables
from privpost.lab.compose import hydra_value
from privpost.lab.schema import SettingError
from privpost.lab.study import canonical

ROOT = Path(__file__).resolve().parents[2]
MATRIX = os.environ.get("PRIVPOST_MATRIX", "")
SAMPLE = {
    "bernstein2018/calibration": ["n", "epsilon"],
    "foulds2016/mechanisms_table": ["epsilon"],
    "foulds2016/posterior_shapes": ["seed"],
    "foulds2016/sampling_error": ["method", "seed"],
    "geumlek2017/rdp_curves": ["alpha", "order"],
    "noise_aware/naive_bayes": ["method"],
    "noise_aware/event_calibration": ["method"],
    "zhang2016/bounds": ["epsilon"],
    "zhang2016/naive_bayes": ["data"],
}
# Smaller than at smoke scale, where that takes long.
FEWER = {
    "audit/audit": ["mechanisms=[LaplaceMechanism,DiffusedPosterior]"],
    "fair_axis/beta_bernoulli": ["methods=[laplace,diffused]", "trials=100"],
    "fair_axis/logistic": ["methods=[ops,output_noise]"],
    "foulds2016/war_logs_likelihood": ["epsilon=1", "method=[laplace,ops]"],
}
# Tables that one of the two points alone has: pairs of methods.
SINGLE = {
    ("noise_aware/naive_bayes", "method"): "naive_bayes_pairs",
}
# Where values beside the base value are no other points, or are refused: two that are.
WAR_LOGS = ["iraq_simulated", "afghanistan_dense"]
VALUES = {
    ("zhang2016/linear_regression", "noise_variance"): [0.03, 0.5],
    ("zhang2016/linear_regression", "prior_precision"): [2.0, 30.0],
    ("zhang2016/linear_regression", "dataset"): ["census_1980"],
    ("zhang2016/adult_network", "dataset"): ["adult"],
    ("geumlek2017/logistic", "n_splits"): [2, 5],
    ("geumlek2017/rdp_curves", "method"): ["direct", "diffused"],
    **{(f"geumlek2017/{name}", "dataset"): ["abalone", "adult"] for name in ("logistic", "finite_time")},
    ("fair_axis/logistic", "dataset"): ["abalone", "adult"],
    **{(f"foulds2016/war_logs_{name}", "dataset"): WAR_LOGS for name in ("likelihood", "states")},
    ("foulds2016/war_logs_states", "method"): [["non_private", "laplace"], ["non_private", "ops"]],
}


def near(field, value) -> list:
    """Return values that a field may take beside the present one."""
    if isinstance(field, schema.Choice):
        return list(field.words)
    if isinstance(field, schema.DatasetName):
        return field.words
    if isinstance(field, schema.Integer):
        return [value + step for step in (1, 2, -1, -2)]
    if isinstance(field, schema.Real):
        return [value * share for share in (0.9, 0.8, 1.1)]
    if isinstance(field, schema.Vector):
        items = [near(field.item, item) for item in value]
        return [[found[place] for found in items] for place in range(min(map(len, items), default=0))]
    return []


def pair(study, key: str) -> list:
    """Return two values of a setting, not of its grid where there are others."""
    if key == "seed":
        return [1, 2]
    if (study.name, key) in VALUES:
        return VALUES[study.name, key]
    base, field = grid.make_cell(study, {}), study.schema.fields[key]
    value = base.within[key][0] if key in base.within else base.settings[key]
    every = [cell for scale in ("smoke", "paper") for cell in grid.expand(grid.load_study(study.name, scale))]
    known = {canonical(v): v for cell in every for v in cell.within.get(key, [cell.settings.get(key)])}
    found = {}
    for other in near(field, value):
        try:
            normal = study.schema.value(key, other, "")
        except SettingError:
            continue
        found[canonical(normal)] = normal
    beside = [v for text, v in found.items() if text not in known]
    return (beside + [v for v in (found | known).values() if v not in beside])[:2]


def keys(study) -> list[str]:
    """Return the axes of a study, inside and between cells, its first number that is none, and the seed."""
    base = grid.make_cell(study, {})
    numbers = (schema.Real, schema.Integer)
    scalars = [k for k in base.settings if k not in base.axes and isinstance(study.schema.fields[k], numbers)]
    return [*base.axes, *base.within, *scalars[:1], *(["seed"] if grid.draws_numbers(study) else [])]


def cases() -> list:
    if not MATRIX:
        return [(name, key) for name, chosen in SAMPLE.items() for key in chosen]
    names = grid.study_names() if MATRIX == "1" else [MATRIX]
    return [(study.name, key) for study in grid.load_studies(names, "smoke") for key in keys(study)]


def drawn_small(figure, path, dpi=0):
    """Save a figure in place of `style.save`: the picture is small, the PDF beside it is none."""
    figure.savefig(path, format=path.suffix[1:], dpi=30) if path.suffix == ".png" else path.write_text("none")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder for results and sweeps, with the checkout as working directory and figures drawn small."""
    folder = tmp_path_factory.mktemp("matrix")

    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        patch.setattr(style, "save", drawn_small)
        yield folder


@pytest.mark.parametrize(("name", "key"), cases())
def test_two_points_give_rows_that_can_be_told_apart_and_a_figure(place, name, key, capsys):
    study = grid.load_study(name, "smoke")
    values = pair(study, key)
    if len(values) < 2:
        pytest.skip(f"{name}: {key} has one value only")
    fewer = [word for word in FEWER.get(name, []) if not word.startswith(f"{key}=")]
    words = [f"{key}={','.join(map(hydra_value, values))}", *fewer]
    asked = request.understand(["-m", f"study={name}", "scale=smoke", *words])
    asked = asked._replace(cells=[replace(cell, folder=str(place / "cells")) for cell in asked.cells])
    assert len(asked.cells) == 2
    assert cells.compute_each(asked.study, asked.cells) == {}
    folder = place / "sweeps" / name / key
    written = sweeps.write(asked, folder, [], asked.cells)
    assert written.failed == {}
    assert "Traceback" not in capsys.readouterr().err
    drawn = [path for path in written.paths if path.suffix == ".png"]
    assert all(path.stat().st_size > 1000 for path in drawn)
    assert drawn or written.notes, "neither a figure nor a word why there is none"
    for path in written.paths:
        if path.suffix == ".csv" and path.stem != SINGLE.get((name, key)):
            frame = tables.read_table(path)
            column = key if f"{key}_setting" not in frame else f"{key}_setting"
            assert frame[column].nunique(dropna=False) >= 2, path
