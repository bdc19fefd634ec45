"""Settings at the ends of the floating-point range are refused by name when they are read."""

from math import exp

import pytest

from privpost.experiments.ranges import LOG_EPSILON
from privpost.lab import cells, grid
from privpost.lab.schema import SettingError
from privpost.models.networks import graphs
from privpost.models.networks.bayesian_network import BayesianNetwork
from privpost.privacy.checks import LARGEST, SMALLEST


@pytest.mark.parametrize(
    ("study", "key", "value"),
    [
        ("foulds2016/war_logs_states", "iterations", 1e21),
        ("foulds2016/war_logs_states", "truncation", 1.00001),
        ("foulds2016/war_logs_likelihood", "emission_concentration", 0.99),
        ("noise_aware/event_calibration", "sizes", []),
        ("noise_aware/naive_bayes", "alpha", 1e-300),
        ("geumlek2017/logistic", "log_epsilon", -700),
        ("geumlek2017/tradeoff", "log_epsilon", 700),
        ("geumlek2017/logistic", "beta0", 1e-300),
        ("bernstein2018/calibration", "epsilon", 1e-300),
        ("bernstein2018/calibration", "a0", 5e-324),
    ],
)
def test_a_setting_that_no_number_could_follow_is_refused_by_name(study, key, value) -> None:
    with pytest.raises(SettingError, match=rf"{key} is .*, but must be a"):
        grid.make_cell(grid.load_study(study, "smoke"), {key: value})


@pytest.mark.parametrize("graph", ["chain_1000000000", "collider_17", "banded_2000_3"])
def test_a_graph_too_large_is_refused_at_once(graph) -> None:
    with pytest.raises(SettingError, match=r"graph: .* (at most 16|above 1000)"):
        grid.make_cell(grid.load_study("zhang2016/bounds", "smoke"), {"graph": graph})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"n": 2, "successes": 38}, "successes is 38, but must be at most n, which is 2"),
        ({"reach_betas": [1]}, "reach_betas are .*; there must be as many as reach_alphas has, 4"),
        ({"method": "non_private"}, "method is non_private alone"),
        ({"method": "non_private", "log_epsilon": -1}, "method=non_private has no budget and takes none"),
        ({"n_splits": 3}, "n_splits is 3, but must divide trials, which is 10"),
        ({"betas": [0.1]}, "there must be as many as n has"),
    ],
)
def test_settings_that_do_not_go_together_are_refused_before_anything_runs(given, message) -> None:
    name = "logistic" if "budget" in message or "n_splits" in given else "theorem16" if "betas" in given else "tradeoff"
    study = grid.load_study(f"geumlek2017/{name}", "smoke")
    with pytest.raises(SettingError, match=message):
        grid.make_cell(study, given)


@pytest.mark.parametrize(
    ("method", "given", "message"),
    [
        ("exact", {"n_states": 2, "months": 3}, r"method is exact, .*one of each: {'n_states': 2, .*'months': 3}"),
        ("gibbs", {"n_states": 1}, r"method is gibbs, but exact draws are possible"),
    ],
)
def test_a_noise_aware_method_that_a_model_does_not_have_is_refused_with_its_numbers(method, given, message) -> None:
    study = grid.load_study("noise_aware/event_calibration", "smoke")
    with pytest.raises(SettingError, match=message):
        grid.make_cell(study, {"method": [method], **given})


def test_records_are_left_for_the_test() -> None:
    with pytest.raises(SettingError, match="n_train is 50, but must be below n, which is 3"):
        grid.make_cell(grid.load_study("zhang2016/naive_bayes", "smoke"), {"n": 3})


def test_the_ends_of_log_epsilon_are_budgets() -> None:
    """`exp` of them lies in the range of ε that mechanisms take."""
    assert SMALLEST < exp(LOG_EPSILON.at_least) < SMALLEST * 100 and LARGEST / 100 < exp(LOG_EPSILON.at_most) < LARGEST


def test_what_a_model_refuses_is_a_refusal_of_the_study(tmp_path, monkeypatch) -> None:
    study = grid.load_study("zhang2016/bounds", "smoke", [f"root={tmp_path}"])
    model = BayesianNetwork(graphs.named("chain_20")[1])
    monkeypatch.setattr(study.module(), "simulate", lambda *_: model.cell_probabilities([0.5] * 39))
    with pytest.raises(SettingError, match=r"zhang2016/bounds: graph has 20 nodes; .* at most 16"):
        cells.compute(study, grid.make_cell(study, {}))
