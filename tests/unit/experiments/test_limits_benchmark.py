"""Claims on the benchmark: tables made by hand, whose rows are just inside or just outside a claim's limits."""

from __future__ import annotations

import itertools
import math

import pandas as pd
import pytest
from claims_at_limits import failed, limit, moved
from scipy.stats import chi2

from privpost.experiments.noise_aware.rivals import claims
from privpost.inference_benchmark import leaderboard

POINTS = [{"task": task, "noise": "laplace", "n": 100, "epsilon": 1.0} for task in ("binomial", "multinomial")]
# Calibration of two methods and the naive one at two points, 200 independent values of z² at each.
CALIBRATION = pd.DataFrame(
    {**point, "method": method, "z2": 1.0 if method != "naive" else 3.0, "z2_values": 200.0, "rank_p": 1.0, "z2_p": 1.0,
     "coverage_50": 0.5, "coverage_95": 0.95, "n_releases": 200, "sd_seen_narrow": 0.1}
    for point, method in itertools.product(POINTS, ("exact", "gibbs", "naive"))
)  # fmt: skip


def calibrated(**values) -> set[str]:
    return failed(claims, "N12", rivals_calibration=moved(CALIBRATION, {"method": "exact"}, **values))


def test_methods_are_calibrated_at_the_joint_level():
    """Two methods, two tests of each: 1.25 % for z² over 400 values, and 1.25 % over two points for ranks."""
    for tail in (chi2.isf, chi2.ppf):
        inside, outside = (tail(share * 0.0125 / 2, 400) / 400 for share in (1.01, 0.99))
        assert calibrated(z2=inside) == set() and calibrated(z2=outside) == {"exact is calibrated"}
    assert calibrated(rank_p=1.01 * 0.0125 / 2) == set()
    assert calibrated(rank_p=0.99 * 0.0125 / 2) == {"exact is calibrated"}
    for share, wrong in ((0.99, set()), (1.01, {"naive is too narrow"})):
        table = moved(CALIBRATION, {"method": "naive"}, z2=chi2.isf(share * 0.025, 400) / 400)
        assert failed(claims, "N12", rivals_calibration=table) == wrong


RIVALS = pd.DataFrame(
    {**point, "method": method, "c2st": 0.5, "c2st_sem": 0.003, "ess": 500.0}
    for point, method in itertools.product(POINTS, ("exact", "table"))
)
CLASSIFIER = pd.DataFrame({**point, "narrow": 0.526, "narrow_sem": 0.004, "n_releases": 20} for point in POINTS)


def test_exact_methods_are_not_told_apart_and_a_tenth_is():
    """Draws worth at least 500 count; two joint errors of .003 and .004 are .01; one of two points is too few."""
    first = {"task": "binomial", "method": "table"}
    for values, wrong in (
        ({"c2st": 0.5299}, set()),
        ({"c2st": 0.53}, {"table is not told apart"}),
        ({"c2st": 0.53, "ess": 499.9}, set()),
    ):
        assert failed(claims, "N22", rivals=moved(RIVALS, first, **values), classifier=CLASSIFIER) == wrong
    for narrow, wrong in ((0.5101, set()), (0.5099, {"a tenth too narrow is told apart"})):
        table = moved(CLASSIFIER, {"task": "binomial"}, narrow=narrow)
        assert failed(claims, "N22", rivals=RIVALS, classifier=table) == wrong


NORMAL = pd.DataFrame(
    {"task": task, "noise": noise, "n": n, "epsilon": epsilon, "method": method, "c2st_sem": 0.003,
     "c2st": 0.7 if method == "prior" else 0.5 if noise == "gaussian" or epsilon > 0.1 else 0.54}
    for task, noise, n, epsilon, method in itertools.product(
        ("binomial",), ("laplace", "gaussian"), (10, 100), (0.1, 1.0), ("napsu_mq", "prior")
    )
)  # fmt: skip


@pytest.mark.parametrize(
    ("where", "inside", "outside", "wrong"),
    [
        ({"noise": "gaussian", "n": 100, "method": "napsu_mq"}, 0.5299, 0.53, "exact under Gaussian noise (binomial)"),
        ({"noise": "gaussian", "method": "prior"}, 0.5301, 0.53,
         "Gaussian noise leaves more than the prior (binomial)"),
        ({"noise": "laplace", "epsilon": 0.1, "method": "napsu_mq"}, 0.5061, 0.5059,
         "told apart under Laplace noise (binomial, n = 100)"),
    ],
)  # fmt: skip
def test_normal_laws_fail_under_laplace_noise_alone(where, inside, outside, wrong):
    assert failed(claims, "N23", rivals=moved(NORMAL, where, c2st=inside)) == set()
    assert failed(claims, "N23", rivals=moved(NORMAL, where, c2st=outside)) == {wrong}


