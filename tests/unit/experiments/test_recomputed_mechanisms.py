"""Studies of mechanisms for bits (Foulds et al. 2016), computed a second time: densities, losses, efficiencies."""

from __future__ import annotations

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest
from recomputed import beta_density, log_beta, mean_and_error, midpoints, row, run, successes, temperature, tempered
from scipy.special import betainc

from privpost.experiments.foulds2016.mechanisms_table import study as mechanisms_table


def log_mass(law, a0: float) -> float:
    """Logarithm of the integral of θ^(a−1) (1−θ)^(b−1) over [a0, 1−a0]."""
    return log_beta(*law) + math.log(betainc(*law, 1 - a0) - betainc(*law, a0))


def log_density(theta: float, law, a0: float) -> float:
    """That of a beta law truncated to [a0, 1−a0]."""
    return (law[0] - 1) * math.log(theta) + (law[1] - 1) * math.log(1 - theta) - log_mass(law, a0)


def ops_ratio(alpha, beta, n: int, a0: float, t: float) -> float:
    """Largest |ln p(θ|s) − ln p(θ|s+1)| of OPS's draw over all s, and θ at the ends and at eleven points between."""
    thetas, worst = [a0 + (1 - 2 * a0) * k / 12 for k in range(13)], 0.0
    for s, theta in itertools.product(range(n), thetas):
        pair = [log_density(theta, tempered(alpha, beta, ones, n, t), a0) for ones in (s, s + 1)]
        worst = max(worst, abs(pair[0] - pair[1]))
    return worst


# Figure 1


def test_shapes_are_the_densities_of_each_posterior():
    """Beta laws by their own formula, Laplace ones from the stream's noise at scale 2/ε; to rounding of logarithms."""
    cell = run(
        "foulds2016/posterior_shapes", 1, 1, alpha=2, beta=3, epsilon=0.8, n=10, p=0.34, a0=0.1, draws=3, points=9
    )  # fmt: skip
    table, t = cell.tables["posterior_shapes"], temperature(0.1, 0.8)
    noise = cell.streams("mechanism", method="laplace").laplace(size=(3, 2)) * 2 / 0.8
    pairs = [(max(0.0, 3 + u), max(0.0, 7 + v)) for u, v in noise]
    curves = {("non_private", None): (5, 10), ("ops", None): tempered(2, 3, 3, 10, t)}
    curves |= {("laplace", draw): (2 + a, 3 + b) for draw, (a, b) in enumerate(pairs)}
    for (method, draw), law in curves.items():
        own = table[table.method == method]
        own = own[own.draw.isna()] if draw is None else own[own.draw == draw]
        ends = (0.1, 0.9) if method == "ops" else (0.0, 1.0)
        np.testing.assert_allclose(own.theta, [ends[0] + (ends[1] - ends[0]) * k / 8 for k in range(9)])
        inside = own[(own.theta > 0) & (own.theta < 1)]
        expected = beta_density(inside.theta.to_numpy(), *law)
        if method == "ops":
            expected = [math.exp(log_density(theta, law, 0.1)) for theta in inside.theta]
        np.testing.assert_allclose(inside.density, expected, rtol=1e-9)
        assert (own.epsilon.isna() if method == "non_private" else own.epsilon == 0.8).all() and (own.n == 10).all()
        if method == "ops":
            assert (own.a0 == 0.1).all() and own.temperature.to_numpy() == pytest.approx(t)
        else:
            assert own.a0.isna().all() and own.temperature.isna().all()
    # Every curve has nine points, and there are no others.
    assert len(table) == 9 * len(curves)


# Table 1


def test_constants_of_both_mechanisms_are_those_of_a_loop_over_neighbours():
    """Loops over all counts of three bits; twelve digits are in the table. At ε = 9 > 2Δ nothing is tempered."""
    alpha, beta, a0, n = 2, 3, 0.1, 3
    cell = run(
        "foulds2016/mechanisms_table", 1, 1, alpha=alpha, beta=beta, a0=a0, n=n, iterations=7, updates=3,
        method=["laplace", "ops"], epsilon=[0.5, 9.0],
    )  # fmt: skip
    table, delta = cell.tables["table1"], math.log(0.9 / 0.1)
    assert len(table) == 4 and (table.n_brute_force == 3).all() and (table.gibbs_iterations == 7).all()
    for epsilon in (0.5, 9.0):
        kept = row(table, method="laplace", epsilon=epsilon)
        # Two counts move by one each; the loss is Δ over the scale 2/ε.
        for name in ("sensitivity_value", "sensitivity_brute_force"):
            assert kept[name] == 2
        for name in ("epsilon_brute_force", "gibbs_epsilon", "gibbs_epsilon_if_converged"):
            assert kept[name] == pytest.approx(epsilon, rel=1e-11)
        assert (kept.are_sample_value, kept.are_mean_value) == (2, 1)
        assert math.isnan(kept.a0) and math.isnan(kept.temperature)
        kept, t = row(table, method="ops", epsilon=epsilon), temperature(a0, epsilon)
        assert kept.temperature == pytest.approx(t, rel=1e-11)
        for name in ("sensitivity_value", "sensitivity_brute_force"):
            assert kept[name] == pytest.approx(delta, rel=1e-11)
        assert kept.epsilon_brute_force == pytest.approx(ops_ratio(alpha, beta, n, a0, t), rel=1e-9)
        assert kept.gibbs_epsilon_if_converged == pytest.approx(min(epsilon, 2 * delta), rel=1e-11)
        assert kept.gibbs_epsilon == pytest.approx(3 * 7 * min(epsilon, 2 * delta), rel=1e-11)
        assert kept.are_sample_value == pytest.approx(1 + t, rel=1e-11)
        assert math.isnan(kept.are_mean_value) and kept.a0 == a0


