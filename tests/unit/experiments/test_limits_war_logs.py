"""Each limit of the claims on war logs (Foulds et al. 2016): a row just inside of it passes, one just outside fails.

Limits are read off the sentences of the claims. Other numbers are made up, so that limits are easy to compute by hand.
"""

from __future__ import annotations

import math

import pytest
from altered_tables import altered, cases, checks_on, columns, judged, shipped, sides

STATES = "foulds2016/war_logs_states"
TEN = "dataset == 'afghanistan' and n_states == 10 and summary == 'mode' and sampler == 'paper' and method == "
LAPLACE = (f"{TEN}'laplace' and variant == 'paper'", "states_over_5_percent")
USED, FEW = "war_logs_states_used", "the Laplace HMM uses 2 to 3 states (5 %*"
TIMED = "dataset == 'afghanistan' and n_states == 3 and method == "
TIMES = ("war_logs_cpu", TIMED + "'non_private'", {"seconds": 1.0})
HURT = "dataset == 'afghanistan' and method == 'laplace' and level == 'casualties' and field == "
RATES = [
    ("war_logs_emissions", f"{HURT}'{field}'", {"probability": rate})
    for field, rate in (("civilian", 1.0), ("friendly_or_host", 1.0), ("enemy", 0.5))
]
VARIATES = ("noise_variates", "sampling_variates", "elementary_functions")
COUNTED = [("war_logs_operations", "", {"multiplications": 7.0, **dict.fromkeys(VARIATES, 0.0)})]
CHAIN = "dataset == 'afghanistan' and sampler == 'collapsed'"
FINAL = f"{CHAIN} and summary == 'final' and method == 'ops' and truncation == 10"
# All maps alike, but for cells in which chains without privacy differ.
ALIKE = ("switches_mean", "switches_sem", "disagreement_mean", "disagreement_sem")
MAPS = [
    ("war_logs_maps", "dataset == 'afghanistan'", dict.fromkeys(ALIKE, 0.0)),
    ("war_logs_maps", "dataset == 'afghanistan' and method == 'non_private'", {"disagreement_mean": 0.05}),
    ("war_logs_maps", FINAL, {"switches_sem": 0.01, "disagreement_sem": 0.01}),
]
SIGACT = "dataset == 'iraq_sigact' and without == 'none'"
FOUR = ("Anbar", "Babylon", "Baghdad", "Basrah")
FIVE_LATE = [
    ("war_logs_turns", SIGACT, {"month": "'2001-01'"}),
    ("war_logs_turns", f"{SIGACT} and region in {FOUR}", {"month": "'2008-01'"}),
]
SIMULATED = HURT.replace("afghanistan", "iraq_simulated") + "'enemy' and state == "
TEN_STATES = cases(
    STATES,
    *(
        (f"F10-{id}afghanistan", "the non-private HMM uses all*",
         (USED, f"{TEN}'non_private'".replace("paper", sampler)),
         *columns("states_used_at_all", 9.51, 9.5))
        for id, sampler in (("", "paper"), ("converged-", "collapsed"))
    ),
    *(
        ("F10-private-afghanistan", FEW, (USED, LAPLACE[0]), *columns(LAPLACE[1], inside, outside),
         (USED, LAPLACE[0], {"sem": error}))
        for inside, outside, error in (
            *((3.19, 3.21, 0.1), (1.81, 1.79, 0.1)),
            *(each for error in (0.0, math.nan) for each in ((3.0, 3.01, error), (2.0, 1.99, error))),
        )
    ),
    ("F11", "Laplace adds*3 states)", ("war_logs_cpu", TIMED + "'laplace'"), *columns("seconds", 1.09, 1.1), TIMES),
    *(
        ("F11", "OPS takes*3 states, M = 10)", ("war_logs_cpu", TIMED + "'ops' and truncation == 10"),
         *columns("seconds", *times), TIMES)
        for times in ((2.99, 3.01), (1.51, 1.49))
    ),
    ("F12-afghanistan", "enemy rates below civilian*", ("war_logs_emissions", f"{HURT}'civilian' and state == 3"),
     *columns("probability", 0.4, 0.6), *RATES),
    ("F12-afghanistan", "enemy rates below friendly*",
     ("war_logs_emissions", f"{HURT}'friendly_or_host' and state == 3"), *columns("probability", 0.6, 0.4), *RATES),
    ("F13-afghanistan", "*(M = 10)", ("war_logs_maps", FINAL), *columns("switches_mean", 0.041, 0.04), *MAPS),
    # Operations are counted: twice as many are not less than twice.
    ("F15", "laplace*(afghanistan)",
     ("war_logs_operations", "dataset == 'afghanistan' and method == 'laplace' and n_states == 10"),
     *columns("multiplications", 13.9, 14.0), *COUNTED),
    # Twice the cells in which chains without privacy differ are no disagreement.
    *(
        ("F16-afghanistan", f"more {words} under*in Laplace's *(M = 10)", ("war_logs_maps", FINAL),
         *columns(column, *sides), *MAPS)
        for words, column, sides in (("cells unlike*", "disagreement_mean", (0.141, 0.139)),
                                     ("changes between*", "switches_mean", (0.041, 0.039)))
    ),
    # Five of eight regions, of which one in the very month of the peak.
    ("F17-iraq_sigact", "*all levels", ("war_logs_turns", f"{SIGACT} and region == 'Diyala'"),
     *columns("month", "'2007-09'", "'2007-08'"), *FIVE_LATE),
    # Casualties of both states are most often enemies: a reading needs all its parts in one state.
    ("F19-iraq_simulated", "*friendly action*", ("war_logs_emissions", f"{SIMULATED}1"),
     *columns("probability", 1.0, 0.0), ("war_logs_emissions", f"{SIMULATED}2", {"probability": 1.0})),
)  # fmt: skip


