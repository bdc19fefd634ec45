"""Each limit of the claims on Geumlek et al. 2017: a row just inside of it passes, one just outside of it fails.

Limits are read off the sentences of the claims. Other numbers are made up, so that limits are easy to compute by hand.
"""

from __future__ import annotations

import math
from statistics import NormalDist

import pytest
from altered_tables import altered, cases, columns, judged, shipped, sides

BALL = "dataset == 'abalone' and metric == 'test_error' and times_smallest "
PAPER = ("ops_radius", "times_smallest.isna()")
RADII = cases(
    "geumlek2017/logistic",
    # At the power 1, and at 1/4, where half of the bound counts.
    ("G27", "a mode may be*", ("ops_radius", f"{BALL}== 0.0625"), *columns("mode_bound", 1000.0, 999.9)),
    ("G27", "a mode may be*", ("ops_radius", f"{BALL}== 16"), *columns("mode_bound", 500.0, 499.9),
     ("ops_radius", f"{BALL}== 16", {"power": 0.25})),
    # The smallest of the paper's balls is enough.
    ("G27", "a mode may be*", (PAPER[0], f"{PAPER[1]} and dataset == 'adult'"), *columns("radius", 16.0, 17.0)),
    ("G28", "a mode reaches*", ("ops_radius", f"{BALL}== 1"),
     *columns("mode_farthest", "(1 + 0.99e-6) * radius", "(1 + 1.01e-6) * radius")),
    ("G28", "near the best radius on abalone", ("ops_radius", f"{BALL}== 1"), *columns("mean", 0.05, 0.0501),
     ("ops_radius", "", {"mean": 1.0}), ("ops_radius", f"{BALL}== 2", {"mean": 0.0})),
)  # fmt: skip

HALF = "method == 'diffused' and coefficient == 0.5 and supremum == 'exact' and order == "
CURVES = cases(
    "geumlek2017/rdp_curves",
    ("G1", "finite at every*", ("rdp_curves", f"{HALF}2"), *columns("epsilon", 9.0, math.inf)),
    ("G1", "infinite at every*", ("rdp_curves", f"{HALF}13"), *columns("epsilon", math.inf, 9.0)),
    # A finite one beyond an infinite one.
    ("G2", "epsilon rises*", ("rdp_curves", f"{HALF.replace('0.5', '0.7')}15"), *columns("epsilon", math.inf, 9.0)),
    ("G2", "epsilon rises*", ("rdp_curves", f"{HALF}2"), *columns("epsilon", 0.0501, 0.05),
     ("rdp_curves", f"{HALF.replace('0.5', '0.3')}2", {"epsilon": 0.05}),
     ("rdp_curves", f"{HALF.replace('0.5', '0.7')}2", {"epsilon": 9.0}),
     ("rdp_curves", f"{HALF.replace('0.5', '0.9')}2", {"epsilon": 10.0}),
     ("rdp_curves", f"{HALF.replace('0.5', '1')}2", {"epsilon": 11.0})),
    ("G2", "fewer orders*", ("rdp_curves", f"{HALF}13"), *columns("epsilon", math.inf, 9.0),
     ("rdp_curves", "coefficient == 0.3", {"epsilon": 1.0}), ("rdp_curves", "coefficient == 0.5", {"epsilon": 1.0}),
     ("rdp_curves", "coefficient == 0.3 and method == 'diffused' and supremum == 'exact' and order == 13",
      {"epsilon": math.inf})),
    ("G13", "the pairs give*", ("rdp_curves", f"{HALF.replace('exact', 'paper')}2"),
     *columns("epsilon", 1 - 0.99e-9, 1 - 1.01e-9), ("rdp_curves", f"{HALF}2", {"epsilon": 1.0})),
    ("G13", "the pairs give*", ("rdp_curves", f"{HALF.replace('exact', 'paper')}13"),
     *columns("epsilon", math.inf, 9.0)),
    ("G13", "some neighbours*", ("rdp_curves", f"{HALF.replace('exact', 'paper')}2"),
     *columns("epsilon", 1 + 0.99e-9, 1 + 1.01e-9), ("rdp_curves", "", {"epsilon": 1.0})),
    # An infinite charge is an upper bound.
    ("G13", "the pairs give*", ("rdp_curves", f"{HALF.replace('exact', 'paper')}2"),
     *columns("epsilon", math.inf, 0.9), ("rdp_curves", "", {"epsilon": 1.0})),
)  # fmt: skip

