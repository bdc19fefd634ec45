"""All mechanisms for bits at one (ε, δ), computed a second time: settings, divergences, errors, ranks, differences.

Integrals are sums over midpoints, and laws are taken from the papers. The tests import nothing that they test.
"""

from __future__ import annotations

import itertools
import math
from statistics import NormalDist

import numpy as np
import pytest
from recomputed import beta_density, kl, mean_and_error, midpoints, renyi, row, run
from scipy.special import betainc

ALPHA, BETA, N, A0, EPSILON, DELTA = 3.0, 4.0, 6, 0.1, 1.0, 0.01
BLOCKS, SIZE = 3, 4
METHODS = ["concentrated", "diffused", "direct", "gaussian", "geometric", "laplace", "ops"]


@pytest.fixture(scope="module")
def cell():
    return run(
        "fair_axis/beta_bernoulli", BLOCKS * SIZE, SIZE, alpha=ALPHA, beta=BETA, n=N, a0=A0, epsilon=[EPSILON],
        delta=[DELTA], methods=METHODS,
    )  # fmt: skip


def data(cell) -> tuple[list[float], list[int]]:
    """Parameters and numbers of ones of all trials, from the blocks' streams."""
    theta, ones = [], []
    for block in range(BLOCKS):
        rng = cell.streams("data", block)
        drawn = rng.beta(ALPHA, BETA, SIZE)
        theta += drawn.tolist()
        ones += rng.binomial(N, drawn).tolist()
    return theta, ones


def settings(cell) -> dict:
    """Calibrated settings by method and accounting, as the table has them."""
    table = cell.tables["beta_bernoulli"]
    table = table[(table.method != "non_private") & (table.metric == "l1_error") & (table.statistic == "sample")]
    return {(line.method, line.accounting): line.setting for line in table.itertuples()}


def law(method: str, setting: float, ones: float) -> tuple[float, float]:
    """(α, β) of the law that a released draw has."""
    if method == "concentrated":
        return ALPHA / setting + ones, BETA / setting + N - ones
    if method == "ops":
        t = max(1.0, 2 * math.log((1 - A0) / A0) / setting)
        return 1 + (ALPHA - 1 + ones) / t, 1 + (BETA - 1 + N - ones) / t
    r = setting if method == "diffused" else 1.0
    return ALPHA + r * ones, BETA + r * (N - ones)


def hockey_stick(p, q, width: float) -> float:
    """The larger one of both directions."""
    return max(float(np.maximum(a - math.exp(EPSILON) * b, 0).sum() * width) for a, b in ((p, q), (q, p)))


def spent(method: str, setting: float) -> float:
    """δ of the worst neighbours at ε."""
    if method in ("laplace", "gaussian"):
        x, width = midpoints(-60, 60, 400_000)
        scale = 1 / setting if method == "laplace" else setting
        shape = (lambda z: np.exp(-np.abs(z)) / 2) if method == "laplace" else normal
        return hockey_stick(shape(x / scale) / scale, shape((x - 1) / scale) / scale, width)
    if method == "geometric":
        k = np.arange(-200, 201)
        p, q = (np.exp(-np.abs(each) * setting) * math.tanh(setting / 2) for each in (k, k - 1))
        return hockey_stick(p, q, 1.0)
    theta, width = midpoints(A0, 1 - A0) if method == "ops" else midpoints()
    found = []
    for ones in range(N):
        laws = [beta_density(theta, *law(method, setting, s)) for s in (ones, ones + 1)]
        p, q = (each / (each.sum() * width) for each in laws)
        found.append(hockey_stick(p, q, width))
    return max(found)


def normal(z):
    return np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)


def largest(method: str, setting: float, order: float) -> float:
    """The largest Rényi divergence of neighbours; λ/(2σ²) of normal noise."""
    if method == "gaussian":
        return order / (2 * setting**2)
    laws = [law(method, setting, s) for s in range(N + 1)]
    return max(renyi(p, q, order) for pair in itertools.pairwise(laws) for p, q in (pair, pair[::-1]))