def test_every_pair_of_neighbours_is_compared():
    """A function of three bits that changes most in one pair of data sets, and in the last bit: by hand."""
    known = {(1, 1, 0): 0.0, (1, 1, 1): 10.0}

    def value(data):
        return np.array([known.get(tuple(map(int, bits)), 4.0) for bits in np.atleast_2d(data)])

    mechanism = SimpleNamespace(
        n=3, norm="l1", query=value, log_density=lambda release, data: release * value(data[:, 0])[:, None],
        model=SimpleNamespace(records=[0, 1], sufficient_statistics=np.array),
    )  # fmt: skip
    assert mechanisms_table.largest_change(mechanism) == 10
    assert mechanisms_table.largest_loss(mechanism, [1.0, -2.0]) == 20


# Figure 8


def largest_loss(data, alpha, beta, a0: float) -> tuple[float, float, float]:
    """Largest log-ratio of the posteriors of a list of bits and one with a bit flipped, and both of its terms."""

    def law(bits):
        return alpha + sum(bits), beta + len(bits) - sum(bits)

    worst = (0.0, 0.0, 0.0)
    for i, theta in itertools.product(range(len(data)), (a0, 0.5, 1 - a0)):
        other = [*data[:i], 1 - data[i], *data[i + 1 :]]
        likelihood = (2 * data[i] - 1) * (math.log(theta) - math.log(1 - theta))
        partition = log_mass(law(other), a0) - log_mass(law(data), a0)
        if abs(likelihood + partition) > worst[0] + 1e-12:
            sign = math.copysign(1.0, likelihood + partition)
            worst = (abs(likelihood + partition), sign * likelihood, sign * partition)
    return worst


def test_the_adversary_adds_the_bit_that_loses_most():
    """Lists of bits, each flipped in turn; 1e-9 is the accuracy of differences of incomplete beta functions."""
    cell = run(
        "foulds2016/adversary", 1, 1, alpha=1, beta=3, grid=5, largest_n=5, a0=[0.3, 0.1], records=2, states=3,
        epsilons=[1.0], steps=[1],
    )  # fmt: skip
    table, chosen = cell.tables["adversary"], []
    for a0 in (0.3, 0.1):
        data: list[int] = []
        for n in range(1, 6):
            losses = {bit: largest_loss([*data, bit], 1, 3, a0) for bit in (1, 0)}
            bit = 0 if losses[0][0] > losses[1][0] + 1e-9 else 1
            kept = row(table, a0=a0, n=n)
            assert kept.added == ("failure", "success")[bit]
            assert (kept.local_epsilon, kept.likelihood_term, kept.partition_term) == pytest.approx(
                losses[bit], abs=1e-9
            )
            data.append(bit)
        chosen += data
    assert {0, 1} == set(chosen) and len(table) == 10


def moved(law, chain: str) -> list[list[float]]:
    """Transitions of a Metropolis chain, state by state."""
    size = len(law)
    kernel = [[0.0] * size for _ in law]
    for i in range(size):
        proposals = [(j, 1 / size) for j in range(size)]
        if chain == "random walk":
            proposals = [(i - 1, 0.5), (i + 1, 0.5)]
        for j, share in proposals:
            accepted = share * min(1.0, law[j] / law[i]) if 0 <= j < size else 0.0
            kernel[i][j if 0 <= j < size else i] += accepted
            kernel[i][i] += share - accepted
    return kernel


