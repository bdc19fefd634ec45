"""Helpers of claims on rows made by hand: levels, limits and evidence of tests, by scipy's and the library's laws."""

from __future__ import annotations

import math
from statistics import NormalDist
from types import SimpleNamespace

import pandas as pd
import pytest
from scipy.stats import chi2, t

from privpost.experiments import claim_helpers, width_claims


def rows(*listed: dict) -> pd.DataFrame:
    """Tests that pass, 1000 trials each, of a release that says much."""
    values = {"n": 10, "method": "gibbs", "p_value": 0.5, "ks": 0.02, "n_trials": 1000, "z2": 1.0, "z2_p": 0.5}
    values |= {"z2_values": 1000.0, "sd_of_prior": 0.5, "prior_p": 0.5}
    return pd.DataFrame({**values, "epsilon": 1.0 + i, **each} for i, each in enumerate(listed))


def test_a_test_rejects_below_its_level():
    """Half of 5 % over all tests; a p-value on the level is none below it."""
    for test in ("p_value", "z2_p"):
        assert width_claims.tested(rows({test: 0.0249})).rejected.tolist() == [True]
        assert width_claims.tested(rows({test: 0.025})).rejected.tolist() == [False]
        assert width_claims.tested(rows({test: 0.0124}, {test: 0.0126})).rejected.tolist() == [True, False]
    assert width_claims.tested(rows()[:0].assign(p_value=[], z2_p=[])).empty


def test_rows_count_where_draws_of_the_parameters_pass():
    """5 % over the sets of draws, of which rows at one n share one."""
    assert width_claims.from_prior(rows({"prior_p": 0.049}, {"prior_p": 0.05})).prior_p.tolist() == [0.05]
    two = rows({"prior_p": 0.0249}, {"prior_p": 0.025}, {"prior_p": 0.5, "n": 20})
    assert width_claims.from_prior(two).prior_p.tolist() == [0.025, 0.5]
    without = rows({}).drop(columns="prior_p")
    assert width_claims.from_prior(without) is without


def seen(values: float, level: float) -> tuple[float, float]:
    """By how much a standard deviation is too small or too large where the two-sided test rejects with 80 %."""
    low, high = chi2(values).ppf([level / 2, 1 - level / 2])
    fifth, four = chi2(values).ppf([0.2, 0.8])
    return 1 - math.sqrt(fifth / high), math.sqrt(four / low) - 1


def test_evidence_of_both_tests():
    """Three tests by z² at half of 5 % over three, of which two reject; the worst has the fewest values."""
    table = width_claims.tested(
        rows(
            {"z2": 1.2, "z2_p": 1e-3, "z2_values": 500.0, "p_value": 1e-4, "ks": 0.1},
            {"z2_p": 2e-3, "sd_of_prior": 0.95, "p_value": 1e-3},
            {"z2_p": 0.025 / 3, "sd_of_prior": 0.96, "p_value": 0.025 / 3},
        )
    )  # fmt: skip
    narrow, wide = chi2(500).sf(600), chi2(500).cdf(600)
    least = seen(500, 0.025 / 3)
    for where, suffix in (("", ""), ("bits", ", bits")):
        found = width_claims.evidence(table, "it", where)
        expected = {
            "tests of z² of it that reject": 2, "tests of z² of it": 3, "fewest independent values of z² of it": 500,
            "mean z² of it where its p-value is smallest": 1.2, "smallest p-value of z² of it": 2 * min(narrow, wide),
            "p-value of its half that finds it too narrow": narrow,
            "p-value of its half that finds it too wide": wide,
            "how much too narrow it is that z² sees with a chance of 80 %": least[0],
            "how much too wide it is that z² sees with a chance of 80 %": least[1],
            "tests of z² of it that test the prior": 2,
            "tests of it that reject": 2, "tests of it": 3, "largest KS of it": 0.1, "smallest p-value of it": 1e-4,
            "trials": 1000,
        }  # fmt: skip
        assert {name: found[name + suffix] for name in expected} == pytest.approx(expected)
    without = width_claims.evidence(table.drop(columns="sd_of_prior"), "it")
    assert without["tests of z² of it that test the prior"] == 0


