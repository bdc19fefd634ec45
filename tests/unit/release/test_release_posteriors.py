"""`privpost release`: draws from posteriors against enumeration and quadrature."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
from release_cases import YES_NO, content, specification
from scipy import stats

from privpost.models import BayesianNetwork
from privpost.release import command
from privpost.release.models import bayesian_network
from privpost.samplers import noise_aware_draws, noise_aware_exact


def test_draws_for_bits_are_from_the_exact_posterior(tmp_path):
    found, kind = specification(tmp_path, content("beta_bernoulli", n=60, epsilon=0.3, posterior={"draws": 20_000}))
    mechanism, _ = command.calibrate(found, kind)
    release = np.array([71.0])
    drawn = kind.posterior(found, mechanism, release, np.random.default_rng(3))
    theta = np.sort(drawn.draws["P(smokes = yes)"])
    at = np.linspace(0.5, 0.99, 8)
    exact = noise_aware_exact.posterior_cdf((1, 2), np.full((1, len(at)), 71.0), at, 60, [mechanism.scale])[0]
    # Four standard errors of a share of 20,000 draws; with the seed the test cannot fail by chance.
    assert np.abs(np.searchsorted(theta, at) / len(theta) - exact).max() < 4 * 0.5 / np.sqrt(20_000)
    assert drawn.noise_aware
    assert drawn.rhat is None


def test_draws_for_a_sum_agree_with_quadrature(tmp_path):
    """p(θ | y) ∝ p(θ) ∫ Gamma(S; n, θ) exp(−|y − S|/b) dS, without the sampler's normal approximation."""
    n, release = 50, 52.0
    columns = {"minutes": {"low": 0, "high": 20, "resolution": 0.01}}
    found, kind = specification(
        tmp_path, content("gamma_exponential", n=n, epsilon=2.0, columns=columns, posterior={"draws": 4000})
    )
    mechanism, _ = command.calibrate(found, kind)
    drawn = kind.posterior(found, mechanism, np.array([release / 0.01]), np.random.default_rng(6))
    grid = np.linspace(0.2, 3.0, 400)
    total = np.linspace(0.01, 250, 20_001)
    weight = np.exp(-np.abs(release - total) / (mechanism.scale * 0.01))
    likelihood = np.exp(n * np.log(grid)[:, None] + (n - 1) * np.log(total) - grid[:, None] * total - 160) @ weight
    density = likelihood * stats.gamma(2, scale=0.5).pdf(grid)
    density /= density.sum()
    mean = density @ grid
    sd = np.sqrt(density @ (grid - mean) ** 2)
    (theta,) = drawn.draws.values()
    # Three hundredths of a standard deviation are two standard errors of 4000 draws; the rest is the approximation.
    assert abs(theta.mean() - mean) < 0.1 * sd
    assert theta.std() == pytest.approx(sd, rel=0.1)
    assert drawn.rhat < 1.01


def enumerated(weights: dict[tuple, float], value) -> np.ndarray:
    """Mean of value(data) over all data sets, with these weights."""
    total = sum(weights.values())
    return sum(weight / total * value(data) for data, weight in weights.items())


def drawn_means(tmp_path, monkeypatch, found: dict, release: np.ndarray, names: list[str]) -> np.ndarray:
    """Means of 16,000 draws of the named quantities, which are all."""
    monkeypatch.setattr(noise_aware_draws, "COUNT_BURN_IN", 100)
    monkeypatch.setattr(noise_aware_draws, "COUNT_THIN", 3)
    found, kind = specification(tmp_path, {**found, "posterior": {"draws": 16_000}})
    mechanism, _ = command.calibrate(found, kind)
    drawn = kind.posterior(found, mechanism, release, np.random.default_rng(8))
    assert drawn.noise_aware
    assert set(drawn.draws) == set(names)
    return np.array([drawn.draws[name].mean() for name in names])


# A probability's deviation is below 0.3 and a chain's 16,000 draws are worth a quarter as many or more: 0.02 is
# four standard errors, with fixed seeds. Noise of half the scale, or levels in the wrong order, move some mean by more
# than 0.05.
TOLERANCE = 0.02


