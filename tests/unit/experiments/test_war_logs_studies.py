"""The studies on war logs: toy runs, ledgers, and faults of mechanisms that their rows show."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from war_log_toys import build, project, run  # noqa: F401  the project is a fixture

from privpost.experiments.foulds2016 import war_logs
from privpost.experiments.foulds2016.event_methods import SAMPLED
from privpost.experiments.foulds2016.war_logs_likelihood import study as war_logs_likelihood
from privpost.lab import grid
from privpost.lab.streams import Streams
from privpost.mechanisms import event_counts
from privpost.mechanisms.event_states import HiddenMarkovSampler
from privpost.privacy.ledger import Ledger, Release

STUDIES = ("war_logs_likelihood", "war_logs_states")


@pytest.fixture(scope="module")
def built() -> dict[str, dict]:
    """The tables of both studies at smoke scale, as they come back from CSV, and the ledgers."""
    return {name: build(f"foulds2016/{name}") for name in STUDIES}


def test_toy_tables_have_the_promised_columns(built) -> None:
    promised = {
        "war_logs_likelihood": "dataset variant model n_states start method truncation prior epsilon "
        "log_likelihood_mean log_likelihood_sem per_event_mean joint_loss_mean predictive_loss_mean one_draw_loss_mean "
        "n_splits clipped_share guarantee worst_case_epsilon rhat_max ess_bulk converged",
        "war_logs_emissions": "dataset variant method epsilon state field level probability",
        "war_logs_assignments": "dataset variant method epsilon region month state frequency",
        "war_logs_states_used": "dataset variant method epsilon n_states states_over_5_percent",
    }
    for made in built.values():
        for name, table in made.items():
            if name not in ("ledgers", "war_logs_cpu"):
                assert {*promised.get(name, "").split(), "variant", "start", "uses_private_metadata"} <= set(
                    table.columns
                )


def test_guarantees_and_worst_cases_are_those_of_the_methods(built) -> None:
    likelihoods, used = (
        built[name][table] for name, table in zip(STUDIES, (STUDIES[0], "war_logs_states_used"), strict=True)
    )
    for table, iterations in ((likelihoods, 16), (used.query("summary == 'final'"), 8)):
        chains = table[(table.method == "ops") & (table.n_states > 1)]
        random, seeded = (chains[chains.start == start] for start in ("random", "seeded"))
        assert len(random) and set(random.guarantee) == {"if_converged"}
        assert np.allclose(random.worst_case_epsilon, 2 * iterations * random.epsilon, rtol=1e-12)
        assert len(seeded) and (seeded.guarantee == np.where(seeded.converged, "if_converged", "none")).all()
        assert seeded.worst_case_epsilon[~seeded.converged].isna().all()
        others = table[table.method.isin(["laplace", "gibbs", "private_gibbs"]) | (table.n_states == 1)]
        others = others[others.method != "non_private"]
        assert set(others.guarantee) == {"unconditional"}
        assert np.allclose(others.worst_case_epsilon, others.epsilon, rtol=1e-12)
        assert table[table.method == "non_private"].guarantee.isna().all()


def test_a_summary_of_the_whole_chain_of_ops_has_no_guarantee(built) -> None:
    for name in ("war_logs_maps", "war_logs_states_used"):
        ops = built["war_logs_states"][name].query("method == 'ops'")
        whole, final = (ops[ops.summary == kind] for kind in ("mode", "final"))
        assert len(whole) and set(whole.guarantee) == {"none"} and whole.worst_case_epsilon.isna().all()
        assert "if_converged" in set(final.guarantee)


@pytest.mark.parametrize("kind", [HiddenMarkovSampler, event_counts.EventCountsLaplace])
def test_what_a_mechanism_does_is_what_a_study_shows(kind, monkeypatch) -> None:
    """Half the temperature, or twice the scale of noise, moves its rows, and no others."""
    before = run("foulds2016/war_logs_likelihood")[1]
    name, factor = ("temperature", 0.5) if kind is HiddenMarkovSampler else ("scale", 2.0)
    true_setting = getattr(kind, name)
    monkeypatch.setattr(kind, name, property(lambda self: max(1.0, factor * true_setting.fget(self))))
    expected = 0
    for cell, changed in zip(before, run("foulds2016/war_logs_likelihood")[1], strict=True):
        for index, row in enumerate(war_logs_likelihood.of(cell.config)):
            same = np.array_equal(cell.arrays["joint"][index], changed.arrays["joint"][index])
            own = row.method == "ops" if name == "temperature" else row.method not in (*SAMPLED, "non_private")
            assert same != own, row
            expected += own
    assert expected


def test_half_of_a_release_is_half_of_what_a_study_scores(monkeypatch) -> None:
    """Values that are not those of the chain's last states move no score: what is scored is what chains end with."""
    before, true_draws = run("foulds2016/war_logs_likelihood"), event_counts.EventCountsLaplace.draw_all.__func__

    def draws(cls, requests):
        return [Release(0.5 * found.values, found.info) for found in true_draws(cls, requests)]

    monkeypatch.setattr(event_counts.EventCountsLaplace, "draw_all", classmethod(draws))
    for cell, changed in zip(before[1], run("foulds2016/war_logs_likelihood")[1], strict=True):
        for index, row in enumerate(war_logs_likelihood.of(cell.config)):
            same = np.array_equal(cell.arrays["joint"][index], changed.arrays["joint"][index])
            assert same != (row.method in ("laplace", "gibbs")), row


