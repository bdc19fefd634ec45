"""What releases of all kinds cost together, against sums and integrals over their joint laws."""

from __future__ import annotations

import functools
import itertools
import json
import math

import numpy as np
import pytest
from scipy.stats import beta, gamma

from privpost.mechanisms.choices.exponential import ExponentialMechanism
from privpost.mechanisms.draws.gamma import GammaDraw
from privpost.mechanisms.draws.posterior import PosteriorDraw
from privpost.mechanisms.noise.gaussian import GaussianMechanism
from privpost.mechanisms.noise.laplace import LaplaceMechanism
from privpost.models.conjugate.beta_bernoulli import BetaBernoulli
from privpost.models.conjugate.dirichlet_categorical import DirichletCategorical
from privpost.models.conjugate.gamma_exponential import GammaExponential
from privpost.privacy.accounting import losses
from privpost.privacy.accounting.approximate import beta_curve, gaussian_curve
from privpost.privacy.accounting.composition import together
from privpost.privacy.accounting.losses import Beta, Gamma, Normal, Response


def delta_of(p, q, epsilon: float) -> float:
    """Hockey-stick divergence of weights of the same points."""
    return float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum())


def epsilon_of(pairs, delta: float) -> float:
    """The smallest ε at which no pair's divergence is above δ, by bisection."""
    low, high = 0.0, 100.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if max(delta_of(*pair, middle) for pair in pairs) > delta else (low, middle)
    return high


def product(*laws):
    """Weights of the product of pairs."""
    sides = []
    for side in (0, 1):
        weights = np.ones(1)
        for law in laws:
            weights = np.multiply.outer(weights, law[side]).ravel()
        sides.append(weights)
    return tuple(sides)


def responses(epsilon: float, times: int):
    """Randomised responses together, by the number of true answers."""
    true, wrong, k = 1 / (1 + math.exp(-epsilon)), 1 / (1 + math.exp(epsilon)), range(times + 1)
    p = np.array([math.comb(times, i) * true**i * wrong ** (times - i) for i in k])
    return p, p[::-1]


@pytest.mark.parametrize(
    ("epsilon", "times", "delta"), [(0.1, 10, 1e-6), (0.01, 300, 1e-4), (0.5, 64, 1e-9), (3.0, 1, 0.01)]
)
def test_pure_releases_cost_what_randomised_responses_do(epsilon, times, delta):
    """Binomial sums, which no pure mechanism exceeds; above by what floats may be off by, 1e-3 at δ = 1e-9."""
    exact = epsilon_of([responses(epsilon, times)], delta)
    found = together([Response(epsilon)] * times, delta)
    assert exact * (1 - 1e-9) <= found <= exact * (1 + 1e-3)
    assert found <= epsilon * times * (1 + 1e-9)
    assert together([Response(epsilon, times=times)], delta) == found


def test_pure_releases_of_two_budgets():
    """All pairs of two binomial sums; losses between the points of the grid are above by less than 1e-3."""
    exact = epsilon_of([product(responses(0.1, 12), responses(math.pi / 5, 3))], 1e-5)
    found = together([Response(0.1), Response(math.pi / 5)] * 3 + [Response(0.1)] * 9, 1e-5)
    assert exact <= found <= exact * (1 + 1e-3)


def test_releases_that_may_fail():
    """(ε, δ)-DP k times: the answers come out with 1 − (1 − δ)^k, beside randomised responses (Kairouz et al. 2015)."""
    p, q = responses(0.3, 5)
    alive = (1 - 1e-4) ** 5
    failing = np.append(alive * p, [1 - alive, 0.0]), np.append(alive * q, [0.0, 1 - alive])
    exact = epsilon_of([failing], 1e-2)
    assert exact <= together([Response(0.3, 1e-4)] * 5, 1e-2) <= exact * (1 + 1e-4)
    assert together([Response(0.3, 1e-4)] * 5, 4e-4) == math.inf


def beta_weights(law, low=0.0, high=1.0, nodes=60):
    """Weights of a truncated beta law at 16 times some nodes that crowd towards its ends, by its density."""
    x, w = np.polynomial.legendre.leggauss(nodes)
    edges = low + (high - low) * (1 - np.cos(np.linspace(0, math.pi, 17))) / 2
    half = np.diff(edges)[:, None] / 2
    theta = (edges[:-1, None] + half * (1 + x)).ravel()
    logs = (law[0] - 1) * np.log(theta) + (law[1] - 1) * np.log1p(-theta)
    weights = np.exp(logs - logs.max()) * (half * w).ravel()
    return weights / weights.sum()


