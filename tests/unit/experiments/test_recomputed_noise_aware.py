"""Studies of Bernstein and Sheldon (2018), computed a second time: inputs of samplers, and results from their draws."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from recomputed import ks, mean_and_error, midpoints, row, run, spied
from recomputed_noise_aware import (
    count_weights,
    counts_cdf,
    counts_density,
    exponential_moments,
    gamma_density,
    lomax,
    poisson_moments,
    redacted_mass,
    share_below,
    watched_chains,
)
from scipy.special import gammainc, ndtri
from scipy.stats import chi2

from privpost.experiments.bernstein2018 import trials
from privpost.experiments.bernstein2018.calibration import study as calibration
from privpost.experiments.bernstein2018.utility import study as utility
from privpost.samplers.noise_aware import redacted as noise_aware_redacted


def kernel(p, q):
    return np.exp(-((p[:, None] - q) ** 2) / 2)


def from_law(draws, points, law) -> float:
    """Unbiased MMD² of draws from a law of shares at points: the double sum over different draws."""
    size = len(draws)
    between = (kernel(draws, draws).sum() - size) / (size * (size - 1))
    return between - 2 * (kernel(draws, points) @ law).mean() + law @ kernel(points, points) @ law


def of_laws(points, p, q) -> float:
    """MMD² of two laws of shares at the same points."""
    return (p - q) @ kernel(points, points) @ (p - q)


def check_distances(table, found, rel: float) -> None:
    """Compare the rows of `utility` with squared distances by method, trial by trial."""
    assert len(table) == 3 and (table.n_trials == len(found["naive"])).all()
    for method, values in found.items():
        kept = row(table, method=method)
        mean, error = mean_and_error(values)
        assert (kept.mmd2_mean, kept.mmd2_sem) == pytest.approx((mean, error), rel=rel, abs=1e-9), method
        assert kept.mmd == pytest.approx(math.sqrt(max(mean, 0.0)), rel=rel, abs=1e-5)
        assert kept.negative_share == sum(value < 0 for value in values) / len(values)
        assert kept.sampling == ("mcmc" if method == "gibbs" else "exact")
        if method == "naive":
            assert math.isnan(kept.below_naive_mean) and math.isnan(kept.below_naive_sem)
        else:
            below = mean_and_error([a - b for a, b in zip(found["naive"], values, strict=True)])
            # A difference is as exact as what it is between.
            close = rel * sum(found["naive"]) / len(found["naive"])
            assert (kept.below_naive_mean, kept.below_naive_sem) == pytest.approx(below, rel=rel, abs=close)
    assert math.isnan(row(table, method="exact").rejected_share)


def drawn_counts(cell, block: int, prior, n: int) -> list[list[int]]:
    """Counts of both trials of a block, by its stream: the probabilities, then the data."""
    rng = cell.streams("data", block, n=n)
    if len(prior) == 2:
        return [[s, n - s] for s in (int(rng.binomial(n, p)) for p in rng.beta(*prior, 2))]
    gammas = rng.standard_gamma(prior, (2, len(prior)))
    return [rng.multinomial(n, shares / shares.sum()).tolist() for shares in gammas]


@pytest.mark.parametrize(("model", "prior", "n"), [("binomial", [2, 3], 6), ("multinomial", [2, 2, 3], 4)])
def test_distances_of_counts_are_double_integrals(monkeypatch, model, prior, n):
    """Integrals of the kernel over sums of all counts, and the double sum over draws; 1e-4 is that of 500 midpoints."""
    chains, told = watched_chains(monkeypatch, utility), spied(monkeypatch, trials, "bounded_kernel")
    cell = run("bernstein2018/utility", 4, 2, model=model, prior=prior, n=[n], epsilon=1.5, burn_in=3, draws=107)
    points, width = midpoints(number=500)
    # One number of ones is released, or all counts, of which two change.
    released, scale = (1, 1 / 1.5) if model == "binomial" else (3, 2 / 1.5)
    found, rejected, projected = {"gibbs": [], "exact": [], "naive": []}, [], []
    for block, (_, release) in enumerate(cell.ledger.of(f"n={n}")):
        data, own, noisy = drawn_counts(cell, block, prior, n), chains[block], release.values
        noise = cell.streams("mechanism", block, n=n).laplace(size=(2, released))
        np.testing.assert_allclose(noisy, np.array(data)[:, :released] + scale * noise)
        _, given, records, given_scale = told[block].given
        assert (given.T.tolist(), records, given_scale) == (noisy.tolist(), n, pytest.approx(scale))
        assert (own.burn_in, own.draws, len(own.theta)) == (3, 107, 107)
        rejected.append(own.proposals.rejected_share)
        for trial, (counts, values) in enumerate(zip(data, noisy.tolist(), strict=True)):
            valid = [max(y, 0.0) for y in values]
            if model == "binomial":
                valid = [min(valid[0], n), n - min(valid[0], n)]
            projected.append(valid[:released] != values)
            weights = count_weights(prior, values, n, scale)
            laws = {"naive": {tuple(valid): 1.0}, "exact": weights, "true": {tuple(counts): 1.0}}
            laws = {name: counts_density(law, prior, points) * width for name, law in laws.items()}
            for method in ("naive", "exact"):
                found[method].append(of_laws(points, laws[method], laws["true"]))
            first = own.theta[:, trial] if model == "binomial" else own.theta[:, 0, trial]
            found["gibbs"].append(from_law(first, points, laws["true"]))
    table = cell.tables["utility"]
    check_distances(table, found, 1e-4)
    assert row(table, method="gibbs").rejected_share == pytest.approx(sum(rejected) / 2)
    assert row(table, method="naive").rejected_share == sum(projected) / 4
    assert 0 < sum(projected) < 4


def test_distances_of_rates_are_double_integrals(monkeypatch):
    """As of counts, for integrals over the normal model; the study's bins of 0.04 move a distance by some 0.1 %."""
    chains, told = watched_chains(monkeypatch, utility), spied(monkeypatch, noise_aware_redacted, "redacted_kernel")
    cell = run(
        "bernstein2018/utility", 4, 2, model="exponential", prior=[8, 2], n=[5], epsilon=1.5, burn_in=3, draws=9,
        variant="paper",
    )  # fmt: skip
    found, points = {"gibbs": [], "exact": [], "naive": []}, None
    for block, (_, release) in enumerate(cell.ledger.of("n=5")):
        rng = cell.streams("data", block, n=5)
        theta = rng.standard_gamma(8, 2) / 2
        records = rng.standard_exponential((2, 5)) / theta[:, None]
        noise = cell.streams("mechanism", block, n=5).laplace(size=2)
        model, given, n, scales, lows, highs, segments = told[block].given
        assert (n, segments) == (5, "independent") and model.prior.tolist() == [8, 2]
        for trial in range(2):
            low, high = (-math.log(1 - p) / theta[trial] for p in (0.025, 0.975))
            redacted = sum(x for x in records[trial] if low <= x <= high)
            # A record may leave: Δ is the upper bound.
            noisy = redacted + high / 1.5 * noise[trial]
            assert release.values[trial, 0] == pytest.approx(noisy)
            assert (given[trial], scales[trial]) == pytest.approx((noisy, high / 1.5))
            assert (lows[trial], highs[trial]) == pytest.approx((low, high))
            points, exact = redacted_mass((8, 2), noisy, 5, high / 1.5, low, high)
            full = sum(records[trial])
            true, naive = (
                gamma_density(points, 8 + 5, 2 + total) for total in (full, max(0.0, full + high / 1.5 * noise[trial]))
            )
            true, naive = true / true.sum(), naive / naive.sum()
            found["exact"].append(of_laws(points, exact, true))
            found["naive"].append(of_laws(points, naive, true))
            found["gibbs"].append(from_law(chains[block].theta[:, trial], points, true))
    check_distances(cell.tables["utility"], found, 3e-3)
    assert 0 < sum(value < 0 for value in found["gibbs"]) < 4
    # The naive method reads private records, which no finite ε covers.
    assert math.isinf(cell.ledger.spent("naive/n=5").epsilon)


