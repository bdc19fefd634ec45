"""Cells that read other studies' ledgers: computed after them, known by their cells, outdated when they change."""

from __future__ import annotations

import re

import pytest

from privpost.commands import cli, publish, steps
from privpost.lab import cells, grid, ledgers, project, published, request, store, study
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
reads: all
rev: 1
level: 1
"""


@pytest.fixture
def reader(toy):
    """The toy and a study that reads its ledger; returns the path of the reader's YAML."""
    toy.add("reader", READER)
    path = toy.yaml.with_name("reader.yaml")
    path.write_text(READER_YAML)
    return path


def the_cell():
    (cell,) = grid.expand(the_study())
    return cell


def the_study():
    return grid.load_study("toy/reader", home=project.built("paper"))


def build(toy):
    for cell in toy.cells():
        cells.compute(toy.study(), cell)
    assert cli.main(["build", "toy/curve"]) == 0


def test_the_digest_covers_the_cells_of_what_is_read(toy, reader):
    before, own = the_cell().digest, [cell.digest for cell in toy.cells()]
    toy.edit("note: n", "note: m")
    changed = the_cell().digest
    assert changed != before
    reader.write_text(READER_YAML.replace("reads: all\n", ""))
    assert the_cell().digest not in (before, changed)
    toy.edit("note: m", "note: n")
    # A study that reads none has the digests that it always had.
    assert [cell.digest for cell in toy.cells()] == own


def test_a_cell_is_given_the_ledgers_and_is_behind_once_they_change(toy, reader):
    study, cell = the_study(), the_cell()
    cells.compute(study, cell)
    assert store.read(cell.path).arrays["accounts"].tolist() == []
    build(toy)
    assert cells.look(study, [cell]).behind == {cell.digest: ["ledger of toy/curve changed"]}
    cells.compute(study, cell, fresh=True)
    assert store.read(cell.path).arrays["accounts"].tolist() == [1]
    assert cells.look(study, [cell]).behind == {}
    path = ledgers.path_of(toy.study())
    path.write_text(path.read_text().replace("1.0", "2.0"))
    assert cells.look(study, [cell]).behind == {cell.digest: ["ledger of toy/curve changed"]}


def test_the_command_of_a_reading_cell_gives_its_digest(toy, reader):
    (cell,) = request.understand(the_cell().command()).cells
    assert cell.digest == the_cell().digest


def test_a_study_that_reads_is_read_by_no_other(toy, reader):
    toy.add("second", READER)
    reader.with_name("second.yaml").write_text(READER_YAML.replace("toy/reader", "toy/second"))
    assert [study.name for study in grid.read_by(grid.load_study("toy/second"))] == ["toy/curve"]


def test_studies_that_are_loaded_together_are_composed_once(reader, monkeypatch):
    """Composing is most of what `privpost status` does: a reader takes the studies beside it."""
    composed, compose = [], study.compose
    monkeypatch.setattr(study, "compose", lambda name, scale: composed.append(name) or compose(name, scale))
    for each in grid.load_studies(home=project.built("paper")):
        grid.expand(each)
        assert grid.read_by(each) == (
            [grid.load_study("toy/curve", home=project.built("paper"))] * (each.name == "toy/reader")
        )
    assert sorted(composed) == sorted(set(composed)) == ["toy/curve", "toy/reader"]


def test_who_reads_a_ledger_that_publishing_changed_is_told(toy, reader, monkeypatch, capsys):
    """The published audit was once of mechanisms that no published ledger had any more."""
    monkeypatch.setattr(publish, "_overall", lambda studies, drawn: published.write_sums())
    build(toy)
    assert cli.main(["publish", "toy/curve"]) == 0
    ledger = grid.load_study("toy/curve").ledger_path
    said = "toy/reader reads toy/curve, which changed"
    assert cli.main(["publish", "toy/curve"]) == 0
    assert said not in capsys.readouterr().out
    ledger.write_text(ledger.read_text().replace("1.0", "2.0"))
    published.write_sums()
    assert cli.main(["publish", "toy/curve"]) == 0
    assert said in capsys.readouterr().out


def test_who_reads_what_is_outdated_is_outdated_with_that_reason(toy, reader, capsys):
    build(toy)
    assert cli.main(["build", "toy/reader"]) == 0
    toy.edit("note: n", "note: m")
    steps.tell_outdated(grid.load_studies(home=project.built("paper")))
    said = "privpost: the built tables of toy/curve, toy/reader (it reads toy/curve) were made with other settings"
    assert capsys.readouterr().err == f"{said} than today's; to renew them: make reproduce\n"


def test_reads_is_all(toy, reader):
    reader.write_text(READER_YAML.replace("reads: all", "reads: [toy/curve]"))
    with pytest.raises(SettingError, match=re.escape("reads is ['toy/curve'], but must be all.")):
        the_cell()