LIKELIHOOD = "foulds2016/war_logs_likelihood"
LEAD, LOST = "war_logs_differences", "war_logs_likelihood"
FIFTH = "dataset == 'afghanistan' and model == 'hmm' and sampler == 'paper' and variant == 'paper' and epsilon == 0.5"
PAID = "dataset == 'afghanistan_dense' and method == 'laplace' and variant == 'paper' and sampler == 'collapsed'"


def slope_of(power):
    """Losses that go by a power of epsilon, with standard errors of 0.1 %."""
    return {"per_event_loss_mean": f"epsilon ** {power}", "per_event_loss_sem": f"0.001 * epsilon ** {power}"}


# Five standard errors of the slope over two decades.
FIVE = 5 * math.hypot(0.001, 0.001) / math.log(100)
LOSSES = cases(
    LIKELIHOOD,
    # One truncation is enough.
    ("F9-afghanistan", "OPS not behind at epsilon = 0.5", (LEAD, f"{FIFTH} and truncation == 100"),
     *columns("laplace_minus_ops_mean", 4.99, 5.01),
     (LEAD, FIFTH, {"laplace_minus_ops_sem": 1.0, "laplace_minus_ops_mean": 9.0})),
    *(
        ("F23-afghanistan_dense", "*(laplace, paper)", (LOST, PAID),
         *(slope_of(-2 + sign * (0.25 + each * FIVE)) for each in (0.9, 1.1)))
        for sign in (1, -1)
    ),
)  # fmt: skip

