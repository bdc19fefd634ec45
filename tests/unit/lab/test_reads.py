"""Cells that read other studies' ledgers: computed after them, known by their cells, behind when they change."""

from __future__ import annotations

import pytest

from privpost.lab import cells, grid, inventory, ledgers, request, store, tables
from privpost.lab.plan import Plan
from privpost.lab.schema import SettingError

READER = """
import numpy as np
from privpost.lab.schema import Real, Schema

SETTINGS = Schema(level=Real(above=0))


def simulate(config, streams, ledger):
    found = [len(read["accounts"]) for _, read in sorted(config.ledgers.items())]
    return {"accounts": np.array(found)}


def tabulate(cells):
    import pandas as pd

    return pd.DataFrame({"accounts": np.concatenate([cell.arrays["accounts"] for cell in cells])})
"""
READER_YAML = """\
# @package _global_
# privpost -m study=toy/reader
title: A reader
paper: toy
claim: None.
target: toyreader
reads: [toy/curve]
rev: 1
level: 1
"""


@pytest.fixture
def reader(toy):
    """The toy and a study that reads its ledger; returns the path of the reader's YAML."""
    (toy.folder / "toyreader.py").write_text(READER)
    path = toy.yaml.with_name("reader.yaml")
    path.write_text(READER_YAML)
    return path


def the_cell():
    (cell,) = grid.expand(grid.load_study("toy/reader"))
    return cell


def build(toy):
    for cell in toy.cells():
        cells.compute(toy.study(), cell)
    tables.tabulate(toy.study())


def test_the_digest_covers_the_cells_of_what_is_read(toy, reader):
    before, own = the_cell().digest, [cell.digest for cell in toy.cells()]
    toy.edit("note: n", "note: m")
    changed = the_cell().digest
    assert changed != before
    reader.write_text(READER_YAML.replace("[toy/curve]", "all"))
    assert the_cell().digest == changed
    reader.write_text(READER_YAML.replace("reads: [toy/curve]\n", ""))
    assert the_cell().digest not in (before, changed)
    toy.edit("note: m", "note: n")
    # A study that reads none has the digests that it always had.
    assert [cell.digest for cell in toy.cells()] == own


def test_a_missing_cell_waits_for_the_ledgers_and_a_stored_one_for_nothing(toy, reader):
    path = str(the_cell().path)
    assert Plan().needed(path) == ["results/toy/curve.ledger.json"]
    assert Plan().needed(str(toy.cells()[0].path)) == []
    build(toy)
    cells.compute(grid.load_study("toy/reader"), the_cell())
    assert Plan().needed(path) == []


def test_a_cell_is_given_the_ledgers_and_is_behind_once_they_change(toy, reader):
    study, cell = grid.load_study("toy/reader"), the_cell()
    cells.compute(study, cell)
    assert store.read(cell.path).arrays["accounts"].tolist() == []
    build(toy)
    assert inventory.take(study, [cell]).behind == [cell]
    cell.path.unlink()
    cells.compute(study, cell)
    assert store.read(cell.path).arrays["accounts"].tolist() == [1]
    assert inventory.take(study, [cell]).current == [cell]
    path = ledgers.path_of(toy.study())
    path.write_text(path.read_text().replace("1.0", "2.0"))
    found = inventory.take(study, [cell])
    assert found.behind == [cell]
    assert found.reasons == ["behind: results/toy/curve.ledger.json changed since 1 cell was computed"]


def test_without_a_data_set_the_reader_is_partial_and_another_cell(toy, reader, monkeypatch):
    reduced = toy.cells()[:2]
    monkeypatch.setattr(grid, "without_missing", lambda study, cells=None: grid.replace(study, left_out=("census",)))
    study = grid.without_missing(grid.load_study("toy/reader"))
    assert grid.expand(study)[0].digest == the_cell().digest, "the toy does not use the data set"
    expand = grid.expand
    monkeypatch.setattr(grid, "expand", lambda study: reduced if study.name == "toy/curve" else expand(study))
    (cell,) = expand(grid.without_missing(grid.load_study("toy/reader")))
    monkeypatch.setattr(grid, "expand", expand)
    assert cell.digest != the_cell().digest
    assert study.table_path("reader").parts[:2] == ("build", "partial")


def test_the_command_of_a_reading_cell_gives_its_digest(toy, reader):
    (cell,) = request.understand(the_cell().command()).cells
    assert cell.digest == the_cell().digest


def test_a_study_that_reads_a_reader_is_refused(toy, reader):
    other = reader.with_name("second.yaml")
    other.write_text(READER_YAML.replace("toy/reader", "toy/second").replace("[toy/curve]", "[toy/reader]"))
    with pytest.raises(SettingError, match="reads names 'toy/reader', which reads ledgers itself"):
        grid.expand(grid.load_study("toy/second"))
    reader.write_text(READER_YAML.replace("[toy/curve]", "some"))
    with pytest.raises(SettingError, match="reads is 'some', but must be a list of names"):
        the_cell()