BITS = "method == 'diffused' and coefficient == 0.5"
MOST = ("rounding", f"{BITS} and bits == 16 and order == 2")
ROUNDING = cases(
    "geumlek2017/rdp_curves",
    ("G16", "finite at every*", ("rounding", f"{BITS} and bits == 16 and order > 100"),
     *columns("epsilon", 99.0, math.inf)),
    # One order is enough.
    ("G16", "orders beyond*", ("rounding", f"{BITS} and bits == 16 and order == 15"), *columns("ideal", math.inf, 1.0),
     ("rounding", "", {"ideal": 1.0})),
    ("G16", "at most the ideal*", MOST, *columns("epsilon", "(1 + 0.99e-6) * ideal", "(1 + 1.01e-6) * ideal")),
    ("G16", "more bits*", MOST, *columns("epsilon", 0.04 / (1 + 0.99e-6), 0.04 / (1 + 1.01e-6)),
     ("rounding", f"{BITS} and order == 2", {"epsilon": 0.04})),
    ("G16", "some number*", ("rounding", f"{BITS} and bits == 16"), *columns("error_ratio", 1.01, 1.0101),
     ("rounding", BITS, {"error_ratio": 2.0})),
)  # fmt: skip

ENDS = ("theorem15", "n == 10 and order == 2 and coefficient == 0.1")
NEIGHBOURS = cases(
    "geumlek2017/theorem15",
    ("G23", "convex (order 2)", ENDS, *columns("convexity", -1e-9, -1.01e-9)),
    ("G24", "*(n = 10)", ENDS, *columns("inside", "at_ends", "1.001 * at_ends")),
)  # fmt: skip

PLANE = "link == 'logistic' and order == 2 and radius.isna() and n == "
# (1 − 1/16)/(1 + e^−4)² at a distance of 16, and the other distances that go like √(1/β).
LEAST = (1 - 1 / 16) / (1 + math.exp(-4)) ** 2
FAR = ("theorem16_limits", "", {"distance": "16 * sqrt(1e-3 / beta)", "share": 1.0})
WEAKEST = ("theorem16_limits", "beta == 0.001")
TIGHT = cases(
    "geumlek2017/theorem16",
    ("G17", "within the bound (order 2)", ("theorem16", f"{PLANE}2784"), *columns("share_of_paper", 1.0, 1.0001)),
    ("G17", "nearer to its limit*(order 2)", ("theorem16", f"{PLANE}100000"),
     *columns("share_of_paper", "limit - 0.0099", "limit - 0.0101"),
     ("theorem16", f"{PLANE}2784", {"share_of_paper": "limit - 0.01"})),
    ("G17", "the limit*", WEAKEST, *columns("share", LEAST + 1e-9, LEAST - 1e-9), FAR),
    ("G17", "the limit*", WEAKEST, *columns("share", 1.0, 1.0001), FAR),
    # Distances agree with the root of 1/β to 1e-5.
    ("G17", "the limit*", ("theorem16_limits", "beta == 0.0001"),
     *columns("distance", "distance * (1 + 0.9e-5)", "distance * (1 + 1.1e-5)"), FAR),
    ("G18", "logistic", ("theorem16", f"{PLANE}2784"), *columns("share_of_paper", 1.0, 1.0001)),
    ("G19", "probit", ("theorem16", "link == 'probit' and order == 2 and radius == 2 and n == 2784"),
     *columns("share_of_own", 1.0, 1.0001)),
)  # fmt: skip


KL = "metric == 'kl' and order == {order} and variant == 'paper' and method == '{method}' and log_epsilon {at}"


def kl(method, at, order=15):
    """The rows of a curve of divergences at some budgets, of the grid -15, -14.75, ..., 3."""
    return "tradeoff", KL.format(method=method, at=at, order=order)


def held_out(method, at):
    """Likelihoods in place of divergences."""
    return "tradeoff", kl(method, at)[1].replace("'kl'", "'neg_log_likelihood'")


