"""Means with standard errors, and paired differences in standard errors."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.stats import binomtest

from privpost.evaluation.summaries import in_standard_errors, mean_and_sem, mean_columns, share_error


def test_mean_and_standard_error_are_scipy_s():
    values = np.random.default_rng(1).normal(3.0, 2.0, (4, 5, 30))
    mean, sem = mean_and_sem(values)
    assert np.array_equal(mean, values.mean(axis=-1))
    assert np.allclose(sem, stats.sem(values, axis=-1), rtol=1e-13)


@pytest.mark.parametrize(("values", "mean"), [([], math.nan), ([2.0], 2.0)])
def test_too_few_values_have_no_standard_error(values, mean):
    found = mean_columns("x", np.array(values))
    assert np.array_equal(found["x_mean"], mean, equal_nan=True)
    assert math.isnan(found["x_sem"])


def test_columns_without_a_name():
    assert mean_columns("", [1.0, 3.0]) == {"mean": 2.0, "sem": 1.0}


def test_paired_differences_are_student_s_statistic_and_equal_repeats_count_as_none():
    first, second = np.random.default_rng(2).normal(size=(2, 40))
    rows = [mean_columns("difference", difference) for difference in (first - second, first - first, np.ones(40))]
    found = in_standard_errors(pd.DataFrame(rows))
    assert found[0] == pytest.approx(stats.ttest_rel(first, second).statistic, rel=1e-12)
    assert found[1] == 0
    assert found[2] == math.inf
    assert in_standard_errors(pd.Series(rows[0])) == found[0]


@pytest.mark.parametrize(("hits", "size"), [(0, 2), (0, 50), (50, 50), (6000, 6000)])
def test_no_share_is_known_without_error(hits, size):
    """Independent: Wilson's interval by scipy; the plug-in error √(p(1−p)/size) is 0 there."""
    low, high = binomtest(hits, size).proportion_ci(method="wilson")
    error = share_error(hits / size, size)
    assert 1.959963984540054 * error == pytest.approx(high - low, rel=1e-12)
    assert error > 0


def test_other_shares_have_the_plug_in_error_and_one_trial_has_none():
    assert share_error([0.5, 0.1], [100, 90]).tolist() == pytest.approx([0.05, (0.09 / 90) ** 0.5])
    assert np.isnan(share_error([0.0, 1.0, 0.0], 1)).all()
