"""Tasks: records, statistics, moments and densities by loops and sums, from the same random numbers."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import geom, poisson

from privpost.experiments.audit.instances import neighbours
from privpost.inference_benchmark.base import Budget
from privpost.inference_benchmark.tasks import known, made, sums
from privpost.lab.schema import SettingError

PRIORS = {
    "binomial": [3, 2], "multinomial": [1, 2, 3], "poisson": [30, 10], "geometric": [10, 20], "exponential": [8, 2],
    "normal_unknown_variance": [0, 4, 6, 6], "collider": [1, 2], "three_parents": [2, 1],
    "naive_bayes": [2, 1],
}  # fmt: skip


def drawn(name: str, n: int = 5, size: int = 4):
    task = made(name, PRIORS[name], n, 0.5)
    theta = task.prior(size, np.random.default_rng(1))
    assert theta.shape == (size, task.size)
    return task, theta, task.records(theta, np.random.default_rng(2))


@pytest.mark.parametrize("name", ["binomial", "multinomial"])
def test_records_of_one_category_are_where_uniform_numbers_fall(name):
    """The first category whose cumulative probability is reached; a bit is one with probability θ."""
    task, theta, records = drawn(name)
    uniform, last = np.random.default_rng(2).random((4, 5)), 2 if name == "multinomial" else 1
    for k, i in np.ndindex(4, 5):
        shares = [*theta[k][:last], 1.0]
        category = next(j for j in range(last + 1) if uniform[k, i] <= sum(shares[: j + 1]) or j == last)
        assert records.statistics[k, i].tolist() == [float(j == category) for j in range(last + 1)]
    released = records.statistics if name == "multinomial" else records.statistics[..., :1]
    np.testing.assert_array_equal(records.released, released)
    counts = task.data(theta, np.random.default_rng(3))
    shares = theta if name == "multinomial" else np.hstack([theta, 1 - theta])
    np.testing.assert_array_equal(counts, np.random.default_rng(3).multinomial(5, shares))
    np.testing.assert_array_equal(task.simulate(theta, np.random.default_rng(3)), counts[:, : released.shape[-1]])


@pytest.mark.parametrize("name", ["poisson", "exponential", "normal_unknown_variance"])
def test_records_that_are_numbers_are_redacted_or_clamped(name, monkeypatch):
    """What each adds to the release and to the statistics, one by one; sums do not depend on how many are in memory."""
    task, theta, records = drawn(name, n=40)
    values, released, model = records.statistics[..., 0], records.released, task.mechanism.model
    if name == "normal_unknown_variance":
        np.testing.assert_allclose(records.statistics[..., 1], values**2)
        clamped = 2 * (np.clip(values, model.low, model.high) - model.low) / (model.high - model.low) - 1
        np.testing.assert_allclose(released, np.stack([clamped, clamped**2], axis=-1), atol=1e-12)
        spread = np.random.default_rng(2).standard_normal((4, 40)) * np.sqrt(theta[:, 1:])
        np.testing.assert_allclose(values, theta[:, :1] + spread)
    else:
        low, high = model.ends
        inside = [[low <= value <= high for value in row] for row in values]
        assert 0 < np.mean(inside) < 1
        np.testing.assert_array_equal(released[..., 0], values * inside)
    np.testing.assert_array_equal(records.statistics[..., -1], np.ones((4, 40)))
    for at_once in (40, 1000):
        monkeypatch.setattr(sums, "_RECORDS", at_once)
        total = task.data(theta, np.random.default_rng(2))
        np.testing.assert_allclose(total, released.sum(axis=1))


@pytest.mark.parametrize("name", ["collider", "three_parents", "naive_bayes"])
def test_records_of_networks_are_counted_cell_by_cell(name):
    """Each record has one outcome of each node given its parents: ones and zeros of as many pairs as nodes."""
    task, theta, records = drawn(name)
    np.testing.assert_array_equal(records.released, records.statistics)
    assert set(np.unique(records.statistics)) == {0.0, 1.0}
    nodes = len(task.model.nodes)
    assert (records.statistics.sum(axis=-1) == nodes).all() and records.statistics.shape == (4, 5, 2 * task.size)
    counts = task.data(theta, np.random.default_rng(2))
    np.testing.assert_array_equal(records.statistics.sum(axis=1), counts)


@pytest.mark.parametrize("name", ["binomial", "poisson", "geometric"])
def test_moments_are_those_of_n_records(name):
    """By sums over a record's law, zero outside of the bounds; to 1e-9."""
    task, theta = made(name, PRIORS[name], 7, 0.5), np.array([0.2, 0.6])
    mean, variance = (part.ravel() for part in task.moments(theta[:, None]))
    for k, parameter in enumerate(theta):
        x = np.arange(400)
        if name == "binomial":
            value, law = x[:2], np.array([1 - parameter, parameter])
        else:
            low, high = task.mechanism.model.ends
            value = np.where((x >= low) & (x <= high), x, 0)
            law = poisson.pmf(x, parameter) if name == "poisson" else geom.pmf(x, parameter, -1)
        first = value @ law
        assert mean[k] == pytest.approx(7 * first, rel=1e-6)
        assert variance[k] == pytest.approx(7 * ((value - first) ** 2 @ law), rel=1e-6)