def test_settings_spend_the_budget_by_either_accounting(cell):
    """δ by sums, to 1e-3 as bisection leaves it; conversion of Rényi curves over 400 orders to 2 % of ε."""
    known = settings(cell)
    for method in METHODS:
        if method == "direct":
            continue
        exact, converted = known[method, "exact"], known[method, "converted"]
        # A coefficient of 1 is the true posterior, which may leave something over.
        free = method in ("concentrated", "diffused") and exact == 1
        assert spent(method, exact) == pytest.approx(DELTA, rel=2e-3) or (free and spent(method, exact) < DELTA)
        if method in ("laplace", "geometric", "ops"):
            # Randomised response is the worst of what is ε₀-DP.
            assert (math.exp(converted) - math.exp(EPSILON)) / (1 + math.exp(converted)) == pytest.approx(DELTA)
        else:
            orders = 1 + np.geomspace(0.02, 300, 400)
            implied = min(
                largest(method, converted, order)
                + math.log1p(-1 / order)
                - (math.log(DELTA) + math.log(order)) / (order - 1)
                for order in orders.tolist()
            )
            assert implied == pytest.approx(EPSILON, rel=2e-2) or (converted == 1 and implied < EPSILON)


def noisy_counts(cell, method, setting, ones) -> tuple[list[float], list]:
    """Noisy numbers of ones, and generators that the noise was taken from; the noise is that of the block's stream."""
    counts, generators = [], []
    for block in range(BLOCKS):
        rng = cell.streams("mechanism", block)
        noise = rng.laplace(0, 1 / setting, SIZE) if method == "laplace" else rng.normal(0, setting, SIZE)
        generators.append(rng)
        counts += [s + e for s, e in zip(ones[SIZE * block :], noise.tolist(), strict=False)]
    return counts, generators


def mixture(method: str, setting: float, ones: int, theta):
    """Density of a draw from the posterior of a noisy count, whatever the noise."""
    if method == "geometric":
        noise = np.arange(-300.0, 301.0)
        shares = np.exp(-np.abs(noise) * setting)
    else:
        scale = 1 / setting if method == "laplace" else setting
        noise, _ = midpoints(-25 * scale, 25 * scale, 12_000)
        shares = np.exp(-np.abs(noise) / scale) if method == "laplace" else np.exp(-((noise / scale) ** 2) / 2)
    counts, shares = np.clip(ones + noise, 0, N), shares / shares.sum()
    values, place = np.unique(counts, return_inverse=True)
    shares = np.bincount(place, shares)
    return sum(
        share * beta_density(theta, ALPHA + count, BETA + N - count)
        for count, share in zip(values, shares, strict=True)
        if share > 1e-12
    )


