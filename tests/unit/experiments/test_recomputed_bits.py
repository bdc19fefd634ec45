"""Studies of bits, computed a second time: inputs of mechanisms, divergences and their direction, errors, ranks."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
from recomputed import (
    beta_density,
    kl,
    ks,
    laplace_pairs,
    log_beta,
    mean_and_error,
    midpoints,
    renyi,
    row,
    run,
    spied,
    successes,
    temperature,
    tempered,
)
from scipy.special import betainc

from privpost.experiments.bernstein2018.calibration import study as calibration
from privpost.experiments.noise_aware.event_calibration import study as events
from privpost.lab import grid, tables

# Foulds et al. 2016


def test_divergences_are_from_the_true_posterior_to_the_private_one():
    cell = run("foulds2016/posterior_divergence", 6, 3, alpha=2, beta=3, p=0.3, a0=0.1, epsilon=[1.0], n=[12])
    data = successes(cell, 12, 0.3, 3, 2)
    theta, width = midpoints()
    laplace = laplace_pairs(cell, data, 12, 3, epsilon=1.0)
    found = [
        kl(beta_density(theta, 2 + s, 15 - s), beta_density(theta, 2 + a, 3 + b), width)
        for s, (a, b) in zip(data, laplace, strict=True)
    ]
    kept = row(cell.tables["posterior_divergence"], method="laplace")
    assert (kept.kl_mean, kept.kl_sem) == pytest.approx(mean_and_error(found), rel=1e-4)
    assert kept.kl_theory == pytest.approx(4 * (0.09 + 0.49) / (12 * 0.21))
    theta, width = midpoints(0.1, 0.9)
    t = temperature(0.1, 1.0)
    found = [
        kl(beta_density(theta, 2 + s, 15 - s), beta_density(theta, *tempered(2, 3, s, 12, t)), width) for s in data
    ]
    kept = row(cell.tables["posterior_divergence"], method="ops")
    assert (kept.kl_mean, kept.kl_sem) == pytest.approx(mean_and_error(found), rel=1e-4)
    assert kept.kl_theory == pytest.approx(math.log(t) / 2 + 1 / (2 * t) - 0.5)


def test_sampling_errors_are_those_of_the_released_draws():
    cell = run("foulds2016/sampling_error", 6, 3, alpha=2, beta=3, p=0.3, a0=0.1, epsilon=1.0, n=[12])
    data = successes(cell, 12, 0.3, 3, 2)
    blocks = [cell.streams("sampler", block, n=12) for block in range(2)]
    draws = {"non_private": [float(blocks[i // 3].beta(2 + s, 15 - s)) for i, s in enumerate(data)]}
    pairs, t = laplace_pairs(cell, data, 12, 3), temperature(0.1, 1.0)
    for block in range(2):
        rng = cell.streams("mechanism", block, method="laplace", n=12)
        rng.laplace(size=(3, 2))
        own = [float(rng.beta(2 + a, 3 + b)) for a, b in pairs[3 * block : 3 * block + 3]]
        draws["laplace"] = draws.get("laplace", []) + own
    draws["ops"] = cell.ledger.released("ops/n=12").tolist()
    for i, (theta, s) in enumerate(zip(draws["ops"], data, strict=True)):
        if i % 3 == 0:
            uniform = cell.streams("mechanism", i // 3, method="ops", n=12).random(3)
        low, here, high = (betainc(*tempered(2, 3, s, 12, t), x) for x in (0.1, theta, 0.9))
        assert (here - low) / (high - low) == pytest.approx(uniform[i % 3])
    errors = {method: [abs(theta - 0.3) for theta in own] for method, own in draws.items()}
    for method, own in errors.items():
        kept = row(cell.tables["sampling_error"], method=method)
        assert (kept.l1_mean, kept.l1_sem) == pytest.approx(mean_and_error(own))
        for name, other in (("over_true", "non_private"), ("over_laplace", "laplace")):
            if method != other:
                expected = mean_and_error([a - b for a, b in zip(own, errors[other], strict=True)])
                assert (kept[f"{name}_mean"], kept[f"{name}_sem"]) == pytest.approx(expected)
    assert row(cell.tables["sampling_error"], method="ops").temperature == pytest.approx(t)


# Geumlek et al. 2017, figure 2


def largest(law, n: int, order: float) -> float:
    """Largest divergence of neighbours, over all of them, of laws by number of ones."""
    pairs = [(s, s + 1) for s in range(n)] + [(s + 1, s) for s in range(n)]
    return max(renyi(law(s), law(t), order) for s, t in pairs)


def test_the_tradeoff_is_from_the_true_posterior_at_coefficients_that_spend_the_budget():
    cell = run(
        "geumlek2017/tradeoff", 4, 2, alpha=3, beta=4, n=8, successes=3, held_out_probability=0.4, order=1.5,
        variant="corrected", log_epsilon=[-2.0, 0.0], reach_alphas=[3], reach_betas=[4], reach_log_epsilons=[-2.0],
    )  # fmt: skip
    table, epsilon, (theta, width) = cell.tables["tradeoff"], math.exp(-2), midpoints()
    true = beta_density(theta, 6, 9)
    r, m = (row(table, method=name, metric="kl", log_epsilon=-2).coefficient for name in ("diffused", "concentrated"))
    diffused, concentrated = lambda s: (3 + r * s, 4 + r * (8 - s)), lambda s: (3 / m + s, 4 / m + 8 - s)
    for method, law in (("diffused", diffused), ("concentrated", concentrated)):
        assert largest(law, 8, 1.5) == pytest.approx(epsilon, rel=1e-6)
        kept = row(table, method=method, metric="kl", log_epsilon=-2)
        assert kept.error == 0
        assert kept["mean"] == pytest.approx(kl(true, beta_density(theta, *law(3)), width), rel=1e-5)
        reached = row(cell.tables["reach"], method=method)
        assert reached.coefficient == pytest.approx(kept.coefficient)
        grid = cell.tables["limits"].query("method == @method")
        np.testing.assert_allclose(grid.density, beta_density(grid.theta.to_numpy(), *law(3)), rtol=1e-9)
        a, b = law(3)
        mean, deviation = a / (a + b), math.sqrt(a * b / (a + b + 1)) / (a + b)
        ends = max(1e-6, mean - 6 * deviation), min(1 - 1e-6, mean + 6 * deviation)
        assert (grid.theta.iloc[0], grid.theta.iloc[-1]) == pytest.approx(ends)
        assert set(grid.log_epsilon) == {-2.0}
    assert grid.prior_mean.iloc[0] == pytest.approx(3 / 7)
    assert grid.prior_kl.iloc[0] == pytest.approx(kl(true, beta_density(theta, 3, 4), width), rel=1e-5)
    # λΔ²/(2σ²) with Δ = 1.
    sigma = row(table, method="gaussian", metric="kl", log_epsilon=-2).coefficient
    assert sigma == pytest.approx(math.sqrt(0.75 / epsilon))
    noise, _ = midpoints(-12 * sigma, 12 * sigma, 6000)
    weight = np.exp(-(noise**2) / (2 * sigma**2))
    counts, shares = np.clip(3 + noise, 0, 8), weight / weight.sum()

    def mixed(points):
        """Density of a draw from the posterior of the noisy count."""
        total, inside = np.zeros_like(points), (counts > 0) & (counts < 8)
        for end in (0.0, 8.0):
            total += shares[counts == end].sum() * beta_density(points, 3 + end, 12 - end)
        for count, share in zip(counts[inside], shares[inside], strict=True):
            total += share * beta_density(points, 3 + count, 12 - count)
        return total

    assert row(table, method="gaussian", metric="kl", log_epsilon=-2)["mean"] == pytest.approx(
        kl(true, mixed(theta), width), rel=1e-3
    )
    limits = cell.tables["limits"].query("method == 'gaussian'")
    # All of (0, 1), but for half a step at either end.
    even = np.arange(1, len(limits) - 1) / (len(limits) - 1)
    np.testing.assert_allclose(limits.theta, [even[0] / 2, *even, 1 - even[0] / 2])
    np.testing.assert_allclose(limits.density, mixed(limits.theta.to_numpy()), rtol=1e-3)
    # The likelihood of other data of the same law under one released parameter.
    data = [cell.streams("data", block).binomial(8, 0.4, (2, 2)) for block in range(2)]
    held_out = [int(k) for block in data for k in block[1]]
    drawn = cell.ledger.released("diffused/log_epsilon=-2")
    losses = [-k * math.log(x) - (8 - k) * math.log(1 - x) for k, x in zip(held_out, drawn, strict=True)]
    kept = row(table, method="diffused", metric="neg_log_likelihood", log_epsilon=-2)
    assert (kept["mean"], kept["sem"]) == pytest.approx(mean_and_error(losses))
    counted = [loss - math.log(math.comb(8, k)) for loss, k in zip(losses, held_out, strict=True)]
    kept = row(table, method="diffused", metric="neg_log_likelihood_count", log_epsilon=-2)
    assert (kept["mean"], kept["sem"]) == pytest.approx(mean_and_error(counted))
    for block, (request, _) in enumerate(cell.ledger.of("diffused/log_epsilon=-2")):
        assert request.statistics[:, 0].tolist() == data[block][0].tolist()


def test_the_error_of_a_divergence_is_its_change_from_half_of_the_nodes():
    """By the means of two runs, one of which has half of the other's nodes."""
    found = []
    for nodes in (12, 6):
        cell = run(
            "geumlek2017/tradeoff", 2, 2, n=8, successes=3, order=1.5, log_epsilon=[0.0], quadrature_nodes=nodes,
            reach_alphas=[3], reach_betas=[4], reach_log_epsilons=[0.0],
        )  # fmt: skip
        found.append(row(cell.tables["tradeoff"], method="gaussian", metric="kl"))
    fine, coarse = found
    assert fine.error == pytest.approx(abs(fine["mean"] - coarse["mean"])) and fine.error > 1e-6


