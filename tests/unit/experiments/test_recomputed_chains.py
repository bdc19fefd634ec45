"""Chains of Bernstein and Sheldon (2018), computed a second time: the law they leave unchanged, their convergence."""

from __future__ import annotations

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest
from recomputed import midpoints, row, run, spied
from recomputed_noise_aware import (
    count_weights,
    counts_density,
    lomax,
    redacted_mass,
    watched_chains,
)
from scipy.special import ndtri

from privpost.experiments.bernstein2018 import trials
from privpost.experiments.bernstein2018.convergence import study as convergence
from privpost.lab import grid, tables
from privpost.samplers.noise_aware import quadrature as noise_aware_quadrature
from privpost.samplers.noise_aware import redacted as noise_aware_redacted

# Convergence


def ranked(chains) -> list[list[float]]:
    """Normal quantiles of the ranks of all draws together, ties sharing theirs."""
    pooled = [x for chain in chains for x in chain]
    ranks = {x: sum(y < x for y in pooled) + (pooled.count(x) + 1) / 2 for x in set(pooled)}
    return [[float(ndtri((ranks[x] - 0.375) / (len(pooled) + 0.25))) for x in chain] for chain in chains]


def variance(values) -> float:
    mean = sum(values) / len(values)
    return sum((x - mean) ** 2 for x in values) / (len(values) - 1)


def pooled_variance(chains) -> tuple[float, float]:
    """Variance within chains, and with that between their means."""
    within, size = sum(map(variance, chains)) / len(chains), len(chains[0])
    return within, within * (size - 1) / size + variance([sum(chain) / size for chain in chains])


def plain_rhat(chains) -> float:
    within, total = pooled_variance(chains)
    return math.sqrt(total / within)