def stopped(laws, chain: str, start: str, steps: int) -> list[list[float]]:
    """Laws of the chains' states, one step after the other."""
    states = []
    for law in laws:
        size, kernel = len(law), moved(law, chain)
        best = max(range(size), key=lambda i: law[i])
        state = [1 / size if start == "uniform" else float(i == best) for i in range(size)]
        for _ in range(steps):
            state = [sum(state[i] * kernel[i][j] for i in range(size)) for j in range(size)]
        states.append(state)
    return states


def log_ratio(p, q) -> float:
    """Largest |ln P/Q|; outcomes that neither has lose nothing."""
    return max(abs(math.log(a) - math.log(b)) if a * b else math.inf for a, b in zip(p, q, strict=True) if a + b)


def test_stopped_chains_lose_what_loops_over_their_states_say():
    """Chains of four states run as loops over all data sets of two bits; to rounding of powers of a matrix."""
    alpha, beta, a0, n, size = 2, 3, 0.2, 2, 4
    cell = run(
        "foulds2016/adversary", 1, 1, alpha=alpha, beta=beta, grid=3, largest_n=2, a0=[a0, 0.1], records=n,
        states=size, epsilons=[0.7, 50.0], steps=[1, 3, 40],
    )  # fmt: skip
    table, infinite = cell.tables["stopped_chains"], 0
    assert len(table) == 2 * 2 * 2 * 3
    for epsilon in (0.7, 50.0):
        laws = []
        for s in range(n + 1):
            a, b = tempered(alpha, beta, s, n, temperature(a0, epsilon))
            thetas = [a0 + (1 - 2 * a0) * k / (size - 1) for k in range(size)]
            weights = [theta ** (a - 1) * (1 - theta) ** (b - 1) for theta in thetas]
            laws.append([weight / sum(weights) for weight in weights])
        neighbours = [pair for s in range(n) for pair in ((s, s + 1), (s + 1, s))]
        exact = max(log_ratio(laws[i], laws[j]) for i, j in neighbours)
        for chain, start, steps in itertools.product(("independence", "random walk"), ("uniform", "mode"), (1, 3, 40)):
            states = stopped(laws, chain, start, steps)
            kept = row(table, epsilon=epsilon, chain=chain, start=start, steps=steps)
            distances = [
                sum(abs(x - y) for x, y in zip(*both, strict=True)) / 2 for both in zip(states, laws, strict=True)
            ]
            deltas = [
                sum(max(x - math.exp(exact) * y, 0.0) for x, y in zip(states[i], states[j], strict=True))
                for i, j in neighbours
            ]
            cost = max(log_ratio(states[i], states[j]) for i, j in neighbours)
            infinite += math.isinf(cost)
            expected = exact, max(distances), max(deltas), cost
            found = kept.exact_cost, kept.distance, kept.delta, kept.cost
            assert found == pytest.approx(expected, abs=1e-12, rel=1e-9), (chain, start, steps)
            if chain == "random walk":
                assert math.isnan(kept.cost_bound)
                continue
            # Minorised by 1/M of the law at each step, the rest anywhere the start allows.
            a = (1 - 1 / (size * max(map(max, laws)))) ** steps
            height = max(1 / (size * min(law)) if start == "uniform" else 1 / max(law) for law in laws)
            assert kept.cost_bound == pytest.approx(exact + math.log((1 + a * (height - 1)) / (1 - a)), rel=1e-9)
            assert cost <= kept.cost_bound
    assert infinite


# Section 3.3


