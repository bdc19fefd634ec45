"""Tails of gamma laws: the regularised incomplete gamma functions Q(α, t) and P = 1 − Q, for compiled loops.

Above the mean, Q comes from Lentz's continued fraction. Below the mean, P comes from a series. So Q and P keep their
leading digits even if they are small.
"""

from __future__ import annotations

import math

from privpost.samplers.compiled import bare


@bare
def continued_fraction(alpha, t, close):
    """Return Γ(α, t) / (t^α e^(−t)) by Lentz's method; stop when a step's relative change is below `close`."""
    b = t + 1 - alpha
    d = 1 / b
    c, fraction = 1e300, d
    for n in range(1, 1000):
        b += 2
        d = 1 / (n * (alpha - n) * d + b)
        c = b + n * (alpha - n) / c
        fraction *= c * d
        if abs(c * d - 1) < close:
            break
    return fraction


@bare
def series(alpha, t, close):
    """Return γ(α, t) / (t^α e^(−t)) by a power series; stop when a term is at most the share `close` of the sum."""
    term = 1 / alpha
    total, n = term, alpha
    while term > close * total:
        n += 1
        term *= t / n
        total += term
    return total


@bare
def beyond(alpha, t, log_density):
    """Return ln Q(α, t) and h = t^α e^(−t) / Γ(α, t) for t > 0 and α > 1.

    Gamma(α) truncated to (t, ∞) has mean α + h. `log_density` is the logarithm of t^α e^(−t) / Γ(α) = Q(α, t) h.
    """
    if t < alpha + 1:
        # Below the mean P(α, t) is at most twice this density, so Q rounds to 1.
        if t < alpha and log_density < -38.0:
            return 0.0, 0.0
        density = math.exp(log_density)
        tail = 1 - density * series(alpha, t, 1e-10)
        return math.log(tail), density / tail
    fraction = continued_fraction(alpha, t, 1e-10)
    return log_density + math.log(fraction), 1 / fraction


@bare
def tail_of(alpha, t, log_t, log_gamma):
    """Return ln Q(α, t) and h as `beyond` does, but for α ≥ 1: α = 1 has a closed form."""
    return (-t, t) if alpha <= 1 else beyond(alpha, t, alpha * log_t - t - log_gamma)
