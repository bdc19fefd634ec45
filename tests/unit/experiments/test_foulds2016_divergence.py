"""The divergence of private posteriors, in high precision."""

import math

import numpy as np
import pytest

from privpost.experiments.foulds2016.posterior_divergence import study as posterior_divergence
from privpost.lab import grid, tables
from privpost.mechanisms import ExponentialMechanism
from privpost.models import BetaBernoulli

UNIFORM = BetaBernoulli(1, 1)


@pytest.fixture(scope="module")
def shipped():
    return tables.read_tables(grid.load_study("foulds2016/posterior_divergence"))


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