def effective(chains) -> float:
    """Effective draws by Geyer's initial monotone sequence of autocorrelations (Vehtari et al. 2021, section 3)."""
    within, total = pooled_variance(chains)
    size, number = len(chains[0]), len(chains) * len(chains[0])

    def correlation(lag):
        covariance = 0.0
        for chain in chains:
            mean = sum(chain) / size
            covariance += sum((chain[i] - mean) * (chain[i + lag] - mean) for i in range(size - lag)) / size
        return 1 - (within - covariance / len(chains)) / total if lag else 1.0

    pairs: list[float] = []
    # The last lags are averages of too few products.
    for k in range(max(1, (size - 3) // 2)):
        pair = correlation(2 * k) + correlation(2 * k + 1)
        if pair <= 0:
            break
        pairs.append(min([pair, *pairs[-1:]]))
    time = 2 * sum(pairs) - 1 + max(correlation(2 * len(pairs)), 0.0)
    return number / max(time, 1 / math.log10(number))


def diagnostics(draws) -> tuple[float, float, float]:
    """R-hat, and effective draws of the bulk and of the tails, of draws (sweeps, chains)."""
    half = len(draws) // 2
    chains = [part.tolist() for column in draws.T for part in (column[:half], column[len(column) - half :])]
    pooled = sorted(x for chain in chains for x in chain)
    middle = (pooled[len(pooled) // 2 - 1] + pooled[len(pooled) // 2]) / 2
    folded = [[abs(x - middle) for x in chain] for chain in chains]
    tails = []
    for share in (0.05, 0.95):
        place = share * (len(pooled) - 1)
        low = int(place)
        quantile = pooled[low] + (place - low) * (pooled[low + 1] - pooled[low])
        tails.append(effective([[float(x <= quantile) for x in chain] for chain in chains]))
    scores = ranked(chains)
    return max(plain_rhat(scores), plain_rhat(ranked(folded))), effective(scores), min(tails)


def median(values) -> float:
    return float(np.median(values))


def check_convergence(table, found, n_chains: int, n_draws: int, **place) -> None:
    """Compare a row of `convergence` with (R-hat, bulk, tail, distance) of each release."""
    kept = row(table, **place)
    hat, bulk, tail, distance = zip(*found, strict=True)
    assert (kept.rhat, kept.rhat_median) == pytest.approx((max(hat), median(hat)))
    assert (kept.ess_bulk, kept.ess_bulk_min) == pytest.approx((median(bulk), min(bulk)))
    assert (kept.ess_tail, kept.ess_tail_min) == pytest.approx((median(tail), min(tail)))
    assert kept.ess_per_sweep == pytest.approx(median(bulk) / (n_chains * n_draws))
    assert kept.stuck_share == sum(x > 1.1 for x in hat) / len(hat)
    assert kept.biased_share == sum(x > 0.5 for x in distance) / len(distance)
    assert (kept.n_chains, kept.n_draws, kept.n_trials) == (n_chains, n_draws, len(found))


def furthest(draws, points, shares) -> float:
    """Largest distance of a chain's mean from that of a law, in its standard deviations."""
    mean = float(points @ shares)
    deviation = math.sqrt(float((points - mean) ** 2 @ shares))
    return max(abs(column.mean() - mean) / deviation for column in draws.T)


@pytest.mark.parametrize(("model", "prior"), [("binomial", [2, 3]), ("multinomial", [2, 2, 3])])
def test_chains_on_counts_have_the_diagnostics_of_their_draws(monkeypatch, model, prior):
    """R-hat and effective sizes by loops over the draws after burn-in; moments by sums over all counts, to 1e-6."""
    chains, told = watched_chains(monkeypatch, convergence), spied(monkeypatch, trials, "bounded_kernel")
    cell = run(
        "bernstein2018/convergence", 4, 2, model=model, prior=prior, n=[5], epsilon=[0.7, 2.0], burn_in=6,
        draws=31, chains=3, collapsed_draws=9, trace_n=5, trace_epsilon=2.0, trace_every=4,
    )  # fmt: skip
    points, _ = midpoints(number=2000)
    # One number of ones is released, or all counts, of which two change.
    released, change = (1, 1) if model == "binomial" else (3, 2)
    found: dict[float, list] = {0.7: [], 2.0: []}
    for (place, epsilon), block in itertools.product(enumerate((0.7, 2.0)), range(2)):
        request, release = cell.ledger.of(f"n=5/epsilon={epsilon:g}")[block]
        # Every ε runs its blocks one after the other.
        own, (_, given, n, scale) = chains[2 * place + block].theta, told[2 * place + block].given
        own = own if model == "binomial" else own[:, 0]
        assert (own.shape, n, scale) == ((37, 6), 5, pytest.approx(change / epsilon))
        noise = cell.streams("mechanism", block, n=5).laplace(size=(2, released))
        for trial in range(2):
            noisy = release.values[trial]
            np.testing.assert_allclose(noisy, request.statistics[trial, :released] + noise[trial] * change / epsilon)
            np.testing.assert_allclose(given[:, 3 * trial : 3 * trial + 3].T, [noisy] * 3)
            law = counts_density(count_weights(prior, noisy, 5, change / epsilon), prior, points)
            drawn = own[6:, 3 * trial : 3 * trial + 3]
            found[epsilon].append((*diagnostics(drawn), furthest(drawn, points, law / law.sum())))
            if epsilon == 2.0 and block == trial == 0:
                shown = own[:, :3]
    table = cell.tables["convergence"]
    assert len(table) == 2
    for epsilon, values in found.items():
        check_convergence(table, values, 3, 31, sampler="gibbs", epsilon=epsilon)
    assert 0 < sum(value[3] > 0.5 for value in found[0.7] + found[2.0]) < 8
    traces = cell.tables["traces"]
    assert len(traces) == 3 * 10 and (traces.epsilon == 2.0).all() and (traces.burn_in == 6).all()
    for kept in traces.itertuples():
        assert kept.sweep % 4 == 0 and kept.theta == pytest.approx(shown[kept.sweep, kept.chain - 1], abs=1e-6)


def test_collapsed_chains_are_told_the_same_release(monkeypatch):
    """As of counts, for redacted sums, whose moments are integrals over the normal model; samplers share a release."""
    chains = watched_chains(monkeypatch, convergence)
    told = spied(monkeypatch, noise_aware_redacted, "redacted_kernel")
    collapsed = spied(monkeypatch, noise_aware_quadrature, "collapsed_kernel")
    cell = run(
        "bernstein2018/convergence", 3, 3, model="exponential", prior=[8, 2], n=[6], epsilon=[1.1], burn_in=6,
        draws=20, chains=2, collapsed_draws=8, trace_n=6, trace_epsilon=9.0, trace_every=4, variant="corrected",
    )  # fmt: skip
    rng = cell.streams("data", 0, n=6)
    rates = rng.standard_gamma(8, 3) / 2
    records = rng.standard_exponential((3, 6)) / rates[:, None]
    noise, (low, high) = cell.streams("mechanism", 0, n=6).laplace(size=3), lomax(8, 2)
    found, settings = {"gibbs": [], "collapsed": []}, {"gibbs": (6, 20), "collapsed": (50, 8)}
    for calls in (told, collapsed):
        _, given, n, *rest = calls[0].given
        assert n == 6
        for values, expected in zip(rest, (high / 1.1, low, high, "multinomial"), strict=False):
            assert values == pytest.approx(expected)
        for trial in range(3):
            noisy = sum(x for x in records[trial] if low <= x <= high) + high / 1.1 * noise[trial]
            np.testing.assert_allclose(given[2 * trial : 2 * trial + 2], noisy)
    for (sampler, (burn_in, draws)), own in zip(settings.items(), chains, strict=True):
        assert own.theta.shape == (burn_in + draws, 6)
        for trial in range(3):
            points, law = redacted_mass((8, 2), float(given[2 * trial]), 6, high / 1.1, low, high)
            drawn = own.theta[burn_in:, 2 * trial : 2 * trial + 2]
            found[sampler].append((*diagnostics(drawn), furthest(drawn, points, law)))
        check_convergence(cell.tables["convergence"], found[sampler], 2, draws, sampler=sampler)
    assert len(cell.tables["convergence"]) == 2


def test_shares_of_releases_are_counted_at_their_limits():
    """Diagnostics that lie a little below and above 1.1 and 0.5, which are counted here by hand."""
    cell = run("bernstein2018/convergence", 1, 1, n=[5], epsilon=[0.7], burn_in=2, draws=5, chains=2)
    known = np.full((2, 4, 1, 1, 5), np.nan)
    known[0, :, 0, 0] = [
        [1.0, 1.099, 1.101, 1.6, 1.2],
        [5.0, 9.0, 8.0, 2.0, 7.0],
        [4.0, 3.0, 6.0, 9.0, 5.5],
        [0.2, 0.499, 0.501, 0.49, 0.55],
    ]
    cell.arrays["diagnostics"] = known
    study = grid.load_study("bernstein2018/convergence", "smoke")
    table = tables.tables_of(study, [SimpleNamespace(config=cell.config, arrays=cell.arrays)])["convergence"]
    kept = row(table, sampler="gibbs")
    assert (kept.stuck_share, kept.biased_share) == (0.6, 0.4)
    assert (kept.rhat, kept.rhat_median) == (1.6, 1.101)
    assert (kept.ess_bulk, kept.ess_bulk_min, kept.ess_tail, kept.ess_tail_min) == (7.0, 2.0, 5.5, 3.0)
    assert len(table) == 1 and kept.ess_per_sweep == pytest.approx(0.7)
