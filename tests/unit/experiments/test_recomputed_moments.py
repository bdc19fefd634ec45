"""Regression from noisy second moments, a second time: Student's laws by hand, what chains are told, and the splits."""

from __future__ import annotations

import math

import numpy as np
import pytest
from recomputed import mean_and_error, row, run, spied
from scipy.stats import t as student

from privpost.samplers import noise_aware_regression

CALIBRATION, CENSUS = "noise_aware/regression_calibration", "noise_aware/regression"


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


@pytest.fixture
def toys(monkeypatch):
    """200 records of three features in place of the census."""
    from privpost.datasets import census, prepared

    rng = np.random.default_rng(3)
    features = rng.uniform(-0.5, 0.5, (200, 3))
    labels = np.clip(features @ [0.5, -0.3, 0.2] + 0.05 * rng.standard_normal(200), -1, 1)
    monkeypatch.setattr(prepared, "read", lambda name, dataset: None)
    monkeypatch.setattr(census, "regression", lambda columns, dataset: (features, labels))
    return features, labels


def test_census_splits_errors_and_budgets(toys, monkeypatch):
    """Training and test parts by loops over records; the draw and the moments cost the same; ratios of errors."""
    features, labels = toys
    kernels = spied(monkeypatch, noise_aware_regression, "kernel")
    made = run(CENSUS, trials=2, block=2, burn_in=2, draws=200, train_share=0.25, prior_precision=[1, 50])
    config, arrays = made.config, made.arrays
    rng = made.streams("data", 0)
    subsets = [rng.choice(200, 50, replace=False, shuffle=False) for _ in range(2)]
    for i, b in enumerate([1, 50]):
        ((drawn, weights),) = made.ledger.of(f"draw/prior_precision={b}")
        ((noisy, _),) = made.ledger.of(f"moments/prior_precision={b}")
        epsilon = drawn.mechanism.cost().epsilon
        assert arrays["epsilon"][i] == noisy.mechanism.cost().epsilon == pytest.approx(epsilon, rel=1e-12)
        assert drawn.mechanism.radius == pytest.approx(10 / math.sqrt(b))
        for trial, subset in enumerate(subsets):
            rest = [k for k in range(200) if k not in set(subset)]
            gram = sum(np.outer(features[k], features[k]) for k in subset)
            cross = sum(features[k] * labels[k] for k in subset)
            assert np.allclose(drawn.statistics[trial][:9].reshape(3, 3), gram)
            assert np.allclose(noisy.statistics[trial][9:12], cross)
            mean = np.linalg.solve(gram + config.own_precision * np.eye(3), cross)
            for k, given in ((0, mean), (1, weights.values[trial])):
                error = sum((labels[j] - features[j] @ given) ** 2 for j in rest) / len(rest)
                assert arrays["mse"][k, i, trial] == pytest.approx(error, rel=1e-9)
    # Four chains on each release, with the noise's true scale Δ/ε, Δ = √(4.5 (3·2/4 + 2·3 + 1)), per unit.
    for call, epsilon in zip(kernels, arrays["epsilon"], strict=True):
        scale = math.sqrt(4.5 * 8.5) / epsilon
        twice = scale / noisy.mechanism.units
        assert call.given[1].shape == (10, 8) and np.allclose(call.given[3].scale, twice)
        assert np.allclose(call.given[1][:, 0], call.given[1][:, 3])
    table = made.tables["regression"]
    for i, b in enumerate([1, 50]):
        for k, method in enumerate(config.method):
            line = row(table, method=method, prior_precision=b)
            excess, error = mean_and_error(arrays["mse"][k, i] - arrays["mse"][0, i])
            assert (line.excess_mean, line.excess_sem) == pytest.approx((excess, error), abs=1e-15)
            assert line.mse_mean == pytest.approx(mean_and_error(arrays["mse"][k, i])[0])
    assert row(table, method="non_private", prior_precision=1).sd_ratio == pytest.approx(1)
