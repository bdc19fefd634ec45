"""Each limit of the claims on Zhang et al. 2016: a row just inside of it passes, one just outside of it fails.

Limits are read off the sentences of the claims. Other numbers are made up, so that limits are easy to compute by hand.
"""

from __future__ import annotations

import pytest
from altered_tables import altered, cases, checks_on, columns, judged, shipped, sides
from scipy.stats import t as student

ONE = "variant == 'published' and graph == 'chain_5' and n == 20 and epsilon == 1 and method == "
ROOT = ("noise_scale", "graph == 'chain_10' and in_degree == 0")
CHEAP = ("noise_scale", "", {"fourier_cell": 0.1})
BOUNDS = cases(
    "zhang2016/bounds",
    # One release is enough.
    ("Z4", "Fourier's marginals agree", ("consistency", f"{ONE}'fourier'"),
     *columns("largest_disagreement", "1e-12 * largest_count * 0.999", "1e-12 * largest_count * 1.001")),
    ("Z4", "Laplace's marginals disagree everywhere", ("consistency", f"{ONE}'laplace'"),
     *columns("largest_disagreement", "1e-6 * largest_count * 1.0000005", "1e-6 * largest_count * 0.9999995")),
    ("Z7", "smaller on each orthonormal*", ROOT, *columns("fourier_coefficient", "0.999 * laplace", "laplace")),
    ("Z7", "smaller on each rebuilt*", ROOT, *columns("fourier_cell", "0.999 * laplace", "laplace"), CHEAP),
    # Four sets for each of ten nodes.
    ("Z18", "the closure*", ("noise_scale", "graph == 'chain_10'"), *columns("closure", 40, 41)),
    *(("Z10", "a count's noise*", ("noise_scale", "graph == 'naive_bayes_16' and in_degree == 0"),
       *columns("fourier_cell", inside, outside))
      for inside, outside in (("2 * laplace", "2.001 * laplace"), ("0.5 * laplace", "0.499 * laplace"))),
)  # fmt: skip

# All errors of the private regression are larger by a hundred standard errors.
WORSE = ("linear_regression", "", {"excess_mean": 1e-4, "excess_sem": 1e-6})
LINEAR_REGRESSION = cases(
    "zhang2016/linear_regression",
    ("Z5", "the private regression is worse*(noise variance 1, census_1980)",
     ("linear_regression", "method == 'sampler_record' and noise_variance == 1 and prior_precision == 10"),
     *columns("excess_mean", 1e-4, 0.0), WORSE),
)  # fmt: skip

BEFORE = "epsilon_times == 'n_squared' and n < 1000000"
LOSS = cases(
    "zhang2016/bounds",
    # The last step counts alone.
    ("Z16", "*as table 1 prints it", ("theorem1", "epsilon_times == 'n_squared' and n == 1000000"),
     *columns("mean_loss", *(f"{share} * (first_term + second_term)" for share in (2.199, 2.201))),
     ("theorem1", BEFORE, {"mean_loss": "(2 + 8 * (n < 100000)) * (first_term + second_term)"})),
)  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", [*BOUNDS, *LINEAR_REGRESSION, *LOSS])
def test_a_limit_lies_where_its_claim_says(case):
    assert sides(*case) == [True, False]


def test_networks_on_adult_are_compared_at_a_joint_level():
    """5 % over two comparisons in each row, by Student's t of the row's repeats."""
    table = shipped("zhang2016/adult_network")["adult_network"].query("method in ('exact', 'gibbs')")
    compared = table.query("method == 'exact' or rhat_max <= 1.1")
    first = compared.iloc[0]
    limit = student.isf(0.05 / (2 * len(compared)), first.n_repeats - 1)
    name = f"({first.graph}, n={first.n:g}, epsilon={first.epsilon:.3g})"
    place = ("adult_network", f"method == {first.method!r} and n == {first.n} and epsilon == {first.epsilon}")
    for check, column, turn, sign in (
        ("nearer to the true posterior", "divergence_less_laplace", 0.0, 1),
        ("predicts no worse", "accuracy_less_laplace", -0.05, -1),
    ):
        # One hundredth is a standard error.
        inside, outside = ({f"{column}_mean": turn - sign * share * limit / 100} for share in (1.001, 0.999))
        case = ("Z17", f"{check} {name}", place, inside, outside, (*place, {f"{column}_sem": 0.01}))
        assert sides("zhang2016/adult_network", *case) == [True, False]


@pytest.mark.parametrize(("rhat", "share"), [(1.1, 0), (1.101, 1)])
def test_chains_on_adult_that_disagree_are_left_out(rhat, share):
    own = altered(shipped("zhang2016/adult_network"), "adult_network", "method == 'gibbs'", {"rhat_max": rhat})
    left_out = judged("zhang2016/adult_network", "Z17", own).evidence["points left out"]
    assert left_out == share * (own["adult_network"].method == "gibbs").sum()


def test_a_claim_is_about_a_stand_in_where_some_of_its_data_are():
    lie = ("linear_regression", "noise_variance == 1", {"stand_in": False})
    own = altered(shipped("zhang2016/linear_regression"), *lie)
    assert judged("zhang2016/linear_regression", "Z5", own).stand_in


def test_a_statement_without_rows_does_not_hold_and_has_no_numbers():
    own = shipped("zhang2016/bounds")
    found = judged("zhang2016/bounds", "Z12", {**own, "bounds": own["bounds"].query("statement != 'corollary 1'")})
    assert found.failed == ("the Laplace mechanism is epsilon-DP (corollary 1)",)
    assert found.evidence["largest loss over what is promised, by setting: corollary 1"] == []


@pytest.mark.parametrize("closure", [3, 4])
def test_corollary_3_is_provable_from_four_subsets_on(closure):
    lie = ("bounds", "statement == 'corollary_3'", {"closure": closure})
    checks = judged("zhang2016/bounds", "Z6", altered(shipped("zhang2016/bounds"), *lie)).checks
    assert any(name.startswith("corollary 3, t >= 1") for name in checks) == (closure == 4)


def test_two_graphs_of_as_many_nodes_are_compared():
    lie = ("noise_scale", "graph == 'banded_8_3'", {"nodes": 20})
    assert checks_on("zhang2016/bounds", "Z18", "the denser*(20*nodes)", lie)


def test_what_decides_z2_are_the_stealthy_runs_that_the_paper_plots():
    own, rows = shipped("zhang2016/naive_bayes"), "method == 'fourier' and other == 'laplace' and runs == 'all'"
    other = altered(own, "naive_bayes_pairs", rows, {"difference_mean": 0.5})
    one, two = (judged("zhang2016/naive_bayes", "Z2", frames) for frames in (own, other))
    assert one.checks == two.checks
