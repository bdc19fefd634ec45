"""Tables of a study and their comparison with a rebuild, on a toy project."""

from __future__ import annotations

import json

import numpy as np
import pytest
from dispatched import build, privpost

from privpost.commands import verify
from privpost.lab import manifest, store


def test_tabulate_recomputes_a_damaged_cell_and_gives_the_same_tables(toy, capsys):
    build(toy)
    before = {path: path.read_text() for path in (toy.folder / "results/toy").iterdir()}
    toy.cells()[1].path.write_text("damaged")
    assert privpost("tabulate", "toy/curve") == 0
    assert {path: path.read_text() for path in before} == before
    assert "set aside" in capsys.readouterr().err


def test_a_failing_tabulate_leaves_the_shipped_tables(toy, monkeypatch):
    build(toy)
    before = {path: path.read_bytes() for path in (toy.folder / "results/toy").iterdir()}
    monkeypatch.setattr(toy.study().module(), "tabulate", lambda cells: {"other": None})
    with pytest.raises(ValueError, match=r"tabulate gave \['other'\], but conf/study/toy/curve.yaml names \['curve'\]"):
        privpost("tabulate", "toy/curve")
    assert {path: path.read_bytes() for path in before} == before


def test_tables_of_a_study_that_was_edited_meanwhile_are_not_written(toy, monkeypatch):
    """A job that outlived its run ends without writing, since the configuration is another one by then."""
    build(toy)
    before = {path: path.read_bytes() for path in (toy.folder / "results/toy").iterdir()}
    module = toy.study().module()
    tabulate = module.tabulate

    def slow(found):
        toy.edit("note: n", "note: m")
        return tabulate(found)

    monkeypatch.setattr(module, "tabulate", slow)
    with pytest.raises(RuntimeError, match="changed while the tables were being made"):
        privpost("tabulate", "toy/curve")
    assert {path: path.read_bytes() for path in before} == before


def test_the_grid_file_names_every_cell(toy):
    build(toy)
    found = json.loads((toy.folder / "results/toy/curve.grid.json").read_text())
    assert [entry["digest"] for entry in found["cells"]] == [cell.digest for cell in toy.cells()]


def rebuilt(toy, change=None):
    import pandas as pd

    build(toy)
    old = toy.folder / "results/toy/curve.csv"
    table = pd.read_csv(old)
    if change is not None:
        table = change(table)
    new = toy.folder / "build/verify/toy/curve.csv"
    text = table.to_csv(index=False, lineterminator="\n")
    store.write_texts({new.with_name("curve.grid.json"): manifest.describe(toy.study(), [], {new: text}), new: text})
    return verify.compare("toy/curve")


def test_identical_tables_are_identical(toy):
    comparison = rebuilt(toy)
    assert comparison.rebuilt
    assert comparison.differences == []


def test_cells_that_moved_are_named_with_their_standard_errors(toy):
    def change(table):
        moved = (table.method == "b") & (table.level == 2)
        table.loc[moved, "mean"] += 3 * np.sqrt(2) * table.loc[moved, "sem"]
        return table

    comparison = rebuilt(toy, change)
    assert comparison.differences == [
        "curve, method=b, level=2.0: mean moved in 3 of 3 rows, by at most 3 standard errors"
    ]


@pytest.mark.parametrize(
    ("change", "part"),
    [
        (lambda table: table.iloc[1:], "12 rows became 11"),
        (lambda table: table.drop(columns="sem"), "columns method, level, order, mean, sem became"),
        (lambda table: table.assign(order=table.order + 1), "the column order has other values"),
        (lambda table: table.assign(sem=table["sem"] * 1.5), "sem moved in 3 of 3 rows, by at most 0.33 relative"),
    ],
)
def test_other_differences_are_said_in_words(toy, change, part):
    comparison = rebuilt(toy, change)
    assert part in comparison.differences[0]


def test_a_verify_empties_its_folder_unless_another_rebuild_is_running(toy, monkeypatch):
    from privpost.lab import locks, runner

    stored = toy.folder / "build/verify/cells/toy/curve/a.npz"
    stored.parent.mkdir(parents=True)
    stored.touch()
    with locks.only_rebuild(), pytest.raises(SystemExit, match="another rebuild is running"):
        privpost("verify", "toy/curve")
    assert stored.exists()
    monkeypatch.setattr(runner, "snakemake", lambda arguments: (1, []))
    assert privpost("verify", "toy/curve") == 1
    assert not stored.exists()


def test_a_study_that_could_not_be_rebuilt_is_not_identical(toy):
    build(toy)
    assert not verify.compare("toy/curve").rebuilt


def test_verdicts_and_numbers_that_differ_are_named(toy):
    from privpost.report import numbers, scorecard

    rebuilt(toy)
    studies = {"toy/curve": toy.study()}
    card = scorecard.table(scorecard.score(studies.values()))
    found = numbers.of_results(studies, {"toy/curve": toy.cells()}, card)

    def ship(verdict, quoted):
        store.write_text(toy.folder / "results/scorecard.csv", card.assign(verdict=verdict).to_csv(index=False))
        numbers.write(toy.folder / "results/numbers.json", quoted)
        return verify.compare_scores(["toy/curve"])

    assert ship("holds", found) == []
    assert ship("does not hold", found) == ["Verdict of T1: was does not hold, now holds"]
    assert ship("holds", {**found, "cells": 2 * found["cells"], "T1/gone": "x"}) == [
        "Number T1/gone: was x, now None",
        f"Number cells: was {2 * found['cells']}, now {found['cells']} (-0.5 relative)",
    ]
    (toy.folder / "results/scorecard.csv").unlink()
    assert "snakemake scorecard" in verify.compare_scores(["toy/curve"])[0]
