"""Columns of tables on real people's records that no release covers: what the report declares, and what is true."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from privpost.lab import grid
from privpost.lab.streams import Streams
from privpost.lab.tables import read_tables
from privpost.privacy.ledger.gate import Ledger
from privpost.report import describe

DIAGNOSIS = {
    "zhang2016/linear_regression": {"acceptance", "mean_norm"},
    "foulds2016/war_logs_likelihood": {"rhat_max", "ess_bulk", "log_joint_mean", "clipped_share"},
}


@pytest.mark.parametrize("name", DIAGNOSIS)
def test_exact_statistics_and_diagnostics_are_named_in_the_notes(checkout, name):
    study = grid.load_study(name)
    tables = read_tables(study)
    found = {column for columns in describe.unreleased(study, tables).values() for column in columns}
    assert DIAGNOSIS[name] <= found
    assert not found & {"dataset", "method", "epsilon", "variant", "n_splits", "n_repeats"}
    notes = " ".join(describe.validity_notes(study, tables, []))
    assert all(f"{column}" in notes for column in DIAGNOSIS[name])


def test_simulated_data_have_nobody_to_protect(checkout):
    study = grid.load_study("geumlek2017/tradeoff")
    assert describe.unreleased(study, read_tables(study)) == {}


def test_what_other_records_change_behind_the_same_releases_is_declared(checkout, monkeypatch):
    from privpost.experiments.zhang2016.linear_regression import study as module

    study = grid.load_study("zhang2016/linear_regression", "smoke")
    cell = grid.expand(study)[0]
    shipped, kept, tables = Ledger.release_all, [], []
    monkeypatch.setattr(module.prepared, "read", lambda *_: None)
    monkeypatch.setattr(module.census, "clipped_share", lambda *_: 0.0)
    for seed in (1, 2):
        rng = np.random.default_rng(seed)
        features, labels = rng.normal(size=(50, 3)) / 10, rng.random(50)
        monkeypatch.setattr(module.census, "regression", lambda *_, data=(features, labels): data)
        replayed = iter(kept)

        def release_all(self, requests, seed=seed, replayed=replayed):
            # The second run has other records, but the first run's releases.
            kept.append(shipped(self, requests)) if seed == 1 else shipped(self, requests)
            return kept[-1] if seed == 1 else next(replayed)

        monkeypatch.setattr(Ledger, "release_all", release_all)
        arrays = module.simulate(cell.config, Streams.of(cell), Ledger(cell.dataset, cell.sizes["trials"]))
        tables.append(module.tabulate([SimpleNamespace(config=cell.config, arrays=arrays)]))
    first, second = tables
    moved = {column for column in first if not first[column].equals(second[column])}
    assert {"mean_norm", "mse_mean"} <= moved
    assert moved <= set(describe.unreleased(study, {"t": first})["t"])
