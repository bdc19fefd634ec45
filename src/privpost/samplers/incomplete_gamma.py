"""Regularised incomplete gamma functions Q(α, t) and P(α, t) = 1 − Q(α, t) for compiled loops.

Q is the probability that a Gamma(α, 1) variate exceeds t. A continued fraction gives Q above the mean, and a series
gives P below the mean. So a small Q or a small P keeps its leading digits.
"""

from __future__ import annotations

import math

from privpost.samplers.compiled import bare


@bare
def continued_fraction(alpha, t, close):
    """Return the upper incomplete gamma function Γ(α, t) divided by t^α e^(−t), to relative tolerance `close`."""
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
    """Return the lower incomplete gamma function γ(α, t) divided by t^α e^(−t), to relative tolerance `close`."""
    term = 1 / alpha
    total, n = term, alpha
    while term > close * total:
        n += 1
        term *= t / n
        total += term
    return total


@bare
def beyond(alpha, t, log_density):
    """Return ln Q(α, t) and the hazard h = t^α e^(−t) / Γ(α, t) for t > 0 and α > 1.

    A Gamma(α, 1) variate that exceeds t has the mean α + h. `log_density` is ln(t^α e^(−t) / Γ(α)).
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
    """Return ln Q(α, t) and the hazard h as `beyond` does, for α ≥ 1."""
    return (-t, t) if alpha <= 1 else beyond(alpha, t, alpha * log_t - t - log_gamma)