def test_neither_other_rows_nor_more_splits_change_a_row() -> None:
    """One row alone, and by its first split, has the numbers that it has among others."""
    study = grid.load_study("foulds2016/war_logs_likelihood", "smoke")
    for cell in grid.expand(study)[:2]:
        full = war_logs_likelihood.simulate(cell.config, Streams.of(cell), Ledger())
        few = {"epsilon": [10.0], "variant": ["corrected"], "splits": 1, "method": ["laplace"]}
        config = SimpleNamespace(**{**vars(cell.config), **few})
        arrays = war_logs_likelihood.simulate(config, Streams.of(cell), Ledger())
        (row,), place = war_logs_likelihood.of(config), war_logs_likelihood.of(cell.config).index
        assert arrays["events"] == full["events"][0]
        if row.n_states == 1:
            assert np.allclose(arrays["joint"][0], full["joint"][place(row)][:1], rtol=1e-2)
        # All rows of one model read one release of a split, whatever is swept beside it.
        alone = SimpleNamespace(**{**vars(cell.config), "epsilon": [10.0], "method": ["laplace"]})
        again = war_logs_likelihood.simulate(alone, Streams.of(cell), Ledger())["joint"]
        # Matrix products may differ in the last digits with the shape of a batch.
        assert np.allclose(again, full["joint"][[place(row) for row in war_logs_likelihood.of(alone)]], rtol=1e-9)


def test_the_private_hmm_recovers_the_states_that_generated_the_data(built) -> None:
    maps = built["war_logs_states"]["war_logs_maps"]
    # 1000 events per cell and emissions far apart: not one of 432 cells may be missed from seeds, noise or not.
    assert maps[maps.start == "seeded"].misses_mean.max() == 0


def test_tables_say_how_they_were_sampled_and_what_was_read_off_the_records(built) -> None:
    likelihoods = built["war_logs_likelihood"]["war_logs_likelihood"]
    bayes = likelihoods.model == "naive_bayes"
    assert set(likelihoods.sampling[bayes]) == {"exact"} and likelihoods.rhat_max[bayes].isna().all()
    chains = likelihoods[likelihoods.sampling == "mcmc"]
    assert set(likelihoods.method[~bayes & (likelihoods.sampling != "mcmc")]) == {"private_gibbs"}
    assert set(chains.start) == {"random", "seeded"} and (chains.rhat_max > 0.9).all()
    for made in built.values():
        for name, table in made.items():
            if name not in ("ledgers", "war_logs_cpu"):
                # Simulated data are whole: nothing was left out by looking at them.
                assert not table.uses_private_metadata.any()
    assert war_logs.uses_private_metadata("iraq_sigact")
    assert war_logs.uses_private_metadata("afghanistan")
