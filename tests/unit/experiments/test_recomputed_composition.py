"""What several posterior draws for bits cost together (fair axis), computed a second time by integrals."""

from __future__ import annotations

import math

import numpy as np
import pytest
from recomputed import row, run
from scipy.special import betainc, expit, loggamma, logit

ALPHA, BETA, A0, N, DELTA = 6, 12, 0.1, 3, 1e-3
NODES = np.polynomial.legendre.leggauss(100)


class Law:
    """A beta law on [low, 1 − low]: its density, and the probability that the sum of k logits exceeds a number."""

    def __init__(self, a: float, b: float, low: float):
        self.a, self.b, self.low = a, b, low
        ends = betainc(a, b, [low, 1 - low])
        self.log_mass = math.log(ends[1] - ends[0]) + (loggamma(a) + loggamma(b) - loggamma(a + b)).real

    def log_density(self, theta):
        return (self.a - 1) * np.log(theta) + (self.b - 1) * np.log1p(-theta) - self.log_mass

    def above(self, draws: int, level):
        """One by the incomplete beta function, two by an integral over the first, more by inverting Γ functions."""
        if draws == 1:
            theta = np.clip(expit(level), self.low, 1 - self.low)
            parts = betainc(self.b, self.a, 1 - theta) - betainc(self.b, self.a, self.low)
            return parts / (betainc(self.b, self.a, 1 - self.low) - betainc(self.b, self.a, self.low))
        if draws == 2:
            # Panels end where the second draw's bounds make kinks.
            kinks = [level - logit(end) for end in (self.low, 1 - self.low) if 0 < end < 1]
            edges = np.unique(np.clip(expit([-12.0, 12.0, *kinks, *np.linspace(-6, 4, 21)]), self.low, 1 - self.low))
            x, w = NODES
            half = np.diff(edges)[:, None] / 2
            theta = (edges[:-1, None] + half * (1 + x)).ravel()
            return float((half * w).ravel() * np.exp(self.log_density(theta)) @ self.above(1, level - logit(theta)))

        # The characteristic function of a logit is Γ(a + it) Γ(b − it) / (Γ(a) Γ(b)) (Gil-Pelaez 1951).
        t, w = (10 * (1 + NODES[0]), 10 * NODES[1])
        logs = loggamma(self.a + 1j * t) + loggamma(self.b - 1j * t) - loggamma(self.a) - loggamma(self.b)
        return 0.5 + float(w @ (np.exp(draws * logs - 1j * t * level).imag / t)) / math.pi


def delta(p: Law, q: Law, draws: int, epsilon: float) -> float:
    """Hockey-stick divergence of several draws; their log-ratio is linear in the sum of logits."""
    gap = p.a - q.a
    level = (epsilon + draws * (p.log_mass - q.log_mass)) / gap
    # With α + β the same, (a − a') ln θ + (b − b') ln(1 − θ) is the gap times logit θ.
    if gap > 0:
        return p.above(draws, level) - math.exp(epsilon) * q.above(draws, level)
    return (1 - p.above(draws, level)) - math.exp(epsilon) * (1 - q.above(draws, level))


def largest(laws, draws: int, epsilon: float) -> float:
    """δ of several draws at ε, the largest over all neighbours and both ways."""
    ways = [pair for i in range(N) for pair in ((laws[i], laws[i + 1]), (laws[i + 1], laws[i]))]
    return max(delta(*way, draws, epsilon) for way in ways)


def law_of(method: str, setting: float, ones: int) -> Law:
    """Diffused and concentrated posteriors, and OPS's at temperature 2Δ/ε."""
    if method == "ops":
        t = max(1.0, 2 * math.log((1 - A0) / A0) / setting)
        return Law(1 + (ALPHA + ones - 1) / t, 1 + (BETA + N - ones - 1) / t, A0)
    r, m = (setting, 1) if method == "diffused" else (1, setting)
    return Law(ALPHA / m + r * ones, BETA / m + r * (N - ones), 0.0)


@pytest.fixture(scope="module")
def table():
    cell = run(
        "fair_axis/composition", 1, 1, n=N, alpha=ALPHA, beta=BETA, a0=A0, delta=DELTA, epsilon=[0.8],
        draws=[1, 2, 4], points=1000,
    )  # fmt: skip
    return cell.tables["composition"]


def laws_by_method(table):
    for method, rows in table.groupby("method"):
        (setting,) = set(rows.setting)
        yield method, rows, setting, [law_of(method, setting, ones) for ones in range(N + 1)]


def test_draws_together_cost_what_their_joint_laws_say(table):
    """One and two draws by integrals, four by inversion; rounded losses are above by at most 2e-4 of ε."""
    assert sorted(set(table.method)) == ["concentrated", "diffused", "ops"] and len(table) == 3 * 3 * 3
    for method, rows, _, laws in laws_by_method(table):
        for k in (1, 2, 4):
            # Bisection of the logarithm leaves 1e-9 of ε.
            naive = row(rows, accounting="naive", draws=k).spent / k
            assert largest(laws, 1, naive) == pytest.approx(DELTA / k, rel=1e-6), (method, k)
            if method == "ops" and k > 2:
                continue
            exact = row(rows, accounting="exact", draws=k).spent
            assert largest(laws, k, exact) <= DELTA * (1 + 1e-6), (method, k)
            assert largest(laws, k, exact * (1 - 2e-4)) > DELTA, (method, k)
        # One draw is calibrated by its curve, to bisection's steps.
        assert row(rows, accounting="exact", draws=1).spent == pytest.approx(0.8, rel=2e-4)


def test_renyi_curves_add_up(table):
    """The sum of closed-form divergences, converted at the best of many orders; the study has fewer, within 2e-3."""
    for method, rows, setting, laws in laws_by_method(table):
        best = math.inf
        for order in 1 + np.geomspace(0.02, 200, 400):
            if method == "ops":
                # What its pure ε allows: randomised response with odds e^ε (Mironov 2017).
                odds = math.exp(order * setting) + math.exp((1 - order) * setting)
                one = math.log(odds / (1 + math.exp(setting))) / (order - 1)
            else:
                pairs = [laws[i : i + 2][::way] for i in range(N) for way in (1, -1)]
                one = max(divergence(*pair, order) for pair in pairs)
            # Canonne, Kamath and Steinke 2020, proposition 12.
            shift = math.log1p(-1 / order) - math.log(DELTA * order) / (order - 1)
            best = min(best, 4 * one + shift)
        assert row(rows, accounting="renyi", draws=4).spent == pytest.approx(best, rel=2e-3), method


def divergence(p: Law, q: Law, order: float) -> float:
    """Rényi divergence of beta laws with equal sums, in closed form; infinite where a parameter is not positive."""
    a, b = order * p.a + (1 - order) * q.a, order * p.b + (1 - order) * q.b
    if min(a, b) <= 0:
        return math.inf
    mixed = (loggamma(a) + loggamma(b) - loggamma(a + b)).real
    return (mixed - order * p.log_mass - (1 - order) * q.log_mass) / (order - 1)