# Bounds, segments, and whether there is a posterior without a chain.
VARIANTS = {
    "paper": ("true_theta", "independent", True),
    "corrected": ("public", "multinomial", True),
    "public_bounds": ("public", "independent", False),
    "joint_segments": ("true_theta", "multinomial", False),
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_quantiles_under_redaction_are_of_what_was_redacted(monkeypatch, variant):
    """Gamma laws of all records, integrals over the redacted sum (to 1e-4: 800 cells), and counts of draws below θ."""
    chains, told = watched_chains(monkeypatch, calibration), spied(monkeypatch, noise_aware_redacted, "redacted_kernel")
    cell = run(
        "bernstein2018/calibration", 6, 2, model="exponential", prior=[8, 2], variant=variant, n=[7],
        epsilon=[0.8, 2.0], burn_in=3, draws=20, part="segments",
    )  # fmt: skip
    bounds, segments, with_exact = VARIANTS[variant]
    found = {"non_private": [], **{(method, e): [] for method in ("gibbs", "exact") for e in (0.8, 2.0)}}
    rejected: dict[float, list] = {0.8: [], 2.0: []}
    for block in range(3):
        rng = cell.streams("data", block, n=7)
        theta = rng.standard_gamma(8, 2) / 2
        records = rng.standard_exponential((2, 7)) / theta[:, None]
        found["non_private"] += [gammainc(15, (2 + sum(x)) * t) for x, t in zip(records, theta, strict=True)]
        for place, epsilon in enumerate((0.8, 2.0)):
            noise = cell.streams("mechanism", block, n=7).laplace(size=2)
            _, release = cell.ledger.of(f"gibbs/n=7/epsilon={epsilon:g}")[block]
            for trial in range(2):
                low, high = lomax(8, 2)
                if bounds == "true_theta":
                    low, high = (-math.log(1 - p) / theta[trial] for p in (0.025, 0.975))
                noisy = sum(x for x in records[trial] if low <= x <= high) + high / epsilon * noise[trial]
                assert release.values[trial, 0] == pytest.approx(noisy)
                if with_exact:
                    law = redacted_mass((8, 2), noisy, 7, high / epsilon, low, high)
                    found["exact", epsilon].append(share_below(*law, theta[trial]))
                # Every block's chains run at the first ε, then at the second.
                _, given, n, scales, lows, highs, how = told[2 * block + place].given
                assert (n, how) == (7, segments)
                kept = [np.broadcast_to(value, 2)[trial] for value in (given, scales, lows, highs)]
                assert kept == pytest.approx([noisy, high / epsilon, low, high])
                own = chains[2 * block + place]
                assert (own.burn_in, own.draws) == (3, 20)
                found["gibbs", epsilon].append(sum(own.theta[:, trial] <= theta[trial]) / 20)
            rejected[epsilon].append(own.proposals.rejected_share)
    table = cell.tables["truncation"]
    assert len(table) == 3 + 2 * with_exact
    assert (table.bounds == bounds).all() and (table.segments == segments).all()
    assert (table.uses_private_metadata == (bounds == "true_theta")).all()
    kept = row(table, method="non_private", epsilon=None)
    assert (kept.ks, kept.n_trials) == (pytest.approx(ks(found["non_private"])), 6)
    assert kept.z2 == pytest.approx(sum(ndtri(u) ** 2 for u in found["non_private"]) / 6)
    for epsilon in (0.8, 2.0):
        kept = row(table, method="gibbs", epsilon=epsilon)
        assert (kept.ks, kept.n_trials) == (pytest.approx(ks(found["gibbs", epsilon])), 6)
        assert kept.rejected_share == pytest.approx(sum(rejected[epsilon]) / 3)
        # Of 20 draws, k at most θ: a rank between k/21 and (k + 1)/21, by the stream that all tables share.
        shares = np.random.default_rng(2006).random(6)
        ranks = [(20 * u + share) / 21 for u, share in zip(found["gibbs", epsilon], shares, strict=True)]
        assert kept.z2 == pytest.approx(sum(ndtri(rank) ** 2 for rank in ranks) / 6)
        if with_exact:
            kept = row(table, method="exact", epsilon=epsilon)
            assert (kept.ks, kept.n_trials) == (pytest.approx(ks(found["exact", epsilon]), abs=1e-4), 6)
            assert kept.z2 == pytest.approx(sum(ndtri(u) ** 2 for u in found["exact", epsilon]) / 6, rel=2e-3)
            assert math.isnan(kept.rejected_share)


# Further families


def poisson_bounds(shape: float, rate: float) -> tuple[float, float]:
    """Smallest counts with 2.5 % and 97.5 % of the prior predictive law at or below them, and a half."""
    ends = []
    for target in (0.025, 0.975):
        reached, k = (rate / (1 + rate)) ** shape, 0
        mass = reached
        while reached < target:
            mass *= (shape + k) / (k + 1) / (1 + rate)
            reached, k = reached + mass, k + 1
        ends.append(k + 0.5)
    return tuple(ends)


def largest_change(model, prior) -> float:
    """L1 distance of the statistics of two records."""
    # A record moves to another released count, the mean of a row of bits from 0 to 1; a redacted sum loses a record.
    changes = {"multinomial_free": 2, "bit_rows": 1, "pareto": lomax(*prior[:2])[1]}
    return changes[model] if model in changes else math.floor(poisson_bounds(*prior)[1])


def family_quantiles(model, prior, n, scale, statistics, noisy, theta) -> tuple[list, list, list]:
    """P(Θ ≤ θ) of every parameter given the statistics, given the release, and in the prior, for one trial."""
    if model in ("multinomial_free", "bit_rows"):
        size = int(prior[2]) if model == "bit_rows" else 1
        own = prior[:2] if model == "bit_rows" else prior
        weights = count_weights(own, noisy, n, scale, size)
        exact = {tuple(round(size * s) for s in statistics): 1.0}
        parameters = range(len(theta))
        return tuple(
            [counts_cdf(law, own, theta[j], j) for j in parameters] for law in (exact, weights, {(0,) * len(own): 1.0})
        )
    (shape, rate), at = prior, theta[0]
    if model == "poisson":
        ends, moments, given = poisson_bounds(shape, rate), poisson_moments, (shape + statistics[0], rate + n)
    else:
        ends, moments, given = lomax(shape, rate), exponential_moments, (shape + n, rate + statistics[0])
    law = redacted_mass(prior, noisy[0], n, scale, *ends, moments)
    exact, before = (gammainc(a, b * at) for a, b in (given, (shape, rate)))
    return [exact], [share_below(*law, at)], [before]


@pytest.mark.parametrize(
    ("model", "prior", "n"),
    [
        ("multinomial_free", [2, 2, 3], 4),
        ("bit_rows", [2, 3, 3], 2),
        ("pareto", [8, 2], 6),
        ("poisson", [9, 3], 6),
    ],
)
def test_families_have_the_quantiles_of_their_own_laws(monkeypatch, model, prior, n):
    """Sums over all counts, or integrals over the redacted sum (to 1e-4: 800 cells), and counts of draws below θ."""
    chains, drawn = watched_chains(monkeypatch, calibration), spied(monkeypatch, trials.Counts, "data")
    drawn = drawn if model in trials.COUNT_MODELS else spied(monkeypatch, trials.RedactedSums, "data")
    cell = run(
        "bernstein2018/calibration", 6, 3, model=model, prior=prior, variant="corrected", n=[n], epsilon=[0.8, 2.0],
        burn_in=3, draws=20, part="families",
    )  # fmt: skip
    thetas = np.concatenate([each.result.theta for each in drawn], axis=1).T
    statistics = np.concatenate([each.result.statistics for each in drawn], axis=1).T
    found = {name: {} for name in ("non_private", "exact", "gibbs", "prior")}
    for epsilon, trial in itertools.product((0.8, 2.0), range(6)):
        request, release = cell.ledger.of(f"gibbs/n={n}/epsilon={epsilon:g}")[trial // 3]
        noise = cell.streams("mechanism", trial // 3, n=n).laplace(size=release.values.shape)
        noisy, scale = release.values[trial % 3], largest_change(model, prior) / epsilon
        np.testing.assert_allclose(noisy, request.statistics[trial % 3][: len(noisy)] + scale * noise[trial % 3])
        true, exact, before = family_quantiles(model, prior, n, scale, statistics[trial], noisy, thetas[trial])
        # Every block's chains run at the first ε, then at the second.
        chain = chains[2 * (trial // 3) + (epsilon == 2.0)].theta
        for j, theta in enumerate(thetas[trial]):
            own = (chain[:, j] if chain.ndim == 3 else chain)[:, trial % 3]
            values = {"non_private": true[j], "exact": exact[j], "gibbs": sum(own <= theta) / 20, "prior": before[j]}
            for name, value in values.items():
                found[name].setdefault((j, epsilon), []).append(value)
    table, several = cell.tables["families"], thetas.shape[1] > 1
    assert "tempered" not in table and set(table.method) == {"non_private", "gibbs", "naive", "exact"}
    for (j, epsilon), gibbs in found["gibbs"].items():
        name, exact = f"theta_{j + 1}" if several else "theta", found["exact"][j, epsilon]
        kept = row(table, method="gibbs", parameter=name, epsilon=epsilon)
        distances = [abs(a - b) for a, b in zip(gibbs, exact, strict=True)]
        assert kept.ks == pytest.approx(ks(gibbs))
        assert kept.distance_to_exact == pytest.approx(sum(distances) / 6, abs=1e-4)
        kept = row(table, method="exact", parameter=name, epsilon=epsilon)
        assert (kept.ks, kept.n_trials) == (pytest.approx(ks(exact), abs=1e-4), 6)
        assert math.isnan(kept.distance_to_exact) and math.isnan(kept.rejected_share)
        # Categories with one prior and a count each are tested together; the last one's count was not released.
        alike = [0, 1] if several and j < 2 else [j]
        squares = [ndtri(u) ** 2 for k in alike for u in found["exact"][k, epsilon]]
        assert kept.z2 == pytest.approx(sum(squares) / len(squares), rel=2e-3)
        assert kept.z2_of == ("theta_1 to theta_2" if len(alike) == 2 else name)
        kept = row(table, method="non_private", parameter=name, epsilon=None)
        assert kept.ks == pytest.approx(ks(found["non_private"][j, epsilon]))
        if len(alike) == 1:
            total = sum(ndtri(u) ** 2 for u in found["prior"][j, epsilon])
            tails = chi2.cdf(total, 6), chi2.sf(total, 6)
            assert kept.prior_p == pytest.approx(2 * min(tails))
        sampled = [chains[2 * block + (epsilon == 2.0)].theta for block in range(2)]
        sampled = [(chain[:, j] if chain.ndim == 3 else chain).var(axis=0).mean() for chain in sampled]
        between = [thetas[3 * block : 3 * block + 3, j].var() for block in range(2)]
        kept = row(table, method="gibbs", parameter=name, epsilon=epsilon)
        assert kept.sd_of_prior == pytest.approx(math.sqrt(sum(sampled) / sum(between)))
