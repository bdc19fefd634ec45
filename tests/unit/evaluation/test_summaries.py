"""Means with standard errors, and paired differences in standard errors."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from privpost.evaluation.summaries import in_standard_errors, mean_and_sem, mean_columns


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
