"""The sampler that remembers sets of cells: enumeration, its joint distribution, and what it remembers.

Fixed seeds. Each statistical check is a chi-square test at a p-value of 1e-4 or uses 4.5 standard errors.
"""

from __future__ import annotations

import numpy as np
import pytest
from test_hidden_markov_collapsed import chi_square
from test_hidden_markov_gibbs import COUNTS, LAYOUT, OBSERVED, SIZES, exact_state_probabilities, joint_distribution

from privpost.samplers import hidden_markov_collapsed as collapsed
from privpost.samplers import hidden_markov_gibbs as gibbs
from privpost.samplers import hidden_markov_sets as sets
from privpost.samplers.chain import run
from privpost.samplers.hidden_markov_set_passes import exchange

QUICK = sets.Islands(agree=1, most=1, members=2, children=2, replicas=3)
# Two cells that are certain of their state beside three that are not.
SHARP = COUNTS + np.outer([1, 0, 0, 1, 0], [60, 0, 0, 0, 60]) * np.array([1, 1, 1, 1, 1])
# Two kinds of cells share a state, and two that differ less have one each, in the mode that passes do not leave.
KINDS = np.repeat(np.arange(4), 6)
MIXED = np.array([[900.0, 50, 50], [50, 900, 50], [50, 50, 900], [50, 120, 830]])[KINDS]


@pytest.mark.parametrize(
    ("counts", "n_states", "a", "b"),
    [(COUNTS, 2, 1.0, 1.0), (SHARP, 2, 0.7, 2.0), (SHARP * 1.37 + 0.21 * (SHARP > 1), 3, 0.5, 1.0)],
)
def test_chains_follow_their_law(counts, n_states, a, b) -> None:
    """All sequences of states of five cells are enumerated; the sampler passes over some of the cells."""
    _, exact = exact_state_probabilities(counts, OBSERVED, n_states, a, b)
    group = gibbs.Group(np.tile(counts, (2_000, 1, 1)), np.tile(OBSERVED, (2_000, 1)))
    # The last draw is an iteration of the explicit sampler on, if there is no burn-in.
    sampler = sets.Chains([group], LAYOUT, gibbs.Prior(n_states, SIZES, a, b), QUICK, 4, 4)
    ((state, _),) = run(sampler, [np.random.default_rng(41)], draws=1, burn_in=3)
    assert chi_square(state.cold.states.T, exact, n_states) > 1e-4


def test_the_joint_distribution_is_the_same_forwards_and_by_alternating() -> None:
    prior, store, work = gibbs.Prior(2, SIZES), sets.Store.of(5, 7), sets.Work.of(2)

    def one_pass(states, counts, rng):
        for chain, table in enumerate(counts):
            store.used[0], store.places[:] = 0, -1
            data, kept = sets.Data.of(table, np.ones(5, bool), LAYOUT, prior), np.empty((1, 5), np.int64)
            exchange(states[:, chain].copy()[None], np.ones(1), 1, kept, data, store, work, rng)
            states[:, chain] = kept[0]
        return states

    joint_distribution(None, 300, one_pass)


def run_one(counts, n_states, seed, store, before=()):
    """Draws of one chain from random states; the store has met the sets of other chains' seeds before."""
    layout, work = gibbs.Layout.of(np.arange(len(counts))), sets.Work.of(n_states)
    data = sets.Data.of(counts, np.ones(len(counts), bool), layout, gibbs.Prior(n_states, SIZES))
    for one in (*before, seed):
        rng, kept = np.random.default_rng(one), np.empty((40, len(counts)), np.int64)
        replicas = rng.integers(n_states, size=(3, len(counts)))
        exchange(replicas, np.array([1.0, 0.5, 0.2]), 2, kept, data, store, work, rng)
    return kept


def test_what_is_remembered_does_not_depend_on_how_it_was_met() -> None:
    """Draws and weights are the same to the last bit after other chains' sets, and where room is short."""
    rng = np.random.default_rng(42)
    counts = rng.gamma(0.4, 30.0, size=(30, sum(SIZES)))
    stores = [sets.Store.of(30, 7) for _ in range(2)]
    draws = [run_one(counts, 4, 1, own, before) for own, before in zip(stores, ((), (2, 3, 4)), strict=True)]
    small = sets.Store(*(part[:160] if len(part) == len(stores[0].keys) else part for part in sets.Store.of(30, 7)))
    draws.append(run_one(counts, 4, 1, small))
    for other in draws[1:]:
        np.testing.assert_array_equal(other, draws[0])
    known = [{int(key): slot for slot, key in enumerate(own.keys[: own.used[0]])} for own in stores]
    both = sorted(set(known[0]) & set(known[1]))
    assert len(both) > 100 and len(known[1]) > len(known[0])
    first, second = (store.weights[[own[key] for key in both]] for store, own in zip(stores, known, strict=True))
    asked = ~np.isnan(first) & ~np.isnan(second)
    assert asked.sum() > 1000
    np.testing.assert_array_equal(first[asked], second[asked])


def test_a_search_finds_states_that_no_cell_by_itself_would_leave() -> None:
    layout, prior = gibbs.Layout.of(np.arange(24)), gibbs.Prior(3, (3,))
    observed, right = np.ones(24, bool), np.array([0, 1, 2, 2])[KINDS]
    data, store = sets.Data.of(MIXED, observed, layout, prior), sets.Store.of(24, 4)
    settings = sets.Islands(agree=3, most=6, children=2)
    found, islands, met = sets.search(settings, 24, data, store, sets.Work.of(3), np.random.default_rng(43))
    assert met and islands == len(found) >= 3
    assert len(set(zip(right, found[0].tolist(), strict=True))) == 3
    joints = collapsed.log_joint(found.T, gibbs.Group(MIXED, np.tile(observed, (len(found), 1))), layout, prior).sum(0)
    assert (np.diff(joints) <= 1e-6).all()
    # One island may not agree with itself.
    assert not sets.search(
        sets.Islands(agree=2, most=1, children=2), 24, data, store, sets.Work.of(3), np.random.default_rng(43)
    )[2]


def test_states_tell_of_the_search_and_settings_out_of_range_are_refused() -> None:
    group = gibbs.Group(COUNTS, np.tile(OBSERVED, (2, 1)))
    sampler = sets.Chains([group], LAYOUT, gibbs.Prior(2, SIZES), QUICK, 3, 1)
    (_, (last, _)) = run(sampler, [np.random.default_rng(44)], draws=2)
    assert last.part(0, slice(1, 2)).search.tolist() == [[1, 1]]
    assert last.cold.probabilities.shape == (2, 2, 5)
    for change in ({"agree": 0}, {"members": 1}, {"top": 0.5}, {"rounds": 0}):
        ((name, value),) = change.items()
        with pytest.raises(ValueError, match=f"{name} is {value}; it must be >= "):
            sets.Islands(**change)
