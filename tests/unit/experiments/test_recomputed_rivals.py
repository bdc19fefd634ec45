"""Rivals of noise-aware inference, computed a second time: scores of draws that are made up, times by a false clock."""

from __future__ import annotations

import functools
import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest
from recomputed import mean_and_error, midpoints, row, run
from recomputed_noise_aware import count_weights, counts_density, gamma_density, lomax, redacted_mass
from scipy.stats import betabinom, kstest, norm

from privpost.inference_benchmark import methods, metrics, scoring
from privpost.inference_benchmark.base import Inferred

SHIFT = {"high": 0.1, "low": -0.2}
EPSILONS, BLOCKS, SIZE = [0.5, 2.0], 2, 2


@pytest.fixture
def made(monkeypatch):
    """A cell of two methods that give made-up draws, on a clock that goes on by one second at each look."""
    draws, warmed = {}, []

    @functools.cache
    def method(name):
        def infer(task, releases, rng, budget):
            assert releases.shape[1:] == (1,) and task.n == 8
            drawn = 0.5 + SHIFT[name] + 0.1 * rng.standard_normal((len(releases), budget.chains, budget.draws, 1))
            if budget.draws == 30:
                assert budget == (2, 30, 5)
                draws.setdefault(name, []).extend(drawn)
            else:
                warmed.append((name, len(releases)))
            return Inferred(drawn, np.arange(7.0, 7 + len(releases)))

        return infer

    monkeypatch.setattr(methods, "method", method)
    monkeypatch.setattr(scoring, "_WARMED", set())
    monkeypatch.setattr(scoring, "time", SimpleNamespace(process_time=itertools.count().__next__))
    settings = {"task": "binomial", "prior": [3, 2], "n": 8, "methods": sorted(SHIFT), "reference_draws": 300}
    cell = run("noise_aware/rivals", BLOCKS * SIZE, SIZE, epsilon=EPSILONS, chains=2, draws=30, burn_in=5, **settings)
    # Before time is taken every method runs once, on one release.
    assert warmed == [("high", 1), ("low", 1)]
    return cell, draws


def quantiles(values) -> np.ndarray:
    """At 400 even levels, between two values by a straight line."""
    ordered, levels = np.sort(values), (np.arange(400) + 0.5) / 400
    return np.interp(levels * (len(ordered) - 1), np.arange(len(ordered)), ordered)


def test_scores_are_those_of_the_draws(made):
    """Each score by a loop over releases, from stored references in single precision: 1e-5."""
    cell, draws = made
    table = cell.tables["rivals"]
    assert len(table) == 4 and cell.tables["rivals_refused"].empty
    for (i, epsilon), name in itertools.product(enumerate(EPSILONS), SHIFT):
        scores = {"distance": [], "error": [], "sd": [], "c2st": [], "z2": [], "ess": []}
        for k in range(BLOCKS * SIZE):
            block, place = divmod(k, SIZE)
            if place == 0:
                theta = cell.streams("data", block).beta(3, 2, SIZE)
                ranks = cell.streams("ranks", block)
            exact, drawn = (
                each.ravel().astype(float) for each in (cell.arrays["reference"][i, k], draws[name][4 * i + k])
            )
            mean, sd = exact.mean(), exact.std()
            apart = quantiles((drawn - mean) / sd) - quantiles((exact - mean) / sd)
            scores["distance"].append(sum(abs(apart)) / 400)
            scores["error"].append(((drawn.mean() - mean) / sd) ** 2)
            scores["sd"].append(drawn.std() / sd - 1)
            # Worth 7 and 8 draws of 60: every ninth, every eighth.
            some = drawn[:: 9 - place]
            scores["c2st"].append(metrics.c2st(*(((each - mean) / sd)[:, None] for each in (drawn, exact)), ranks))
            scores["z2"].append(norm.ppf((sum(some < theta[place]) + ranks.random()) / (len(some) + 1)) ** 2)
            scores["ess"].append(7.0 + place)
        line = row(table, method=name, epsilon=epsilon)
        for column, score in (("distance", "distance"), ("sd_error", "sd"), ("c2st", "c2st"), ("z2", "z2")):
            assert (line[column], line[f"{column}_sem"]) == pytest.approx(mean_and_error(scores[score]), rel=1e-5)
        root = math.sqrt(np.mean(scores["error"]))
        assert line.mean_error == pytest.approx(root, rel=1e-5)
        # The error of a root, by its slope.
        assert line.mean_error_sem == pytest.approx(mean_and_error(scores["error"])[1] / 2 / root, rel=1e-4)
        # A second for each of two blocks, over four releases.
        assert (line.seconds, line.ess, line.ess_per_second) == (0.5, 7.5, 15.0)
        assert (line.task, line.n, line.n_releases, line.n_draws, line.failed) == ("binomial", 8, 4, 60, 0)


