"""Upper bounds of privacy costs in rigorous interval arithmetic, for releases of real data.

The bounds hold for the coefficients that a mechanism uses, even if floating point made them slightly wrong. A number is
enclosed in a ball: an interval that contains the true value.
"""

import math
from collections.abc import Sequence
from fractions import Fraction

from privpost.distributions.exact_draws import ball, flint
from privpost.privacy.divergences.renyi import extreme_pairs

_PRECISION = 256


def dirichlet_rdp(prior: Sequence[float], n: int, r: float, m: float, order: float) -> float:
    """Return an upper bound of `renyi.dirichlet_categorical_supremum` ("exact"). The bound can be inf."""
    weight, exact = Fraction(r), Fraction(order)
    scaled = {float(value): Fraction(value) / Fraction(m) for value in prior}
    worst = 0.0
    with flint().ctx.workprec(_PRECISION):
        for gain, p_gain, lose, p_lose in extreme_pairs(tuple(map(float, prior)), n).T:
            total = flint().arb(0)
            for alpha, count, change in ((gain, p_gain, -1), (lose, p_lose, 1)):
                p = scaled[alpha] + weight * int(count)
                q = p + weight * change
                mixed = exact * p + (1 - exact) * q
                if mixed <= 0:
                    return math.inf
                total += (ball(mixed).lgamma() - ball(exact) * ball(p).lgamma()) / ball(exact - 1) + ball(q).lgamma()
            worst = max(worst, above(total))
    return worst


def gamma_rdp(shape: Fraction, rates: tuple[Fraction, Fraction], order: float) -> float:
    """Return an upper bound of the Rényi divergences, in both directions, between two gamma laws with equal shapes.

    With ρ = rate_P / rate_Q, D_λ = shape / (λ−1) · [λ ln ρ − ln(1 + λ(ρ − 1))], or inf if 1 + λ(ρ − 1) ≤ 0.
    """
    exact, worst = Fraction(order), 0.0
    with flint().ctx.workprec(_PRECISION):
        for ratio in (rates[0] / rates[1], rates[1] / rates[0]):
            mixed = 1 + exact * (ratio - 1)
            if mixed <= 0:
                return math.inf
            gap = ball(exact) * ball(ratio).log() - ball(mixed).log()
            worst = max(worst, above(ball(shape / (exact - 1)) * gap))
    return worst


def approximate_epsilon(rdp: float, order: float, delta: float) -> float:
    """Return an upper bound of the ε that a Rényi DP parameter `rdp` of order λ implies at δ.

    This ε is max{0, rdp + ln((λ−1)/λ) − (ln δ + ln λ)/(λ−1)} (Canonne, Kamath and Steinke 2020, proposition 12).
    """
    if math.isinf(rdp):
        return math.inf
    exact = Fraction(order)
    with flint().ctx.workprec(_PRECISION):
        loss = (ball(Fraction(delta)).log() + ball(exact).log()) / ball(exact - 1)
        return max(0.0, above(ball(Fraction(rdp)) + ball((exact - 1) / exact).log() - loss))


def tempered_epsilon(a0: float, temperature: float) -> float:
    """Return an upper bound of the cost 2Δ/T of a draw of `ExponentialMechanism`, where Δ = ln((1−a0)/a0)."""
    with flint().ctx.workprec(_PRECISION):
        low = Fraction(a0)
        return above(2 * ball((1 - low) / low).log() / ball(Fraction(temperature)))


def ball_epsilon(dimension: int, power: float, radius: float) -> float:
    """Return an upper bound of the cost 2√d ρR of drawing d weights from a logistic posterior on a ball of radius R."""
    with flint().ctx.workprec(_PRECISION):
        return above(2 * ball(Fraction(dimension)).sqrt() * ball(Fraction(power) * Fraction(radius)))


def above(value) -> float:
    """Return a float that is at least as large as every number in a ball."""
    return math.nextafter(float(value.upper()), math.inf)