TRADEOFF = {"order": 1.5, "variant": "corrected", "reach_alphas": [3], "reach_betas": [4], "reach_log_epsilons": [0.0]}


def test_the_true_posterior_has_one_row_of_each_metric_without_order_or_budget():
    """Its draws are those of its stream; equal rows of several cells count once, and rows are numbered through."""
    cell = run(
        "geumlek2017/tradeoff", 4, 2, alpha=3, beta=4, n=8, successes=8, held_out_probability=0.4,
        log_epsilon=[-2.0, 0.0], method=["non_private", "diffused", "concentrated"], **TRADEOFF,
    )  # fmt: skip
    losses = []
    for block in (0, 1):
        own, held_out = cell.streams("data", block).binomial(8, 0.4, (2, 2))
        rng = cell.streams("mechanism", block)
        drawn = rng.beta(3 + own, 4 + 8 - own)
        losses += [-k * math.log(x) - (8 - k) * math.log(1 - x) for k, x in zip(held_out, drawn, strict=True)]
    empty = {"variant": None, "order": None, "log_epsilon": None}
    kept = row(cell.tables["tradeoff"], method="non_private", metric="neg_log_likelihood", **empty)
    assert (kept["mean"], kept["sem"]) == pytest.approx(mean_and_error(losses))
    kept = row(cell.tables["tradeoff"], method="non_private", metric="kl", **empty)
    assert (kept["mean"], kept.error) == (0, 0)
    assert set(cell.tables["limits"].method) == {"diffused", "concentrated"}
    assert row(cell.tables["reach"], method="diffused", alpha=3, beta=4).coefficient > 0
    study = grid.load_study("geumlek2017/tradeoff", "smoke")
    twice = tables.tables_of(study, [cell, SimpleNamespace(config=cell.config, arrays=cell.arrays)])
    assert twice["tradeoff"].equals(cell.tables["tradeoff"]) and "index" not in twice["tradeoff"]
    assert len(twice["limits"]) == 2 * len(cell.tables["limits"])
    assert list(twice["limits"].index) == list(range(len(twice["limits"])))


