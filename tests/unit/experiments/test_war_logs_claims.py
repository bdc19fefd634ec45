"""Claims on war logs that need no study: run time, tests over splits, and the month in which regions turn."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from war_log_toys import claims_of

from privpost.datasets import war_logs as data
from privpost.experiments.foulds2016.event_methods import without_level
from privpost.experiments.foulds2016.war_log_claims import holm, p_values, stands_in
from privpost.experiments.foulds2016.war_logs_states import claims as states
from privpost.experiments.foulds2016.war_logs_states.maps import turning_months


def test_the_verdict_on_run_time_follows_the_measured_times() -> None:
    methods = {"method": ["non_private", "laplace", "ops"], "truncation": [None, None, 10.0]}
    counted = pd.DataFrame(methods).assign(
        dataset="afghanistan", n_states=3, start="random", **dict.fromkeys(states.KINDS, 9)
    )

    def verdict(*ratios):
        timed = pd.DataFrame({"method": ["laplace", "ops"], "truncation": [None, 10.0]})[: len(ratios)]
        timed = timed.assign(n_states=3, ratio=list(ratios))
        (claim,) = claims_of(states.run_time, war_logs_cpu=timed, war_logs_operations=counted)
        return claim.verdict

    assert verdict(1.05, 2.0) == "holds"
    assert verdict(1.05, 8.0) == "holds in part"
    assert verdict(4.0, 8.0) == "does not hold"
    # Nothing was timed.
    assert verdict() == "not testable"


def test_a_family_of_tests_rejects_step_by_step() -> None:
    """Holm's own procedure by hand: p-values against 5 % over 4, 3, 2 and 1, up to the first that is larger."""
    assert holm([0.04, 0.012, 0.015, 0.02]).tolist() == [True] * 4
    assert holm([0.04, 0.012, 0.03, 0.02]).tolist() == [False, True, False, False]
    assert holm([0.013, 0.013, 0.013, 0.013]).tolist() == [False] * 4


def test_p_values_are_student_s_over_splits() -> None:
    """Independent: quantiles of the t law from a table (2 degrees: 2.920, 9 degrees: 1.833)."""
    rows = pd.DataFrame({"joint_mean": [2.920, 1.833, -1.833], "joint_sem": 1.0, "n_splits": [3, 10, 10]})
    assert p_values(rows, "joint") == pytest.approx([0.05, 0.05, 0.95], abs=1e-4)
    assert p_values(rows, "joint", -1) == pytest.approx([0.95, 0.95, 0.05], abs=1e-4)


def test_our_selection_judges_our_claims_only() -> None:
    assert stands_in("afghanistan_dense") and not stands_in("afghanistan_dense", ours=True)
    assert stands_in("iraq_sigact", ours=True) and not stands_in("afghanistan")


def test_regions_turn_where_they_take_their_last_state_without_a_level_too() -> None:
    logs = data.WarLogs(
        "toy", True, np.array([[3, 0, 2], [0, 4, 0], [1, 0, 0], [0, 2, 1]]), np.array([0, 0, 1, 1]),
        np.array([0, 2, 1, 3]), ["a", "b", "c"], ["2000-01"] * 4, {"x": ["p", "q"], "y": ["r"]}, None,
    )  # fmt: skip
    turns = turning_months(logs, np.array([1, 0, 1, 1]))
    assert turns[0] == 2 and np.isnan(turns[1:]).all()
    reduced = without_level(logs, "q")
    assert reduced.counts.tolist() == [[3, 2], [1, 0], [0, 1]] and reduced.sizes == [1, 1]
    assert reduced.month.tolist() == [0, 1, 3]
    assert without_level(logs, "none") is logs
