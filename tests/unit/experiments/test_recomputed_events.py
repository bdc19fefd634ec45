"""Calibration on event counts, computed a second time: data of both laws, exact posteriors, tables from arrays."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from recomputed import ks, mean_and_error, recorded, row, run, spied
from scipy.special import betainc
from scipy.stats import chisquare, kstest

from privpost.experiments.noise_aware.event_calibration import exact
from privpost.experiments.noise_aware.event_calibration import study as events
from privpost.lab import grid
from privpost.samplers.hidden_markov import gibbs

NAME, MANY = "noise_aware/event_calibration", 10**6
FLAT = {"transition_concentration": 1.0, "emission_concentration": 1.0}
ONE = FLAT | {"law": "multinomial", "n_states": 1, "regions": 1, "months": 1}
SMALL = FLAT | {"law": "multinomial", "n_states": 2, "regions": 1, "months": 2, "sizes": [2, 2]}


@pytest.mark.parametrize("months", [1, 2])
def test_cells_are_in_one_of_three_states_as_often_as_the_prior_says(months):
    """Two regions of one month, or one of two: a third has both cells in one state, as the moves' mean is uniform.

    Of a million events shares tell states apart: 1 % of others are that near. 4.5 standard errors of 3000 data sets.
    """
    config = SimpleNamespace(**FLAT, law="multinomial", n=MANY, n_states=3, sizes=[2])
    size, layout = 3000, gibbs.Layout.of([0, 0] if months == 2 else [0, 1])
    truth, counts, _ = events.draw_data(config, layout, size, np.random.default_rng(5))
    shares = counts[..., 0] / counts.sum(axis=-1)
    known = (counts.sum(axis=-1) > 1e5).all(axis=1)
    same = np.abs(shares[known, 0] - shares[known, 1]) < 0.005
    assert same.mean() == pytest.approx(1 / 3 + 0.01, abs=4.5 * math.sqrt(2 / 9 / known.sum()) + 0.01)
    np.testing.assert_allclose(shares[known, 0], truth[known, 0], atol=4.5 * math.sqrt(0.25 / 1e5))


def test_counts_of_the_models_law_share_a_cell_s_events_and_sum_to_n():
    config = SimpleNamespace(**FLAT, law="multinomial", n=4, n_states=2, sizes=[3, 2])
    size = 20_000
    truth, counts, _ = events.draw_data(config, gibbs.Layout.of([0, 0, 0]), size, np.random.default_rng(41))
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


def test_counts_of_the_chain_s_law_are_independent_given_a_rate():
    """Totals of a field are Poisson with an exponential rate: geometric; two fields' totals share the rate alone."""
    config = SimpleNamespace(**FLAT, law="poisson", n=12, n_states=2, sizes=[3, 2])
    size = 20_000
    _, counts, of_events = events.draw_data(config, gibbs.Layout.of([0, 0, 0]), size, np.random.default_rng(42))
    assert (of_events[..., :3].sum(axis=(1, 2)) == 12).all() and (of_events[..., 3:].sum(axis=(1, 2)) == 12).all()
    one, other = counts[:, 1, :3].sum(axis=-1), counts[:, 1, 3:].sum(axis=-1)
    # Mean 4; P(0) = 1/5; covariance that of the rates, 16, of variances 20. 4.5 standard errors.
    for totals in (one, other):
        assert totals.mean() == pytest.approx(4, abs=4.5 * math.sqrt(20 / size))
        assert (totals == 0).mean() == pytest.approx(0.2, abs=4.5 * math.sqrt(0.16 / size))
    assert np.cov(one, other)[0, 1] == pytest.approx(16, rel=0.1)


@pytest.mark.parametrize("law", ["multinomial", "poisson"])
def test_noise_is_that_of_the_mechanism(monkeypatch, law):
    """One stream for all rows, at scale 2D/ε of two fields; counts of the Poisson law get the noise of n events."""
    drawn, seen = spied(monkeypatch, events, "draw_data"), spied(monkeypatch, events, "_posterior")
    settings = {**SMALL, "law": law, "n": 8, "epsilon": [2.0], "variant": ["paper"], "thin": 1}
    cell = run(NAME, 3, 3, **settings, method=["laplace", "gibbs"], iterations=6, burn_in=1)
    _, counts, of_events = drawn[0].result
    assert [request.statistics.tolist() for request, _ in cell.ledger.seen] == [of_events.reshape(3, 8).tolist()] * 2
    assert np.array_equal(counts, of_events) == (law == "multinomial")
    noise = cell.streams("mechanism", 0).laplace(size=(3, 8)).reshape(3, 2, 4)
    for call in seen:
        np.testing.assert_allclose(call.given[3], counts + noise * 4 / 2.0)