def test_releases_are_of_the_counts_at_the_noise_s_scale(made):
    """Counts from the streams of data and records, and Laplace noise of scale 1/ε from the mechanism's, to rounding."""
    cell, _ = made
    for i, epsilon in enumerate(EPSILONS):
        for block in range(BLOCKS):
            theta = cell.streams("data", block).beta(3, 2, SIZE)
            counts = cell.streams("records", block).multinomial(8, np.stack([theta, 1 - theta], axis=1))
            asked, released = cell.ledger.of(f"epsilon={epsilon:g}")[block]
            assert np.array_equal(asked.statistics, counts)
            noise = cell.streams("mechanism", block).laplace(size=(SIZE, 1)) / epsilon
            np.testing.assert_allclose(released.values, counts[:, :1] + noise)
            np.testing.assert_array_equal(cell.arrays["releases"][i, SIZE * block :][:SIZE], released.values)


def test_ranks_give_coverage_and_two_tests():
    """30 releases of `exact`, whatever the study's trials are: shares of ranks within intervals, z² and KS."""
    settings = {"task": "binomial", "prior": [3, 2], "n": 8, "methods": ["exact", "gibbs_independent"]}
    cell = run("noise_aware/rivals", 2, 2, **settings, epsilon=[1.0], ranks=30, chains=2, draws=50, burn_in=5)
    assert cell.arrays["ranked"].shape == (2, 1, 30, 1) and np.isnan(cell.arrays["ranked"][1]).all()
    assert cell.tables["rivals"].empty and cell.tables["rivals_refused"].status.tolist() == ["refused"]
    (line,) = cell.tables["rivals_calibration"].itertuples()
    ranks = cell.arrays["ranked"][0, 0, :, 0]
    theta = cell.streams("data", 0).beta(3, 2, 30)
    # The rank of the largest true parameter is above that of the smallest.
    assert ranks[theta.argmax()] > ranks[theta.argmin()] and line.n_releases == 30
    for share in (50, 95):
        inside = np.abs(ranks - 0.5) < share / 200
        assert getattr(line, f"coverage_{share}") == pytest.approx(inside.mean())
    assert line.z2 == pytest.approx(np.mean(norm.ppf(ranks) ** 2))
    assert line.rank_p == pytest.approx(kstest(ranks, "uniform", method="asymp").pvalue)


def test_who_knows_n_has_a_narrower_posterior_of_the_same_release():
    """For bits, by sums over counts on either side: ratios of four releases within 5 of the draws' errors."""
    settings = {"task": "private_n_binomial", "prior": [3, 2], "n": 4, "methods": ["naive"], "reference_draws": 20_000}
    cell = run("noise_aware/rivals", 4, 4, **settings, epsilon=[0.5], chains=1, draws=50, burn_in=0)
    _, released = cell.ledger.of("epsilon=0.5")[0]
    numbers = cell.ledger.of("epsilon=0.5")[0][0].statistics.sum(axis=1)
    for release, number, ratio in zip(released.values, numbers, cell.arrays["unknown_n"][0], strict=True):
        sds = []
        for known in (range(9), [int(number)]):
            pairs = np.array([(ones, n - ones) for n in known for ones in range(n + 1)])
            weight = betabinom.pmf(pairs[:, 0], pairs.sum(axis=1), 3, 2) * np.exp(
                -0.5 * abs(pairs - release).sum(axis=1)
            )
            weight /= weight.sum()
            a, b = 3 + pairs[:, 0], 2 + pairs[:, 1]
            mean = a / (a + b)
            sds.append(math.sqrt(weight @ (mean * (a + 1) / (a + b + 1)) - (weight @ mean) ** 2))
        assert ratio == pytest.approx(sds[0] / sds[1], rel=5 * math.sqrt(0.5 / 20_000 + 0.5 / 4000))
    row = cell.tables["unknown_n"].iloc[0]
    assert (row.sd_ratio, row.sd_ratio_sem) == pytest.approx(mean_and_error(cell.arrays["unknown_n"][0]))


def test_the_control_is_exact_draws_that_are_a_tenth_too_narrow():
    """1,000 exact draws and 1,000 others: the best accuracy is 0.5255 under a normal law, ours a little less."""
    settings = {"task": "binomial", "prior": [30, 20], "n": 8, "methods": ["naive"], "reference_draws": 2000}
    cell = run("noise_aware/rivals", 40, 40, **settings, epsilon=[1.0], chains=1, draws=50, burn_in=0)
    row = cell.tables["classifier"].iloc[0]
    assert (
        row.narrow == pytest.approx(0.524, abs=5 * row.narrow_sem) and row.narrow_sem < 0.003 and row.n_releases == 40
    )


