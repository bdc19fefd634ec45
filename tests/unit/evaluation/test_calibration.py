"""The Kolmogorov-Smirnov test and bands of calibration, against scipy."""

import numpy as np
import pytest
from scipy import stats

from privpost.evaluation.calibration import cdf_band, empirical_cdf, ks_limit, ks_p_value, ks_statistic, randomised_rank


def test_statistic_and_p_value_are_scipys():
    rng = np.random.default_rng(1)
    values = rng.beta(1, 1.2, (3, 400))
    reference = [stats.kstest(row, "uniform", method="asymp") for row in values]
    assert np.allclose(ks_statistic(values), [r.statistic for r in reference], rtol=1e-12)
    assert np.allclose(ks_p_value(ks_statistic(values), 400), [r.pvalue for r in reference], rtol=1e-9)


def test_limit_is_the_papers_and_holds_its_level():
    assert ks_limit(1000) == pytest.approx(1.358 / np.sqrt(1000), rel=1e-3)
    rng = np.random.default_rng(2)
    share = (ks_statistic(rng.random((4000, 1000))) > ks_limit(1000)).mean()
    # 5 % within 5 standard errors of 4000 trials; the asymptotic limit is slightly wide at 1000 values.
    assert share == pytest.approx(0.05, abs=5 * np.sqrt(0.05 * 0.95 / 4000))


def test_ranks_among_few_draws_of_the_same_law_are_uniform_and_their_shares_are_not():
    rng = np.random.default_rng(4)
    below = (rng.random((20_000, 9)) < rng.random((20_000, 1))).sum(axis=1)
    # A p-value below 1e-4 has that chance; the share has a tenth of its mass at 0, which no uniform law has.
    assert ks_p_value(ks_statistic(randomised_rank(below, 9, rng)), 20_000) > 1e-4
    assert ks_statistic(below / 9) > 0.09


def test_leaving_the_band_is_failing_the_test():
    rng = np.random.default_rng(3)
    at = np.linspace(0, 1, 2001)
    for power in (1.0, 1.05, 1.3):
        values = rng.random(500) ** power
        low, high = cdf_band(at, 500)
        curve = empirical_cdf(values, at)
        outside = bool(np.any((curve < low) | (curve > high)))
        # The curve is looked at on a grid, so that a statistic within 1/2000 of the limit may differ.
        if abs(ks_statistic(values) - ks_limit(500)) > 1 / 2000:
            assert outside == (ks_statistic(values) > ks_limit(500))


@pytest.mark.parametrize("values", [[], [0.5, 1.2], [np.nan]])
def test_errors_name_the_setting(values):
    with pytest.raises(ValueError, match="quantiles must be values"):
        ks_statistic(values)
