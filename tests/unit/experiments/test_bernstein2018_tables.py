"""Why B13 fails where it does."""

import numpy as np
import pytest
from scipy.special import betainc

from privpost.evaluation.calibration import ks_limit, ks_statistic
from privpost.mechanisms.choices.exponential import ExponentialMechanism
from privpost.models import BetaBernoulli


@pytest.mark.parametrize("n, epsilon, learns", [(100, 0.01, False), (10_000, 0.1, True)])
def test_ops_with_its_prior_is_calibrated_until_it_learns(n, epsilon, learns):
    # B13's explanation, by the closed distribution function of a draw and far more trials than the study has.
    trials, rng = 100_000, np.random.default_rng(5)
    theta = rng.beta(10, 10, trials)
    ones = rng.binomial(n, theta)
    temperature = ExponentialMechanism(BetaBernoulli(10, 10), n, epsilon / 100, a0=0.1).temperature
    ends = [betainc(10 + ones / temperature, 10 + (n - ones) / temperature, x) for x in (0.1, theta, 0.9)]
    u = np.clip((ends[1] - ends[0]) / (ends[2] - ends[0]), 0, 1)
    assert (ks_statistic(u) > ks_limit(trials, 1e-4)) == learns
    # Too wide: the true parameter lies too often in the middle; 5 standard errors.
    assert (np.mean(np.abs(u - 0.5) < 0.25) > 0.5 + 5 * 0.5 / np.sqrt(trials)) == learns