def test_a_cell_without_methods_has_references_alone():
    cell = run("noise_aware/rivals", 2, 2, methods=[], task="binomial", prior=[3, 2], n=8, epsilon=[1.0])
    assert cell.tables["rivals"].empty and cell.arrays["reference"].shape == (1, 2, 500, 1)


def test_a_truth_among_equal_draws_has_a_random_rank_between_them():
    """Two of six draws lie below the truth and three are equal to it: ranks 2 to 6 of 7 are as likely, one by one."""
    chains = np.array([1.0, 2.0, 3.0, 3.0, 3.0, 4.0]).reshape(1, 1, 6, 1)
    reference = [metrics.Reference.of(np.linspace(0, 5, 50)[:, None])]
    scored = metrics.score(Inferred(chains), reference, np.array([[3.0]]), np.random.default_rng(1))
    rng = np.random.default_rng(1)
    metrics.c2st(chains[0, 0], reference[0].draws, rng)
    assert scored[0, 5] == pytest.approx(norm.ppf((2 + 4 * rng.random()) / 7) ** 2)


def test_a_law_of_several_parameters_is_compared_along_its_axes_and_other_directions():
    """Normal laws with equal margins and a correlation: E|Z| |s − 1| along each direction of standard deviation s."""
    directions = metrics._directions(2)
    np.testing.assert_array_equal(directions[:, :2], np.eye(2))
    assert directions.shape == (2, 22) and np.allclose(np.hypot(*directions), 1)
    assert metrics._directions(1).tolist() == [[1.0]]
    first, second = np.random.default_rng(2).standard_normal((2, 40_000))
    mixed = np.stack([first, 0.8 * first + 0.6 * second], axis=1)
    exact = metrics.Reference.of(np.stack([first, second], axis=1) * [3.0, 0.5] + 7)
    apart = np.abs(exact.quantiles(mixed * [3.0, 0.5] + 7) - exact.slices).mean(axis=0)
    spread = np.sqrt(1 + 2 * 0.8 * directions[0] * directions[1])
    # Quantiles of 40,000 draws: 0.005 each, and more in the tails.
    np.testing.assert_allclose(apart, math.sqrt(2 / math.pi) * np.abs(spread - 1), atol=0.02)


def test_one_release_is_a_cell_too():
    cell = run("noise_aware/rivals", 1, 1, methods=["naive"], task="binomial", prior=[3, 2], n=8, epsilon=[1.0])
    shapes = {name: cell.arrays[name].shape for name in ("releases", "reference", "reference_mean", "scores")}
    assert shapes == {
        "releases": (1, 1, 1), "reference": (1, 1, 500, 1), "reference_mean": (1, 1, 1), "scores": (1, 1, 7, 1)
    }  # fmt: skip


def test_scores_of_two_parameters_are_their_means():
    """One law is moved by half a standard deviation, the other is twice as wide: exactly."""
    exact = np.random.default_rng(3).standard_normal((500, 2))
    exact = (exact - exact.mean(axis=0)) / exact.std(axis=0)
    chains = (exact * [1.0, 2.0] + [0.5, 0.0])[None, None]
    truth = np.array([[0.2, -0.4]])
    scored = metrics.score(Inferred(chains), [metrics.Reference.of(exact)], truth, np.random.default_rng(4))
    rng = np.random.default_rng(4)
    told, apart = (score(chains[0, 0], exact, rng) for score in (metrics.c2st, metrics.mmd2))
    ranks = ((chains[0, 0] < truth).sum(axis=0) + rng.random(2)) / 501
    expected = [(0.25 + 0) / 2, (0 + 1) / 2, told, apart, np.mean(norm.ppf(ranks) ** 2), 500]
    assert scored[0, 1:].tolist() == pytest.approx(expected)


def test_two_chains_that_disagree_are_worth_few_draws():
    """Chains about −3 and 3: fewer than ten draws; one chain's draws count as they are."""
    chains = np.random.default_rng(5).standard_normal((1, 2, 200, 1)) + np.array([-3.0, 3.0])[:, None, None]
    reference = [metrics.Reference.of(np.linspace(-4, 4, 50)[:, None])]
    for draws, most in ((chains, 10), (chains.reshape(1, 1, 400, 1), 400)):
        size = metrics.score(Inferred(draws), reference, np.zeros((1, 1)), np.random.default_rng(6))[0, -1]
        assert size <= most and (size < 10) == (most == 10)


# The normal approximation against the exact posterior


