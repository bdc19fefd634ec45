"""Regression from noisy second moments, a second time: Student's laws by hand, the inputs of chains, and the splits."""

from __future__ import annotations

import math

import numpy as np
import pytest
from recomputed import mean_and_error, row, run, spied
from scipy.stats import t as student

from privpost.evaluation.diagnostics import assess, diagnose
from privpost.samplers import chain, noise_aware_regression, noise_aware_regression_quadrature

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
    columns = {"income": labels}
    monkeypatch.setattr(prepared, "read", lambda name, dataset: {"census_1980": columns}[name])
    monkeypatch.setattr(census, "regression", lambda given, dataset: (features, given["income"]))
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


def weights_law(config, gram, n: int) -> tuple[np.ndarray, np.ndarray, float, np.ndarray]:
    """Mean and precision of the weights, rate of σ², and sd of the weights, given second moments of (x, y)."""
    d = len(gram) - 1
    precision = gram[:d, :d] + config.own_precision * np.eye(d)
    mean = np.linalg.solve(precision, gram[:d, d])
    rate = config.rate + (gram[d, d] - mean @ precision @ mean) / 2
    # Student's covariance: rate/(shape − 1) of the posterior times the inverse precision.
    sd = np.sqrt(rate / (config.shape + n / 2 - 1) * np.diag(np.linalg.inv(precision)))
    return mean, precision, rate, sd


def root_mean_square(values) -> float:
    return math.sqrt(sum(value**2 for value in values) / len(values))


def projected(moments) -> np.ndarray:
    """Second moments of three features and a label from their upper triangle, negative eigenvalues at 0."""
    rows, upper = iter(moments), np.zeros((4, 4))
    for i in range(4):
        for j in range(i, 4):
            upper[i, j] = upper[j, i] = next(rows)
    values, vectors = np.linalg.eigh(upper)
    return sum(max(value, 0.0) * np.outer(v, v) for value, v in zip(values, vectors.T, strict=True))


def pooled(states) -> tuple[np.ndarray, np.ndarray]:
    """Means and standard deviations of the weights over all draws of four chains."""
    columns = states[..., :3].reshape(-1, 3).T
    means = [sum(column) / len(column) for column in columns]
    return np.array(means), np.array([root_mean_square(c - m) for c, m in zip(columns, means, strict=True)])


def test_census_posteriors_draws_and_spreads(toys, monkeypatch):
    """Means, last draws and spreads of chains by sums; normal equations and the study's own stream for the others."""
    features, labels = toys
    runs = watched_states(monkeypatch)
    made = run(CENSUS, trials=2, block=2, burn_in=2, draws=200, train_share=0.25, prior_precision=[1, 50])
    config, table, rng = made.config, made.tables["regression"], made.streams("data", 0)
    subsets = [rng.choice(200, 50, replace=False, shuffle=False) for _ in range(2)]
    rests = [[k for k in range(200) if k not in set(subset)] for subset in subsets]
    records = [np.column_stack([features, labels])[subset] for subset in subsets]
    true = [weights_law(config, part.T @ part, 50) for part in records]

    def errors_of(weights) -> list[float]:
        pairs = zip(weights, rests, strict=True)
        return [sum((labels[k] - features[k] @ w) ** 2 for k in rest) / 150 for w, rest in pairs]

    for i, b in enumerate([1, 50]):
        rng = made.streams("sampler", 0, prior_precision=b)
        gammas, normal = rng.standard_gamma([31.0, 31.0]), rng.standard_normal((2, 3))
        ((_, release),) = made.ledger.of(f"moments/prior_precision={b}")
        draws, means, ratios, worst = {}, {}, {"non_private": [1.0]}, []
        for trial, (mean, precision, rate, sd) in enumerate(true):
            shift = np.linalg.solve(np.linalg.cholesky(precision).T, normal[trial])
            draws.setdefault("non_private", []).append(mean + math.sqrt(rate / gammas[trial]) * shift)
            means.setdefault("non_private", []).append(mean)
            # The chains of one release stand beside each other.
            states = np.array(runs[i])[:, 4 * trial : 4 * trial + 4]
            draws.setdefault("gibbs", []).append(states[-1, -1, :3])
            centre, spread = pooled(states)
            means.setdefault("gibbs", []).append(centre)
            naive = weights_law(config, projected(release.values[trial]), 50)
            means.setdefault("naive", []).append(naive[0])
            for method, each in (("gibbs", spread), ("naive", naive[3])):
                ratios.setdefault(method, []).append(root_mean_square(each / sd))
            worst.append(assess(states))
        for method, given in means.items():
            line = row(table, method=method, prior_precision=b)
            assert line.sd_ratio == pytest.approx(root_mean_square(ratios[method]))
            errors, exact = errors_of(given), errors_of(means["non_private"])
            assert line.mse_mean == pytest.approx(sum(errors) / 2)
            if method in draws:
                excess = [error - least for error, least in zip(errors_of(draws[method]), exact, strict=True)]
                assert (line.draw_excess_mean, line.draw_excess_sem) == pytest.approx(mean_and_error(excess))
        line = row(table, method="gibbs", prior_precision=b)
        assert line.rhat_max == pytest.approx(max(each.rhat_max for each in worst))
        assert line.ess_min == pytest.approx(min(each.ess_min for each in worst))
        assert math.isnan(row(table, method="sampler_record", prior_precision=b).sd_ratio)


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


def test_what_is_not_known_is_nan(toys):
    """With a prior of shape 1 for σ² the weight has no variance; without a non-private posterior there is no excess."""
    made = run(CALIBRATION, trials=2, block=2, oracles=0, method=["non_private", "naive"], epsilon=[1.0], shape=1.0)
    assert made.tables["regression_calibration"].sd_of_prior.isna().all()
    made = run(CENSUS, trials=2, block=2, method=["naive"], train_share=0.25, prior_precision=[1])
    (line,) = made.tables["regression"].itertuples()
    assert math.isnan(line.excess_mean) and math.isnan(line.draw_excess_mean) and line.mse_mean > 0
