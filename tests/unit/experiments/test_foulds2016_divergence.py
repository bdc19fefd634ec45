"""OPS in the tails and at high temperatures, and the divergence of private posteriors, in high precision."""

import math

import numpy as np
import pytest

from privpost.distributions import truncated_beta
from privpost.experiments.foulds2016.posterior_divergence import study as posterior_divergence
from privpost.lab import grid, tables
from privpost.mechanisms import ExponentialMechanism
from privpost.models import BetaBernoulli

UNIFORM = BetaBernoulli(1, 1)


@pytest.fixture(scope="module")
def shipped():
    return tables.read_tables(grid.load_study("foulds2016/posterior_divergence"))


# Truncated, tempered beta: OPS in the tails and at temperatures in the thousands

EXTREME = [
    # (successes, n, epsilon, a0): the temperature is 2 ln(19)/ε = 5889, or 1.
    (0, 10, 0.001, 0.05),
    (100_000, 1_000_000, 0.001, 0.05),
    (1_000_000, 1_000_000, 0.001, 0.05),
    (30, 10_000, 0.1, 0.05),
    (0, 3000, 100.0, 0.2),
    (3000, 3000, 100.0, 0.2),
    (0, 100_000, 100.0, 0.05),
]


def mp_quantities(parameters, low, high):
    """Distribution function, mean and log-integral of θ^(a−1) (1−θ)^(b−1) on [low, high], by quadrature."""
    import mpmath

    a, b = (mpmath.mpf(float(value)) for value in parameters)

    def kernel(theta):
        return mpmath.exp((a - 1) * mpmath.log(theta) + (b - 1) * mpmath.log(1 - theta) - shift)

    mode = min(max((a - 1) / (a + b - 2), low), high) if a + b > 2 else mpmath.mpf(low)
    # Relative to the mode: mpmath's rule stops at an absolute error.
    shift = (a - 1) * mpmath.log(mode) + (b - 1) * mpmath.log(1 - mode)
    # Panels that shrink towards the mode, on either side.
    width = mpmath.mpf(high - low)
    panels = sorted(
        {min(max(mode + sign * width * mpmath.mpf(2) ** -k, low), high) for k in range(30) for sign in (1, -1)}
        | {mpmath.mpf(low), mpmath.mpf(high), mode}
    )

    def integral(function, upper):
        points = [point for point in panels if point < upper] + [upper]
        return mpmath.quad(function, points)

    total = integral(kernel, mpmath.mpf(high))
    mean = integral(lambda t: t * kernel(t), mpmath.mpf(high)) / total
    return (
        (lambda theta: float(integral(kernel, mpmath.mpf(theta)) / total)),
        float(mean),
        float(mpmath.log(total) + shift),
    )


@pytest.mark.parametrize(("successes", "n", "epsilon", "a0"), EXTREME)
def test_ops_density_quantiles_and_mean_in_high_precision(successes, n, epsilon, a0):
    import mpmath

    mechanism = ExponentialMechanism(UNIFORM, n, epsilon, a0=a0)
    statistics = np.array([successes, n - successes], float)
    parameters = mechanism.release_law(statistics)
    with mpmath.workdps(30):
        distribution, mean, log_integral = mp_quantities(parameters, a0, 1 - a0)
        for u in (1e-6, 0.01, 0.5, 0.99):
            theta = float(truncated_beta.quantile(u, parameters, a0, 1 - a0))
            # 1e-9: θ has 16 digits, and the distribution function rises over a scale of 1e-6 at the least.
            assert distribution(theta) == pytest.approx(u, abs=1e-9)
    assert float(truncated_beta.mean(parameters, a0, 1 - a0)) == pytest.approx(mean, rel=1e-10)
    for theta in (a0, 0.5, 1 - a0):
        expected = (parameters[0] - 1) * math.log(theta) + (parameters[1] - 1) * math.log1p(-theta) - log_integral
        # Relative to logarithms of up to 1e5.
        assert float(mechanism.log_density(theta, statistics)) == pytest.approx(expected, rel=1e-10, abs=1e-8)


# Divergence


@pytest.mark.parametrize(
    ("successes", "n", "epsilon"), [(0, 10, 0.1), (9, 10, 1.0), (0, 1000, 0.1), (97, 1000, 1.0), (3100, 10_000, 0.1)]
)
def test_truncated_kl_in_high_precision(successes, n, epsilon):
    import mpmath

    a0 = 0.05
    mechanism = ExponentialMechanism(UNIFORM, n, epsilon, a0=a0)
    statistics = np.array([[successes, n - successes]], float)
    p, q = UNIFORM.posterior(statistics), mechanism.release_law(statistics)
    found = posterior_divergence.truncated_kl(p, q, a0, 1 - a0, 120)[0]
    with mpmath.workdps(30):
        a, b = (mpmath.mpf(float(v)) for v in p[0])
        c, d = (mpmath.mpf(float(v)) for v in q[0])
        mode = min(max(mpmath.mpf(successes) / n, mpmath.mpf(a0)), 1 - mpmath.mpf(a0))
        spread = mpmath.sqrt(mode * (1 - mode) / n)
        # Panels of two standard deviations near the mode.
        steps = [*range(-14, 15, 2), -60, -30, 20, 30, 60]
        points = sorted({min(max(mode + k * spread, a0), 1 - a0) for k in steps} | {a0, 1 - a0})

        def log_kernel(t, first, second):
            # Relative to the mode: mpmath's rule stops at an absolute error.
            return (first - 1) * mpmath.log(t / mode) + (second - 1) * mpmath.log((1 - t) / (1 - mode))

        def expectation(t):
            return mpmath.exp(log_kernel(t, a, b)) * (log_kernel(t, a, b) - log_kernel(t, c, d))

        z_p = mpmath.quad(lambda t: mpmath.exp(log_kernel(t, a, b)), points)
        z_q = mpmath.quad(lambda t: mpmath.exp(log_kernel(t, c, d)), points)
        expected = mpmath.quad(expectation, points) / z_p
        expected += mpmath.log(z_q / z_p)
    assert found == pytest.approx(float(expected), rel=1e-9, abs=1e-12)


def test_divergence_has_the_known_limits(shipped):
    assert posterior_divergence.ops_limit(2 * math.log(19) / 0.1) == pytest.approx(1.546, abs=0.0005)
    assert posterior_divergence.ops_limit(2 * math.log(19) / 1.0) == pytest.approx(0.471, abs=0.0005)
    assert posterior_divergence.ops_limit(1.0) == 0.0
    table = shipped["posterior_divergence"]
    last = table[table.n == table.n.max()]
    ops, laplace = last[last.method == "ops"], last[last.method == "laplace"]
    # 1e-4: the limit is off by T/n to first order.
    assert np.allclose(ops.kl_mean, ops.kl_theory, rtol=1e-4)
    # 4.5 standard errors for four curves.
    assert ((laplace.kl_mean - laplace.kl_theory).abs() < 4.5 * laplace.kl_sem + 0.02 * laplace.kl_theory).all()