def test_without_noise_the_posterior_of_one_state_is_dirichlets(monkeypatch):
    """Its means and distribution functions in closed form, to rounding."""
    drawn = spied(monkeypatch, events, "draw_data")
    settings = ONE | {"n": 5, "sizes": [3], "epsilon": [2.0], "emission_concentration": 2.0}
    cell = run(NAME, 6, 3, **settings, method=["non_private"], variant=["paper"], iterations=9, burn_in=4, thin=2)
    for trial in range(6):
        truth, counts, _ = (part[trial % 3] for part in drawn[trial // 3].result)
        alpha = [2.0 + x for x in counts[0]]
        total = sum(alpha)
        levels = [betainc(a, total - a, p) for a, p in zip(alpha, truth, strict=True)]
        assert cell.arrays["quantiles"][0, :, trial] == pytest.approx(levels)
        divergence = sum(p * math.log(p * total / a) for a, p in zip(alpha, truth, strict=True))
        assert cell.arrays["kl"][0, trial] == pytest.approx(divergence)


def test_the_enumerated_posterior_is_that_of_weighted_data_sets():
    """300,000 data sets from the prior, weighted by the noise's density; at least 10,000 count; 4.5 errors."""
    n, scale, size, rng = 5, 2.0, 300_000, np.random.default_rng(1)
    config = SimpleNamespace(**SMALL, n=n)
    truth, counts, _ = events.draw_data(config, gibbs.Layout.of([0, 0]), size, rng)
    noisy = counts[:3] + rng.laplace(0, scale, counts[:3].shape)
    found = exact.first_level(config, noisy, scale, truth[:3, 0])
    for trial in range(3):
        weights = np.exp(-np.abs(noisy[trial] - counts[3:]).sum(axis=(1, 2)) / scale)
        weights /= weights.sum()
        effective, p = 1 / (weights**2).sum(), truth[3:, 0]
        assert effective > 1e4
        for own, values in zip(found[:, trial], (p < truth[trial, 0], p, p**2), strict=True):
            mean = (weights * values).sum()
            assert own == pytest.approx(mean, abs=4.5 * math.sqrt((weights**2 * (values - mean) ** 2).sum()))


def test_exact_posteriors_are_known_in_two_cases_only():
    noisy, truth = np.full((1, 2, 4), 3.0), np.array([0.3])
    config = SimpleNamespace(**SMALL, n=6)
    assert exact.first_level(config, noisy, 1.0, truth).shape == (3, 1)
    for change in ({"n_states": 3}, {"months": 3}, {"sizes": [2, 3]}, {"law": "poisson"}, {"regions": 2},
                   {"emission_concentration": 2.0}, {"transition_concentration": 2.0}):  # fmt: skip
        assert exact.first_level(SimpleNamespace(**{**vars(config), **change}), noisy, 1.0, truth) is None


def test_exact_draws_and_chains_have_the_quantiles_and_widths_of_the_exact_posterior():
    """400 draws: three standard errors of a share are below 0.08; widths are averages over 60 trials."""
    one = ONE | {"n": 30, "sizes": [4], "method": ["exact"], "iterations": 401, "burn_in": 1, "thin": 1}
    two = SMALL | {"n": 20, "method": ["gibbs"], "iterations": 1001, "burn_in": 201, "thin": 20}
    for settings, most in ((one, 0.03), (two, 0.05)):
        cell = run(NAME, 60, 60, **settings, epsilon=[1.0], variant=["paper"])
        kept = row(cell.tables["event_calibration"], epsilon=1.0)
        apart = np.abs(cell.arrays["averaged"] - cell.arrays["oracle"])[0]
        assert kept.oracle_difference == pytest.approx(apart.mean()) and apart.mean() < most
        assert kept.width_ratio == pytest.approx(1, abs=0.08)


def test_draws_are_ranked_and_chains_diagnosed(monkeypatch):
    """Every thinned draw of the chain's probability in the first cell's state counts, by loops over the samples."""
    field = lambda state: (state.states[0].tolist(), state.probabilities[:, :, :2].tolist())  # noqa: E731
    runs, drawn = recorded(monkeypatch, field), spied(monkeypatch, events, "draw_data")
    settings = SMALL | {"n": 8, "epsilon": [2.0], "variant": ["paper"], "method": ["non_private", "gibbs"]}
    cell = run(NAME, 4, 4, **settings, iterations=23, burn_in=3, thin=5)
    truth = drawn[0].result[0]
    for index, samples in enumerate(runs):
        for trial in range(4):
            values = [laws[trial][states[trial]] for states, laws in samples[3:]]
            for level in range(2):
                below = sum(value[level] < truth[trial, level] for value in values[::5])
                # (rank + V)/(m + 1) of m = 4 draws, V uniform.
                assert below / 5 <= cell.arrays["quantiles"][index, level, trial] <= (below + 1) / 5
            mean = [np.mean([value[level] for value in values]) for level in range(2)]
            divergence = sum(p * math.log(p / q) for p, q in zip(truth[trial, :2], mean, strict=True))
            assert cell.arrays["kl"][index, trial] == pytest.approx(divergence)
            spread = np.mean([value[0] ** 2 for value in values]) - mean[0] ** 2
            assert cell.arrays["variances"][index, 0, trial] == pytest.approx(spread)
            share = np.mean([value[0] < truth[trial, 0] for value in values])
            assert cell.arrays["averaged"][index, trial] == pytest.approx(share)
    assert np.isfinite(cell.arrays["rhat"]).all() and (cell.arrays["ess"] > 1).all()


@pytest.mark.parametrize("wrong", [1.0, 0.5])
def test_ranks_of_a_chain_on_its_own_law_are_uniform_and_those_with_a_wrong_scale_are_not(monkeypatch, wrong):
    """Two states, 240 data sets, noise wider than the counts' own spread: half its scale is seen by z²."""
    made = events.event_counts.NoisyCounts
    monkeypatch.setattr(events.event_counts, "NoisyCounts", lambda y, seen, s, n: made(y, seen, wrong * s, n))
    settings = FLAT | {"law": "poisson", "n": 600, "n_states": 2, "regions": 2, "months": 3, "sizes": [3, 2]}
    cell = run(NAME, 240, 240, **settings, epsilon=[0.4], variant=["paper"], method=["gibbs"], iterations=160,
               burn_in=60, thin=10)  # fmt: skip
    kept = row(cell.tables["event_calibration"], method="gibbs")
    assert kept.sd_of_prior < 0.7
    # Seed 1; beyond .001 a right rank is once in a thousand seeds.
    assert (kstest(cell.arrays["quantiles"][0, 0], "uniform").pvalue > 1e-3 and kept.z2_p > 1e-3) == (wrong == 1)


def test_calibration_is_tabulated_row_by_row_beside_what_is_known_of_each_chain():
    """Arrays by hand in place of draws: both tables by a loop, to rounding."""
    study = grid.load_study(NAME, "smoke")
    first = grid.expand(study)[0].config
    trials, listed, cells = 7, {}, []
    for n_states, law in ((1, "multinomial"), (2, "poisson")):
        changes = {"n": 4, "n_states": n_states, "regions": 1, "months": n_states, "sizes": [3], "trials": trials}
        changes |= {"epsilon": [0.5, 2.0], "variant": ["paper", "corrected"], "law": law}
        changes["method"] = ["non_private", "laplace", "gibbs", "exact"]
        config = SimpleNamespace(**{**vars(first), **changes})
        model, aware = ("naive_bayes", "exact") if n_states == 1 else ("hmm", "gibbs")
        own = [(model, "non_private", None, None)]
        own += [(model, "laplace", variant, eps) for eps in (0.5, 2.0) for variant in ("paper", "corrected")]
        own += [(model, aware, None, eps) for eps in (0.5, 2.0)]
        rng, many = np.random.default_rng(n_states), len(own)
        arrays = {name: rng.uniform(0, 1, (many, trials)) for name in ("averaged", "oracle", "kl")}
        arrays |= {"quantiles": rng.uniform(0, 1, (many, 3, trials)), "variances": rng.uniform(0, 1, (many, 2, trials))}
        arrays |= {name: rng.uniform(1, 9, many) for name in ("rhat", "ess")}
        cells.append(SimpleNamespace(config=config, arrays=arrays))
        listed |= {key: (index, arrays) for index, key in enumerate(own)}
    made = {name: pd.DataFrame(rows) for name, rows in study.module().tabulate(cells).items()}
    table, pairs = made["event_calibration"], made["event_calibration_pairs"]
    assert (len(table), len(pairs)) == (len(listed), 8)
    for (model, method, variant, eps), (index, arrays) in listed.items():
        kept = row(table, model=model, method=method, variant=variant, epsilon=eps)
        assert kept.ks == pytest.approx(ks(arrays["quantiles"][index, 0]))
        assert (kept.n, kept.n_trials, kept.law) == (4, trials, "poisson" if model == "hmm" else "multinomial")
        assert kept.sampling == ("mcmc" if model == "hmm" else "exact")
        assert (kept.rhat_median, kept.ess_median) == (arrays["rhat"][index], arrays["ess"][index])
        assert kept.z2_of == "level 1 to level 3"
        assert (kept.kl_mean, kept.kl_sem) == pytest.approx(mean_and_error(arrays["kl"][index]))
        apart = [abs(a - b) for a, b in zip(arrays["averaged"][index], arrays["oracle"][index], strict=True)]
        assert kept.oracle_difference == pytest.approx(np.mean(apart))
        chain, exactly = (np.mean(values) for values in arrays["variances"][index])
        assert kept.width_ratio == pytest.approx(math.sqrt(chain / exactly))
        # Of a symmetric Dirichlet law of three levels: p has mean 1/3 and E p² = 2/12.
        of_prior = math.sqrt(chain / (2 / 12 - 1 / 9)) if method in ("gibbs", "exact") else math.nan
        assert kept.sd_of_prior == pytest.approx(of_prior, nan_ok=True)
        if method == "laplace":
            aware = arrays["kl"][listed[model, "exact" if model == "naive_bayes" else "gibbs", None, eps][0]]
            gained = row(pairs, model=model, variant=variant, epsilon=eps)
            expected = mean_and_error(arrays["kl"][index] - aware)
            assert (gained.kl_gain_mean, gained.kl_gain_sem) == pytest.approx(expected)
            assert (gained.n, gained.n_trials) == (4, trials)
