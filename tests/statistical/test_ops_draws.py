"""Draws of the exponential mechanism on bits against distribution functions computed another way, with fixed seeds."""

import math

import numpy as np
import pytest
from scipy import stats

from privpost.mechanisms import ExponentialMechanism
from privpost.models import BetaBernoulli
from privpost.privacy.accounting.costs import Cost
from privpost.privacy.ledger.gate import BudgetExceeded, Ledger

# Each Kolmogorov-Smirnov test raises a false alarm once in 10,000 seeds.
FALSE_ALARM = 1e-4
UNIFORM = BetaBernoulli(1, 1)


def draws(n, successes, epsilon, a0, size, seed):
    mechanism = ExponentialMechanism(UNIFORM, n, epsilon, a0=a0)
    statistics = np.broadcast_to([float(successes), float(n - successes)], (size, 2))
    return mechanism, mechanism.posterior_sample(statistics, np.random.default_rng(seed))


@pytest.mark.parametrize(("n", "a0"), [(5, 0.2), (2000, 0.2), (100_000, 0.05)])
def test_all_successes_at_temperature_one(n, a0):
    # The density is proportional to θ^n: its mass below 1−a0 is (1−a0)^(n+1), which underflows for the larger n.
    mechanism, theta = draws(n, n, 100.0, a0, 20_000, seed=n)
    assert mechanism.temperature == 1
    assert a0 <= theta.min() <= theta.max() <= 1 - a0

    def distribution(x):
        below = (n + 1) * math.log(a0 / (1 - a0))
        return np.maximum(np.exp((n + 1) * np.log(x / (1 - a0))) - math.exp(below), 0) / -math.expm1(below)

    assert stats.kstest(theta, distribution).pvalue > FALSE_ALARM


@pytest.mark.parametrize(("n", "successes", "epsilon"), [(20, 3, 0.001), (10_000, 100, 0.001), (300, 0, 0.1)])
def test_temperatures_up_to_the_thousands(n, successes, epsilon):
    a0 = 0.05
    mechanism, theta = draws(n, successes, epsilon, a0, 20_000, seed=n + 1)
    assert mechanism.temperature == pytest.approx(2 * math.log(19) / epsilon)
    x = np.linspace(a0, 1 - a0, 4001)
    log_kernel = (successes * np.log(x) + (n - successes) * np.log1p(-x)) / mechanism.temperature
    kernel = np.exp(log_kernel - log_kernel.max())
    cumulative = np.concatenate([[0], np.cumsum((kernel[1:] + kernel[:-1]) / 2)])
    # The trapezoidal rule on 4000 cells is exact to 1e-5 here, far below the test's 1e-2.
    assert stats.kstest(theta, lambda t: np.interp(t, x, cumulative / cumulative[-1])).pvalue > FALSE_ALARM


def test_averaging_samples_within_one_budget_gains_nothing():
    # k draws at ε/k each: every one has temperature k·2Δ/ε, and their mean again the efficiency 1 + 2Δ/ε.
    p, n, epsilon, a0, repeats = 0.3, 100_000, 1.0, 0.05, 20_000
    rng = np.random.default_rng(12)
    successes = rng.binomial(n, p, repeats).astype(float)
    statistics = np.stack([successes, n - successes], axis=-1)
    for k in (1, 4):
        ledger = Ledger()
        ledger.open("k draws", Cost("pure", epsilon))
        mechanism = ExponentialMechanism(UNIFORM, n, epsilon / k, a0=a0)
        ledger.charge("k draws", mechanism.cost(), releases=k)
        with pytest.raises(BudgetExceeded):
            ledger.charge("k draws", mechanism.cost())
        mean = np.mean([mechanism.posterior_sample(statistics, rng) for _ in range(k)], axis=0)
        squares = (mean - p) ** 2 * n / (p * (1 - p))
        expected = 1 + 2 * math.log(19) / epsilon
        # 4 standard errors (false alarm 6e-5), and 0.5 % for the terms in 1/n.
        assert abs(squares.mean() - expected) < 4 * squares.std() / math.sqrt(repeats) + 0.005 * expected
