"""Tails of gamma laws: the regularised incomplete gamma functions Q(α, t) and P = 1 − Q, for compiled loops.

Q comes from Lentz's continued fraction above the mean, P from its series below it, so that neither loses its leading
digits where it is small.
"""

from __future__ import annotations

import math

from privpost.samplers.compiled import bare


@bare
def continued_fraction(alpha, t, close):
    """Γ(α, t) / (t^α e^(−t)) by Lentz's method, until a step changes it by a share of less than `close`."""
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
    """γ(α, t) / (t^α e^(−t)), until a term is a share of at most `close` of the sum."""
    term = 1 / alpha
    total, n = term, alpha
    while term > close * total:
        n += 1
        term *= t / n
        total += term
    return total


@bare
def beyond(alpha, t, log_density):
    """ln Q(α, t), and h = t^α e^(−t) / Γ(α, t), for t > 0 and α > 1: beyond t the gamma law has the mean α + h.

    `log_density` is ln of t^α e^(−t) / Γ(α), which is Q(α, t) h.
    """
    if t < alpha + 1:
        # Below the mean P(α, t) is at most twice this density: nothing is cut off.
        if t < alpha and log_density < -38.0:
            return 0.0, 0.0
        density = math.exp(log_density)
        tail = 1 - density * series(alpha, t, 1e-10)
        return math.log(tail), density / tail
    fraction = continued_fraction(alpha, t, 1e-10)
    return log_density + math.log(fraction), 1 / fraction


@bare
def tail_of(alpha, t, log_t, log_gamma):
    """`beyond` for α ≥ 1."""
    return (-t, t) if alpha <= 1 else beyond(alpha, t, alpha * log_t - t - log_gamma)
