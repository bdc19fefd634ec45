"""The sum of z² and the faults that it detects, against scipy and by simulation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtr

from privpost.evaluation.spread import among, halves, ranks_of_shares, seen, spread, spread_columns, z_squares


def sent(z, width=1.0):
    """Quantiles of true values that are `z` right standard deviations off, in posteriors of another width."""
    return ndtr(np.asarray(z) / width)


def correlated(rng, trials, parameters, correlation):
    common, own = rng.normal(size=(trials, 1)), rng.normal(size=(trials, parameters))
    return (np.sqrt(correlation) * common + np.sqrt(1 - correlation) * own).T


def test_p_values_are_those_of_the_chi_square_law():
    rng = np.random.default_rng(1)
    u = rng.random(300)
    total = (stats.norm.ppf(u) ** 2).sum()
    found = spread(u)
    assert found.mean == pytest.approx(total / 300, rel=1e-12)
    assert found.narrow == pytest.approx(stats.chi2.sf(total, 300), rel=1e-9)
    assert found.wide == pytest.approx(stats.chi2.cdf(total, 300), rel=1e-9)
    assert found.p_value == pytest.approx(2 * min(found.narrow, found.wide), rel=1e-12)
    assert found.values == 300
    assert halves(found.mean, 300) == (found.narrow, found.wide)


@pytest.mark.parametrize("level", [0.05, 0.025 / 28])
def test_errors_of_the_width_are_seen_with_the_stated_chance(level):
    """At 20,000 sets of 1000 trials the share has a standard error of .003: four of them, and the law is exact."""
    rng = np.random.default_rng(2)
    sums = rng.chisquare(1000, 20_000)
    found = seen(1000, level)
    for width in (1 - found.narrow, 1 + found.wide):
        total = sums / width**2
        rejected = 2 * np.minimum(stats.chi2.sf(total, 1000), stats.chi2.cdf(total, 1000)) < level
        assert rejected.mean() == pytest.approx(0.8, abs=0.012)


def test_goal_is_reached_with_a_thousand_trials_and_not_with_five_hundred():
    assert max(seen(1000, 0.025 / 28)) < 0.10 < max(seen(500, 0.025 / 28))


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.9])
def test_dependent_parameters_count_as_far_as_they_are_independent(correlation):
    """z of correlation c have z² of correlation c²; M = 4000 gives the count within a tenth."""
    rng = np.random.default_rng(3)
    found = spread(ndtr(correlated(rng, 4000, 4, correlation)))
    assert found.values == pytest.approx(16_000 / (1 + 3 * correlation**2), rel=0.1)
    # The count is that of the law, whatever the width.
    z = correlated(np.random.default_rng(3), 4000, 4, correlation)
    assert spread(sent(z, 0.9)).values == pytest.approx(found.values, rel=1e-6)


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.9])
def test_the_level_holds_for_dependent_parameters(correlation):
    """2000 sets: the share of 5 % has a standard error of .005; the count from the trials at hand costs about one."""
    rng = np.random.default_rng(4)
    share = np.mean([spread(ndtr(correlated(rng, 400, 4, correlation))).p_value < 0.05 for _ in range(2000)])
    assert 0.035 < share < 0.07


@pytest.mark.parametrize(("width", "too"), [(0.9, "narrow"), (1.1, "wide")])
def test_the_halves_tell_the_direction(width, too):
    z = np.random.default_rng(5).normal(size=(2, 1000))
    found = spread(sent(z, width))
    assert getattr(found, too) < 1e-3
    assert found.p_value == 2 * getattr(found, too)


def test_shares_of_draws_become_ranks_that_are_never_0_or_1():
    shares = np.array([[0.0, 1.0, 0.5]])
    ranks = ranks_of_shares(shares, 10)
    assert np.all((ranks > 0) & (ranks < 1))
    assert np.all(np.floor(ranks * 11) == [[0, 10, 5]])
    # The same shares have the same ranks: a row depends on no other.
    assert np.array_equal(ranks, ranks_of_shares(shares, 10))


def test_randomised_ranks_have_the_chi_square_law_for_few_draws():
    rng = np.random.default_rng(6)
    below = (rng.random((200_000, 9)) < rng.random((200_000, 1))).mean(axis=1)
    # The mean of 200,000 z² has a standard error of .0032.
    assert z_squares(ranks_of_shares(below, 9)).mean() == pytest.approx(1, abs=0.0128)


def test_quantiles_that_rounding_puts_at_the_ends_are_finite():
    assert np.isfinite(z_squares([0.0, 1.0])).all()
    assert z_squares([0.0, 1.0]).min() > 60


def test_columns_name_what_counts_together():
    columns = spread_columns(np.random.default_rng(7).random((3, 500)), among(["a", "b", "c"]))
    assert columns["z2_of"] == "a to c"
    assert among(["a"]) == "a"
    assert 500 < columns["z2_values"] <= 1500
    assert (columns["sd_seen_narrow"], columns["sd_seen_wide"]) == seen(columns["z2_values"])


@pytest.mark.parametrize("values", [[], [0.5, 1.2], [np.nan]])
def test_errors_name_the_quantiles(values):
    with pytest.raises(ValueError, match="quantiles must be values"):
        spread(values)