def test_the_paper_spends_the_budget_on_the_four_pairs_of_its_corollary():
    """All records in one category, and one record more or fewer there, whether data have that posterior or not."""
    cell = run(
        "geumlek2017/tradeoff", 2, 2, alpha=3, beta=4, n=8, successes=3, log_epsilon=[-2.0], method=["diffused"],
        **{**TRADEOFF, "variant": "paper"},
    )  # fmt: skip
    r = row(cell.tables["tradeoff"], method="diffused", metric="kl").coefficient
    ends = [(3 + 8 * r, 4), (3, 4 + 8 * r)]
    pairs = [(p, (p[0] + sign * r, p[1] - sign * r)) for p in ends for sign in (-1, 1)]
    assert max(renyi(p, q, 1.5) for p, q in pairs) == pytest.approx(math.exp(-2), rel=1e-6)
    assert largest(lambda s: (3 + r * s, 4 + r * (8 - s)), 8, 1.5) < 0.99 * math.exp(-2)


def test_the_divergence_of_a_narrow_posterior_is_a_sum_over_noise_and_parameters():
    """400 records, whose posterior is within [0.1, 0.65]; sums over midpoints, to 1e-3."""
    cell = run(
        "geumlek2017/tradeoff", 2, 2, alpha=3, beta=4, n=400, successes=150, quadrature_nodes=100, log_epsilon=[0.0],
        method=["gaussian"], **TRADEOFF,
    )  # fmt: skip
    theta, width = midpoints(0.1, 0.65, 2000)
    sigma = math.sqrt(0.75)
    noise, step = midpoints(-12 * sigma, 12 * sigma, 400)
    chance = np.exp(-(noise**2) / (2 * sigma**2)) / math.sqrt(2 * math.pi) / sigma * step
    mixed = sum(p * beta_density(theta, 153 + each, 254 - each) for p, each in zip(chance, noise, strict=True))
    kept = row(cell.tables["tradeoff"], method="gaussian", metric="kl")
    assert kept["mean"] == pytest.approx(kl(beta_density(theta, 153, 254), mixed, width), rel=1e-3)


