"""Each limit of the claims on noise-aware posteriors and of the audit: just inside of it passes, just outside fails.

Limits are read off the sentences of the claims. Other numbers are made up, so that limits are easy to compute by hand.
"""

from __future__ import annotations

from statistics import NormalDist

import pytest
from altered_tables import altered, cases, checks_on, columns, judged, shipped, sides
from scipy.stats import chi2

EVENTS = "model == 'naive_bayes' and n == 100 and variant == 'paper' and epsilon == "
CHAIN = "model == 'hmm' and n == 40 and method == 'gibbs' and epsilon == "
# Two-sided, 5 % over 30 pairs: five models, three epsilon, clipped and projected.
JOINT = NormalDist().inv_cdf(1 - 0.05 / 60)
EVENT_CALIBRATION = cases(
    "noise_aware/event_calibration",
    # Five models, each clipped and projected.
    ("N7", "*(naive_bayes, multinomial, n = 100, epsilon = 0.1, clipped)",
     ("event_calibration", f"{EVENTS}0.1 and method == 'laplace'"),
     *columns("p_value", 0.99 * 0.05 / 10, 1.01 * 0.05 / 10)),
    ("N8", "not behind (naive_bayes, multinomial, n = 100, epsilon = 1, clipped)",
     ("event_calibration_pairs", f"{EVENTS}1"),
     *columns("kl_gain_mean", -0.0099 * JOINT, -0.0101 * JOINT),
     ("event_calibration_pairs", f"{EVENTS}1", {"kl_gain_sem": 0.01})),
    ("N8", "ahead (naive_bayes, multinomial, n = 100, epsilon = 0.1, clipped)",
     ("event_calibration_pairs", f"{EVENTS}0.1"),
     *columns("kl_gain_mean", 0.0101 * JOINT, 0.0099 * JOINT),
     ("event_calibration_pairs", f"{EVENTS}0.1", {"kl_gain_sem": 0.01})),
    # Of draws: half over the root of how many are effective; the width of the enumerated case within a tenth.
    ("N6", "U as by*(hmm, multinomial, n = 40, epsilon = 1)", ("event_calibration", f"{CHAIN}1"),
     *columns("oracle_difference", 0.0499, 0.0501), ("event_calibration", f"{CHAIN}1", {"ess_median": 100.0})),
    *(
        ("N6", "as wide as*(hmm, multinomial, n = 40, epsilon = 1)", ("event_calibration", f"{CHAIN}1"),
         *columns("width_ratio", *sides))
        for sides in ((1.099, 1.101), (0.901, 0.899))
    ),
)  # fmt: skip

KS = "method == 'naive' and variant == 'paper' and n == 200 and concentration == 1"
NAIVE_BAYES = cases(
    "noise_aware/naive_bayes",
    # The mean of three parameters counts, at the ends only.
    ("N2", "*n = 200: better at the largest epsilon",
     ("naive_bayes_calibration", f"{KS} and epsilon == epsilon.max() and parameter == 'y'"),
     *columns("ks", 0.49, 0.51), ("naive_bayes_calibration", KS, {"ks": 0.9}),
     ("naive_bayes_calibration", f"{KS} and epsilon == epsilon.min()", {"ks": 0.3}),
     ("naive_bayes_calibration", f"{KS} and epsilon == epsilon.max()", {"ks": 0.2})),
)  # fmt: skip

ONE = "n == 100 and epsilon == 0.1 and method == "
REGRESSION_CALIBRATION = cases(
    "noise_aware/regression_calibration",
    # Two n and three epsilon have a row each.
    ("N19", "not calibrated (n = 100, epsilon = 0.1)", ("regression_calibration", f"{ONE}'naive'"),
     *columns("z2_p", 0.99 * 0.05 / 6, 1.01 * 0.05 / 6)),
    ("N19", "narrower (n = 100, epsilon = 0.1)", ("regression_calibration", f"{ONE}'gibbs'"),
     *columns("sd_of_prior", 0.7501, 0.7499), ("regression_calibration", f"{ONE}'naive'", {"sd_of_prior": 0.5})),
    ("N20", "*(gibbs, n = 100, epsilon = 0.1)", ("regression_calibration", f"{ONE}'gibbs'"),
     *columns("oracle_distance", 0.149, 0.151), ("regression_calibration", f"{ONE}'gibbs'", {"oracle_floor": 0.1})),
)  # fmt: skip

