"""Claims on war logs that need no study: run time, and the month in which regions turn."""

from __future__ import annotations

import numpy as np
import pandas as pd
from war_log_toys import claims_of

from privpost.datasets import war_logs as data
from privpost.experiments.claim_helpers import convergence
from privpost.experiments.foulds2016.turning_points import turning_months, without_level
from privpost.experiments.foulds2016.war_logs_likelihood import claims as likelihood
from privpost.experiments.foulds2016.war_logs_states import claims as states
from privpost.lab import grid, tables


def test_the_verdict_on_run_time_follows_the_measured_times() -> None:
    methods = {"method": ["non_private", "laplace", "ops"], "truncation": [None, None, 10.0]}
    counted = pd.DataFrame(methods).assign(
        dataset="afghanistan", n_states=3, variant="paper", sampler="paper", **dict.fromkeys(states.KINDS, 9)
    )

    def verdict(laplace, ops, dataset="afghanistan"):
        timed = pd.DataFrame({**methods, "seconds": [2.0, laplace, ops]}).assign(dataset=dataset, n_states=3)
        (claim,) = claims_of(states.run_time, war_logs_cpu=timed, war_logs_operations=counted)
        return claim.verdict

    assert verdict(2.1, 4.0) == "holds"
    assert verdict(2.1, 16.0) == "holds in part"
    assert verdict(8.0, 16.0) == "does not hold"
    # None of the paper's data was timed.
    assert verdict(2.1, 4.0, "iraq_simulated") == "not testable"


def test_chains_are_counted_only_where_some_have_not_converged() -> None:
    assert convergence({"gibbs": (7, 7)}) == "All chains converged"
    assert convergence({"gibbs": (6, 7), "laplace": (8, 8)}).endswith("gibbs at 6 of 7, laplace at 8 of 8")


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


def test_one_epsilon_decides_nothing_and_only_our_chains_are_said_to_have_converged() -> None:
    made = tables.read_tables(grid.load_study("foulds2016/war_logs_likelihood"))
    made["war_logs_differences"] = made["war_logs_differences"].query("epsilon == 1")
    scored = {claim.id: claim for claim in claims_of(likelihood.dense, **made)}
    paper, ours = (scored[f"F8-{which}afghanistan_dense"] for which in ("", "converged-"))
    assert paper.verdict == ours.verdict == "not testable"
    assert "converged" not in paper.reason and "have converged at fewer than two epsilons" in ours.reason
