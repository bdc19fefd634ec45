"""Each limit of the claims on Foulds et al. 2016: a row just inside of it passes, one just outside of it fails.

Limits are read off the sentences of the claims. Standard errors are made up, so limits are easy to compute by hand.
"""

from __future__ import annotations

import math
from statistics import NormalDist

import pandas as pd
import pytest
from altered_tables import altered, cases, columns, judged, shipped, sides

from privpost.experiments.foulds2016.efficiency.claims import onset


def z(comparisons):
    """Return the limit in standard errors of several two-sided tests at a joint rate of 1 in 1000."""
    return NormalDist().inv_cdf(1 - 0.0005 / comparisons)


def near(limit, by=0.001):
    """Return a value a little nearer to 0 than a limit, and one a little farther."""
    return (1 - by) * limit, (1 + by) * limit


ERRORS, OPS, LAPLACE = "sampling_error", "method == 'ops'", "method == 'laplace'"
AHEAD = "over_laplace_mean"
# Every error 1 with a standard error of 0.001: all ratios are 1.
ALIKE = (ERRORS, "", {"l1_mean": 1.0, "over_true_sem": 0.001, "over_laplace_sem": 1.0})
# A limit of 3 at the largest n, and OPS behind everywhere.
THREE = (ERRORS, f"{OPS} and n == n.max()", {"temperature": 17.0, "l1_mean": 3.0})
OTHERS = (ERRORS, f"{OPS} and n < n.max()", {"temperature": 99.0, "l1_mean": 2.0})
LIMITED = (ALIKE, THREE, OTHERS)
CLOSE, LAST = "within 5 % of the *", "n == n.max()"


def error(row, low, high, column="l1_mean"):
    return (ERRORS, row), {column: low}, {column: high}


SAMPLING_ERROR = cases(
    "foulds2016/sampling_error",
    # Leads at n = 20 are no leads at small n.
    (
        *("F1", "OPS is ahead at some n <= 10", *error(f"{OPS} and n == 10", *near(-z(21))[::-1], AHEAD), ALIKE),
        *((ERRORS, OPS, {AHEAD: 9.0}), (ERRORS, f"{OPS} and n == 20", {AHEAD: -9.0})),
    ),
    (
        *("F1", "OPS is behind at every n > 10", *error(f"{OPS} and n == 20", *near(z(21))[::-1], AHEAD), ALIKE),
        *((ERRORS, OPS, {AHEAD: 9.0}), (ERRORS, f"{OPS} and n <= 10", {AHEAD: -9.0})),
    ),
    ("F2", CLOSE, *error(f"{LAPLACE} and {LAST}", *(1.05 + each for each in near(0.001 * z(3)))), ALIKE),
    (
        *("F2", "the ratio falls from*"),
        *error(f"{LAPLACE} and n == 10000", *(1 + each for each in near(math.hypot(0.001, 0.001) * z(3)))),
        ALIKE,
    ),
    (
        *("F2", "the ratio falls overall", *error(f"{LAPLACE} and {LAST}", *(1 + each for each in near(0.1))), ALIKE),
        (ERRORS, f"{LAPLACE} and n == 1", {"l1_mean": 1.4}),
    ),
    *(
        ("F3", CLOSE, *error(f"{OPS} and {LAST}", *(3 + s * (0.15 + e) for e in near(0.001 * z(21)))), *LIMITED)
        for s in (1, -1)
    ),
    (
        *("F3", "behind the true posterior at*"),
        *error(f"{OPS} and n == 100", *(1 + each for each in near(0.001 * z(21))[::-1])),
        *(*LIMITED, (ERRORS, f"{OPS} and n < 100", {"l1_mean": 0.5})),
    ),
)  # fmt: skip

FIFTH, STOPPED = "a0 == 0.2 and n == 1500", "epsilon == 1 and chain == 'independence' and start == 'mode'"
SMALL_HMM, SECOND = (
    "epsilon == 1 and start == 'mode' and sweeps == 2",
    "epsilon == 1 and start == 'uniform' and sweeps == 2",
)
ROUNDED = (5e-10, 2e-9)


def beside(column, expression):
    """Values within rounding of an expression, and beyond."""
    return columns(column, *(f"{expression} + {each}" for each in ROUNDED))