UNKNOWN = pd.DataFrame(
    {"task": "private_n_binomial", "noise": "laplace", "n": n, "epsilon": epsilon, "sd_ratio": ratio,
     "sd_ratio_sem": 0.01, "n_releases": 20}
    for n in (10, 100) for epsilon, ratio in ((0.1, 1.2), (10.0, 1.001))
)  # fmt: skip
OTHERS = pd.DataFrame(
    {"task": "private_n_binomial", "noise": "laplace", "n": 100, "epsilon": epsilon, "method": method, "sd_error": 0.0,
     "sd_error_sem": 0.005}
    for epsilon, method in itertools.product((0.1, 10.0), ("abc_smc", "reversible_jump"))
)  # fmt: skip


def test_an_unknown_number_widens_beyond_its_error():
    """Two points, one-sided, 5 % over them; samplers within three of their errors, .015, or one per cent."""
    end = 1 + 0.01 * limit(2)
    for ratio, wrong in ((1.0001 * end, set()), (0.9999 * end, {"wider (private_n_binomial, n = 100)"})):
        table = moved(UNKNOWN, {"n": 100, "epsilon": 0.1}, sd_ratio=ratio)
        assert failed(claims, "N21", unknown_n=table, rivals=OTHERS) == wrong
    table = moved(UNKNOWN, {"n": 10, "epsilon": 10.0}, sd_ratio=1.2)
    assert failed(claims, "N21", unknown_n=table, rivals=OTHERS) == {
        "less so at large epsilon (private_n_binomial, n = 10)"
    }
    wrong = {"reversible jump has that width (private_n_binomial, n = 100)"}
    where = {"method": "reversible_jump", "epsilon": 0.1}
    for values, found in (
        ({"sd_error": -0.0149}, set()),
        ({"sd_error": -0.0151}, wrong),
        ({"sd_error": 0.0099, "sd_error_sem": 0.0}, set()),
        ({"sd_error": 0.0101, "sd_error_sem": 0.0}, wrong),
    ):
        assert failed(claims, "N21", unknown_n=UNKNOWN, rivals=moved(OTHERS, where, **values)) == found


def test_the_leaderboard_has_the_exact_sum_above_and_the_naive_and_the_prior_below():
    """By the worst point; ratios to exact draws at the same point, medians; what serves nothing has a row."""
    values = {"exact": (0.5, 0.51), "good": (0.5, 0.6), "bad": (0.5, 0.9), "naive": (0.6, 0.7), "prior": (0.5, 0.55)}
    rivals = pd.DataFrame(
        {**point, "method": method, "c2st": c2st, "c2st_sem": 0.01, "ess_per_second": 2.0 + place,
         "distance": 0.1 if method == "exact" else 0.1 + c2st}
        for method, found in values.items() for place, (point, c2st) in enumerate(zip(POINTS, found, strict=True))
    )  # fmt: skip
    rivals = pd.concat([rivals, rivals[:1].assign(method="empty", c2st=math.nan)])
    refused = pd.DataFrame([{"task": "collider", "noise": "laplace", "method": "good", "reason": "no"}])
    table = pd.DataFrame(leaderboard.rows(rivals, moved(CALIBRATION, {"method": "gibbs"}, method="good"), refused))
    table = table.set_index("method")
    assert [name for name in table.index if name != "empty"] == ["exact", "good", "bad", "prior", "naive"]
    good = table.loc["good"]
    assert (good.served, good.of, good.c2st_median, good.c2st_worst, good.c2st_worst_sem) == (2, 3, 0.55, 0.6, 0.01)
    assert good.worst_at == "multinomial, laplace, n = 100, epsilon = 1"
    assert (good.distance_ratio, good.ess_per_second) == pytest.approx((6.5, 2.5))
    assert (good.miscalibrated, good.calibrations, good.sd_seen_narrow) == (0, 2, 0.1)
    assert (table.served["empty"], table.calibrations["bad"]) == (0, 0)


def test_a_method_is_miscalibrated_at_a_point_at_the_level_of_its_tests():
    """Two tests at each of two points: 1.25 % each."""
    own = CALIBRATION[CALIBRATION.method == "exact"]
    for column, value, found in (
        ("z2_p", 0.0124, 1),
        ("z2_p", 0.0126, 0),
        ("rank_p", 0.0124, 1),
        ("rank_p", 0.0126, 0),
    ):
        assert leaderboard.rejected(moved(own, {"task": "binomial"}, **{column: value})).sum() == found
