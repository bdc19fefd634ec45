"""Labels of states: matched by their emissions, also within a chain that switches them."""

from __future__ import annotations

import numpy as np
import pytest

from privpost.experiments.foulds2016.war_logs_states.maps import Frequencies, align
from privpost.samplers.hidden_markov.gibbs import State


@pytest.mark.parametrize("n_states", [2, 3, 10])
def test_frequencies_of_states_whose_labels_are_switched_are_those_under_the_last_labels(n_states) -> None:
    rng = np.random.default_rng(n_states)
    mode = rng.integers(n_states, size=(300, 2))
    switched, plain = (Frequencies((n_states, 300, 2), burn_in=5) for _ in range(2))
    for iteration in range(45):
        states = np.where(rng.random(mode.shape) < 0.1, rng.integers(n_states, size=mode.shape), mode)
        labels = np.array([rng.permutation(n_states) for _ in range(2)])
        named = np.take_along_axis(labels, states.T, axis=1).T
        plain(iteration, State(states))
        switched(iteration, State(named))
    found, expected = switched.shares(45), plain.shares(45)
    for chain, own in enumerate(labels):
        np.testing.assert_array_equal(found[own, :, chain], expected[:, :, chain])
        np.testing.assert_array_equal(found[:, :, chain].argmax(axis=0), own[mode[:, chain]])
    np.testing.assert_allclose(found.sum(axis=0), 1)


def test_labels_are_aligned_by_emissions() -> None:
    rng = np.random.default_rng(41)
    reference = np.concatenate([rng.dirichlet(np.ones(size), size=4) for size in (5, 3)], axis=1)
    order = np.array([2, 0, 3, 1])
    near = reference[order] + 1e-3
    assert align(near / near.sum() * 8, reference, (5, 3)).tolist() == order.tolist()