def test_words_on_power():
    """The aim is named where either error that is seen is larger; the prior where a posterior is it."""
    for values, level_of, aim in ((500.0, 2, True), (1200.0, 2, False)):
        table = width_claims.tested(rows({"z2_values": values}, {"z2_values": 5000.0}))
        narrow, wide = seen(values, 0.025 / level_of)
        text = f"{narrow:.1%} too small or {wide:.1%} too large" + " (10% is the aim)" * aim
        assert width_claims.power(table).value == f"z² sees with a chance of 80 % a standard deviation {text}"
    # Too small by less than the aim, too large by more.
    table = width_claims.tested(rows({"z2_values": 600.0, "sd_of_prior": 0.95}, {"z2_values": 600.0}))
    narrow, wide = seen(600, 0.0125)
    assert narrow < 0.1 < wide
    assert width_claims.power(table).value.endswith(
        "too large (10% is the aim); 1 of 2 test the prior, as the release says little there"
    )


def test_differences_in_standard_errors():
    table = pd.DataFrame({"d_mean": [2.0, 2.1, -2.0, -2.1], "d_sem": 1.0})
    assert claim_helpers.above(table, "d", 2.0).tolist() == [False, True, False, False]
    assert claim_helpers.below(table, "d", 2.0).tolist() == [False, False, False, True]
    half = SimpleNamespace(d_mean=0.9, d_sem=0.25)
    assert claim_helpers.above(half, "d", 2.0)
    low = SimpleNamespace(d_mean=-0.9, d_sem=0.25)
    assert claim_helpers.below(low, "d", 2.0)
    first, second = {"d_mean": 5.0, "d_sem": 3.0}, {"d_mean": 3.0, "d_sem": 4.0}
    assert claim_helpers.unpaired(pd.Series(first), pd.Series(second), "d") == (2.0, 5.0)


def test_joint_levels_and_limits():
    assert claim_helpers.at_joint_level(rows({})).level.tolist() == [0.05]
    assert claim_helpers.at_joint_level(rows({}, {})).level.tolist() == [0.025, 0.025]
    for sides, words in ((1, "one-sided"), (2, "two-sided")):
        limit, text = claim_helpers.joint_limit(4, sides)
        assert limit == pytest.approx(NormalDist().inv_cdf(1 - 0.05 / 4 / sides))
        assert text == f"{limit:.2f} standard errors ({words}, 5 % over 4 comparisons)"
        single = NormalDist().inv_cdf(1 - 0.05 / sides)
        assert [claim_helpers.joint_limit(n, sides)[0] for n in (0, 1)] == pytest.approx([single] * 2)
    each = NormalDist().cdf(-3)
    assert claim_helpers.errors_allowed(3.0, 20) == (
        f"3 standard errors (one-sided {each:.2g} each, at most {20 * each:.1%} together over 20 comparisons)"
    )
    assert "at most 100.0% together" in claim_helpers.errors_allowed(0.0, 9)
    assert claim_helpers.student_limit(10, 0.01) == pytest.approx(t(9).ppf(0.99))


def test_evidence_of_ks_tests():
    table = rows({"ks": 0.1, "p_value": 0.01}, {"p_value": 0.025}, {"p_value": 0.001}).assign(level=0.025)
    found = claim_helpers.ks_evidence(table, "it")
    assert (found["tests of it that reject"], found["tests of it"], found["trials"]) == (2, 3, 1000)
    assert found["KS beyond which a test rejects"] == pytest.approx(math.sqrt(-math.log(0.0125) / 2000), rel=1e-3)
    assert set(claim_helpers.ks_evidence(table, "it", "bits")) == {f"{name}, bits" for name in found}