def neighbours(law_of, n: int, ends=(0.0, 1.0), nodes=60):
    """Both ways of all pairs of beta laws of neighbours."""
    weights = [beta_weights(law_of(ones), *ends, nodes) for ones in range(n + 1)]
    return [pair for one, other in itertools.pairwise(weights) for pair in ((one, other), (other, one))]


def test_draws_of_two_columns_and_a_count_cost_what_their_joint_laws_say():
    """Every combination of neighbours in two columns of 3 records; dominating laws are above by at most 3 %."""
    prior, n, delta = (2.0, 3.0), 3, 1e-3
    model = BetaBernoulli(*prior)
    diffused = PosteriorDraw(model, n, 2.0, 0.4, weighting="diffused")
    ops = ExponentialMechanism(model, n, 0.9, a0=0.1)
    t = 2 * math.log(9) / 0.9
    first, second = (
        [
            neighbours(lambda ones: (2 + 0.4 * ones, 3 + 0.4 * (n - ones)), n, nodes=nodes),
            neighbours(lambda ones: (1 + (1 + ones) / t, 1 + (2 + n - ones) / t), n, (0.1, 0.9), nodes),
        ]
        for nodes in (60, 10)
    )
    count = [responses(0.5, 1), responses(0.5, 1)[::-1]]
    # Of a column that does not differ nothing is lost, so that all three differ in the worst case.
    joint = [product(*laws) for laws in itertools.product(*second, count)]
    for pairs, laws in (
        (first[0], [diffused.loss]),
        (first[1], [ops.loss]),
        (joint, [diffused.loss, ops.loss, LaplaceMechanism(model, n, 0.5, coordinates="free").loss]),
    ):
        found = together(laws, delta)
        # The nodes' error where densities cross.
        assert max(delta_of(*pair, found) for pair in pairs) <= delta * 1.002, laws
        assert max(delta_of(*pair, found / 1.03) for pair in pairs) > delta, laws


@pytest.mark.parametrize(("n", "prior"), [(1, (6.0, 2.0)), (9, (0.5, 0.5)), (40, (6.0, 2.0))])
def test_no_counts_of_two_categories_lose_more_than_the_law(n, prior):
    """Half-lines of beta laws by scipy's, of all counts and both ways; the law is attained for 9 records and fewer."""
    draw = PosteriorDraw(BetaBernoulli(*prior), n, 2.0, 0.7, weighting="concentrated")
    epsilon, cuts = np.array([0.0, 0.2, 1.0, 3.0]), np.concatenate([np.geomspace(1e-6, 0.5, 400)] * 2)
    cuts[400:] = 1 - cuts[400:]
    worst = np.zeros(len(epsilon))
    for ones in range(n):
        laws = [beta(prior[0] / 0.7 + k, prior[1] / 0.7 + n - k) for k in (ones, ones + 1)]
        for p, q in (laws, laws[::-1]):
            for tail in ("sf", "cdf"):
                gained = getattr(p, tail)(cuts) - np.exp(epsilon)[:, None] * getattr(q, tail)(cuts)
                worst = np.maximum(worst, gained.max(axis=1))
    found = draw.loss.curve(epsilon)
    # With this many cuts, the best of them is close to the best possible.
    assert np.all(found >= worst * (1 - 1e-12))
    assert found == pytest.approx(worst, rel=1e-3, abs=1e-9)


@pytest.mark.parametrize("others", [0, 1, 7, 8, 100, 12345])
def test_some_pair_of_the_law_has_no_larger_parameters_than_any_counts(others):
    """Smaller parameters are worse: a draw times an independent beta variate has the law of larger ones."""
    first, second = Beta((2.0, 3.0), 0.5, others)._parameters()
    assert len(first) < 160
    for one in range(others + 1):
        below = (first <= 2.0 + 0.5 * one) & (second <= 3.0 + 0.5 * (others - one))
        assert below.any(), one
    # None is worse than the counts that there are at either end.
    assert set(zip(first, second, strict=True)) >= {(2.0, 3.0 + 0.5 * others), (2.0 + 0.5 * others, 3.0)}