# 5 % over four panels, each with one pair and three methods against the true posterior.
JOINT = NormalDist().inv_cdf(1 - 0.05 / 2 / 16)
FLAT = ("limits", "method == 'concentrated'", {"density": 1.0})
POINT = ("G5", "that point is the prior's mean (order 15, paper)", ("limits", ""))
MIDDLE = 0.3333333
# A flat density between two ends has its mean half-way.
PLACED = (*FLAT[:2], {"theta": f"theta - theta.mean() + {MIDDLE}", "density": 1.0})
AHEAD, AGREE = "concentrated is ahead*(order 15, paper)", "limits agree for diffused (order 15, paper)"
LOSSES = (
    (*held_out("diffused", "== -15"), {"mean": 10.0, "sem": 0.03}),
    (*held_out("concentrated", "== -15"), {"sem": 0.04}),
)
TRUTH = ("tradeoff", "method == 'non_private' and metric == 'neg_log_likelihood'", {"mean": 10.0})
# A step of 1/4 in the logarithm of epsilon.
NARROWS, FORGETS = 1 + 0.8 * math.expm1(0.25), math.exp(-0.125)
TRADEOFF = cases(
    "geumlek2017/tradeoff",
    ("G3", "gaussian stays*(paper)", kl("gaussian", "== 0", 2), *columns("mean", 0.501, 0.5),
     (*kl("gaussian", "< 9", 2), {"mean": 9.0, "error": 0.1}), (*kl("gaussian", "== -1", 2), {"error": 0.5})),
    ("G3", "diffused reaches 0 (paper)", kl("diffused", "== 0", 2), *columns("mean", 0.999e-12, 1e-12),
     (*kl("diffused", "< 9", 2), {"mean": 9.0})),
    ("G4", "diffused levels off*(paper)", kl("diffused", "> 2.6"), *columns("mean", 1.001e-6, 1e-6)),
    *(("G4", "diffused levels off*(paper)", kl("diffused", "== 3"),
       *columns("mean", 0.5 + sign * 0.99e-9, 0.5 + sign * 1.01e-9), (*kl("diffused", "== 2.75"), {"mean": 0.5}))
      for sign in (-1, 1)),
    *(("G4", "gaussian falls*(paper)", kl("gaussian", "== 3"), *columns("mean", 0.000999, 0.001),
       (*kl("diffused", "== 3"), {"mean": one}), (*kl("concentrated", "== 3"), {"mean": other}))
      for one, other in ((0.1, 0.2), (0.2, 0.1))),
    *((*POINT, *columns("prior_mean", MIDDLE + sign * 0.99e-4, MIDDLE + sign * 1.01e-4), PLACED) for sign in (-1, 1)),
    ("G5", "concentrated narrows*(order 15, paper)", kl("concentrated", "== -15"),
     *columns("mean", 1.0001 * NARROWS, 0.9999 * NARROWS), (*kl("concentrated", "== -14.75"), {"mean": 1.0})),
    # Twelve standard deviations of 1/100.
    ("G5", "concentrated narrows*(order 15, paper)",
     ("limits", "method == 'concentrated' and order == 15 and variant == 'paper'"),
     *columns("theta", *(f"(theta - theta.mean()) / (theta.max() - theta.min()) * {by}" for by in (0.119, 0.121)))),
    *(("G5", "diffused forgets*(order 15, paper)", kl("diffused", "== -15"),
       *columns("coefficient", FORGETS + sign * 0.0199, FORGETS + sign * 0.0201),
       (*kl("diffused", "== -14.75"), {"coefficient": 1.0})) for sign in (-1, 1)),
    *(("G5", "diffused stays near*(order 15, paper)", kl("diffused", "== -15"), *columns("mean", inside, outside),
       (*kl("diffused", "== -14.75"), {"mean": 1.0})) for inside, outside in ((1.0, 0.999), (1.019, 1.02))),
    *(("G5", "diffused ends*(order 15, paper)", kl("diffused", "== -15"),
       *columns("mean", 2 + sign * 0.0199, 2 + sign * 0.0201), ("limits", "", {"prior_kl": 2.0})) for sign in (-1, 1)),
    ("G6", AHEAD, held_out("concentrated", "== -15"),
     *columns("mean", 10 - 0.0501 * JOINT, 10 - 0.0499 * JOINT), *LOSSES),
    ("G6", AHEAD, kl("concentrated", "== -15"), *columns("mean", 1.001, 1.0), *LOSSES,
     (*held_out("concentrated", "== -15"), {"mean": 9.0}), (*kl("diffused", "== -15"), {"mean": 1.0})),
    *(("G6", AGREE, held_out("diffused", "== 3"),
       *columns("mean", *(10 + sign * share * math.sqrt(2) * JOINT for share in (0.00999, 0.01001))), TRUTH,
       (*held_out("diffused", "== 3"), {"sem": 0.01}), (*kl("diffused", "== 3"), {"mean": 0.0})) for sign in (-1, 1)),
    ("G6", AGREE, kl("diffused", "== 3"), *columns("mean", 0.000999, 0.001), TRUTH,
     (*held_out("diffused", "== 3"), {"mean": 10.0}), (*kl("diffused", "== 2.75"), {"mean": 0.5})),
)  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", [*RADII, *CURVES, *ROUNDING, *NEIGHBOURS, *TIGHT, *TRADEOFF])
def test_a_limit_lies_where_its_claim_says(case):
    assert sides(*case) == [True, False]