ABLATION = "foulds2016/war_logs_ablation"
DENSE = "dataset == 'afghanistan_dense' and fields == 'all'"
TABLE, PAIRS = "war_logs_ablation", "war_logs_ablation_differences"
# Laplace ahead by 1/2 of every draw of OPS.
HALF = [
    (TABLE, "dataset == 'afghanistan_dense'", {"per_event_mean": "0.5 * (method == 'laplace')", "converged": True}),
    (TABLE, f"{DENSE} and method == 'laplace' and epsilon == epsilon.min()", {"per_event_mean": 0.0}),
]
CHANGES = cases(
    ABLATION,
    ("F8-why", "the prior's*(afghanistan_dense)", (TABLE, f"{DENSE} and prior == 'untempered' and epsilon == 1"),
     *columns("per_event_mean", 0.099, 0.1), *HALF),
    ("F8-why", "the prior's*(afghanistan_dense)", (TABLE, f"{DENSE} and prior == 'untempered' and epsilon == 1"),
     *columns("per_event_mean", -0.099, -0.101), *HALF),
    ("F8-why", "Laplace gains*(afghanistan_dense)", (TABLE, f"{DENSE} and method == 'laplace' and epsilon == 10"),
     *columns("per_event_mean", 0.001, 0.0), *HALF),
    ("F8-why", "Laplace gains*(afghanistan_dense)", (TABLE, f"{DENSE} and method == 'laplace' and epsilon == 10"),
     *columns("per_event_mean", 0.001, 0.0), *HALF,
     (TABLE, "dataset == 'afghanistan_dense' and 0.1 < epsilon < 10", {"converged": False})),
    ("F8-why", "without the category*(afghanistan_dense)",
     (TABLE, DENSE.replace("all", "no_category") + " and method == 'laplace' and epsilon == epsilon.min()"),
     *columns("per_event_mean", 0.001, 0.0), *HALF),
    # Half of an event's levels are 2.5 of five, and 2 of four.
    *(
        ("F8-crossover", f"*(afghanistan_dense, {fields}, paper)",
         (PAIRS, f"dataset == 'afghanistan_dense' and fields == '{fields}' and variant == 'paper' and epsilon == 1"),
         *columns("rare_levels_per_event", half - 0.1, half),
         (PAIRS, "dataset == 'afghanistan_dense'", {"laplace_minus_ops_mean": 1.0, "laplace_minus_ops_sem": 0.1,
                                                    "converged": True, "rare_levels_per_event": 0.0}))
        for fields, half in (("all", 2.5), ("no_category", 2.0))
    ),
)  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", [*TEN_STATES, *LOSSES, *CHANGES])
def test_a_limit_lies_where_its_claim_says(case):
    assert sides(*case) == [True, False]


SMALLEST = "dataset == 'afghanistan_dense' and epsilon == 0.1"
UNSETTLED, CONVERGED = {"converged": False}, "F8-converged-afghanistan_dense"
SINGLE = [(LEAD, "truncation == 100 and epsilon > 0.1", UNSETTLED)]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("study", "id", "check", "lies", "made"),
    [
        # Chains that have not converged support nothing by themselves.
        (STATES, "F10-converged-afghanistan", "*", [(USED, CHAIN, UNSETTLED)], False),
        (STATES, "F10-afghanistan", "*", [(USED, CHAIN, UNSETTLED)], True),
        # Without the smallest epsilon, or a second one, no lead is largest there.
        (LIKELIHOOD, CONVERGED, "*", [(LEAD, SMALLEST, UNSETTLED)], False),
        (LIKELIHOOD, CONVERGED, "*(M = 10)", SINGLE, True),
        (LIKELIHOOD, CONVERGED, "*(M = 100)", SINGLE, False),
        (ABLATION, "F8-why", "Laplace gains*(afghanistan_dense)", [(TABLE, "epsilon != 1", UNSETTLED)], False),
    ],
)
def test_a_check_is_made_where_there_is_something_to_check(study, id, check, lies, made):
    assert bool(checks_on(study, id, check, *lies)) == made


def test_turning_points_are_told_of_the_counts_that_have_them():
    own = altered(shipped(STATES), "war_logs_turns", "dataset == 'iraq_sigact'", {"dataset": "'another'"})
    assert judged(STATES, "F17-iraq_sigact", own) is None


def test_maps_are_the_true_states_where_every_map_is():
    said, lie = "they are the true states", ("war_logs_maps", "dataset == 'iraq_simulated' and method == 'ops'")
    assert said in judged(STATES, "F16-iraq_simulated", shipped(STATES)).reason
    reason = judged(STATES, "F16-iraq_simulated", altered(shipped(STATES), *lie, {"misses_mean": 0.1})).reason
    assert "a tie" in reason and said not in reason


@pytest.mark.parametrize(("dataset", "verdict"), [("iraq_sigact", "holds"), ("afghanistan", "holds in part")])
def test_the_number_of_operations_is_judged_on_the_paper_s_data(dataset, verdict):
    costly = ("war_logs_operations", f"dataset == '{dataset}' and method == 'laplace'", {"multiplications": 1e15})
    assert judged(STATES, "F15", altered(shipped(STATES), *costly)).verdict == verdict
