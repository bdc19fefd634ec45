"""The study of public candidates: its claim can turn, and its rows follow from the settings."""

from __future__ import annotations

import pytest

from privpost.experiments.foulds2016.war_logs_candidates import claims
from privpost.lab import grid, tables
from privpost.lab.claims import score


@pytest.fixture(scope="module")
def shipped():
    return tables.read_tables(grid.load_study("foulds2016/war_logs_candidates"))


def test_the_claim_turns_with_the_numbers(shipped):
    """All checks pass where candidates lose much and less with J, none where they lose nothing."""
    table = shipped["war_logs_candidates"].copy()
    chosen = table.method == "candidates"
    table["loss_sem"] = 0.01
    table.loc[table.method == "laplace", "loss_mean"] = 0.0
    for factor, verdict in ((1.0, "holds"), (-1.0, "does not hold")):
        table.loc[chosen, "loss_mean"] = factor * (2.0 + 1 / table.candidates[chosen])
        (claim,) = score(claims, {"war_logs_candidates": table})
        assert claim.verdict == verdict


def test_rows_are_those_of_the_settings(shipped):
    """Every setting has its rows once, and the choice among one candidate does not depend on epsilon."""
    table = shipped["war_logs_candidates"]
    chosen = table[table.method == "candidates"]
    assert not chosen.duplicated(["dataset", "n_states", "candidates", "epsilon"]).any()
    single = chosen[chosen.candidates == 1].groupby(["dataset", "n_states"]).per_event_mean.nunique()
    assert (single == 1).all()
