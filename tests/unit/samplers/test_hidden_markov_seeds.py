"""Seeded starts of hidden Markov chains, and the log joint by which the best of them is chosen."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.special import gammaln

from privpost.samplers.hidden_markov import gibbs
from privpost.samplers.hidden_markov.joint import log_joint
from privpost.samplers.hidden_markov.seeds import Seeding, partitions

PRIOR, LAYOUT = gibbs.Prior(2, (2, 3), transition=0.7, emission=2.0), gibbs.Layout.of([0, 0, 1])
COUNTS = np.array([[3.0, 1, 2, 0, 2], [0, 2, 0, 1, 1], [4, 1, 1, 3, 1]])
OBSERVED = np.array([True, True, False])
STATES = np.array(list(itertools.product(range(2), repeat=3))).T


def by_hand(states, temperature: float, prior_temperature: float) -> float:
    """Log joint of a single chain's states, emissions integrated out, up to a constant."""
    total = 0.0
    for k in range(2):
        own = COUNTS[(states == k) & OBSERVED].sum(axis=0) / temperature
        for field in PRIOR.fields:
            alpha = 1 + (PRIOR.emission - 1) / prior_temperature + own[field]
            total += gammaln(alpha).sum() - gammaln(alpha.sum())
    # One move, from the first cell to the second: a of the row's 2a + 0 moves, whatever they are.
    return total + math.log(0.5) / prior_temperature


@pytest.mark.parametrize(("temperature", "prior_temperature"), [(1.0, 1.0), (3.0, 3.0), (3.0, 1.0)])
def test_the_log_joint_of_states_integrates_the_emissions_out(temperature, prior_temperature) -> None:
    law = gibbs.Law(COUNTS, np.tile(OBSERVED, (8, 1)), temperature, prior_temperature)
    found = sum(log_joint(gibbs.State(STATES), law, LAYOUT, PRIOR))
    exact = np.array([by_hand(states, temperature, prior_temperature) for states in STATES.T])
    # Differences of a few logarithms of gamma functions: rounding alone.
    assert np.allclose(found - found[0], exact - exact[0], rtol=0, atol=1e-11)


def test_the_log_joint_of_truncated_emissions_is_that_of_counts_states_and_emissions() -> None:
    rng = np.random.default_rng(1)
    logs = np.log(np.concatenate([rng.dirichlet(np.ones(size), (8, 2)) for size in PRIOR.sizes], axis=2))
    law = gibbs.Law(COUNTS, np.tile(OBSERVED, (8, 1)), 3.0, 2.0, (0.01, 0.01))
    likelihood, before = log_joint(gibbs.State(STATES, None, logs), law, LAYOUT, PRIOR)
    exact = [COUNTS[0] @ logs[c, z[0]] / 3 + COUNTS[1] @ logs[c, z[1]] / 3 for c, z in enumerate(STATES.T)]
    assert np.allclose(likelihood, exact, rtol=1e-12)
    exact = logs.sum(axis=(1, 2)) / 2
    assert np.allclose(before - before[0], exact - exact[0], rtol=0, atol=1e-12)


def test_totals_of_negative_counts_are_clipped_once_and_cells_are_scored_as_they_are() -> None:
    """One state: its emissions have the clipped totals; two states: a cell of negative counts prefers small logs."""
    counts = np.array([[5.0, -3.0], [1.0, -4.0]])
    law = gibbs.Law(counts, np.ones((20_000, 2), bool))
    sampler = gibbs.Chains(law, gibbs.Layout.of([0, 1]), gibbs.Prior(1, (2,)))
    state, _ = sampler.step(gibbs.State(np.zeros((2, 20_000), int)), np.random.default_rng(2))
    # Beta(7, 1): a mean of 7/8 with a standard deviation of .11, to 5 standard errors.
    assert state.probabilities[:, 0, 0].mean() == pytest.approx(7 / 8, abs=5 * 0.11 / 141)
    one = gibbs.Law(-100 * np.eye(2), np.ones((50, 2), bool))
    sampler = gibbs.Chains(one, gibbs.Layout.of([0, 1]), gibbs.Prior(2, (2,)))
    state, _ = sampler.step(gibbs.State(np.zeros((2, 50), int)), np.random.default_rng(3))
    best = np.argmax(-state.log_probabilities @ np.eye(2), axis=1)
    assert np.array_equal(state.states, best.T)


def grouped(rng, n_chains: int):
    """Cells of five clear kinds, and their kinds."""
    truth, prior = np.tile(np.arange(5), 12), gibbs.Prior(5, (8, 3))
    phi = [rng.dirichlet(np.full(size, 0.4), 5) for size in prior.sizes]
    counts = np.concatenate([rng.multinomial(200, own[truth]) for own in phi], axis=1).astype(float)
    return gibbs.Law(counts, np.ones((n_chains, len(truth)), bool)), truth, prior


def test_seeded_chains_find_all_kinds_of_cells_each_by_itself_and_random_ones_do_not() -> None:
    law, truth, prior = grouped(np.random.default_rng(4), 6)
    layout = gibbs.Layout.of(np.zeros(len(truth)))
    together = truth[:, None] == truth
    shares = {}
    for seeding in (None, Seeding(16, 10)):
        sampler = gibbs.Chains(law, layout, prior, seeding)
        end = gibbs.follow(sampler, np.random.default_rng(5), 20)
        shares[seeding] = [np.array_equal(z[:, None] == z, together) for z in end.state.states.T]
    assert all(shares[Seeding(16, 10)]) and not all(shares[None])
    # Names of states differ from chain to chain: each has seeds of its own.
    assert len({states.tobytes() for states in sampler.init(np.random.default_rng(5)).states.T}) > 1


def test_seeds_are_kinds_of_cells_and_do_not_read_held_out_ones() -> None:
    law, truth, prior = grouped(np.random.default_rng(6), 2)
    states = partitions(law.counts, prior, 200, np.random.default_rng(7))
    assert np.mean([len(np.unique(z)) for z in states.T]) > 4.5
    # Far cells are likelier centres: cells drawn at random are of five kinds in one start of 26.
    assert np.mean([np.array_equal(z[:, None] == z, truth[:, None] == truth) for z in states.T]) > 0.7
    law.observed[:, ::7] = False
    other = np.where(law.observed[0][:, None], law.counts, 1e5)
    layout, starts = gibbs.Layout.of(np.zeros(len(truth))), []
    for counts in (law.counts, other):
        own = gibbs.Law(counts, law.observed)
        starts.append(Seeding(4, 3).states(own, layout, prior, np.random.default_rng(8)))
    assert np.array_equal(*starts)


def test_equal_cells_and_single_levels_can_be_seeded() -> None:
    prior = gibbs.Prior(3, (2,))
    assert set(partitions(np.full((4, 2), 3.0), prior, 5, np.random.default_rng(9)).ravel()) <= {0, 1, 2}
    empty = gibbs.Law(np.zeros((4, 2)), np.eye(2, 4, dtype=bool))
    assert Seeding(2, 1).states(empty, gibbs.Layout.of(np.zeros(4)), prior, np.random.default_rng(9)).shape == (4, 2)


@pytest.mark.parametrize("settings", [{"starts": 0}, {"iterations": 0}])
def test_seedings_out_of_range_are_refused(settings) -> None:
    (name,) = settings
    with pytest.raises(ValueError, match=f"{name} is 0"):
        Seeding(**settings)
