"""Settings that a user types: sizes that must match, suggestions of similar names, and settings without effect."""

import pytest

from privpost.lab import grid
from privpost.lab.schema import SettingError


@pytest.mark.parametrize(
    ("trials", "block"), [(8000, 2000), (4000, 2000), (3000, 1500), (50, 50), (10007, 10007), (10006, 5003)]
)
def test_trials_alone_choose_the_block_that_divides_them_nearest_to_the_studys_own(trials, block) -> None:
    study = grid.load_study("bernstein2018/calibration")
    assert grid.make_cell(study, {"trials": trials}).sizes["block"] == block


def test_a_block_that_is_given_has_to_divide_the_trials() -> None:
    with pytest.raises(SettingError, match="trials is 50, but must be a multiple of block, which is 20"):
        grid.make_cell(grid.load_study("bernstein2018/calibration"), {"trials": 50, "block": 20})


@pytest.mark.parametrize(("given", "successes"), [({"n": 10}, 4), ({"n": 10, "successes": 2}, 2), ({"alpha": 2}, 38)])
def test_successes_keep_their_share_of_n_unless_they_are_given(given, successes) -> None:
    study = grid.load_study("geumlek2017/tradeoff", "smoke")
    assert grid.make_cell(study, given).settings["successes"] == successes


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        ("geumlek2017/rdp_curves", {"seed": 1}, "draws no random numbers, so seed would change nothing"),
        ("geumlek2017/rdp_curves", {"trials": 10}, "has no trials, so trials would change nothing"),
        ("audit/audit", {"block": 10}, "has no trials, so block would change nothing"),
        ("geumlek2017/logistic", {"epsilon": 1}, r"Did you mean 'log_epsilon' \(natural logarithm of ε\)\?"),
        ("foulds2016/adversary", {"epsilon": 1}, r"Did you mean 'epsilons' \(ε of the posteriors that"),
        ("fair_axis/logistic", {"method": ["ops"]}, r"Did you mean 'methods' \(methods that take part\)\?"),
        ("zhang2016/naive_bayes", {"dataset": "adult"}, r"Did you mean 'data' \(`one` synthesised data set"),
        ("fair_axis/logistic", {"methods": ["diffussed"]}, "'diffussed' is none of .* Did you mean 'diffused'?"),
    ],
)
def test_a_setting_without_effect_and_another_studys_name_are_refused_with_what_is_meant(name, given, message) -> None:
    with pytest.raises(SettingError, match=message):
        grid.make_cell(grid.load_study(name, "smoke"), given)


def test_the_audit_draws_numbers_though_it_has_no_trials() -> None:
    assert grid.make_cell(grid.load_study("audit/audit", "smoke"), {"seed": 1}).sizes["seed"] == 1


def test_a_draw_that_costs_more_than_its_target_says_what_to_change() -> None:
    study = grid.load_study("zhang2016/linear_regression", "smoke")
    config = grid.make_cell(study, {"epsilon_target": 5.0}).config
    with pytest.raises(SettingError, match=r"epsilon_target is 5, but one draw costs 6050 at noise_variance 0\.02 .*"):
        study.module()._mechanisms(config, 9, 100, None)