def test_where_no_number_of_bits_keeps_the_error_the_largest_is_told():
    own = altered(shipped("geumlek2017/rdp_curves"), "rounding", "", {"error_ratio": 2.0})
    found = judged("geumlek2017/rdp_curves", "G16", own)
    assert found.evidence["bits that cost 1 % of the error in all settings"] == 16


@pytest.mark.parametrize(("words", "factor"), [("theta", 1.0), ("the natural parameter", 0.25)])
def test_the_point_is_the_mode_to_a_step_of_the_grid(words, factor):
    """Steps are 1/100, and the mode is at 0.5: the density's own, or that of the density times theta (1 - theta)."""
    own = shipped("geumlek2017/tradeoff")
    size = (own["limits"].query("order == 15 and variant == 'paper' and method == 'diffused'")).shape[0]
    here = "order == 15 and variant == 'paper' and method == "
    lies = (
        ("limits", f"{here}'diffused'", {"theta": f"0.5 + 0.01 * (theta.rank() - {size // 2})", "density": 0.1}),
        ("limits", f"{here}'diffused' and abs(theta - 0.5) < 1e-9", {"density": 1 / factor}),
        *[("limits", f"{here}'diffused' and abs(theta - 0.02) < 1e-9", {"density": 3.0})] * (factor < 1),
        ("limits", f"{here}'concentrated'", {"density": 1.0}),
    )
    name = f"the point is the mode of the prior in {words} (order 15, paper)"
    place = ("limits", f"{here}'concentrated'")
    for sign in (-1, 1):
        limits = columns("theta", *(f"theta - theta.mean() + 0.5 + {sign * by}" for by in (0.00999, 0.01001)))
        assert sides("geumlek2017/tradeoff", "G22", name, place, *limits, *lies) == [True, False]


def test_a_divergence_that_vanishes_next_has_no_growth():
    lie = (*kl("concentrated", "== -14.75"), {"mean": 0.0})
    found = judged("geumlek2017/tradeoff", "G5", altered(shipped("geumlek2017/tradeoff"), *lie))
    assert found.evidence["growth of KL per step, concentrated, order 15, paper"] == 0


def test_a_small_lead_of_concentrated_sampling_shows_in_many_draws_only():
    """Without the runs of many draws G8 would hold."""
    own = shipped("geumlek2017/logistic")
    few = altered(own, "logistic_pairs", "draws > 1", {"variant": "'none'"})
    verdicts = [judged("geumlek2017/logistic", "G8", frames).verdict for frames in (own, few)]
    assert verdicts == ["holds in part", "holds"]


def test_claims_without_their_rows_are_not_scored():
    own = shipped("geumlek2017/logistic")
    paper = {**own, "logistic_pairs": own["logistic_pairs"].query("variant == 'paper'")}
    scored = {id: judged("geumlek2017/logistic", id, paper) for id in ("G7", "G8", "G10", "G26", "G29")}
    assert [id for id, claim in scored.items() if claim is None] == ["G10", "G26", "G29"]
