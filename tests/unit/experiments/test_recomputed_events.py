"""Calibration on event counts, computed a second time: data of three states, exact posteriors, tables from arrays."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from recomputed import ks, mean_and_error, row, run, spied
from scipy.special import betainc

from privpost.experiments.noise_aware.event_calibration import study as events
from privpost.lab import grid
from privpost.samplers import hidden_markov_gibbs as gibbs

MANY = 10**6


@pytest.mark.parametrize("months", [1, 2])
def test_cells_are_in_one_of_three_states_as_often_as_the_prior_says(months):
    """Two regions of one month, or one of two: a third has both cells in one state, as the moves' mean is uniform.

    Of a million events shares tell states apart: 1 % of others are that near. 4.5 standard errors of 3000 data sets.
    """
    config = SimpleNamespace(
        n=MANY, n_states=3, sizes=[2], transition_concentration=1.0, emission_concentration=1.0, months=months,
        regions=2 // months,
    )  # fmt: skip
    size = 3000
    truth, counts = events.draw_data(config, gibbs.Layout.of([0, 0] if months == 2 else [0, 1]), size,
                                     np.random.default_rng(5))  # fmt: skip
    shares = counts[..., 0] / counts.sum(axis=-1)
    known = (counts.sum(axis=-1) > 1e5).all(axis=1)
    same = np.abs(shares[known, 0] - shares[known, 1]) < 0.005
    assert same.mean() == pytest.approx(1 / 3 + 0.01, abs=4.5 * math.sqrt(2 / 9 / known.sum()) + 0.01)
    np.testing.assert_allclose(shares[known, 0], truth[known, 0], atol=4.5 * math.sqrt(0.25 / 1e5))


def test_without_noise_the_posterior_of_one_state_is_dirichlets(monkeypatch):
    """Its means, variances and distribution functions in closed form, to rounding; the prior's variance by loops."""
    drawn = spied(monkeypatch, events, "draw_data")
    cell = run(
        "noise_aware/event_calibration", 6, 3, n=5, n_states=1, regions=1, months=1, sizes=[3], epsilon=[2.0],
        method=["non_private"], variant=["paper"], iterations=9, burn_in=4, thin=2, emission_concentration=2.0,
    )  # fmt: skip
    variances = []
    for trial in range(6):
        truth, counts = (part[trial % 3] for part in drawn[trial // 3].result)
        alpha = [2.0 + x for x in counts[0]]
        total = sum(alpha)
        levels = [betainc(a, total - a, p) for a, p in zip(alpha, truth, strict=True)]
        for name in ("quantiles", "averaged"):
            assert cell.arrays[name][0, trial] == pytest.approx(levels[0])
        assert cell.arrays["levels"][0, :, trial] == pytest.approx(levels[1:])
        divergence = sum(p * math.log(p * total / a) for a, p in zip(alpha, truth, strict=True))
        assert cell.arrays["kl"][0, trial] == pytest.approx(divergence)
        variances.append(alpha[0] * (total - alpha[0]) / (total**2 * (total + 1)))
    # Of a symmetric Dirichlet law: p has mean a/A and E p² = a(a + 1)/(A(A + 1)), a = 2 and A = 6.
    prior = 2 * 3 / (6 * 7) - (2 / 6) ** 2
    assert cell.arrays["sd_of_prior"][0] == pytest.approx(math.sqrt(np.mean(variances) / prior))


def test_calibration_is_tabulated_row_by_row_beside_what_is_known_of_each_chain():
    """Arrays by hand in place of chains: both tables by a loop, to rounding."""
    study = grid.load_study("noise_aware/event_calibration", "smoke")
    first = grid.expand(study)[0].config
    trials, listed, cells = 7, {}, []
    for n_states in (1, 2):
        changes = {"n": 4, "n_states": n_states, "regions": 1, "months": n_states, "sizes": [3], "trials": trials}
        changes |= {"epsilon": [0.5, 2.0], "variant": ["paper", "corrected"]}
        changes["method"] = ["non_private", "laplace", "gibbs", "exact"]
        config = SimpleNamespace(**{**vars(first), **changes})
        model = "naive_bayes" if n_states == 1 else "hmm"
        own = [(model, "non_private", None, None)]
        own += [(model, "laplace", variant, eps) for eps in (0.5, 2.0) for variant in ("paper", "corrected")]
        own += [(model, "gibbs", None, eps) for eps in (0.5, 2.0)]
        own += [(model, "exact", None, eps) for eps in (0.5, 2.0) if n_states == 1]
        rng, many = np.random.default_rng(n_states), len(own)
        arrays = {name: rng.uniform(0, 1, (many, trials)) for name in ("quantiles", "averaged", "kl")}
        arrays |= {name: rng.uniform(1, 9, many) for name in ("rhat", "ess", "total_ess", "sd_of_prior")}
        arrays["levels"] = rng.uniform(0, 1, (many, 2, trials))
        exact = [index for index, key in enumerate(own) if key[1] == "exact"]
        arrays["levels"][exact], arrays["kl"][exact] = np.nan, np.nan
        cells.append(SimpleNamespace(config=config, arrays=arrays))
        listed |= {key: (index, arrays) for index, key in enumerate(own)}
    made = {name: pd.DataFrame(rows) for name, rows in study.module().tabulate(cells).items()}
    table, pairs = made["event_calibration"], made["event_calibration_pairs"]
    assert (len(table), len(pairs)) == (len(listed), 8)
    for (model, method, variant, eps), (index, arrays) in listed.items():
        kept = row(table, model=model, method=method, variant=variant, epsilon=eps)
        assert kept.ks == pytest.approx(ks(arrays["quantiles"][index]))
        assert (kept.n, kept.n_trials) == (4, trials)
        assert kept.sampling == ("mcmc" if model == "hmm" or method == "gibbs" else "exact")
        for name in ("rhat", "ess", "total_ess"):
            assert kept[f"{name}_median"] == arrays[name][index]
        # The first level, and the others where they are known.
        assert kept.z2_of == ("level 1" if method == "exact" else "level 1 to level 3")
        if method == "exact":
            assert math.isnan(kept.kl_mean)
        else:
            assert (kept.kl_mean, kept.kl_sem) == pytest.approx(mean_and_error(arrays["kl"][index]))
        if method == "gibbs":
            assert kept.sd_of_prior == arrays["sd_of_prior"][index]
        else:
            assert math.isnan(kept.sd_of_prior)
        if method == "gibbs" and model == "naive_bayes":
            other = arrays["averaged"][listed[model, "exact", None, eps][0]]
            apart = [abs(a - b) for a, b in zip(arrays["averaged"][index], other, strict=True)]
            assert kept.oracle_difference == pytest.approx(np.mean(apart))
        else:
            assert math.isnan(kept.oracle_difference)
        if method == "laplace":
            aware = arrays["kl"][listed[model, "gibbs", None, eps][0]]
            gained = row(pairs, model=model, variant=variant, epsilon=eps)
            assert (gained.kl_gain_mean, gained.kl_gain_sem) == pytest.approx(
                mean_and_error(arrays["kl"][index] - aware)
            )
            assert (gained.n, gained.n_trials) == (4, trials)


@pytest.mark.parametrize("months", [1, 2])
def test_where_a_chain_runs_the_truth_is_ranked_among_its_draws_and_the_chain_is_diagnosed(months):
    """Which rows have a chain is listed by hand; a rank is no average of distribution functions."""
    cell = run(
        "noise_aware/event_calibration", 4, 4, n=6, n_states=months, regions=1, months=months, sizes=[2],
        epsilon=[2.0], method=["non_private", "laplace", "gibbs"], variant=["paper"], iterations=60, burn_in=20, thin=5,
    )  # fmt: skip
    chains = [True, True, True] if months == 2 else [False, False, True]
    arrays = cell.arrays
    assert [(arrays["quantiles"][k] != arrays["averaged"][k]).all() for k in range(3)] == chains
    assert [(arrays["quantiles"][k] == arrays["averaged"][k]).all() for k in range(3)] == [not each for each in chains]
    for name in ("rhat", "ess"):
        assert (~np.isnan(arrays[name])).tolist() == chains
    # Where one cell holds all events, their number is public.
    assert (~np.isnan(arrays["total_ess"])).tolist() == [False, False, months == 2]
