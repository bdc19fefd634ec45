"""The studies on noise-aware inference for event counts: toy runs, ledgers, and verdicts that falsified tables flip."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chisquare, kstest
from war_log_toys import build, project, run, verdicts  # noqa: F401  the project is a fixture

from privpost.experiments.foulds2016 import event_methods, held_out
from privpost.experiments.noise_aware.event_calibration import study as event_calibration
from privpost.experiments.noise_aware.war_logs import claims as war_logs_claims
from privpost.experiments.noise_aware.war_logs import study as war_logs
from privpost.lab import grid
from privpost.lab.schema import SettingError
from privpost.lab.streams import Streams
from privpost.samplers import hidden_markov_gibbs as gibbs


@pytest.fixture(scope="module")
def built() -> dict[str, dict]:
    """Tables of both studies at smoke scale, as they come back from CSV, and their ledgers."""
    return {name: build(f"noise_aware/{name}") for name in ("war_logs", "event_calibration")}


def test_noise_naive_and_noise_aware_models_read_one_release(monkeypatch) -> None:
    """The releases behind both are caught where they are processed, and compared."""
    naive, aware = [], []
    true_process, true_counts = event_methods.post_process, event_methods.noise_aware_events.LatentCounts

    def processed(noisy, sizes, variant):
        naive.append(noisy)
        return true_process(noisy, sizes, variant)

    def latent(noisy, *arguments):
        aware.append(noisy)
        return true_counts(noisy, *arguments)

    monkeypatch.setattr(event_methods, "post_process", processed)
    monkeypatch.setattr(event_methods.noise_aware_events, "LatentCounts", latent)
    run("noise_aware/war_logs", epsilon=[1.0], variant=["corrected"], iterations=5, burn_in=1)
    assert len(naive) == len(aware) == 2
    for first, second in zip(naive, aware, strict=True):
        # The last chains of the noise-aware model are further ones on the first split.
        assert np.array_equal(first, second.reshape(5, *first.shape[1:])[:2])


def test_rows_that_another_study_ran_are_the_same_to_the_last_bit_as_if_run_anew() -> None:
    """The noise-naive chains of both studies share splits, noise and streams: one of them need not run."""
    wanted = {"model": ["hmm"], "sampler": ["collapsed"], "method": ["non_private", "laplace", "gibbs"]}
    settings = {name: getattr(smoke_cell("noise_aware/war_logs").config, name) for name in held_out.ALIKE} | wanted
    settings |= {"epsilon": [0.1, 1.0], "iterations": 5, "burn_in": 1}
    (anew,) = run("noise_aware/war_logs", **settings)[1]
    ran = settings | {"method": ["non_private", "laplace"], "epsilon": [0.1], "iterations": 7}
    (there,) = run("foulds2016/war_logs_likelihood", **ran)[1]
    sizes = {"trials": 2, "block": 2, "seed": smoke_cell("noise_aware/war_logs").sizes["seed"], "rev": 1}
    there.record = {"sizes": sizes}
    (read,) = run("noise_aware/war_logs", **settings, results=lambda: [there])[1]
    for name, values in anew.arrays.items():
        assert np.array_equal(values, read.arrays[name], equal_nan=True), name
    accounts = {row["account"] for row in anew.ledger} - {row["account"] for row in read.ledger}
    assert sorted(accounts) == [f"hmm/laplace/{variant}/epsilon=0.1/collapsed" for variant in ("corrected", "paper")]
    # What another setting gives is not taken.
    row = next(row for row in held_out.rows(there.config) if row.method == "laplace")
    given = {name: sizes[name] for name in ("trials", "block", "seed")}
    assert held_out.computed(read.config, given, row, [there])
    for name, value in (("rounds", 65), ("islands", 2), ("held_out", 0.7), ("dataset", "iraq_sigact")):
        other = SimpleNamespace(**{**vars(read.config), name: value})
        assert held_out.computed(other, given, row, [there]) is None
    assert held_out.computed(read.config, given | {"seed": -1}, row, [there]) is None


def smoke_cell(name: str):
    return next(iter(grid.expand(grid.load_study(name, "smoke"))))


def test_noise_too_wide_for_the_collapsed_sampler_is_refused_by_its_epsilon() -> None:
    with pytest.raises(SettingError, match=r"epsilon is 1e-10, but counts sum to .*e\+1"):
        run("noise_aware/war_logs", epsilon=[1e-10], model=["hmm"], method=["laplace"])


def test_known_counts_are_scored_as_before(built) -> None:
    """What the models score without noise does not depend on the methods that run beside them."""
    (plain,) = run("noise_aware/war_logs", method=["non_private"])[1]
    table = built["war_logs"]["war_logs"]
    for score, name in war_logs.SCORES.items():
        rows = table[(table.method == "non_private") & (table.score == score)]
        # Matrix products may differ in the last digits with the shape of a batch.
        assert np.allclose(rows.per_event_mean, (plain.arrays[name] / plain.arrays["events"]).mean(axis=1), rtol=1e-9)


def test_the_predictive_score_of_one_state_is_that_of_its_mean_probabilities() -> None:
    (cell,) = run("noise_aware/war_logs", model=["naive_bayes"], method=["non_private"], burn_in=8, iterations=4000)[1]
    study_cell = next(iter(grid.expand(grid.load_study("noise_aware/war_logs", "smoke"))))
    streams = Streams.of(study_cell)
    data = held_out.split_cells(
        cell.config, war_logs.war_logs.load("iraq_simulated"), streams, next(iter(streams.blocks()))
    )
    totals, test = data.observed @ data.counts, data.test_counts.sum(axis=1)
    score = np.zeros(2)
    for field in gibbs.Prior(1, data.sizes).fields:
        mean = (totals[:, field] + 1) / (totals[:, field] + 1).sum(axis=1, keepdims=True)
        score += (test[:, field] * np.log(mean)).sum(axis=1)
    # A mean of 3992 draws, each probability's relative error below 1/sqrt(3992): 1e-3 per event is far beyond it.
    assert np.allclose(cell.arrays["predictive"][0] / data.test_events, score / data.test_events, atol=1e-3)


def test_data_for_calibration_follow_the_prior() -> None:
    config = SimpleNamespace(
        n=4, n_states=2, sizes=[3, 2], transition_concentration=1.0, emission_concentration=1.0, regions=1, months=3
    )
    layout = gibbs.Layout.of([0, 0, 0])
    size = 20_000
    truth, counts = event_calibration.draw_data(config, layout, size, np.random.default_rng(41))
    totals = counts[..., :3].sum(axis=-1)
    assert np.array_equal(totals, counts[..., 3:].sum(axis=-1))
    assert (totals.sum(axis=1) == 4).all()
    # The 15 ways to spread 4 events over 3 cells are equally likely: p-value 1e-4.
    codes = (totals @ np.array([25, 5, 1])).astype(int)
    assert len(np.unique(codes)) == 15
    assert chisquare(np.unique(codes, return_counts=True)[1]).pvalue > 1e-4
    # Dir(1, 1, 1) has mean 1/3 and variance 1/18; 4.5 standard errors of the mean.
    assert np.allclose(truth[:, :3].mean(axis=0), 1 / 3, atol=4.5 * np.sqrt(1 / 18 / size))
    # Counts of the first cell given its probabilities: residuals have mean 0 and variance N p (1 − p).
    residual = counts[:, 0, 0] - totals[:, 0] * truth[:, 0]
    variance = totals[:, 0] * truth[:, 0] * (1 - truth[:, 0])
    assert abs(residual.mean()) < 4.5 * np.sqrt(variance.mean() / size)


def test_the_table_tells_how_chains_moved(built) -> None:
    rows = built["war_logs"]["war_logs"]
    aware = rows[(rows.model == "hmm") & (rows.method == "gibbs")]
    assert (aware.sampler == "joint moves").all()
    assert aware.acceptance.between(0.3, 1).all()
    # Under much noise states move; under little the data fix them.
    assert (aware[aware.epsilon == 0.1].moved > 0).all()
    assert aware.moved.between(0, 1).all()
    assert (aware.n_chains == 4).all()
    assert (rows[(rows.model == "hmm") & (rows.method == "laplace")].sampler == "collapsed").all()


def test_the_largest_loss_that_splits_leave_possible_is_that_of_students_t() -> None:
    part = pd.DataFrame({"gain_mean": [0.2, -0.1, 0.3], "gain_sem": [0.01, 0.1, 0.01], "n_splits": 4})
    # 3.7405: the 1 − 0.05/3 quantile at 3 degrees of freedom, from ∫ of its density in closed form.
    angle = np.arctan(3.7405 / np.sqrt(3))
    assert 0.5 + (angle + np.sin(2 * angle) / 2) / np.pi == pytest.approx(1 - 0.05 / 3, abs=1e-5)
    assert war_logs_claims.loss_bound(part) == pytest.approx(0.1 + 3.7405 * 0.1, abs=1e-4)
    assert war_logs_claims.loss_bound(part.assign(gain_mean=1.0)) == 0.0


@pytest.mark.parametrize("n", (3, 200))
def test_ranks_of_the_truth_among_few_draws_are_uniform_and_averages_are_not(n) -> None:
    """Four independent draws of one known law: one cell of n events, no release, so that the posterior is the prior."""
    trials, rng = 4000, np.random.default_rng(1)
    config = SimpleNamespace(burn_in=2, iterations=22, thin=5)
    prior = gibbs.Prior(1, (2,))
    truth = rng.random(trials)
    truth = np.stack([truth, 1 - truth], axis=-1)
    watch = event_calibration._Conditional(config, prior, truth, rng, np.random.default_rng(2))
    for iteration in range(config.burn_in, config.iterations):
        if (iteration - config.burn_in) % config.thin == 0:
            first = rng.integers(0, n + 1, trials)
        counts = np.stack([first, n - first], axis=-1)[:, None]
        watch(iteration, SimpleNamespace(states=np.zeros((1, trials), int), counts=[counts]))
    # Seed 1; beyond .001 a right rank is once in a thousand seeds.
    assert kstest(watch.rank(), "uniform").pvalue > 1e-3
    assert kstest(watch.levels()[0], "uniform").pvalue > 1e-3
    assert kstest(watch.cdf, "uniform").pvalue < 1e-6


def test_effective_draws_of_a_total_are_of_the_first_cell_s_events_after_the_burn_in(monkeypatch) -> None:
    """What is diagnosed, and the median over trials, by loops; the sizes themselves are tested with the diagnostics."""
    observed, diagnosed = [], []
    true_call = event_calibration._Conditional.__call__

    def call(watch, iteration, state):
        if iteration >= 10 and len(state.states) > 1:
            observed.append([sum(int(cells[0][level]) for level in range(3)) for cells in state.counts[0]])
        true_call(watch, iteration, state)

    def sizes(draws):
        diagnosed.append(draws)
        return np.arange(draws.shape[2]) ** 2.0

    monkeypatch.setattr(event_calibration._Conditional, "__call__", call)
    monkeypatch.setattr(event_calibration, "bulk_sizes", sizes)
    study, cells = run("noise_aware/event_calibration", method=["gibbs"], epsilon=[0.1])
    (draws,) = diagnosed
    assert draws.shape == (10, 1, 50) and np.array_equal(draws[:, 0], observed) and np.ptp(observed, axis=0).max() > 0
    table = study.module().tabulate(cells)["event_calibration"]
    found = {(row["model"], row["method"]): row["total_ess_median"] for row in table}
    assert found.pop(("hmm", "gibbs")) == (24**2 + 25**2) / 2
    assert len(found) == 1 and np.isnan(list(found.values())).all()
