"""Gibbs sampling that pays for every update: what its chain reveals, and that it takes the steps that it pays for."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import chisquare

from privpost.distributions import truncated_beta
from privpost.mechanisms.event_states import HiddenMarkovSampler
from privpost.mechanisms.private_gibbs import PrivateGibbs
from privpost.models.event_counts import EventCounts
from privpost.privacy import count_tables
from privpost.samplers.hidden_markov.seeds import Seeding

# Two months of one region, one field of two levels, and all states of both.
MODEL = EventCounts((2,), (2,), 2)
STATES = list(itertools.product(range(2), repeat=2))
LOW = 0.05
MECHANISM = PrivateGibbs(MODEL, 8, 6.0, iterations=1)
COUNTS = np.array([[4.0, 0.0], [0.0, 4.0]])


def update_shapes(counts, states, temperature) -> np.ndarray:
    """Parameters (2 states, 2) of the truncated beta laws of the first level's probability given all states."""
    states = np.array(states)
    return 1 + np.array([counts[states == k].sum(axis=0) for k in range(2)]) / temperature


def log_update(counts, states, first, temperature) -> np.ndarray:
    """Log-density (...) of both states' probabilities of the first level, (..., 2)."""
    shapes = update_shapes(counts, states, temperature)
    return sum(truncated_beta.log_density(first[..., k], shapes[k], LOW, 1 - LOW) for k in range(2))


def log_scan(counts, after, first, temperature) -> np.ndarray:
    """Log-probability (...) of the states after a scan; with a single move between two cells their prior is uniform."""
    total = 0.0
    for cell in range(2):
        logs = np.stack(
            [counts[cell, 0] * np.log(first[..., k]) + counts[cell, 1] * np.log1p(-first[..., k]) for k in (0, 1)]
        )
        logs = logs / temperature
        total = total + logs[after[cell]] - np.logaddexp(*logs)
    return total


def largest_loss(mechanism, pair) -> float:
    """Largest log-ratio of the densities of whole chains about two data sets, over a grid of emissions."""
    grid = np.linspace(LOW, 1 - LOW, 19)
    first = np.stack(np.meshgrid(grid, grid, indexing="ij"), axis=-1)
    temperature, rest = mechanism.temperature, dict.fromkeys(STATES, 0.0)
    for _ in range(mechanism.iterations):
        losses = {}
        for before in STATES:
            there, back = (log_update(counts, before, first, temperature) for counts in pair)
            scans = [
                log_scan(pair[0], after, first, temperature)
                - log_scan(pair[1], after, first, temperature)
                + rest[after]
                for after in STATES
            ]
            losses[before] = float((there - back + np.max(scans, axis=0)).max())
        rest = losses
    return max(rest.values())


def check_the_whole_chain_costs_at_most_its_charge(mechanism) -> None:
    """All neighbours of n events; the worst of them uses more than half, so that an update that is not paid shows."""
    n, cells = mechanism.n, list(itertools.product(range(2), repeat=2))
    losses = []
    for common in (0, 3):
        rest = np.zeros((2, 2))
        rest[cells[common]] = n - 1
        for one, other in itertools.permutations(cells, 2):
            pair = [rest.copy(), rest.copy()]
            pair[0][one] += 1
            pair[1][other] += 1
            losses.append(largest_loss(mechanism, pair))
    # Rounding of sums of a few logarithms.
    assert max(losses) <= mechanism.cost().epsilon * (1 + 1e-9), "a chain loses more than its charge"
    assert max(losses) > 0.55 * mechanism.cost().epsilon


@pytest.mark.parametrize("iterations", [1, 2, 5])
def test_the_whole_chain_costs_at_most_its_charge(iterations) -> None:
    check_the_whole_chain_costs_at_most_its_charge(PrivateGibbs(MODEL, 60, 6.0, iterations=iterations))


def check_the_states_have_taken_the_steps_that_are_paid(mechanism) -> None:
    """States after one iteration from random ones, by quadrature over the emissions, against the mechanism's."""
    size, temperature = 20_000, 4 * math.log((1 - LOW) / LOW) / 6.0
    points, weights = np.polynomial.legendre.leggauss(60)
    points, weights = 0.5 + (0.5 - LOW) * points, (0.5 - LOW) * weights
    first = np.stack(np.meshgrid(points, points, indexing="ij"), axis=-1)
    weights = np.multiply.outer(weights, weights)
    law = np.zeros(4)
    for before in STATES:
        density = weights * np.exp(log_update(COUNTS, before, first, temperature))
        assert density.sum() == pytest.approx(1, abs=1e-9)
        law += [(density * np.exp(log_scan(COUNTS, after, first, temperature))).sum() / 4 for after in STATES]
    states = mechanism.draw(COUNTS.ravel(), np.random.default_rng(5), size).info.state.states
    found = np.bincount(2 * states[0] + states[1], minlength=4)
    assert chisquare(found, size * law).pvalue > 1e-6, "the states have another law than after the paid steps"


def test_the_states_have_taken_the_steps_that_are_paid() -> None:
    check_the_states_have_taken_the_steps_that_are_paid(MECHANISM)


def test_the_charge_is_that_of_its_updates() -> None:
    """As one converged sample for one update, twice that for every iteration; never above ε."""
    war_logs = EventCounts((3, 4), (13, 90, 2, 2, 2), 10)
    one = HiddenMarkovSampler(war_logs, 100, 0.5).temperature
    for iterations in (1, 7, 200):
        mechanism = PrivateGibbs(war_logs, 100, 0.5, iterations=iterations)
        assert mechanism.temperature == pytest.approx(2 * iterations * one, rel=1e-12)
        assert mechanism.cost().epsilon == pytest.approx(0.5, rel=1e-12)
    warm = PrivateGibbs(MODEL, 8, 1e3, iterations=2)
    assert warm.temperature == 1
    assert warm.cost().epsilon == pytest.approx(8 * warm.sensitivity, rel=1e-12)
    same = count_tables.unconverged_cost(war_logs.sizes, 10.0, 0.5, 200)
    assert PrivateGibbs(war_logs, 100, same, iterations=200).temperature == pytest.approx(one, rel=1e-12)


def test_numbers_out_of_range_are_refused() -> None:
    with pytest.raises(ValueError, match="iterations is 0"):
        PrivateGibbs(MODEL, 8, 1.0, iterations=0)
    with pytest.raises(ValueError, match="seeding is"):
        PrivateGibbs(MODEL, 8, 1.0, seeding=Seeding())