def scores(cell, method, accounting, setting) -> dict[str, list[float]]:
    """|draw − θ|, |mean − θ|, KL from the true posterior on [a0, 1 − a0], and the quantile of θ, of every trial."""
    theta, ones = data(cell)
    grid, width = midpoints(A0, 1 - A0, 400)
    place = f"{method}/{accounting}/epsilon={EPSILON:g}/delta={DELTA:g}"
    found = {"sample": [], "mean": [], "kl": [], "quantile": []}
    released = [None] * len(theta) if method == "non_private" else cell.ledger.released(place).ravel().tolist()
    noisy = method in ("laplace", "gaussian", "geometric")
    generators = [cell.streams("mechanism", block) for block in range(BLOCKS)]
    if method in ("laplace", "gaussian"):
        counts, generators = noisy_counts(cell, method, setting, ones)
        assert released == pytest.approx(counts)
    if method != "non_private":
        told = np.concatenate([request.statistics for request, _ in cell.ledger.of(place)])
        assert told.tolist() == [[s, N - s] for s in ones]
    known = {}
    for i, (t, s) in enumerate(zip(theta, ones, strict=True)):
        count = min(max(released[i], 0.0), float(N)) if noisy else float(s)
        conjugate = noisy or method == "non_private"
        a, b = (ALPHA + count, BETA + N - count) if conjugate else law(method, setting, s)
        if conjugate and method != "geometric":
            if i % SIZE == 0:
                posteriors = []
                for k in range(i, i + SIZE):
                    c = min(max(released[k], 0.0), float(N)) if noisy else float(ones[k])
                    posteriors.append((ALPHA + c, BETA + N - c))
                drawn = generators[i // SIZE].beta(*np.transpose(posteriors))
            found["sample"].append(abs(drawn[i % SIZE] - t))
            found["mean"].append(abs(a / (a + b) - t))
        elif not conjugate:
            found["sample"].append(abs(released[i] - t))
        low, high = (betainc(a, b, A0), betainc(a, b, 1 - A0)) if method == "ops" else (0.0, 1.0)
        found["quantile"].append(min(1.0, max(0.0, (betainc(a, b, t) - low) / (high - low))))
        if s not in known:
            true = beta_density(grid, ALPHA + s, BETA + N - s)
            drawn_from = mixture(method, setting, s, grid) if noisy else beta_density(grid, a, b)
            known[s] = kl(true, drawn_from, width)
        found["kl"].append(known[s])
    return found


def ks_and_error(values) -> tuple[float, float]:
    """KS distance from uniform, and √(F(1 − F)/M) with F the share of values on the side where it is found.

    At F of 0 and 1 an error of which z are the width z²/(M + z²) of Wilson's 95 % interval.
    """
    ordered, size = sorted(values), len(values)
    steps = [(share / size - value if share > i else value - share / size, share / size)
             for i, value in enumerate(ordered) for share in (i, i + 1)]  # fmt: skip
    distance, share = max(steps)
    z = NormalDist().inv_cdf(0.975)
    return distance, math.sqrt(share * (1 - share) / size) if 0 < share < 1 else z / (size + z * z)


def test_errors_divergences_and_ranks_are_those_of_the_releases(cell):
    """Errors and ranks differ by rounding, divergences by 2e-3 of 400 midpoints and 12,000 of the noise."""
    found, table = {}, cell.tables["beta_bernoulli"]
    for (method, accounting), setting in [(("non_private", ""), math.nan), *settings(cell).items()]:
        found[method, accounting] = own = scores(cell, method, accounting, setting)
        place = {"method": method, "accounting": accounting, "n": N}
        place |= {"epsilon": None, "delta": None} if method == "non_private" else {"epsilon": EPSILON, "delta": DELTA}
        conjugate = method in ("non_private", "laplace", "gaussian", "geometric")
        if method != "geometric":
            kept = row(table, statistic="sample", metric="l1_error", **place)
            assert (kept["mean"], kept["sem"]) == pytest.approx(mean_and_error(own["sample"]))
            assert kept.n_repeats == BLOCKS * SIZE
            assert len(table[(table.method == method) & (table.statistic == "mean")]) == conjugate * (
                1 if method == "non_private" else 2
            )
            if conjugate:
                kept = row(table, statistic="mean", metric="l1_error", **place)
                assert (kept["mean"], kept["sem"]) == pytest.approx(mean_and_error(own["mean"]))
        kept = row(table, statistic="sample", metric="kl", **place)
        assert (kept["mean"], kept["sem"]) == pytest.approx(mean_and_error(own["kl"]), rel=2e-3, abs=1e-9)
        kept = row(table, statistic="posterior" if conjugate else "sample", metric="ks", **place)
        assert (kept["mean"], kept["sem"]) == pytest.approx(ks_and_error(own["quantile"]))
    for line in cell.tables["beta_bernoulli_pairs"].itertuples():
        assert line.first < line.second and (line.epsilon, line.delta, line.n) == (EPSILON, DELTA, N)
        name = "sample" if line.metric == "l1_error" else "kl"
        first, second = (found[method, line.accounting][name] for method in (line.first, line.second))
        if first and second:
            expected = mean_and_error([a - b for a, b in zip(first, second, strict=True)])
            tolerance = {"abs": 1e-12} if name == "sample" else {"rel": 5e-3, "abs": 2e-4}
            assert (line.difference_mean, line.difference_sem) == pytest.approx(expected, **tolerance)