# Bernstein and Sheldon 2018, figure 1


def test_quantiles_are_those_of_each_methods_own_posterior(monkeypatch):
    ranks = spied(monkeypatch, calibration, "randomised_rank")
    cell = run(
        "bernstein2018/calibration", 4, 4, model="binomial", prior=[2, 3], n=[6], epsilon=[1.5], ops_draws=5, a0=0.1,
        burn_in=5, draws=20, ecdf_n=6, ecdf_epsilon=1.5, ecdf_points=3,
    )  # fmt: skip
    rng = cell.streams("data", 0, n=6)
    truth = rng.beta(2, 3, 4)
    noisy = cell.ledger.released("gibbs/n=6/epsilon=1.5")[:, 0]
    (request, _), *_ = cell.ledger.of("gibbs/n=6/epsilon=1.5")
    ones = request.statistics[:, 0]
    # One number is released: Δ = 1.
    noise = cell.streams("mechanism", 0, n=6).laplace(size=(4, 1))[:, 0]
    np.testing.assert_allclose(noisy, ones + noise / 1.5)
    found = {("non_private", None): betainc(2 + ones, 9 - ones, truth)}
    clipped = np.clip(noisy, 0, 6)
    found["naive", None] = betainc(2 + clipped, 9 - clipped, truth)
    counts = np.arange(7)
    evidence = np.array([math.comb(6, s) * math.exp(log_beta(2 + s, 9 - s)) for s in counts])
    weights = evidence * np.exp(-1.5 * np.abs(noisy[:, None] - counts))
    parts = betainc(2 + counts, 9 - counts, truth[:, None])
    found["exact", None] = (weights * parts).sum(axis=1) / weights.sum(axis=1)
    # Five draws share ε; T tempers prior and likelihood, or the likelihood alone.
    t = temperature(0.1, 1.5 / 5)
    for place, which in enumerate(("joint", "likelihood")):
        drawn = cell.ledger.released(f"ops/{which}/n=6/epsilon=1.5")
        uniform = cell.streams("mechanism", 0, method=f"ops_{which}", n=6).random((5, 4)).T
        for trial, s in enumerate(ones):
            law = tempered(2, 3, s, 6, t) if which == "joint" else (2 + s / t, 3 + (6 - s) / t)
            low, here, high = (betainc(*law, x) for x in (0.1, drawn[trial], 0.9))
            np.testing.assert_allclose((here - low) / (high - low), uniform[trial], rtol=1e-8)
            assert ranks[place].given[0][trial] == sum(draw < truth[trial] for draw in drawn[trial])
        randomised = cell.streams("ranks", 0, method=f"ops_{which}", n=6).random(4)
        found["ops", which] = (ranks[place].given[0] + randomised) / 6
    for (method, which), values in found.items():
        kept = row(cell.tables["calibration"], method=method, tempered=which)
        assert kept.ks == pytest.approx(ks(values)), method
        assert kept.private == (method != "non_private")
        shares = cell.tables["ecdf"].query("method == @method and u == 0.5")
        assert row(shares, tempered=which).ecdf == sum(value <= 0.5 for value in values) / 4
    assert row(cell.tables["calibration"], method="naive").rejected_share == np.mean((noisy < 0) | (noisy > 6))