def test_samples_have_the_efficiency_of_each_methods_draw():
    """The draws that the streams give, at two ε and n, to rounding; the true posterior has no ε, and appears once."""
    alpha, beta, p, a0, epsilons = 2, 3, 0.3, 0.1, [0.5, 9.0]
    cell = run(
        "foulds2016/efficiency", 6, 3, alpha=alpha, beta=beta, p=p, a0=a0, epsilon=epsilons, n=[12, 40],
        methods=["geometric", "laplace", "non_private", "ops"],
    )  # fmt: skip
    table = cell.tables["efficiency"]
    assert len(table) == 2 * 2 + 3 * 2 * 2 * 2 and (table.n_repeats == 6).all() and (table.p == p).all()
    for n, (place, epsilon), method in itertools.product(
        (12, 40), enumerate(epsilons), ("geometric", "laplace", "non_private")
    ):
        if method == "non_private" and place:
            continue
        means, draws = [], []
        for block in range(2):
            rng = cell.streams("mechanism", block, method=method, n=n)
            noise = np.zeros((3, 2))
            if method == "laplace":
                noise = rng.laplace(size=(3, 2)) * 2 / epsilon
            elif method == "geometric":
                # Differences of geometric variates of ratio e^(−ε/2).
                both = rng.geometric(1 - math.exp(-epsilon / 2), (3, 2, 2))
                noise = both[..., 0] - both[..., 1]
            for s, (u, v) in zip(successes(cell, n, p, 3, 2)[3 * block : 3 * block + 3], noise, strict=True):
                a, b = alpha + max(0.0, s + u), beta + max(0.0, n - s + v)
                means.append(a / (a + b))
                draws.append(float(rng.beta(a, b)))
        told = None if method == "non_private" else epsilon
        for statistic, values in (("mean", means), ("sample", draws)):
            kept = row(table, method=method, statistic=statistic, epsilon=told, n=n)
            expected = mean_and_error([n * (value - p) ** 2 / (p * (1 - p)) for value in values])
            assert (kept.are, kept["sem"]) == pytest.approx(expected)
            assert kept.are_limit == (1 if statistic == "mean" else 2) and math.isnan(kept.a0)
            assert kept.released == (method != "non_private" or statistic == "sample")
    for n, epsilon in itertools.product((12, 40), epsilons):
        t = temperature(a0, epsilon)
        theta, _ = midpoints(a0, 1 - a0)
        weights = [beta_density(theta, *tempered(alpha, beta, s, n, t)) for s in successes(cell, n, p, 3, 2)]
        means = [float(weight @ theta / weight.sum()) for weight in weights]
        draws = cell.ledger.released(f"ops/epsilon={epsilon:g}/n={n}")
        for statistic, values in (("mean", means), ("sample", draws)):
            kept = row(table, method="ops", statistic=statistic, epsilon=epsilon, n=n)
            expected = mean_and_error([n * (value - p) ** 2 / (p * (1 - p)) for value in values])
            # Midpoints of 4000 cells.
            assert (kept.are, kept["sem"]) == pytest.approx(expected, rel=1e-5)
            assert kept.are_limit == pytest.approx(1 if statistic == "mean" else 1 + t)
            assert kept.a0 == a0 and kept.released == (statistic == "sample")


def binomial_masses(n: int, p: float):
    """Counts within nine standard deviations, and their probabilities."""
    width = 9 * math.sqrt(n * p * (1 - p))
    counts = np.arange(max(0, int(n * p - width)), min(n, int(n * p + width)) + 1)
    steps = np.log((n - counts[:-1]) / (counts[:-1] + 1) * p / (1 - p))
    masses = np.exp(np.concatenate([[0.0], np.cumsum(steps)]))
    return counts, masses / masses.sum()


def test_first_orders_are_those_of_sums_over_all_counts():
    """Sums over the counts of 20,000 records and the noise's law; the next order is (w/n)² for w records of prior."""
    alpha, beta, p, a0, epsilon, n = 2, 3, 0.3, 0.1, 0.5, 20_000
    cell = run(
        "foulds2016/efficiency", 2, 1, alpha=alpha, beta=beta, p=p, a0=a0, epsilon=[epsilon], n=[n],
        methods=["geometric", "laplace", "non_private", "ops"],
    )  # fmt: skip
    counts, masses = binomial_masses(n, p)
    # Laplace noise of scale 2/ε at Gauss-Laguerre nodes, exact for polynomials; clipping does not happen.
    node, weight = np.polynomial.laguerre.laggauss(8)
    node, weight = np.concatenate([node, -node]) * 2 / epsilon, np.concatenate([weight, weight]) / 2
    u, v = (each.reshape(-1, 1, 1) for each in (node, node))
    cases = {"non_private": (1.0, counts, n - counts, masses)}
    cases["ops"] = (temperature(a0, epsilon), counts, n - counts, masses)
    shares = weight[:, None, None] * weight[None, :, None] * masses
    cases["laplace"] = (1.0, counts + u, (n - counts) + v.reshape(1, -1, 1), shares)
    for method, (t, ones, zeros, share) in cases.items():
        a, b = 1 + (alpha - 1 + ones) / t, 1 + (beta - 1 + zeros) / t
        mean, variance = a / (a + b), a * b / (a + b) ** 2 / (a + b + 1)
        for statistic, squared in (("mean", (mean - p) ** 2), ("sample", (mean - p) ** 2 + variance)):
            exact = float((squared * share).sum() * n / (p * (1 - p)))
            kept = row(cell.tables["efficiency"], method=method, statistic=statistic)
            # Records that prior, tempering and noise are worth; 10 covers the coefficients of the next order.
            worth = 2 * t + alpha + beta - 2 + (4 / epsilon if method == "laplace" else 0)
            tolerance = 10 * (worth / n) ** 2 * (1 + t)
            assert kept.are_first_order == pytest.approx(exact, abs=tolerance), method
            assert abs(exact - kept.are_limit) > 3 * tolerance
    geometric = cell.tables["efficiency"].query("method == 'geometric'")
    assert geometric.are_first_order.isna().all()
