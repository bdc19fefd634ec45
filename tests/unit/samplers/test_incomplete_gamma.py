"""Tails of gamma laws in compiled loops, against mpmath."""

from __future__ import annotations

import math

import mpmath
import pytest

from privpost.samplers.compiled import outer
from privpost.samplers.incomplete_gamma import continued_fraction, series, tail_of


@outer()
def values(alpha, t, log_t, log_gamma):
    """ln Q, h, and ratios of both incomplete gamma functions to t^α e^(−t)."""
    return tail_of(alpha, t, log_t, log_gamma), continued_fraction(alpha, t, 1e-13), series(alpha, t, 1e-13)


@pytest.mark.parametrize("alpha", [1.0, 1.3, 7.0, 90.5, 3000.0])
def test_tails_are_those_of_the_gamma_law(alpha) -> None:
    """Far below the mean, on both sides of where the series ends, and where Q is below the least float."""
    for ratio in (0.02, 0.9, 1.0, 1.1, 3.0):
        t = alpha * ratio + 0.01
        with mpmath.workdps(60):
            upper, lower = mpmath.gammainc(alpha, t, mpmath.inf), mpmath.gammainc(alpha, 0, t)
            scale = mpmath.mpf(t) ** alpha * mpmath.exp(-t)
            exact = [float(mpmath.log(upper / mpmath.gamma(alpha))), float(scale / upper), float(upper / scale)]
            below = float(lower / scale)
        (log_q, h), fraction, total = values(alpha, t, math.log(t), math.lgamma(alpha))
        assert log_q == pytest.approx(exact[0], rel=1e-9, abs=1e-9)
        if exact[1] > 1e-12:
            assert h == pytest.approx(exact[1], rel=1e-8)
        # Each where it is used.
        if t >= alpha + 1:
            assert fraction == pytest.approx(exact[2], rel=1e-11)
        else:
            assert total == pytest.approx(below, rel=1e-11)
