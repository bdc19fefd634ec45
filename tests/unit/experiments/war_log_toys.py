"""Toy runs of the studies on war logs, for their tests: a project with the simulated data, cells and tables."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from privpost.datasets import catalogue
from privpost.datasets.prepared import prepare
from privpost.lab import grid, tables
from privpost.lab.streams import Streams
from privpost.privacy.ledger.gate import Ledger

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module", autouse=True)
def project(tmp_path_factory):
    """Work in a folder that holds the configuration and the simulated data."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "conf").symlink_to(ROOT / "conf")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        prepare(catalogue.load("iraq_simulated"))
        yield folder


def run(name: str, **changes):
    """A study, and its smoke cells with changed settings, each with its arrays and ledger."""
    study = grid.load_study(name, "smoke")
    found = []
    for cell in grid.expand(study):
        ledger = Ledger()
        config = SimpleNamespace(**{**vars(cell.config), **changes})
        arrays = study.module().simulate(config, Streams.of(cell), ledger)
        arrays = {key: np.asarray(value) for key, value in arrays.items()}
        found.append(SimpleNamespace(config=config, arrays=arrays, ledger=ledger.record()))
    return study, found


def build(name: str) -> dict:
    """A study's tables at smoke scale, as they come back from CSV, and the cells' `ledgers`."""
    study, cells = run(name)
    made = tables.tables_of(study, cells)
    for key, table in made.items():
        table.to_csv(f"{key}.csv", index=False)
    return {key: tables.read_table(Path(f"{key}.csv")) for key in made} | {"ledgers": [cell.ledger for cell in cells]}


def claims_of(function, **made) -> list:
    """Return the claims that one function declares, from tables by name."""
    return [claim for declared in function.claims if (claim := declared.score(made))]
