"""Each limit of the claims on war logs (Foulds et al. 2016): a row just inside of it passes, one just outside fails.

Limits are read off the sentences of the claims. What lies beside them is made up, so that they can be told by heart.
"""

from __future__ import annotations

import math

import pytest
from altered_tables import altered, checks_on, judged, shipped, sides


def cases(study, *rows):
    return [(study, *row) for row in rows]


def columns(column, inside, outside):
    return {column: inside}, {column: outside}


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
COUNTED = [
    ("war_logs_operations", "", dict.fromkeys(("noise_variates", "sampling_variates", "elementary_functions"), 0.0))
]
COUNTED += [("war_logs_operations", "", {"multiplications": 7.0})]
FINAL = "dataset == 'afghanistan' and sampler == 'collapsed' and summary == 'final' and method == 'ops' and truncation == 10"
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
SIMULATED = (
    "dataset == 'iraq_simulated' and method == 'laplace' and level == 'casualties' and field == 'enemy' and state == "
)
TEN_STATES = cases(
    STATES,
    *(
        (f"F10-{id}afghanistan", "the non-private HMM uses all*", (USED, f"{TEN}'non_private'".replace("paper", sampler)),
         *columns("states_used_at_all", 9.51, 9.49))
        for id, sampler in (("", "paper"), ("converged-", "collapsed"))
    ),
    *(
        ("F10-private-afghanistan", FEW, (USED, LAPLACE[0]), *columns(LAPLACE[1], inside, outside),
         (USED, LAPLACE[0], {"sem": error}))
        for inside, outside, error in (
            (3.19, 3.21, 0.1), (1.81, 1.79, 0.1), (3.0, 3.01, 0.0), (2.0, 1.99, 0.0), (3.0, 3.01, math.nan), (2.0, 1.9, math.nan)
        )
    ),
    ("F11", "Laplace adds*3 states)", ("war_logs_cpu", TIMED + "'laplace'"), *columns("seconds", 1.09, 1.11), TIMES),
    *(
        ("F11", "OPS takes*3 states, M = 10)", ("war_logs_cpu", TIMED + "'ops' and truncation == 10"),
         *columns("seconds", *times), TIMES)
        for times in ((2.99, 3.01), (1.51, 1.49))
    ),
    ("F12-afghanistan", "enemy rates below civilian*", ("war_logs_emissions", f"{HURT}'civilian' and state == 3"),
     *columns("probability", 0.4, 0.6), *RATES),
    ("F12-afghanistan", "enemy rates below friendly*", ("war_logs_emissions", f"{HURT}'friendly_or_host' and state == 3"),
     *columns("probability", 0.6, 0.4), *RATES),
    ("F13-afghanistan", "*(M = 10)", ("war_logs_maps", FINAL), *columns("switches_mean", 0.041, 0.039), *MAPS),
    # Operations are counted: twice as many are not less than twice.
    ("F15", "laplace*(afghanistan)", ("war_logs_operations", "dataset == 'afghanistan' and method == 'laplace' and n_states == 10"),
     *columns("multiplications", 13.9, 14.0), *COUNTED),
    # Twice the cells in which chains without privacy differ are no disagreement.
    *(
        ("F16-afghanistan", f"more {words} under*in Laplace's *(M = 10)", ("war_logs_maps", FINAL), *columns(column, *sides), *MAPS)
        for words, column, sides in (("cells unlike*", "disagreement_mean", (0.141, 0.139)),
                                     ("changes between*", "switches_mean", (0.041, 0.039)))
    ),
    # Five of eight regions, of which one in the very month of the peak.
    ("F17-iraq_sigact", "*all levels", ("war_logs_turns", f"{SIGACT} and region == 'Diyala'"),
     *columns("month", "'2007-09'", "'2007-08'"), *FIVE_LATE),
    # Casualties of both states are most often enemies: a reading needs all its parts in one state.
    ("F19-iraq_simulated", "*friendly action*", ("war_logs_emissions", f"{SIMULATED}1"), *columns("probability", 1.0, 0.0),
     ("war_logs_emissions", f"{SIMULATED}2", {"probability": 1.0})),
)  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", TEN_STATES)
def test_a_limit_lies_where_its_claim_says(case):
    assert sides(*case) == [True, False]
