"""Rényi divergences, their suprema over neighbours, and the search for coefficients."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.special import betainc, polygamma

from privpost.privacy.divergences.renyi import (
    dirichlet_categorical_supremum,
    dirichlet_divergence,
    largest_coefficient,
)

PRIOR, N = (6.0, 12.0), 100  # Geumlek et al. (2017), section 5.1: η0 = (6, 18)
ORDERS = np.array([1, 1.001, 1.5, 2, 3, 5, 6.5, 6.9])

SHAPES = st.floats(0.05, 500)
orders_above_one = st.floats(1.0, 50)


# Divergences


@pytest.mark.parametrize("p, q", [((6, 12), (7, 11)), ((44, 74), (45, 73)), ((2, 9), (2.5, 7)), ((1, 1), (1, 1))])
@pytest.mark.parametrize("order", [1, 1.0001, 1.5, 2, 2.4])
def test_beta_divergence_is_the_integral(p, q, order):
    from scipy.integrate import quad
    from scipy.stats import beta

    p_law, q_law = beta(*p), beta(*q)
    if order == 1:
        expected = quad(lambda t: p_law.pdf(t) * (p_law.logpdf(t) - q_law.logpdf(t)), 0, 1, epsabs=1e-12)[0]
    else:
        # The excess of the integral over 1, so that orders near 1 lose no digits.
        def integrand(t):
            return p_law.pdf(t) * math.expm1((order - 1) * (p_law.logpdf(t) - q_law.logpdf(t)))

        expected = math.log1p(quad(integrand, 0, 1, epsabs=1e-14, epsrel=1e-10)[0]) / (order - 1)
    # 1e-7: the error of the quadrature, divided by an order − 1 of 1e-4.
    assert float(dirichlet_divergence(p, q, order)) == pytest.approx(expected, rel=1e-7, abs=1e-9)


@pytest.mark.parametrize(
    "p, q", [((6, 12), (7, 11)), ((1e5, 2e5), (1e5 + 1, 2e5 - 1)), ((1e6, 3), (1e6 - 1, 4)), ((3, 4, 5), (2, 4, 6))]
)
@pytest.mark.parametrize("order", [1, 1 + 1e-6, 1.001, 1.5, 2, 3.5])
def test_dirichlet_divergence_to_sixty_digits(p, q, order):
    with mpmath.workdps(60):
        p_exact, q_exact = [mpmath.mpf(a) for a in p], [mpmath.mpf(a) for a in q]

        def log_partition(alpha):
            return sum(mpmath.loggamma(a) for a in alpha) - mpmath.loggamma(sum(alpha))

        if order == 1:
            gradient = [mpmath.psi(0, a) - mpmath.psi(0, sum(p_exact)) for a in p_exact]
            change = sum(g * (b - a) for g, a, b in zip(gradient, p_exact, q_exact, strict=True))
            expected = log_partition(q_exact) - log_partition(p_exact) - change
        else:
            weight = mpmath.mpf(order)
            mixed = [weight * a + (1 - weight) * b for a, b in zip(p_exact, q_exact, strict=True)]
            expected = (log_partition(mixed) - weight * log_partition(p_exact)) / (weight - 1) + log_partition(q_exact)
    # At 1e5 the divergence is 1e-5: the two increments of ln Γ, each 12, leave 1e-15 of rounding.
    assert float(dirichlet_divergence(p, q, order)) == pytest.approx(float(expected), rel=1e-9)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(SHAPES, SHAPES, SHAPES, SHAPES, orders_above_one, orders_above_one)
def test_divergence_is_nonnegative_and_grows_with_the_order(a, b, c, d, order, other):
    low, high = dirichlet_divergence((a, b), (c, d), sorted([order, other]))
    assert low >= 0
    # 1e-9 relative and 1e-11 absolute: rounding of increments of ln Γ up to 3000.
    assert low <= high * (1 + 1e-9) + 1e-11


@settings(max_examples=100, deadline=None, derandomize=True)
@given(SHAPES, SHAPES, st.floats(1e-3, 1), orders_above_one)
def test_divergence_is_zero_for_equal_laws_only(a, b, step, order):
    assert float(dirichlet_divergence((a, b), (a, b), order)) < 1e-12
    assert float(dirichlet_divergence((a, b), (a * (1 + step), b), order)) > 1e-12


@settings(max_examples=200, deadline=None, derandomize=True)
@given(SHAPES, SHAPES, SHAPES, SHAPES, orders_above_one, st.floats(0.02, 0.98))
def test_post_processing_does_not_raise_the_divergence(a, b, c, d, order, threshold):
    assume(order > 1.001)
    # What an observer learns who sees only whether the draw is below a threshold, or one bit drawn with it.
    divergence = float(dirichlet_divergence((a, b), (c, d), order))
    for p, q in (
        (betainc(a, b, threshold), betainc(c, d, threshold)),
        (a / (a + b), c / (c + d)),
    ):
        if min(p, q, 1 - p, 1 - q) < 1e-12:
            continue
        total = np.logaddexp(
            order * math.log(p) + (1 - order) * math.log(q),
            order * math.log1p(-p) + (1 - order) * math.log1p(-q),
        )
        assert total / (order - 1) <= divergence * (1 + 1e-9) + 1e-9


@pytest.mark.parametrize(
    "call, name",
    [
        (lambda: dirichlet_divergence((1, 1), (1, 2), 0.9), "order"),
        (lambda: dirichlet_divergence((1, 1), (1, 2), math.inf), "order"),
        (lambda: dirichlet_divergence((0, 1), (1, 2), 2), "alpha_p"),
        (lambda: dirichlet_categorical_supremum((1, 0, 3), N, 2), "prior"),
        (lambda: dirichlet_categorical_supremum(PRIOR, 0, 2), "n"),
        (lambda: dirichlet_categorical_supremum(PRIOR, 10.5, 2), "n"),
        (lambda: dirichlet_categorical_supremum(PRIOR, N, 2, r=0.0), "r"),
        (lambda: dirichlet_categorical_supremum(PRIOR, N, 2, m=1.1), "m"),
        (lambda: dirichlet_categorical_supremum(PRIOR, N, 2, supremum="all"), "supremum"),
        (lambda: largest_coefficient(lambda c: c, 0.0), "target"),
        (lambda: largest_coefficient(lambda c: c, 0.5, iterations=0), "iterations"),
        (lambda: largest_coefficient(lambda c: c + 1, 0.5), "target"),
    ],
)
def test_errors_name_the_argument(call, name):
    with pytest.raises(ValueError, match=f"^{name} (is|must) "):
        call()


def test_divergence_is_infinite_where_not_normalisable():
    # λα_P + (1−λ)α_Q is 2 − (λ−1), and not positive from λ = 3 on.
    assert np.isinf(dirichlet_divergence((2, 5), (3, 4), [2.999, 3, 3.5])).tolist() == [False, True, True]
    assert dirichlet_divergence((2, 5), (0, 7), 1.5) == np.inf


# Suprema over neighbours


def brute_force_beta(prior, n, order, r, m):
    """Largest divergence over all counts of successes of P and both neighbours of each."""
    successes = np.arange(n + 1)
    posterior = np.array(prior) / m + r * np.stack([successes, n - successes], axis=-1)
    upward = dirichlet_divergence(posterior[:-1], posterior[1:], order)
    downward = dirichlet_divergence(posterior[1:], posterior[:-1], order)
    return max(upward.max(), downward.max())


@pytest.mark.parametrize("prior", [PRIOR, (1.0, 1.0), (0.5, 3.0), (20.0, 2.0)])
@pytest.mark.parametrize("r, m", [(1, 1), (0.3, 1), (0.9, 1), (1, 0.1), (1, 0.7)])
def test_exact_supremum_is_the_brute_force_over_all_neighbouring_counts(prior, r, m):
    for n in (1, 2, 7, N):
        orders = np.append(ORDERS, [10, 30])
        expected = [brute_force_beta(prior, n, order, r, m) for order in orders]
        # 1e-11: the same function at the same points; totals add rounding to the brute force.
        assert np.allclose(dirichlet_categorical_supremum(prior, n, orders, r=r, m=m), expected, rtol=1e-11, atol=1e-13)


def test_exact_values_of_the_direct_posterior():
    values = dirichlet_categorical_supremum(PRIOR, N, [1.5, 2, 5, 6.9, 7, 20])
    # Independent: the closed form by mpmath with 30 digits, over all counts and both directions.
    assert np.allclose(values[:4], [0.1391405, 0.1912902, 0.6171106, 1.3926362], rtol=0, atol=5e-8)
    assert np.isinf(values[4:]).all()


def test_the_papers_pairs_overcharge_at_low_orders():
    # Independent: the four pairs, and all pairs of counts, by mpmath.
    assert float(dirichlet_categorical_supremum(PRIOR, N, 1.5, supremum="paper")) == pytest.approx(0.14742, abs=5e-6)
    assert float(dirichlet_categorical_supremum(PRIOR, N, 1.5)) == pytest.approx(0.13914, abs=5e-6)
    assert float(dirichlet_categorical_supremum(PRIOR, N, 2, r=0.3, supremum="paper")) == pytest.approx(
        0.01850, abs=5e-6
    )


@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    st.lists(st.floats(0.3, 30), min_size=2, max_size=4),
    st.integers(1, 200),
    st.floats(1, 20),
    st.floats(0.05, 1),
    st.floats(0.05, 1),
)
def test_the_papers_pairs_are_never_below_the_exact_ones(prior, n, order, r, m):
    exact, paper = (
        float(dirichlet_categorical_supremum(prior, n, order, r=r, m=m, supremum=s)) for s in ("exact", "paper")
    )
    assert exact <= paper * (1 + 1e-9)


def test_a_diffused_pair_at_undiffused_ends_would_undercharge():
    # Corollary 2 with n in place of rn: P at (0, n) or (n, n) and Q at P ± (r, 0).
    ends = [(np.array(PRIOR) + e, sign) for e in ([0, N], [N, 0]) for sign in (1, -1)]
    literal = max(float(dirichlet_divergence(p, p + sign * 0.3 * np.array([1, -1]), 2)) for p, sign in ends)
    # Independent: by mpmath.
    assert literal == pytest.approx(0.01713, abs=5e-6)
    assert float(dirichlet_categorical_supremum(PRIOR, N, 2, r=0.3)) > literal


def count_vectors(n, categories):
    return [c for c in itertools.product(range(n + 1), repeat=categories) if sum(c) == n]


def brute_force_dirichlet(prior, n, orders, r, m):
    pairs = []
    for counts in count_vectors(n, len(prior)):
        for gain, lose in itertools.permutations(range(len(prior)), 2):
            if counts[gain] > 0:
                neighbour = np.array(counts)
                neighbour[gain] -= 1
                neighbour[lose] += 1
                pairs.append((counts, neighbour))
    p, q = np.moveaxis(np.array(pairs, float), 1, 0)
    prior = np.array(prior) / m
    return dirichlet_divergence(prior + r * p, prior + r * q, np.array(orders)[:, None]).max(axis=-1)


@pytest.mark.parametrize("prior", [(2.0, 2.0, 2.0), (1.0, 2.0, 5.0), (0.5, 0.5, 4.0)])
@pytest.mark.parametrize("n", [1, 2, 5, 12])
@pytest.mark.parametrize("r, m", [(1, 1), (0.4, 1), (1, 0.4)])
def test_dirichlet_supremum_is_the_brute_force_over_all_neighbouring_counts(prior, n, r, m):
    orders = [1, 1.2, 1.45, 2, 2.9, 5]
    expected = brute_force_dirichlet(prior, n, orders, r, m)
    assert np.allclose(dirichlet_categorical_supremum(prior, n, orders, r=r, m=m), expected, rtol=1e-11, atol=1e-13)


def test_all_records_at_one_vertex_would_undercharge():
    prior, n = np.array([2.0, 2.0, 2.0]), 12
    vertex, neighbour = prior + np.array([[n, 0, 0], [n - 1, 1, 0]])
    both = [float(dirichlet_divergence(*pair, 2)) for pair in ((vertex, neighbour), (neighbour, vertex))]
    # Independent: by mpmath.
    assert both[0] == pytest.approx(0.767, abs=5e-4)
    assert float(dirichlet_categorical_supremum(prior, n, 2)) == pytest.approx(math.log(3), rel=1e-12)
    assert float(brute_force_dirichlet(prior, n, [2], 1, 1)[0]) == pytest.approx(1.0986, abs=5e-5)


@pytest.mark.parametrize("prior", [(6.0, 12.0), (2.0, 2.0, 2.0), (1.0, 2.0, 3.0, 4.0, 5.0), (3.0,) * 10])
@pytest.mark.parametrize("r, m", [(1, 1), (0.3, 1), (1, 0.3), (0.7, 0.7)])
def test_trigamma_bound(prior, r, m):
    # ½ λ Δ₂² ψ₁(α_min/m − (λ−1)Δ∞) with Δ₂² = 2r², Δ∞ = r.
    asymptote = 1 + min(prior) / (r * m)
    orders = np.linspace(1, asymptote, 40, endpoint=False)
    bound = orders * r**2 * polygamma(1, min(prior) / m - (orders - 1) * r)
    supremum = dirichlet_categorical_supremum(prior, N, orders, r=r, m=m)
    assert np.all(np.isfinite(supremum))
    assert np.all(supremum <= bound)
    # It is no empty bound: within a factor of 4 at order 1.
    assert bound[0] < 4 * supremum[0]


@pytest.mark.parametrize("coefficient", [0.1, 0.3, 0.5, 0.7, 0.9, 1])
@pytest.mark.parametrize("name", ["r", "m"])
def test_asymptote(coefficient, name):
    asymptote = 1 + min(PRIOR) / coefficient
    below, above = dirichlet_categorical_supremum(
        PRIOR, N, [asymptote * (1 - 1e-9), asymptote * (1 + 1e-9)], **{name: coefficient}
    )
    assert np.isfinite(below)
    assert above == np.inf


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.floats(1, 20), st.floats(0.01, 0.99), st.sampled_from(["r", "m"]), st.sampled_from(["exact", "paper"]))
def test_a_smaller_coefficient_costs_less_at_every_order(order, coefficient, name, supremum):
    smaller, larger = (
        float(dirichlet_categorical_supremum(PRIOR, N, order, supremum=supremum, **{name: value}))
        for value in (coefficient, coefficient + 0.01)
    )
    assert smaller < larger or smaller == larger == math.inf


def test_supremum_broadcasts():
    r = np.array([0.1, 0.5, 1.0])[:, None]
    values = dirichlet_categorical_supremum(PRIOR, N, ORDERS, r=r)
    assert values.shape == (3, len(ORDERS))
    assert values[1, 3] == dirichlet_categorical_supremum(PRIOR, N, ORDERS[3], r=0.5)
    assert dirichlet_categorical_supremum(PRIOR, N, 2).shape == ()


# Coefficients


@pytest.mark.parametrize("name", ["r", "m"])
@pytest.mark.parametrize("supremum", ["exact", "paper"])
@pytest.mark.parametrize("order, epsilon", [(2.0, 0.1), (2.0, 1e-5), (15.0, 0.5), (15.0, 20.0), (1.0, 0.01)])
def test_bisection_agrees_with_brentq(name, supremum, order, epsilon):
    from scipy.optimize import brentq

    def cost(coefficient):
        return dirichlet_categorical_supremum(PRIOR, N, order, supremum=supremum, **{name: coefficient})

    found = float(largest_coefficient(cost, epsilon))
    assert cost(found) <= epsilon
    # A cap, because the cost is infinite beyond the asymptote.
    root = brentq(lambda c: min(float(cost(c)), 1e6) - epsilon, 1e-8, 1.0, xtol=1e-15, rtol=1e-13)
    assert found == pytest.approx(root, rel=1e-9)


def test_bisection_takes_targets_as_one_array():
    targets = np.exp(np.linspace(-12, 3, 31))
    together = largest_coefficient(lambda r: dirichlet_categorical_supremum(PRIOR, N, 15, r=r), targets)
    alone = [
        float(largest_coefficient(lambda r: dirichlet_categorical_supremum(PRIOR, N, 15, r=r), t)) for t in targets
    ]
    assert np.allclose(together, alone, rtol=1e-12)
    assert np.all(dirichlet_categorical_supremum(PRIOR, N, 15, r=together) <= targets)
    assert np.all(np.diff(together) >= 0)
    # The asymptote: r = 6/14 makes order 15 infinite.
    assert together[0] < together[-1] < 6 / 14


def test_a_target_reachable_at_one_gives_exactly_one():
    direct = float(dirichlet_categorical_supremum(PRIOR, N, 2))
    for target, expected in ((direct, 1.0), (direct * 2, 1.0), (math.inf, 1.0)):
        assert largest_coefficient(lambda r: dirichlet_categorical_supremum(PRIOR, N, 2, r=r), target) == expected
    assert largest_coefficient(lambda r: dirichlet_categorical_supremum(PRIOR, N, 2, r=r), direct * (1 - 1e-9)) < 1
    assert largest_coefficient(lambda r: dirichlet_categorical_supremum(PRIOR, N, 15, r=r), 1e9) == pytest.approx(
        6 / 14
    )


def test_fewer_iterations_stay_on_the_safe_side():
    for iterations in (8, 16, 32):
        found = float(largest_coefficient(lambda c: c**2, 0.3, iterations=iterations))
        assert 0 <= math.sqrt(0.3) - found <= 2.0**-iterations
