"""The choice among public candidates: the forward algorithm, the law of the choice and its price."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

from privpost.mechanisms.public_candidates import PublicCandidates
from privpost.models.event_counts import EventCounts
from privpost.samplers.hidden_markov_forward import log_likelihoods


def test_the_forward_algorithm_sums_over_all_paths():
    rng = np.random.default_rng(0)
    emissions, moves = rng.normal(size=(2, 4, 3)), rng.dirichlet(np.ones(3), (2, 3))
    first = np.array([True, False, True, False])
    observed = np.array([[True, True, True, True], [False, True, True, False]])
    expected = np.zeros((2, 2))
    for path in itertools.product(range(3), repeat=4):
        for j, which in itertools.product(range(2), range(2)):
            weight = 1.0
            for cell, state in enumerate(path):
                weight *= 1 / 3 if first[cell] else moves[j, path[cell - 1], state]
                weight *= np.exp(emissions[j, cell, state]) if observed[which, cell] else 1.0
            expected[j, which] += weight
    emissions = emissions.transpose(1, 2, 0)
    assert log_likelihoods(emissions, moves, first, observed) == pytest.approx(np.log(expected), abs=1e-12)
    # 1e5 events a cell underflow nothing.
    large = log_likelihoods(1e5 * emissions, moves, first, observed)
    assert np.isfinite(large).all()


MODEL = EventCounts((2, 1), (3, 2), 2)
MECHANISM = PublicCandidates(MODEL, 6, 3.0, candidates=20)
DATA = np.array([[0, 0, 1], [0, 1, 1], [1, 2, 0], [2, 2, 0], [2, 2, 1], [1, 0, 0]])


def shares(data) -> np.ndarray:
    tables = MODEL.tables(MODEL.sufficient_statistics(data))
    weights = MECHANISM.log_likelihoods(tables, np.ones((1, 3), bool))[:, 0] / MECHANISM.temperature
    return np.exp(weights) / np.exp(weights).sum()


def test_candidates_are_chosen_by_tempered_likelihood():
    release = MECHANISM.draw(MODEL.sufficient_statistics(DATA), np.random.default_rng(4), 20_000)
    chosen, moves = release.info
    counts = np.bincount(chosen, minlength=20)
    # A correct choice fails once in 10,000 seeds.
    assert stats.chisquare(counts, 20_000 * shares(DATA)).pvalue > 1e-4
    assert np.array_equal(release.values[0], MECHANISM.block(0).emissions[chosen[0]])
    assert np.array_equal(moves[0], MECHANISM.block(0).transitions[chosen[0]])


def test_the_price_covers_every_substituted_event():
    worst = 0.0
    before = np.log(shares(DATA))
    for event in MODEL.records:
        changed = DATA.copy()
        changed[0] = event
        worst = max(worst, np.abs(np.log(shares(changed)) - before).max())
    assert 0 < worst <= MECHANISM.cost().epsilon


def test_fewer_candidates_are_the_first_ones_of_many():
    few, many = (PublicCandidates(MODEL, 6, 3.0, candidates=number) for number in (300, 700))
    tables = MODEL.tables(MODEL.sufficient_statistics(DATA))
    observed = np.ones((1, 3), bool)
    assert np.array_equal(few.log_likelihoods(tables, observed), many.log_likelihoods(tables, observed)[:300])
    picked = many.chosen(np.array([5, 699, 5]))
    assert np.array_equal(picked.emissions[0], picked.emissions[2])
    assert np.array_equal(picked.emissions[1], many.block(2).emissions[699 - 512])


def test_settings_out_of_range_are_errors():
    with pytest.raises(ValueError, match="candidates is 0; it must be an integer >= 1"):
        PublicCandidates(MODEL, 6, 1.0, candidates=0)
    with pytest.raises(ValueError, match="truncation"):
        PublicCandidates(MODEL, 6, 1.0, candidates=3, truncation=1.0)


@pytest.mark.parametrize("given", [2.5, "3", True, 0, None])
def test_numbers_of_candidates_and_seeds_are_integers(given):
    with pytest.raises(ValueError, match=rf"^candidates is {given!r}; it must be an integer >= 1$"):
        PublicCandidates(MODEL, 6, 1.0, candidates=given)
    with pytest.raises(ValueError, match=r"^public_seed is .*; it must be an integer >= 0$"):
        PublicCandidates(MODEL, 6, 1.0, candidates=3, public_seed=-1 if given == 0 else given)


def test_candidates_whose_transitions_force_a_path_have_likelihoods():
    model = EventCounts((40,), (2,), 3, transition=1e-300)
    mechanism = PublicCandidates(model, 4, 2.0, candidates=300, truncation=1e6)
    tables = np.random.default_rng(1).permuted([[5000.0, 0]] * 20 + [[0, 5000.0]] * 20, axis=0)
    found = mechanism.log_likelihoods(tables, np.ones((1, 40), bool))
    assert np.isfinite(found).all()