ADVERSARY = cases(
    "foulds2016/adversary",
    # At a0 = 1/5 the sensitivity is ln 4.
    (
        *("F6", "below 2Δ at every n (a0 = 0.2)", ("adversary", FIFTH)),
        *columns("local_epsilon", 2 * math.log(4) - 1e-9, 2 * math.log(4)),
    ),
    ("F6", "each term*(a0 = 0.2)", ("adversary", FIFTH), *beside("partition_term", math.log(4))),
    (
        *("F6", "never falls (a0 = 0.2)", ("adversary", FIFTH)),
        *columns("local_epsilon", "local_epsilon", "local_epsilon - 1e-5"),
    ),
    (
        *("F6", "the gap vanishes*(a0 = 0.2)", ("adversary", "a0 == 0.2 and n == 3000")),
        *columns("local_epsilon", *(2 * math.log(4) - share / 600 for share in (1.099, 1.101))),
    ),
    (
        *("F14", "delta within*independence from the mode, epsilon 1)"),
        ("stopped_chains", f"{STOPPED} and steps == 10"),
        *beside("delta", "(1 + exp(exact_cost)) * distance"),
    ),
    *(
        (
            *("F14", "distance and delta vanish (independence from the mode, epsilon 1)",),
            *(("stopped_chains", f"{STOPPED} and steps == 10000"), *beside(column, 0)),
        )
        for column in ("distance", "delta")
    ),
    (
        *("F22", "cost within*(from the mode, epsilon 1)", ("stopped_chains", f"{STOPPED} and steps == 10")),
        *beside("cost", "cost_bound"),
    ),
    (
        *("F22", "the bound comes down*(from the mode, epsilon 1)"),
        ("stopped_chains", f"{STOPPED} and steps == 10000"),
        *beside("cost_bound", "exact_cost"),
    ),
    ("F28", "at least an exact*(from the mode, epsilon 1)", ("stopped_hmm", SMALL_HMM), *beside("exact_cost", "cost")),
    *(
        (
            *("F28", "within every bound*(from a uniform start, epsilon 1)", ("stopped_hmm", SECOND)),
            *beside("cost", bound), ("stopped_hmm", SECOND, {"composed_bound": composed, "minorised_bound": minorised}),
        )
        for bound, composed, minorised in (("composed_bound", 3.0, 4.0), ("minorised_bound", 4.0, 3.0))
    ),
    (
        *("F28", "near an exact draw's*(epsilon 1)", ("stopped_hmm", SECOND)),
        *columns("cost", "1.0099 * exact_cost", "1.0101 * exact_cost"),
    ),
    *(
        (
            *("F28", "every bound further off*(epsilon 1)", ("stopped_hmm", SECOND)),
            *columns(bound, "1.0101 * exact_cost", "1.0099 * exact_cost"),
        )
        for bound in ("composed_bound", "minorised_bound")
    ),
    (
        *("F28", "one sweep from the mode costs more (epsilon 1)", ("stopped_hmm", "epsilon == 1 and sweeps == 1")),
        *columns("cost", *(f"3 + {each} * (start == 'mode')" for each in ROUNDED[::-1])),
    ),
    (
        *("F28", "other data sets' chains*", ("stopped_hmm", "epsilon == 10 and start == 'uniform' and sweeps == 2")),
        *columns("distance", "10.01 * distance_there", "9.99 * distance_there"),
    ),
)  # fmt: skip

CURVE = "method == 'laplace' and p == 0.3 and epsilon == 1"
STEP = math.log(10 / 3)
# Both errors are 1 %.
SLOPE_ERROR = math.hypot(0.01, 0.01) / STEP


def falling(power):
    return {"kl_mean": f"0.001 * (n / 1e6) ** {power}", "kl_sem": f"1e-5 * (n / 1e6) ** {power}"}


DIVERGENCE = cases(
    "foulds2016/posterior_divergence",
    (
        *("F5", "below 0.01*(p = 0.3, epsilon = 1)", ("posterior_divergence", f"{CURVE} and n == 1000000")),
        *columns("kl_mean", *(0.01 - each for each in near(0.001 * z(4))[::-1])),
        ("posterior_divergence", CURVE, {"kl_sem": 0.001}),
    ),
    *(
        (
            *("F5", "falls like*(p = 0.3, epsilon = 1)", ("posterior_divergence", CURVE)),
            *(falling(-1 + sign * (0.1 + each)) for each in near(z(4) * SLOPE_ERROR)),
        )
        for sign in (1, -1)
    ),
)
COMPARED, SAMPLE = 42, "method == 'laplace' and statistic == 'sample' and p == 0.3 and epsilon == 1"
EFFICIENCY = cases(
    "foulds2016/efficiency",
    *(
        (
            *("F4", "near its limit (laplace, sample, p = 0.3, epsilon = 1)",),
            ("efficiency", f"{SAMPLE} and n == n.max()"),
            *({"are": 2 + sign * (0.06 + each), "sem": 0.01} for each in near(0.01 * z(COMPARED))),
        )
        for sign in (1, -1)
    ),
)  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", [*SAMPLING_ERROR, *ADVERSARY, *DIVERGENCE, *EFFICIENCY])
def test_a_limit_lies_where_its_claim_says(case):
    assert sides(*case) == [True, False]


@pytest.mark.parametrize(
    "ratios, first",
    [((1, 1, 1), 10), ((2, 1, 1), 100), ((1, 2, 1), 1000), ((1, 1, 2), math.nan), ((2, 1, 2), math.nan)],
)
def test_the_onset_of_a_limit_is_told_by_eye(ratios, first):
    rows = pd.DataFrame({"n": [10, 100, 1000], "are": ratios, "are_limit": 1.0, "sem": 0.01})
    assert onset(rows) == pytest.approx(first, nan_ok=True)


def test_a_limit_that_is_not_reached_has_no_onset():
    study = "foulds2016/efficiency"
    claim = judged(study, "F4", altered(shipped(study), "efficiency", f"{SAMPLE} and n == n.max()", {"are": 9.0}))
    assert claim.evidence["laplace, sample, p = 0.3, epsilon = 1"]["within 10 % from n"] is None


def test_the_curves_that_share_an_error_rate_are_those_of_laplace():
    study = "foulds2016/posterior_divergence"
    own = altered(shipped(study), "posterior_divergence", "method == 'ops' and p == 0.1", {"p": 0.3})
    assert "over 4 curves" in judged(study, "F5", own).test


def test_the_local_epsilon_is_told_at_the_largest_n():
    study, last = "foulds2016/adversary", "a0 == 0.2 and n == n.max()"
    own = altered(shipped(study), "adversary", last, {"local_epsilon": 1.0})
    assert judged(study, "F6", own).evidence["a0 = 0.2"]["local epsilon"] == 1.0
