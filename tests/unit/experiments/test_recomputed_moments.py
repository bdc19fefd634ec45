"""Regression from noisy second moments, a second time: Student's laws by hand, and the inputs of chains."""

from __future__ import annotations

import math

import numpy as np
import pytest
from recomputed import mean_and_error, row, run, spied
from scipy.stats import t as student

from privpost.evaluation.diagnostics import diagnose
from privpost.samplers import chain
from privpost.samplers.noise_aware import regression as noise_aware_regression
from privpost.samplers.noise_aware import regression_quadrature as noise_aware_regression_quadrature

CALIBRATION = "noise_aware/regression_calibration"


def weight_law(config, n: int, xx: float, xy: float, yy: float) -> tuple[float, float, float]:
    """Return location, scale and degrees of freedom of the weight's posterior given second moments."""
    precision = config.own_precision + xx
    mean = xy / precision
    rate = config.rate + (yy - xy**2 / precision) / 2
    shape = config.shape + n / 2
    return mean, math.sqrt(rate / shape / precision), 2 * shape


def nearest_moments(xx: float, xy: float, yy: float) -> tuple[float, float, float]:
    """Return the moments with negative eigenvalues at 0, by the formula of two dimensions."""
    middle, half = (xx + yy) / 2, math.hypot((xx - yy) / 2, xy)
    if middle - half >= 0:
        return xx, xy, yy
    if middle + half <= 0:
        return 0.0, 0.0, 0.0
    # One eigenvalue stays: λ/(2 half) (S + (half − middle) I) projects on its vector.
    share = (middle + half) / (2 * half)
    return share * (xx + half - middle), share * xy, share * (yy + half - middle)


def true_weights(made) -> list[np.ndarray]:
    """Return the weights of each block from the study's streams: variance first, then the normal deviate."""
    found, config = [], made.config
    for block in made.streams.blocks():
        rng = made.streams("data", block.index)
        variance = config.rate / rng.standard_gamma(config.shape, block.size)
        found.append(np.sqrt(variance / config.own_precision) * rng.standard_normal(block.size))
    return found


def test_calibration_on_one_feature(monkeypatch):
    """Quantiles of both conjugate posteriors, the kernels' arguments and all columns of the table."""
    kernels = spied(monkeypatch, noise_aware_regression, "kernel")
    made = run(CALIBRATION, trials=4, block=2, oracles=0, draws=20, burn_in=5, n=30, epsilon=[0.5, 5.0])
    truth, config = np.concatenate(true_weights(made)), made.config
    for i, epsilon in enumerate(config.epsilon):
        seen = made.ledger.of(f"epsilon={epsilon:g}")
        statistics = np.concatenate([request.statistics for request, _ in seen])
        releases = np.concatenate([release.values for _, release in seen])
        assert all(request.mechanism.cost().epsilon == epsilon for request, _ in seen)
        for trial, (weight, exact, noisy) in enumerate(zip(truth, statistics, releases, strict=True)):
            for k, moments in ((0, exact), (1, nearest_moments(*noisy))):
                mean, scale, degrees = weight_law(config, 30, *moments)
                assert made.arrays["quantile"][k, i, trial] == pytest.approx(
                    student.cdf((weight - mean) / scale, degrees), abs=1e-10
                )
                sd = scale * math.sqrt(degrees / (degrees - 2))
                assert made.arrays["variance"][k, i, trial] == pytest.approx(sd**2, rel=1e-9)
    # Blocks, then ε, then the two chains: the release, n, Laplace noise of scale 3/ε, and the law.
    assert [call.given[4] for call in kernels] == ["wishart", "normal"] * 4
    for call, epsilon in zip(kernels, [0.5, 0.5, 5.0, 5.0] * 2, strict=True):
        assert call.given[2] == 30 and call.given[3].kind == "laplace"
        assert np.allclose(call.given[3].scale, 3 / epsilon)
        blocks = [release.values for _, release in made.ledger.of(f"epsilon={epsilon:g}")]
        assert any(np.allclose(call.given[1].T, values) for values in blocks)
    table = made.tables["regression_calibration"]
    for k, method in enumerate(config.method):
        for i, epsilon in enumerate(config.epsilon):
            line, values = row(table, method=method, epsilon=epsilon), np.sort(made.arrays["quantile"][k, i])
            assert line.ks == pytest.approx(max(max((j + 1) / 4 - u, u - j / 4) for j, u in enumerate(values)))
            variance, _ = mean_and_error(made.arrays["variance"][k, i])
            of_prior = config.rate / (config.shape - 1) / config.own_precision
            assert line.sd_of_prior == pytest.approx(math.sqrt(variance / of_prior))
            assert line.n == 30 and line.n_trials == 4