def test_three_categories_lose_what_two_of_them_do():
    """Dirichlet densities at 400 × 400 places of the simplex, for all neighbours of two records, within 1e-3."""
    prior, n, epsilon = (3.0, 4.0, 5.0), 2, 0.5
    u = (np.arange(400) + 0.5) / 400
    first, rest = np.meshgrid(u, u, indexing="ij")
    logs = np.log(np.stack([first, (1 - first) * rest, (1 - first) * (1 - rest)], axis=-1))
    laws = {}
    for counts in itertools.product(range(n + 1), repeat=3):
        if sum(counts) == n:
            weights = np.exp(logs @ (np.add(prior, counts) - 1)) * (1 - first)
            laws[counts] = weights / weights.sum()
    pairs = [(p, q) for p, q in itertools.product(laws, repeat=2) if np.abs(np.subtract(p, q)).sum() == 2]
    exact = max(delta_of(laws[p], laws[q], epsilon) for p, q in pairs)
    draw = PosteriorDraw(DirichletCategorical(prior), n, 2.0, weighting="direct")
    assert draw.loss == Beta((3.0, 4.0), 1.0, 0)
    assert draw.loss.curve(np.array([epsilon]))[0] == pytest.approx(exact, rel=1e-3)


def test_rates_of_waiting_times_lose_what_their_worst_neighbours_do():
    """Gamma laws by scipy's, over 2,000 half-lines of each pair: all sums of the other records, both ways."""
    model, bounds, n = GammaExponential(2, 3), (0.5, 2.0), 4
    draw = GammaDraw(model, n, 2.0, 0.6, weighting="diffused", bounds=bounds)
    epsilon, cuts = np.array([0.0, 0.3, 1.0]), np.geomspace(1e-3, 20, 2000)
    worst, renyi = np.zeros(3), 0.0
    for others in np.linspace(3 * bounds[0], 3 * bounds[1], 5):
        laws = [gamma(2 + 0.6 * n, scale=1 / (3 + 0.6 * (others + x))) for x in bounds]
        for p, q in (laws, laws[::-1]):
            renyi = max(renyi, np.log(np.trapezoid(p.pdf(cuts) ** 2 / q.pdf(cuts), cuts)))
            for tail in ("sf", "cdf"):
                gained = getattr(p, tail)(cuts) - np.exp(epsilon)[:, None] * getattr(q, tail)(cuts)
                worst = np.maximum(worst, gained.max(axis=1))
    found = draw.loss.curve(epsilon)
    assert np.all(found >= worst * (1 - 1e-12)) and found == pytest.approx(worst, rel=1e-3)
    assert draw.rdp(2.0) == pytest.approx(renyi, rel=1e-3)


def test_gaussian_noise_is_between_its_exact_curve_and_its_renyi_curve():
    """k normal shifts are one of √k times the size (Balle and Wang 2018); the Rényi curve costs up to 10 % more."""
    mechanism = GaussianMechanism(BetaBernoulli(1, 1), 10, 8.0, 2.0)
    for k in (1, 20):
        found = together([mechanism.loss] * k, 1e-6)
        assert gaussian_curve(math.sqrt(k) / 8, found) <= 1e-6 < gaussian_curve(math.sqrt(k) / 8, found / 1.1)
        rho = k / 8**2 / 2
        orders = np.linspace(1.01, 1000, 200_000)
        by_renyi = rho * orders + np.log1p(-1 / orders) - np.log(1e-6 * orders) / (orders - 1)
        assert found == pytest.approx(by_renyi.min(), rel=2e-3)
    # Beside a response: discrete noise and an answer, all sums of them.
    k = np.arange(-80, 82)
    p, q = (np.exp(-((k - shift) ** 2) / (2 * 8.0**2)) for shift in (0, 1))
    both = product((p / p.sum(), q / q.sum()), responses(0.2, 3))
    exact = epsilon_of([both, both[::-1]], 1e-6)
    assert exact <= together([mechanism.loss, *[Response(0.2)] * 3], 1e-6) <= exact * 1.1