# Noise-aware event models: one state, cell and field


def bit_kl(truth, predicted) -> list[float]:
    """KL of a bit's predicted law from the true one."""
    both = zip(truth, predicted, strict=True)
    return [p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q)) for p, q in both]


def test_events_have_the_posterior_over_all_counts_with_the_noise_that_was_added(monkeypatch):
    drawn = spied(monkeypatch, events, "draw_data")
    cell = run(
        "noise_aware/event_calibration", 5, 5, n=4, sizes=[2], epsilon=[2.0], iterations=2001, burn_in=1,
        method=["non_private", "laplace", "exact"], variant=["paper"],
    )  # fmt: skip
    (truth, counts, _), arrays = drawn[0].result, cell.arrays
    noisy = [release.values[:, :2] for _, release in cell.ledger.seen]
    noise = cell.streams("mechanism", 0).laplace(size=(5, 2))
    assert len(noisy) == 2
    for each in noisy:
        # A substituted event moves two counts by one: Δ = 2.
        np.testing.assert_allclose(each, counts[:, 0] + noise * 2 / 2.0)
    first = np.arange(5)
    weights = np.exp(-(np.abs(noisy[0][:, :1] - first) + np.abs(noisy[0][:, 1:] - (4 - first))))
    # With a uniform prior every number of the first level is as likely as any other.
    exact = (weights * betainc(1 + first, 5 - first, truth[:, :1])).sum(axis=1) / weights.sum(axis=1)
    means = (weights * (1 + first) / 6).sum(axis=1) / weights.sum(axis=1)
    squares = (weights * (1 + first) * (2 + first) / 42).sum(axis=1) / weights.sum(axis=1)
    valid = np.maximum(noisy[0], 0)
    own = {
        "non_private": (betainc(1 + counts[:, 0, 0], 1 + counts[:, 0, 1], truth[:, 0]), (1 + counts[:, 0, 0]) / 6),
        "laplace": (betainc(*(1 + valid.T), truth[:, 0]), (1 + valid[:, 0]) / (2 + valid.sum(axis=1))),
    }
    table, divergence = cell.tables["event_calibration"], {}
    for method, (quantiles, mean) in own.items():
        divergence[method] = bit_kl(truth[:, 0], mean)
        kept = row(table, method=method)
        assert kept.ks == pytest.approx(ks(quantiles))
        assert (kept.kl_mean, kept.kl_sem) == pytest.approx(mean_and_error(divergence[method]))
    np.testing.assert_allclose(arrays["oracle"][2], exact)
    np.testing.assert_allclose(arrays["variances"][2, 1], squares - means**2)
    # 2,000 independent draws: four standard errors are below 0.045.
    kept, shares = row(table, method="exact"), arrays["averaged"][2]
    np.testing.assert_allclose(shares, exact, atol=0.045)
    np.testing.assert_allclose(arrays["quantiles"][2, 0], exact, atol=0.045)
    assert kept.oracle_difference == pytest.approx(np.mean(np.abs(shares - exact)))
    assert kept.width_ratio == pytest.approx(1, abs=0.05)
    assert kept.kl_mean == pytest.approx(np.mean(bit_kl(truth[:, 0], means)), abs=0.01)
    pair = cell.tables["event_calibration_pairs"].iloc[0]
    assert pair.kl_gain_mean == pytest.approx(np.mean(divergence["laplace"]) - kept.kl_mean)
