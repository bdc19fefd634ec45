"""Settings at the ends of floating point are refused when they are read, by name."""

from math import exp

import pytest

from privpost.pipeline import grid
from privpost.pipeline.schema import SettingError
from privpost.privacy.checks import LARGEST, SMALLEST
from privpost.studies.ranges import LOG_EPSILON


@pytest.mark.parametrize(
    ("study", "key", "value"),
    [
        ("foulds2016/war_logs_states", "exact_rounds", 1e21),
        ("foulds2016/war_logs_states", "truncation", 1.00001),
        ("noise_aware/war_logs", "emission_concentration", 1e-30),
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


def test_the_ends_of_log_epsilon_are_budgets() -> None:
    """`exp` of them lies in the range of ε that mechanisms take."""
    assert SMALLEST < exp(LOG_EPSILON.at_least) < SMALLEST * 100 and LARGEST / 100 < exp(LOG_EPSILON.at_most) < LARGEST
