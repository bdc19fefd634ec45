"""Releases about counts per cell and field: sensitivity, projections, temperature and costs."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from privpost.privacy import count_tables

SIZES = (3, 2)


def table(events, n_cells: int) -> np.ndarray:
    counts = np.zeros((n_cells, sum(SIZES)))
    for cell, first, second in events:
        counts[cell, first] += 1
        counts[cell, SIZES[0] + second] += 1
    return counts


def test_one_substituted_event_moves_each_fields_table_by_two_at_most() -> None:
    n_cells = 2
    records = list(itertools.product(range(n_cells), range(SIZES[0]), range(SIZES[1])))
    largest = np.zeros(len(SIZES))
    for others in itertools.combinations_with_replacement(records, 2):
        for old, new in itertools.product(records, repeat=2):
            change = np.abs(table([*others, old], n_cells) - table([*others, new], n_cells))
            largest = np.maximum(largest, [change[:, :3].sum(), change[:, 3:].sum()])
    assert largest.tolist() == [count_tables.SENSITIVITY] * 2
    assert count_tables.noise_scale(0.5, len(SIZES)) == 2 * 2 / 0.5


def test_the_range_of_log_likelihoods_is_attained_and_never_exceeded() -> None:
    truncation = 4.0
    lows = count_tables.smallest_probabilities(SIZES, truncation)
    assert lows == [1 / 12, 1 / 8]
    delta = count_tables.log_likelihood_range(SIZES, truncation)
    corners = []
    for size, low in zip(SIZES, lows, strict=True):
        corners.append([np.where(np.arange(size) == level, 1 - (size - 1) * low, low) for level in range(size)])
    worst = 0.0
    # The log-likelihood is largest and smallest at the corners of the truncated simplex.
    for phi in itertools.product(*corners):
        for x, y in itertools.product(itertools.product(range(3), range(2)), repeat=2):
            worst = max(worst, sum(math.log(p[i] / p[j]) for p, i, j in zip(phi, x, y, strict=True)))
    assert math.isclose(worst, delta, rel_tol=1e-12)


def test_a_draw_at_the_temperature_costs_epsilon_on_all_neighbours() -> None:
    """Exact tempered posterior over states and emissions on a grid, for all pairs of neighbours of two events."""
    truncation, epsilon = 3.0, 1.5
    sizes = (2,)
    (low,) = count_tables.smallest_probabilities(sizes, truncation)
    grid = np.linspace(low, 1 - low, 41)
    temperature = count_tables.temperature(sizes, truncation, epsilon)
    assert temperature > 1
    cells = np.array(list(itertools.product(range(2), repeat=2)))
    records = list(itertools.product(range(2), range(2)))

    def log_density(events):
        # Axes: states of the two cells, φ of state 0, φ of state 1.
        value = np.zeros((4, 41, 41))
        for cell, level in events:
            for index, states in enumerate(cells):
                phi = grid if level == 1 else 1 - grid
                value[index] += np.log(phi)[:, None] if states[cell] == 0 else np.log(phi)[None]
        value /= temperature
        return value - np.log(np.exp(value).sum())

    worst = 0.0
    for other in records:
        for old, new in itertools.product(records, repeat=2):
            worst = max(worst, np.abs(log_density([other, old]) - log_density([other, new])).max())
    assert worst <= count_tables.sampling_cost(sizes, truncation, epsilon) * (1 + 1e-12)
    # The bound is not idle either: two events reach half of it.
    assert worst > 0.5 * epsilon


def test_costs_stop_growing_where_the_temperature_is_one() -> None:
    delta = count_tables.log_likelihood_range(SIZES, 10.0)
    assert count_tables.temperature(SIZES, 10.0, 100 * delta) == 1
    assert math.isclose(count_tables.sampling_cost(SIZES, 10.0, 100 * delta), 2 * delta)
    assert math.isclose(count_tables.sampling_cost(SIZES, 10.0, 0.1), 0.1)
    assert math.isclose(count_tables.unconverged_cost(SIZES, 10.0, 0.1, 200), 400 * 0.1)


def test_the_projection_is_the_nearest_point_with_the_same_sum() -> None:
    from scipy.optimize import minimize

    rng = np.random.default_rng(31)
    noisy = rng.normal(0.5, 2.0, size=(6, 5))
    projected = count_tables.project(noisy, SIZES)
    for row, found in zip(noisy, projected, strict=True):
        for field in (slice(0, 3), slice(3, 5)):
            total = row[field].sum()
            if total <= 0:
                assert np.all(found[field] == 0)
                continue
            assert math.isclose(found[field].sum(), total, rel_tol=1e-12)
            solution = minimize(
                lambda x, target=row[field]: ((x - target) ** 2).sum(),
                np.full(len(row[field]), total / len(row[field])),
                bounds=[(0, None)] * len(row[field]),
                constraints={"type": "eq", "fun": lambda x, total=total: x.sum() - total},
                options={"ftol": 1e-12},
            )
            # The optimiser's own tolerance.
            assert np.allclose(found[field], solution.x, atol=1e-4)


def test_projection_keeps_valid_counts_and_clipping_adds_to_empty_levels() -> None:
    valid = np.array([[3.0, 0.0, 1.0, 2.0, 2.0]])
    assert np.allclose(count_tables.project(valid, SIZES), valid, rtol=1e-14)
    noise = np.random.default_rng(32).laplace(size=(200_000, 2)) * 3
    # E max(0, Lap(b)) = b/2; 4.5 standard errors of 200,000 draws whose standard deviation is below b sqrt(2).
    assert abs(count_tables.clip(noise).mean() - 1.5) < 4.5 * 3 * math.sqrt(2 / 400_000)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: count_tables.noise_scale(0.0, 1), "epsilon is 0.0"),
        (lambda: count_tables.noise_scale(1.0, 0), "n_fields is 0"),
        (lambda: count_tables.temperature(SIZES, 10.0, math.inf), "epsilon is inf"),
        (lambda: count_tables.smallest_probabilities(SIZES, 1.0), "truncation is 1.0"),
        (lambda: count_tables.smallest_probabilities(SIZES, 1.00001), "truncation is 1.00001; it must lie in .1.0001"),
        (lambda: count_tables.smallest_probabilities(SIZES, math.inf), "truncation is inf"),
        (lambda: count_tables.smallest_probabilities(SIZES, "3"), "truncation is '3'; it must be a number"),
        (lambda: count_tables.project(np.ones(4), SIZES), "sizes sum to 5, but there are 4 levels"),
    ],
)
def test_settings_out_of_range_are_refused(call, message) -> None:
    with pytest.raises(ValueError, match=message):
        call()