def left_unchanged(prior, noisy: float, n: int, scale: float):
    """Values of θ, and the law that θ | s and the normal s | θ, y lead to: a hundred steps from even shares."""
    theta, _ = midpoints(0, 1, 400)
    s, _ = midpoints(0, n, 700)
    logs = -((s[:, None] - n * theta) ** 2) / (2 * n * theta * (1 - theta)) - np.abs(noisy - s[:, None]) / scale
    to_sum = np.exp(logs - logs.max(axis=0))
    to_sum /= to_sum.sum(axis=0)
    to_theta = (prior[0] + s - 1) * np.log(theta[:, None]) + (prior[1] + n - s - 1) * np.log1p(-theta[:, None])
    to_theta = np.exp(to_theta - to_theta.max(axis=0))
    to_theta /= to_theta.sum(axis=0)
    law = np.full(len(theta), 1 / len(theta))
    for _ in range(100):
        law = to_theta @ (to_sum @ law)
    return theta, law


def check_approximation(cell, distances, tolerance: float) -> None:
    """Compare the row of `approximation` with the distances by release."""
    (kept,) = cell.tables["approximation"].itertuples()
    assert (kept.total_variation, kept.total_variation_sem) == pytest.approx(mean_and_error(distances), rel=tolerance)
    assert kept.total_variation_max == pytest.approx(max(distances), rel=tolerance)
    assert (kept.n_releases, kept.epsilon) == (4, 1.2)


def test_the_law_of_the_chain_on_bits_is_the_one_that_it_leaves_unchanged():
    """Steps of the chain's law on a grid against sums over all counts; 3e-4 of a distance is that of 400 cells."""
    cell = run("noise_aware/rivals", 4, 2, methods=[], task="binomial", prior=[2, 3], n=4, epsilon=[1.2])
    distances, scale = [], 1 / 1.2
    for _, release in cell.ledger.of("epsilon=1.2"):
        for noisy in release.values[:, 0]:
            theta, law = left_unchanged((2, 3), noisy, 4, scale)
            exact = counts_density(count_weights((2, 3), [noisy], 4, scale), (2, 3), theta)
            distances.append(np.abs(law - exact / exact.sum()).sum() / 2)
    check_approximation(cell, distances, 3e-4)
    assert cell.tables["approximation"].prior[0] == "2, 3"


def even_sum(x, parts: int):
    """Density at x of a sum of uniform variates on [0, 1]."""
    terms = [(-1) ** j * math.comb(parts, j) * (x >= j) * np.abs(x - j) ** (parts - 1) for j in range(parts + 1)]
    return sum(terms) / math.factorial(parts - 1)


def redacted_density(theta, noisy: float, n: int, scale: float, low: float, high: float):
    """Density of the noisy sum of n exponential records within [low, high], by how many of them lie there."""
    inside = np.exp(-theta * low) - np.exp(-theta * high)
    density = (1 - inside) ** n * math.exp(-abs(noisy) / scale)
    for k in range(1, n + 1):
        s, width = midpoints(k * low, k * high, 1000)
        # Their densities θ e^(−θt) multiply to θ^k e^(−θs) on a cube.
        volume = (high - low) ** (k - 1) * even_sum((s - k * low) / (high - low), k)
        sums = (theta[:, None] ** k * np.exp(-theta[:, None] * s) * volume) @ np.exp(-np.abs(noisy - s) / scale) * width
        density = density + math.comb(n, k) * (1 - inside) ** (n - k) * sums
    return density


def test_the_normal_model_of_a_redacted_sum_is_compared_with_its_own_law():
    """Sums over how many of three records are left, and integrals over their sum; 1e-3 is that of the study's cells."""
    cell = run("noise_aware/rivals", 4, 2, methods=[], task="exponential", prior=[8, 2], n=3, epsilon=[1.2])
    low, high = lomax(8, 2)
    distances, scale = [], high / 1.2
    for _, release in cell.ledger.of("epsilon=1.2"):
        for noisy in release.values[:, 0]:
            theta, normal = redacted_mass((8, 2), noisy, 3, scale, low, high)
            exact = gamma_density(theta, 8, 2) * redacted_density(theta, noisy, 3, scale, low, high)
            distances.append(np.abs(normal - exact / exact.sum()).sum() / 2)
    check_approximation(cell, distances, 1e-3)


def test_only_one_parameter_has_a_normal_approximation():
    for task, prior in (("multinomial", [1, 2, 3]), ("collider", [1, 1])):
        cell = run("noise_aware/rivals", 1, 1, methods=[], task=task, prior=prior, n=4, epsilon=[1.0])
        assert cell.tables["approximation"].empty