def test_counts_of_levels_cost_what_two_counts_with_discrete_noise_do():
    """The sums of two counts' discrete Laplace noise, of a record that changes its level; 2 releases, within 1e-6."""
    mechanism = LaplaceMechanism(DirichletCategorical((1, 1, 1)), 5, 1.0)
    k = np.arange(-60, 61)
    # Losses are ± 1/2 of each count, so that only how many of the four are on the side of their own matters.
    above = np.exp(-np.abs(k[k <= 0]) / 2.0).sum() / np.exp(-np.abs(k) / 2.0).sum()
    assert above == pytest.approx(1 / (1 + math.exp(-0.5)), rel=1e-9)
    four = [math.comb(4, i) * above**i * (1 - above) ** (4 - i) for i in range(5)]
    exact = epsilon_of([(np.array(four), np.array(four[::-1]))], 1e-3)
    assert mechanism.loss == Response(0.5, times=2)
    assert together([mechanism.loss] * 2, 1e-3) == pytest.approx(exact, rel=1e-6)
    # One count, and a sum, which a record moves by more than one, are one response.
    assert LaplaceMechanism(BetaBernoulli(1, 1), 5, 1.0).loss == Response(1.0)


KINDS = [
    Response(0.4),
    Response(0.1, times=3),
    Response(0.3, 1e-8),
    Normal(0.1),
    Beta((6.0, 12.0), 0.3, 99),
    Beta((3.0, 3.0), 0.5, 0),
    Beta((1.1, 1.2), 0.02, 9, (0.05, 0.95)),
    Gamma(30.0, (40.0, 42.0)),
]


@functools.cache
def five(delta: float) -> float:
    return together(KINDS[:5], delta)


@pytest.mark.parametrize("law", KINDS, ids=repr)
def test_more_releases_cost_more_and_a_larger_delta_less(law):
    assert together([law], 1e-6) < together([law] * 2, 1e-6) < together([law] * 5, 1e-6)
    costs = [together([law, *KINDS[:5]], delta) for delta in (1e-4, 1e-7)]
    assert costs == sorted(costs)
    # With one release more.
    assert all(cost >= five(delta) for cost, delta in zip(costs, (1e-4, 1e-7), strict=True))
    assert losses.read({"loss": json.loads(json.dumps(law.line()))}) == law


def test_large_and_extreme_accounts_have_a_number_in_time():
    """Ten million records, a hundred different laws, an ε that promises nothing, and a δ below what floats can do."""
    many = Beta((1.0, 1.0), 0.1, 10**7)
    assert together([many], 1e-6) >= together([Beta((1.0, 1.0), 0.1, 10**3)], 1e-6) * (1 - 0.05)
    assert together([Response(0.01 * (1 + i / 300)) for i in range(150)], 1e-6) < 0.01 * 150 / 2
    assert together([Response(0.01 * (1 + i / 300)) for i in range(300)], 1e-6) < 0.01 * 300
    assert together([Response(0.1), Response(1000.0)], 1e-6) < 1001
    assert 1.5 < together([Response(0.5), Normal(0.2), many], 1e-30) < 100
    # Beyond a thousand records a truncated law is taken for its pure ε.
    found = together([Beta((1.0, 1.0), 0.1, 2000, (0.1, 0.9))], 1e-6)
    assert found == pytest.approx(together([Response(0.2 * math.log(9))], 1e-6), rel=1e-6)


@pytest.mark.parametrize(
    "loss",
    [
        {"law": "new"},
        {"epsilon": 1.0},
        {"law": "response", "epsilon": -1.0},
        {"law": "response", "epsilon": 1.0, "delta": 2.0},
        {"law": "response", "epsilon": 1.0, "times": 0.5},
        {"law": "normal", "shift": 0.0},
        {"law": "normal", "shift": 1.0, "more": 1},
        {"law": "beta", "prior": [1.0], "weight": 1.0, "others": 3},
        {"law": "beta", "prior": [1.0, 0.0], "weight": 1.0, "others": 3},
        {"law": "beta", "prior": [1.0, 1.0], "weight": 2.0, "others": 3},
        {"law": "beta", "prior": [1.0, 1.0], "weight": 1.0, "others": -1},
        {"law": "beta", "prior": [1.0, 1.0], "weight": 1.0, "others": 3, "ends": [0.9, 0.1]},
        {"law": "gamma", "shape": 1.0, "rates": [2.0, 1.0]},
        "response",
        None,
    ],
)
def test_a_line_of_no_law_is_refused(loss):
    with pytest.raises((ValueError, TypeError, KeyError, AttributeError)):
        losses.read({"epsilon": 1.0, "delta": 0.0, "loss": loss})


