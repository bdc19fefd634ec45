"""Studies of privacy curves, computed a second time: a loop over all neighbouring counts, and the integral for each."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from recomputed import renyi, row, run
from scipy.special import betainc


def largest(prior, n: int, order: float, r: float = 1.0, m: float = 1.0) -> float:
    """Largest divergence over all ordered pairs of data sets that differ in one record."""
    worst, size = 0.0, len(prior)
    for counts in itertools.product(range(n), repeat=size):
        if sum(counts) == n - 1:
            laws = [
                [a / m + r * (c + (k == i)) for k, (a, c) in enumerate(zip(prior, counts, strict=True))]
                for i in range(size)
            ]
            worst = max([worst, *(renyi(p, q, order) for p, q in itertools.permutations(laws, 2))])
    return worst


WEIGHTS = {"diffused": {"r": 0.5}, "concentrated": {"m": 0.5}}


def test_curves_of_bits_are_the_worst_neighbours():
    orders = [1.5, 2.0, 3.9, 8.0]
    cell = run("geumlek2017/rdp_curves", 1, 1, alpha=2, beta=3, n=5, coefficient=0.5, order=orders, supremum=["exact"])
    table = cell.tables["rdp_curves"]
    for (method, weight), order in itertools.product(WEIGHTS.items(), orders):
        kept = row(table, method=method, order=order)
        assert kept.epsilon == pytest.approx(largest((2, 3), 5, order, **weight)), (method, order)
        assert kept.asymptote == 5
    assert set(table.method) == set(WEIGHTS)
    # The direct draw has the coefficient 1, and a row there alone.
    cell = run("geumlek2017/rdp_curves", 1, 1, alpha=2, beta=3, n=5, coefficient=1.0, order=[2.0], supremum=["exact"])
    assert row(cell.tables["rdp_curves"], method="direct").epsilon == pytest.approx(largest((2, 3), 5, 2.0))


def test_curves_of_categories_are_the_worst_neighbours():
    orders = [1.5, 2.5]
    cell = run(
        "geumlek2017/dirichlet", 1, 1, total_concentration=6, categories=3, n=3, coefficient=[0.5, 1.0], order=orders,
        supremum=["exact"], prior=["asymmetric"], truncation=0.5,
    )  # fmt: skip
    table = cell.tables["dirichlet"]
    for (method, weight), order in itertools.product(WEIGHTS.items(), orders):
        kept = row(table, method=method, order=order, coefficient=0.5)
        assert kept.epsilon == pytest.approx(largest((1, 2, 3), 3, order, **weight)), (method, order)
        assert kept.asymptote == 3
        direct = row(table, method="direct", order=order)
        # The asymptote of a direct draw is at order 2.
        assert direct.epsilon == pytest.approx(largest((1, 2, 3), 3, order))
    # λ r² ψ₁(α − γ) over the supremum, where γ is (λ − 1) r, or half of α for orders up to 2; ψ₁ by its series to 1e-6.
    trigamma = lambda x: sum((x + np.arange(10**6)) ** -2.0)  # noqa: E731
    for order, best, one in ((1.5, trigamma(0.75), trigamma(0.5)), (2.5, trigamma(0.25), math.nan)):
        kept = row(table, method="diffused", order=order, coefficient=0.5)
        bounds = [order * 0.5**2 * value / kept.epsilon for value in (best, one)]
        assert [kept.bound_ratio, kept.tcdp_ratio] == pytest.approx(bounds, rel=1e-5, nan_ok=True)


# The worst neighbours are at one end or at the other.
@pytest.mark.parametrize("alpha, beta", [(2, 3), (3, 2)])
def test_rounded_draws_differ_most_over_all_neighbours(alpha, beta):
    settings = {"alpha": alpha, "beta": beta, "n": 4, "bits": [3, 1, 2], "rounded_orders": [3.0]}
    settings |= {"method": ["direct", "diffused", "concentrated"], "rounded_coefficients": [0.5, 1.0]}
    # A direct draw has the coefficient 1, and is the only one that does.
    whole = run("geumlek2017/rdp_curves", 1, 1, coefficient=1.0, **settings).tables["rounding"]
    assert set(whole.method) == {"direct"}
    cell = run("geumlek2017/rdp_curves", 1, 1, coefficient=0.5, **settings)
    assert set(cell.tables["rounding"].method) == set(WEIGHTS)
    # One number of bits gives the rows that it has among several.
    alone = run("geumlek2017/rdp_curves", 1, 1, coefficient=0.5, **{**settings, "bits": [1]}).tables["rounding"]
    among = cell.tables["rounding"].query("bits == 1")
    unasked = run("geumlek2017/rdp_curves", 1, 1, coefficient=0.5, **{**settings, "rounded_coefficients": [1.0]})
    assert unasked.tables["rounding"].empty and not unasked.tables["rdp_curves"].empty
    assert alone.epsilon.to_numpy() == pytest.approx(among.epsilon.to_numpy(), rel=1e-9)
    for method, bits in itertools.product(WEIGHTS, (1, 2, 3)):
        edges, masses, errors = np.arange(2**bits + 1) / 2**bits, [], []
        for s in range(5):
            diffused, concentrated = (alpha + s / 2, beta + (4 - s) / 2), (2 * alpha + s, 2 * beta + 4 - s)
            a, b = diffused if method == "diffused" else concentrated
            masses.append(np.diff(betainc(a, b, edges)))
            mean, variance = a / (a + b), a * b / (a + b) ** 2 / (a + b + 1)
            squared = sum(w * ((k + 0.5) / 2**bits - mean) ** 2 for k, w in enumerate(masses[-1]))
            errors.append(math.sqrt(squared / variance))
        pairs = [(masses[i], masses[j]) for i in range(5) for j in (i - 1, i + 1) if 0 <= j < 5]
        found = {3.0: max(math.log(sum(p**3 / q**2)) / 2 for p, q in pairs)}
        found[math.inf] = max(np.log(p / q).max() for p, q in pairs)
        for order, expected in found.items():
            kept = row(cell.tables["rounding"], method=method, bits=bits, order=order)
            assert kept.epsilon == pytest.approx(expected, rel=1e-6)
            assert kept.asymptote == 5
            assert kept.error_ratio == pytest.approx(max(errors), rel=1e-6)
            ideal = math.inf if order > 5 else largest((alpha, beta), 4, 3.0, **WEIGHTS[method])
            assert kept.ideal == pytest.approx(ideal)


# The worst neighbours are at one end or at the other.
@pytest.mark.parametrize("alpha, beta", [(2, 3), (3, 2)])
def test_theorem_15_compares_the_ends_with_all_others(alpha, beta):
    cell = run("geumlek2017/theorem15", 1, 1, alpha=alpha, beta=beta, points=3, coefficient=0.5, n=[5], order=[2.0])
    kept, laws = cell.tables["theorem15"].iloc[0], [(alpha + s / 2, beta + (5 - s) / 2) for s in range(6)]
    worst = [max(renyi(laws[i], laws[i + 1], 2.0), renyi(laws[i + 1], laws[i], 2.0)) for i in range(5)]
    assert kept.at_ends == pytest.approx(max(worst[0], worst[-1]))
    assert kept.inside == pytest.approx(max(worst[1:-1]))
    second = [(alpha + a / 2, beta + b / 2) for a, b in itertools.product((0.0, 2.5, 5.0), repeat=2)]
    first, excess, pairs = laws[0], math.inf, 0
    for p, q in itertools.combinations(second, 2):
        mean = (renyi(first, p, 2.0) + renyi(first, q, 2.0)) / 2
        if math.isfinite(mean):
            half_way = [(x + y) / 2 for x, y in zip(p, q, strict=True)]
            excess, pairs = min(excess, 1 - renyi(first, half_way, 2.0) / mean), pairs + 1
    assert (kept.convexity, kept.excess_pairs) == (pytest.approx(excess), pairs)