def test_draws_for_categories_agree_with_enumeration(tmp_path, monkeypatch):
    release, scale, n = np.array([5.0, -2.0, 2.0]), 2.0, 6
    weights = {
        counts: np.exp(-np.abs(release - counts).sum() / scale)
        for counts in itertools.product(range(n + 1), repeat=3)
        if sum(counts) == n
    }
    # With a flat prior all counts of the same sum are equally likely.
    exact = enumerated(weights, lambda counts: (1 + np.array(counts)) / (3 + n))
    names = [f"P(diet = {level})" for level in "abc"]
    found = drawn_means(tmp_path, monkeypatch, content("dirichlet_categorical", n=n, epsilon=1.0), release, names)
    assert np.abs(found - exact).max() < TOLERANCE


def test_draws_for_naive_bayes_agree_with_enumeration(tmp_path, monkeypatch):
    columns = {"smokes": {"levels": YES_NO, "role": "class"}, "cough": {"levels": YES_NO}}
    release, scale, n = np.array([3.0, -1.0, 0.0, 4.0]), 2.0, 5
    weights = {}
    for size in range(n + 1):
        for first, second in itertools.product(range(size + 1), range(n - size + 1)):
            counts = first, size - first, second, n - size - second
            prior = 1 / ((size + 1) * (n - size + 1))
            weights[counts] = prior * np.exp(-np.abs(release - counts).sum() / scale)

    def means(counts):
        a, b, c, d = counts
        share = (1 + a + b) / (2 + n)
        return np.array(
            [
                share,
                1 - share,
                (1 + a) / (2 + a + b),
                (1 + b) / (2 + a + b),
                (1 + c) / (2 + c + d),
                (1 + d) / (2 + c + d),
            ]
        )

    specified = content("naive_bayes", n=n, epsilon=1.0, columns=columns)
    names = ["P(smokes = no)", "P(smokes = yes)"]
    names += [f"P(cough = {value} | smokes = {level})" for level in YES_NO for value in YES_NO]
    found = drawn_means(tmp_path, monkeypatch, specified, release, names)
    assert np.abs(found - enumerated(weights, means)).max() < TOLERANCE


def test_draws_for_a_network_agree_with_enumeration(tmp_path, monkeypatch):
    specified = content("bayesian_network", n=3, epsilon=2.0)
    model = BayesianNetwork({"smokes": [], "cough": ["smokes"]})
    release, scale = np.array([4.0, 0.0, -1.0, 2.0, 3.0, -2.0]), 2.0
    weights, counts = {}, {}
    for data in itertools.product(itertools.product((0, 1), repeat=2), repeat=3):
        counts[data] = model.sufficient_statistics(np.array(data))
        evidence = model.log_partition(model.natural_parameters(model.posterior(counts[data])))
        weights[data] = np.exp(evidence - np.abs(release - counts[data]).sum() / scale)
    exact = enumerated(weights, lambda data: model.mean(model.posterior(counts[data])))
    names = ["P(smokes = yes)", "P(cough = yes | smokes = no)", "P(cough = yes | smokes = yes)"]
    found = drawn_means(tmp_path, monkeypatch, specified, release, names)
    assert np.abs(found - exact).max() < TOLERANCE


def test_draws_of_large_networks_say_that_they_ignore_the_noise(tmp_path, monkeypatch):
    monkeypatch.setattr(bayesian_network, "LARGEST_NETWORK", 1)
    found, kind = specification(tmp_path, content("bayesian_network"))
    mechanism, _ = command.calibrate(found, kind)
    drawn = kind.posterior(found, mechanism, np.full(6, 2.0), np.random.default_rng(1))
    assert not drawn.noise_aware
    assert "clipped" in drawn.method


@pytest.mark.parametrize("model", ["dirichlet_categorical", "bayesian_network", "naive_bayes"])
def test_draws_are_probabilities(folder, model):
    folder.specify(content(model))
    draws = json.loads(folder.run()[1])["posterior"]["draws"]
    values = np.array(list(draws.values()))
    assert values.shape[1] == 3
    assert np.all((values >= 0) & (values <= 1))
    if model == "dirichlet_categorical":
        assert values.sum(axis=0) == pytest.approx(1)
    if model == "naive_bayes":
        assert list(draws)[:2] == ["P(smokes = no)", "P(smokes = yes)"]
        assert np.array([draws["P(smokes = no)"], draws["P(smokes = yes)"]]).sum(axis=0) == pytest.approx(1)


def test_a_posterior_that_fails_does_not_waste_the_release(folder):
    folder.specify(content("gamma_exponential", prior={"shape": 1e-300, "rate": 1e-300}))
    status, out, _ = folder.run()
    found = json.loads(out)
    assert status == 0
    assert found["posterior"].keys() == {"failed"}
    assert found["statistics"]["sums"].keys() == {"minutes"}