PARENTS = "task == 'three_parents' and n == 8 and epsilon == 0.1 and method == '{}'"
ROW = "task == 'poisson' and n == {n} and epsilon == 0.1 and method == '{method}'"
RECORDS = "task == 'collider' and epsilon == 1 and method == 'records'"
# A hundred effective draws of a normal law, against very many, are .1288 from it, and 1.6 times that is .2061.
HUNDRED, AGREED = {"ess": 100.0, "reference_draws": 1e15}, {"sd_error": 0.0}
WIDE = ("rivals", "method == 'records'", {**AGREED, "sd_error_sem": 0.003})
LARGE, NOISY = ROW.format(n=1000, method="quadrature"), ROW.format(n=1000, method="noise_calibrated")
RIVALS = cases(
    "noise_aware/rivals",
    # Draws that are worth fewer than fifty say nothing.
    ("N15", "gibbs reaches it (poisson)", ("rivals", ROW.format(n=100, method="gibbs")), *columns("ess", 49.9, 50.0),
     ("rivals", ROW.format(n=100, method="gibbs"), {"distance": 9.0})),
    ("N15", "gibbs reaches it (poisson)", ("rivals", ROW.format(n=100, method="gibbs")),
     *columns("distance", 0.299, 0.301)),
    # Six rows, one-sided, 5 % over them: 2.394 standard errors of the difference.
    ("N5", "records is nearer (n = 8, epsilon = 0.1, three_parents)", ("rivals", PARENTS.format("naive")),
     *columns("distance", 1.2395, 1.2393), ("rivals", PARENTS.format("naive"), {"distance_sem": 0.06}),
     ("rivals", PARENTS.format("records"), {"distance": 1.0, "distance_sem": 0.08})),
    # Only rows of an epsilon of at most 1 tell of the width.
    ("N11", "records has the posterior's width", ("rivals", RECORDS), *columns("epsilon", 1.5, 1.0), WIDE,
     ("rivals", RECORDS, {"sd_error": 0.5})),
    ("N11", "records has the posterior's width", ("rivals", "method == 'records'"),
     *columns("sd_error", -0.0099, -0.0101), WIDE),
    ("N13", "exact at n = 1000", ("rivals", LARGE), *columns("distance", 0.206, 0.2062), ("rivals", LARGE, HUNDRED)),
    ("N14", "farther (poisson, n = 1000)", ("rivals", NOISY), *columns("distance", 0.121, 0.119),
     ("rivals", NOISY, {"distance_sem": 0.006}), ("rivals", LARGE, {"distance": 0.1, "distance_sem": 0.008})),
)  # fmt: skip

# One row of each kind is enough to fail.
FIRST = "exact.rank(method='first') == 1 and n_samples > 0"
AUDIT = cases(
    "audit/audit",
    ("A1", "*", ("audit", FIRST), *columns("lower_bound", "claimed_epsilon", "1.001 * claimed_epsilon")),
    ("A2", "*", ("audit", FIRST), *columns("exact", "claimed_epsilon", "1.001 * claimed_epsilon")),
    ("A6", "*", ("audit", FIRST), *columns("share_of_target", 1.0, 1.001)),
)  # fmt: skip
EVERY = [*EVENT_CALIBRATION, *NAIVE_BAYES, *REGRESSION_CALIBRATION, *RIVALS, *AUDIT]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", EVERY)
def test_a_limit_lies_where_its_claim_says(case):
    assert sides(*case) == [True, False]


def test_networks_are_calibrated_together():
    """40 data sets of five and eight records: mean z² at the two-sided chi-squared test's ends, 2.5 % for a method."""
    rows, ends = (
        "task == 'three_parents' and method == 'table'",
        [chi2.isf(share * 0.0125, 40) / 40 for share in (1.01, 0.99)],
    )
    assert sides(
        "noise_aware/rivals", "N5", "table is calibrated (three*", ("rivals", rows), *columns("z2", *ends)
    ) == [
        True,
        False,
    ]


@pytest.mark.parametrize(("oracles", "made"), [(0, False), (1, True)])
def test_a_law_is_compared_where_an_oracle_ran(oracles, made):
    lie = ("regression_calibration", f"{ONE}'gibbs'", {"n_oracles": oracles})
    assert bool(checks_on("noise_aware/regression_calibration", "N20", "*(gibbs, n = 100, epsilon = 0.1)", lie)) == made


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("id", "nothing"), [("A2", {"exact": float("nan")})])
def test_an_audit_of_nothing_finds_nothing_and_one_row_is_something(id, nothing):
    assert not any(checks_on("audit/audit", id, "*", ("audit", "", nothing)).values())
    assert all(checks_on("audit/audit", id, "1 *", ("audit", f"not ({FIRST})", nothing)).values())


@pytest.mark.parametrize(("column", "words"), [("drawn_p", "0 rows draw*"), ("rounded_p", "*so do 0 by*")])
def test_laws_are_counted_where_draws_were_tested(column, words):
    assert checks_on("audit/audit", "A5", words, ("audit", "", {column: float("nan")}))


def test_the_largest_share_of_a_claim_is_told():
    own = altered(shipped("audit/audit"), "audit", FIRST, {"tightness": 3.0})
    assert judged("audit/audit", "A4", own).evidence["largest"] == 3.0


def test_the_sum_is_more_than_four_times_the_exact_composition():
    own = shipped("fair_axis/composition")
    last = own["composition"].query("draws == draws.max() and accounting == 'exact'").iloc[0]
    here = f"method == {last['method']!r} and n == {last.n} and epsilon == {last.epsilon} and draws == {last.draws}"
    naive = ("composition", f"{here} and accounting == 'naive'")
    name = f"the sum more than * ({last['method']}, n = {last.n}, epsilon = {last.epsilon:g})"
    limits = columns("spent", 4.01 * last.spent, 3.99 * last.spent)
    assert sides("fair_axis/composition", "X8", name, naive, *limits) == [True, False]


def test_a_row_at_the_asymptote_itself_is_left_out():
    below = ("dirichlet", "supremum == 'exact' and order < asymptote - 0.1")
    limits = columns("order", "asymptote", "asymptote + 1e-8")
    assert sides("geumlek2017/dirichlet", "G11", "*", below, *limits) == [True, False]


def test_stuck_chains_are_told_where_the_posterior_without_one_is_calibrated():
    """B8 has the share of releases with stuck chains of each point that fails, and of no other."""
    own = shipped("bernstein2018/claims")
    found = judged("bernstein2018/claims", "B8", own)
    chains = own["convergence"].query("model == 'exponential' and variant == 'corrected' and sampler == 'gibbs'")
    for row in chains.itertuples():
        where = f"n={row.n:g}, epsilon={row.epsilon:g}"
        told = found.evidence.get(f"share of releases with stuck chains, {where}")
        assert told == (row.stuck_share if f"exponential, truncation, {where}" in found.failed else None)