def test_the_prior_s_records_are_those_of_the_weights():
    """Records of many trials give back their weights by least squares: within 5 standard errors of their own noise."""
    made = run(CALIBRATION, trials=40, block=40, oracles=0, n=500, method=["non_private"], epsilon=[1.0])
    (request, _) = made.ledger.of("epsilon=1")[0]
    xx, xy, yy = request.statistics.T
    residual = (yy - xy**2 / xx) / 499
    assert np.all(np.abs(xy / xx - true_weights(made)[0]) < 5 * np.sqrt(residual / xx))
    # E[V] = ψ/(ν − 2) of one feature, E[σ²] = rate/(shape − 1): 40 draws of V vary by 50 % each, of σ² too.
    config = made.config
    assert xx.mean() / 500 == pytest.approx(config.feature_scale / (config.degrees - 2), rel=0.4)
    assert residual.mean() == pytest.approx(config.rate / (config.shape - 1), rel=0.4)


def watched_states(monkeypatch) -> list[list[np.ndarray]]:
    """Draws (chains, d + 1) of each run of chains from here on."""
    runs, original = [], chain.run

    def watched(*given, **settings):
        drawn: list[np.ndarray] = []
        runs.append(drawn)
        for state, cost in original(*given, **settings):
            drawn.append(state.theta.copy())
            yield state, cost

    monkeypatch.setattr(chain, "run", watched)
    return runs


def root_mean_square(values) -> float:
    return math.sqrt(sum(value**2 for value in values) / len(values))


def test_distances_from_the_integrated_law(monkeypatch):
    """Distribution functions of the chains' draws by counting, against any law in place of the integral, which has
    tests elsewhere; only rounding is left."""
    runs = watched_states(monkeypatch)
    monkeypatch.setattr(noise_aware_regression_quadrature, "weight_cdf", lambda *given: np.arctan(given[-1]) / 3 + 0.5)
    integrals = spied(monkeypatch, noise_aware_regression_quadrature, "weight_cdf")
    made = run(
        CALIBRATION,
        trials=6,
        block=3,
        oracles=2,
        draws=40,
        burn_in=5,
        n=30,
        epsilon=[0.5, 5.0],
        own_precision=0.5,
        shape=1.5,
    )
    truth, table = true_weights(made), made.tables["regression_calibration"]
    for i, epsilon in enumerate([0.5, 5.0]):
        releases = [release.values for _, release in made.ledger.of(f"epsilon={epsilon:g}")]
        for k, method in enumerate(["gibbs", "gibbs_normal"]):
            # Blocks, then ε, then the two chains.
            drawn = [np.array(runs[4 * block + 2 * i + k])[..., 0] for block in range(2)]
            distances, sizes = [], [diagnose(part[:, [j]])[1].item() for part in drawn for j in range(3)]
            for j in range(2):
                call = integrals[2 * i + j]
                assert np.allclose(call.given[1], releases[0][j]) and call.given[2] == 30
                assert np.allclose(call.given[3].scale, 3 / epsilon)
                both = np.concatenate([np.array(runs[2 * i + c])[:, j, 0] for c in range(2)])
                below = [sum(both <= at) / 80 for at in call.given[4]]
                assert below == pytest.approx([(level + 0.5) / 60 for level in range(60)], abs=1 / 80)
                shares = [sum(w <= at for w in drawn[0][:, j]) / 40 for at in call.given[4]]
                distances.append(max(abs(a - b) for a, b in zip(shares, call.result, strict=True)))
            line = row(table, method=method, epsilon=epsilon)
            assert (line.oracle_distance, line.oracle_distance_sem) == pytest.approx(mean_and_error(distances))
            # √m times the mean distance of m independent draws: √(π/2) ln 2.
            floor = math.sqrt(math.pi / 2) * math.log(2) / (sum(math.sqrt(size) for size in sizes[:2]) / 2)
            assert (line.oracle_floor, line.n_oracles) == (pytest.approx(floor), 2)
            assert line.ess_median == pytest.approx(np.median(sizes))
            variances = [root_mean_square(part[:, j] - part[:, j].mean()) ** 2 for part in drawn for j in range(3)]
            assert line.sd_of_prior == pytest.approx(math.sqrt(sum(variances) / 6 / (0.18 / 0.5 / 0.5)))
            for block, part in enumerate(drawn):
                below = np.array([sum(w < t for w in part[:, j]) for j, t in enumerate(truth[block])])
                quantile = made.arrays["quantile"][2 + k, i, 3 * block : 3 * block + 3]
                assert ((below / 41 <= quantile) & (quantile <= (below + 1) / 41)).all()
    assert table[table.method.isin(["naive", "non_private"])].oracle_floor.isna().all()


def test_what_is_not_known_is_nan():
    """With a prior of shape 1 for σ² the weight has no variance."""
    made = run(CALIBRATION, trials=2, block=2, oracles=0, method=["non_private", "naive"], epsilon=[1.0], shape=1.0)
    assert made.tables["regression_calibration"].sd_of_prior.isna().all()
