"""The truncated beta distribution: masses, quantiles and draws against other arithmetic."""

import numpy as np
import pytest

from privpost.distributions import truncated_beta

TRUNCATED = [
    ((1.0005, 1.0002), 0.05, 0.95),  # T in the thousands
    ((5.0, 3.0), 0.2, 0.8),
    ((0.5, 2.0), 0.05, 0.95),
    ((1001.0, 1.0), 0.05, 0.95),
    ((1.0, 1001.0), 0.05, 0.95),
    ((300.0, 20.0), 0.01, 0.3),
    ((50.0, 50.0), 0.9, 0.99),
]


@pytest.mark.parametrize("parameters, low, high", TRUNCATED)
def test_truncated_beta_against_forty_digits(parameters, low, high):
    import mpmath

    with mpmath.workdps(40):
        total = mpmath.betainc(*parameters, low, high)
        log_mass = float(mpmath.log(total / mpmath.beta(*parameters)))
        assert float(truncated_beta.log_mass(parameters, low, high)) == pytest.approx(log_mass, rel=1e-12, abs=1e-14)
        for u in (1e-6, 0.1, 0.5, 0.9, 1 - 1e-6):
            theta = float(truncated_beta.quantile(u, parameters, low, high))
            # 1e-11: θ has 16 digits, the distribution function rises by at most 1000 of its scales.
            assert float(mpmath.betainc(*parameters, low, theta) / total) == pytest.approx(u, abs=1e-11)


@pytest.mark.parametrize(
    "parameters, low, high",
    [((2e4, 2.0), 0.05, 0.95), ((2.0, 2e4), 0.05, 0.95), ((1e5, 3e5), 0.05, 0.2), ((1e6, 2.0), 0.05, 0.95)],
)
def test_truncated_beta_where_the_mass_underflows(parameters, low, high):
    # Independent: composite Gauss-Legendre on the 60 scale lengths next to the end where the density is largest.
    a, b = parameters
    end = low if a / (a + b) < low else high
    slope = (a - 1) / end - (b - 1) / (1 - end)
    edges = np.sort(end - np.linspace(0, 60, 400) / slope)
    x, w = np.polynomial.legendre.leggauss(20)

    def integral(left, right):
        cells = np.clip(edges, left, right)
        half, middle = np.diff(cells)[:, None] / 2, (cells[1:] + cells[:-1])[:, None] / 2
        theta = middle + half * x
        log_ratio = (a - 1) * np.log(theta / end) + (b - 1) * np.log((1 - theta) / (1 - end))
        return (half * w * np.exp(log_ratio)).sum()

    total = integral(low, high)
    assert truncated_beta.log_mass(parameters, low, high) < -900
    for u in (1e-6, 0.1, 0.5, 0.9, 1 - 1e-6):
        theta = float(truncated_beta.quantile(u, parameters, low, high))
        # 1e-9: θ has 16 digits and the density falls over 1e-6 of it.
        assert integral(low, theta) / total == pytest.approx(u, abs=1e-9)
    # The density at the end is the inverse of the integral of the ratio to it.
    assert float(truncated_beta.log_density(end, parameters, low, high)) == pytest.approx(-np.log(total), rel=1e-9)


def test_truncated_beta_draws_follow_their_distribution_function():
    from scipy.stats import kstest

    rng = np.random.default_rng(31)
    for parameters, low, high in TRUNCATED:
        draws = truncated_beta.sample(np.broadcast_to(parameters, (5000, 2)), low, high, rng)
        assert np.all((draws >= low) & (draws <= high))
        masses = [truncated_beta.log_mass(parameters, low, max(t, np.nextafter(low, 1))) for t in np.sort(draws)[::50]]
        uniform = np.exp(masses - truncated_beta.log_mass(parameters, low, high))
        # Every 50th order statistic: the largest distance of 5000 draws is at most that of these plus 50/5000;
        # 0.035 is a false alarm below 1e-5 for 5000 draws (2 exp(−2·5000·0.035²)).
        assert np.abs(uniform - np.arange(0, 5000, 50) / 5000).max() < 0.035
    assert kstest(truncated_beta.sample(np.ones((5000, 2)), 0.2, 0.8, rng), "uniform", (0.2, 0.6)).pvalue > 1e-5


def test_truncated_beta_errors():
    with pytest.raises(ValueError, match="low is "):
        truncated_beta.log_mass((1, 1), 0.8, 0.2)
    with pytest.raises(ValueError, match="parameters must be > 0"):
        truncated_beta.log_mass((0, 1), 0.2, 0.8)
    with pytest.raises(ValueError, match="probability must lie in"):
        truncated_beta.quantile(1.5, (1, 1), 0.2, 0.8)
