"""Each limit of the claims on Geumlek et al. 2017: a row just inside of it passes, one just outside of it fails.

Limits are read off the sentences of the claims. Other numbers are made up, so that limits are easy to compute by hand.
"""

from __future__ import annotations

import math

import pytest
from altered_tables import altered, cases, columns, judged, shipped, sides

BALL = "dataset == 'abalone' and metric == 'test_error' and times_smallest "
PAPER = ("ops_radius", "times_smallest.isna()")
RADII = cases(
    "geumlek2017/ops_radius",
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
    # An infinite charge has no ratio.
    ("G13", "some neighbours*", ("rdp_curves", f"{HALF.replace('exact', 'paper')}2"),
     *columns("epsilon", math.inf, 1.1), ("rdp_curves", "", {"epsilon": 1.0})),
)  # fmt: skip

BITS = "method == 'diffused' and coefficient == 0.5"
MOST = ("rounding", f"{BITS} and bits == 16 and order == 2")
ROUNDING = cases(
    "geumlek2017/rounding",
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


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", [*RADII, *CURVES, *ROUNDING, *NEIGHBOURS, *TIGHT])
def test_a_limit_lies_where_its_claim_says(case):
    assert sides(*case) == [True, False]


def test_where_no_number_of_bits_keeps_the_error_the_largest_is_told():
    own = altered(shipped("geumlek2017/rounding"), "rounding", "", {"error_ratio": 2.0})
    found = judged("geumlek2017/rounding", "G16", own)
    assert found.evidence["bits that cost 1 % of the error in all settings"] == 16