def test_a_truncated_law_far_beyond_its_interval():
    """By the density alone, normalised where it is largest, at 192 nodes: 8 % were lost in 1 − (nearly 1)."""
    low, high = 0.05, 0.95
    laws = (680.5, 2.9), (680.3, 3.1)
    p, q = (beta_weights(law, low, high) for law in laws)
    for way, weights in ((laws, (p, q)), (laws[::-1], (q, p))):
        for epsilon in (0.0, 0.002):
            found = float(beta_curve(*way, epsilon, low, high))
            assert found == pytest.approx(delta_of(*weights, epsilon), rel=2e-3)


@pytest.mark.parametrize(
    ("prior", "weight", "others"),
    [((0.05, 0.05), 0.01, 0), ((0.05, 1e4), 0.01, 3), ((0.01, 3.0), 0.001, 0), ((0.5, 0.5), 0.02, 2)],
)
def test_small_parameters_lose_where_shares_are_nearer_to_their_ends_than_floats(prior, weight, others):
    """Densities of the logit at 200,001 places, their sum, both ways, within 1e-3: at most half were left of it."""
    x = np.linspace(-4000, 4000, 200_001)
    logs = [np.log1p(np.exp(-np.abs(x))) + np.maximum(sign * x, 0.0) for sign in (-1, 1)]
    epsilon, worst = np.array([0.0, 0.1, 0.2, 0.5, 1.0]), np.zeros(5)
    for one in range(others + 1):
        below = np.add(prior, weight * np.array([one, others - one]))
        laws = []
        for law in (below + np.array([weight, 0]), below + np.array([0, weight])):
            density = -law[0] * logs[0] - law[1] * logs[1]
            density = np.exp(density - density.max())
            laws.append(density / density.sum())
        for p, q in (laws, laws[::-1]):
            worst = np.maximum(worst, [delta_of(p, q, value) for value in epsilon])
    law = Beta(prior, weight, others)
    assert law.curve(epsilon) == pytest.approx(worst, rel=1e-3, abs=1e-12)
    assert law.curve(np.array([together([law], 1e-6)]))[0] == pytest.approx(1e-6, rel=1e-3)


def test_a_truncated_law_whose_mass_underflows_is_taken_for_its_pure_loss():
    """By the density alone: of a mass of some of the smallest floats δ was 0 where it is 7e-4."""
    prior, ends, epsilon = (1096.39, 1.0), (0.49, 0.51), np.array([0.0, 0.03])
    p, q = (beta_weights(law, *ends) for law in ((1097.39, 1.0), (1096.39, 2.0)))
    exact = np.array([max(delta_of(p, q, value), delta_of(q, p, value)) for value in epsilon])
    assert np.all(Beta(prior, 1.0, 0, ends).curve(epsilon) >= exact) and exact[0] > 6e-4


def test_laws_whose_numbers_are_nearer_to_each_other_than_floats():
    """Rates that a record moves by less than a float's last digit, and an end next to 1, are rounded upwards."""
    draw = GammaDraw(GammaExponential(2, 1e10), 5, 2.0, 1.0, weighting="direct", bounds=(0.0, 1e-7))
    assert draw.loss.rates[0] < 1e10 and draw.loss.rates[1] > 1e10
    ops = ExponentialMechanism(BetaBernoulli(1, 1), 3, 1.0, a0=1e-16)
    assert ops.loss.rdp(np.array([math.inf])) == pytest.approx(1.0, abs=1e-12)


def test_a_rate_of_very_many_records_is_a_normal_shift():
    """ln θ is normal with deviation 1/√shape, moved by the rates' ratio; ε was 0, as 1 + λ/10^8 had lost its digits."""
    law = Gamma(1e8, (1e8, 1e8 + 1))
    assert law.rdp(np.array([2.0, 10.0, 100.0])) == pytest.approx(np.array([2.0, 10.0, 100.0]) * 1e-8 / 2, rel=1e-5)
    assert gaussian_curve(1e-4, together([law], 1e-6)) <= 1e-6