def test_the_noise_s_density_is_laplace_s_of_each_coordinate():
    task = made("multinomial", PRIORS["multinomial"], 6, 0.5)
    # A record's change moves two counts by one: the scale is 2/ε.
    assert task.scale == 4.0
    releases, exact = np.array([[3.0, -1, 2], [0, 0, 9]]), np.array([[1.0, 2, 3], [4, 1, 1]])
    expected = [-sum(abs(a - b) for a, b in zip(y, s, strict=True)) / 4.0 for y, s in zip(releases, exact, strict=True)]
    assert task.noise_log_density(releases, exact) == pytest.approx(expected)
    assert Budget(3, 7, 2).total == 21


@pytest.mark.parametrize("name", ["private_n_binomial", "private_n_multinomial", "log_linear"])
def test_mechanisms_of_tasks_cost_what_they_claim_on_their_own_neighbours(name):
    """Largest log-ratio of densities over all pairs of neighbours of three records at releases beyond both counts."""
    task = made(name, None, 3, 0.7)
    pairs = neighbours(task.mechanism)
    sizes = {(len(one), len(other)) for one, other in pairs}
    if task.neighbours == "substitution":
        assert sizes == {(3, 3)}
    else:
        # At most six records.
        assert sizes == {(6, 5), (5, 6)} and task.neighbours == "add or remove one"
    worst = 0.0
    for one, other in pairs:
        first, second = (task.model.sufficient_statistics(data) for data in (one, other))
        # Noise on each coordinate is in favour of the first data set as far as it goes.
        far = task.mechanism.select(first) + 50 * np.sign(task.mechanism.select(first - second))
        ratio = task.mechanism.log_density(far, first) - task.mechanism.log_density(far, second)
        worst = max(worst, float(ratio))
    assert worst == pytest.approx(0.7) and task.mechanism.cost().epsilon == pytest.approx(0.7)


def test_more_records_than_may_be_are_refused():
    mechanism = made("private_n_binomial", [1, 1], 2, 1.0).mechanism
    assert mechanism.perturb([1.0, 3.0], np.random.default_rng(1)).shape == (2,)
    for counts in ([2.0, 3.0], [-1.0, 2.0]):
        with pytest.raises(ValueError, match="n is at most 4"):
            mechanism.perturb(counts, np.random.default_rng(1))


def test_an_update_is_a_draw_from_the_conjugate_posterior():
    """For bits the beta law that adds counts to the prior; for categories it has their number of parameters."""
    counts = np.random.default_rng(1).integers(0, 4, (2, 3, 3)).astype(float)
    drawn = made("binomial", PRIORS["binomial"], 6, 0.5).update(counts[..., :2], np.random.default_rng(2))
    expected = np.random.default_rng(2).beta(3 + counts[..., 0], 2 + counts[..., 1])
    np.testing.assert_allclose(drawn, expected[..., None])
    drawn = made("multinomial", PRIORS["multinomial"], 6, 0.5).update(counts, np.random.default_rng(2))
    assert drawn.shape == (2, 3, 3) and drawn.sum(axis=-1) == pytest.approx(np.ones((2, 3)))


def test_references_of_new_releases_are_prepared_beside_known_ones():
    """A release has the same reference, from the same random numbers, whether or not another was prepared before."""
    task, releases = made("binomial", PRIORS["binomial"], 6, 0.5), np.array([[1.0], [4.0], [7.0]])
    task.reference(releases[:2], 10, np.random.default_rng(1))
    mixed = task.reference(releases[1:], 10, np.random.default_rng(1))
    alone = made("binomial", PRIORS["binomial"], 6, 0.5).reference(releases[1:], 10, np.random.default_rng(1))
    np.testing.assert_array_equal(mixed, alone)
    for prior in ([0, 1], [1, 0], [1, 1, 1]):
        with pytest.raises(SettingError, match="collider cannot have: "):
            made("collider", prior, 5, 1.0)


COUNTS = [(name, noise) for name in ("binomial", "multinomial", "private_n_binomial") for noise in known()[name].noises]


@pytest.mark.parametrize("name, noise", COUNTS)
def test_the_noise_of_a_task_has_the_density_that_its_mechanism_states(name, noise):
    """But for a constant; at whole numbers, where discrete noise has its probabilities."""
    task, rng = made(name, [10, 10] if "binomial" in name else [5, 5, 5], 20, 1.0, noise), np.random.default_rng(1)
    statistics = task.data(task.prior(50, rng), rng)
    exact = task.mechanism.select(statistics)
    release = np.rint(exact[0] + 3)
    ours, stated = task.noise_log_density(release, exact), task.mechanism.log_density(release, statistics)
    np.testing.assert_allclose(ours - ours[0], stated - stated[0], rtol=1e-9, atol=1e-9)
    assert np.ptp(ours) > 0
