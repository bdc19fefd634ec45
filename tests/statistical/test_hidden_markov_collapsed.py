"""The collapsed sampler of the hidden Markov model against enumeration, and its arithmetic against scipy.

Fixed seeds. Each statistical check is a chi-square test at a p-value of 1e-4, and there are fewer than 20.
"""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from numba import njit
from scipy.special import betaln, gammaln
from scipy.stats import beta, chi2
from test_hidden_markov_gibbs import COUNTS, LAYOUT, OBSERVED, SIZES, exact_state_probabilities, log_states

from privpost.samplers import hidden_markov_collapsed as collapsed
from privpost.samplers import hidden_markov_gibbs as gibbs
from privpost.samplers import hidden_markov_kernels as kernels
from privpost.samplers import hidden_markov_lanes as lanes
from privpost.samplers import hidden_markov_passes as passes
from privpost.samplers.chain import run
from privpost.samplers.log_gamma_table import gamma_table

# Loops that are compiled into others have no entry of their own.
_log_gamma = njit(kernels.log_gamma.py_func, error_model="numpy")
# What ln P of a truncated field errs by at most: see unit/samplers/test_truncated_masses.py.
MASS = 1e-6


@njit(error_model="numpy")
def weigh(number, old, cells, entries, sums):
    """Weights of the one cell in the first states."""
    chosen = np.arange(-(-len(sums) // lanes.LANES) * lanes.LANES)
    found = np.empty(len(chosen))
    passes.weigh(chosen, number, old, (cells.indptr[0], cells.indptr[1]), cells, entries, sums, found)
    return found[:number]


def chi_square(states, exact, n_states: int) -> float:
    """p-value of states (chains, cells) of independent chains against the probabilities of all sequences."""
    codes = states @ n_states ** np.arange(states.shape[1] - 1, -1, -1)
    found, expected = np.bincount(codes, minlength=len(exact)), len(states) * exact
    # Rare sequences together, so that no expectation is below 5.
    order = np.argsort(expected)
    rare = np.cumsum(expected[order]) < 5
    pool = lambda counts: np.append(counts[order][~rare], counts[order][rare].sum())  # noqa: E731
    found, expected = pool(found), pool(expected)
    kept = expected > 0
    return float(chi2.sf(((found - expected)[kept] ** 2 / expected[kept]).sum(), kept.sum() - 1))


def last_states(group, prior, power: float = 1.0, annealing=None, burn_in: int = 100):
    """States after 20 rounds of independent chains: a multinomial sample, if they forget the start on 5 cells."""
    annealing = annealing or collapsed.Annealing(1.0, 0, 1)
    sampler = collapsed.Chains([group], LAYOUT, prior, annealing, burn_in)
    sampler._powers[0][0][:] *= power
    ((state, _),) = run(sampler, [np.random.default_rng(21)], draws=1, burn_in=19)
    return state.states[0][:, 0]


@pytest.mark.parametrize(
    ("temperature", "prior_temperature", "a", "b", "power"),
    [(1.0, 1.0, 1.0, 1.0, 0.3), (4.0, 4.0, 0.7, 2.0, 1.0), (3.0, 1.0, 1.5, 1.0, 1.0)],
)
def test_passes_follow_their_law(temperature, prior_temperature, a, b, power) -> None:
    """Also in the burn-in, where it is the law to the power 1/τ."""
    _, exact = exact_state_probabilities(COUNTS, OBSERVED, 2, a, b, temperature, prior_temperature)
    group = gibbs.Group(COUNTS, np.tile(OBSERVED, (3_000, 1)), temperature, prior_temperature)
    law = exact**power
    assert chi_square(last_states(group, gibbs.Prior(2, SIZES, a, b), power), law / law.sum(), 2) > 1e-4


def test_rounds_after_an_annealed_start_follow_the_law() -> None:
    _, exact = exact_state_probabilities(COUNTS, OBSERVED, 2, 1.0, 1.0)
    group, annealing = gibbs.Group(COUNTS, np.tile(OBSERVED, (3_000, 1))), collapsed.Annealing(5.0, 2)
    states = last_states(group, gibbs.Prior(2, SIZES), annealing=annealing, burn_in=8)
    assert chi_square(states, exact, 2) > 1e-4


def test_replicas_follow_their_laws() -> None:
    """Each to its power 1/τ, while they trade places."""
    _, exact = exact_state_probabilities(COUNTS, OBSERVED, 2, 1.0, 1.0)
    n_chains, annealing = 3_000, collapsed.Annealing(1.0, 0, 1, replicas=3, top=4.0)
    sampler = collapsed.Chains(
        [gibbs.Group(COUNTS, np.tile(OBSERVED, (n_chains, 1)))], LAYOUT, gibbs.Prior(2, SIZES), annealing, 100
    )
    ((state, _),) = run(sampler, [np.random.default_rng(34)], draws=1, burn_in=99)
    assert sampler._search < 99
    for replica, power in enumerate(annealing.ladder):
        law = exact**power
        assert chi_square(state.states[0][:, replica], law / law.sum(), 2) > 1e-4


def test_replicas_carry_a_chain_between_modes() -> None:
    """Two partitions of equal joint, with a wall between them that no pass at τ = 1 climbs."""
    kinds = np.repeat(np.arange(3), 4)
    counts = np.array([[60.0, 0, 0], [0, 60, 0], [0, 0, 60]])[kinds]
    layout, observed, prior = gibbs.Layout.of(np.arange(12)), np.ones((8, 12), bool), gibbs.Prior(2, (3,))
    changed = {}
    for replicas in (1, 12):
        annealing = collapsed.Annealing(1.0, 0, 1, replicas=replicas, top=60.0)
        sampler = collapsed.Chains([gibbs.Group(counts, observed)], layout, prior, annealing, 2)
        own = [np.random.default_rng(35)]
        state, seen = sampler.init(own), [set() for _ in observed]
        state.states[0][:] = np.array([0, 0, 1])[kinds]
        for turn in range(300):
            state, _ = sampler.step(state, own)
            for chain, states in enumerate(state.cold.states.T if turn > 2 else []):
                seen[chain].add(tuple(states == states[0]))
        changed[replicas] = np.mean([len(partitions) > 1 for partitions in seen])
    assert changed[1] == 0
    assert changed[12] == 1


def test_a_resplit_finds_states_that_no_cell_by_itself_would_leave() -> None:
    """Two kinds of cells share a state and two that differ less have one each: passes keep that, resplits mend it."""
    kinds = np.repeat(np.arange(4), 6)
    counts = np.array([[900.0, 50, 50], [50, 900, 50], [50, 50, 900], [50, 120, 830]])[kinds]
    layout, observed = gibbs.Layout.of(np.arange(24)), np.ones((10, 24), bool)
    prior, wrong, right = gibbs.Prior(3, (3,)), np.array([0, 0, 1, 2])[kinds], np.array([0, 1, 2, 2])[kinds]
    found = {}
    for resplits in (0, 30):
        sampler = collapsed.Chains(
            [gibbs.Group(counts, observed)], layout, prior, collapsed.Annealing(1.0, resplits), 9
        )
        own = [np.random.default_rng(30)]
        state = sampler.init(own)
        state.states[0][:] = wrong
        for _ in range(8):
            state, _ = sampler.step(state, own)
        found[resplits] = [len(set(zip(right, states, strict=True))) == 3 for states in state.states[0][:, 0].tolist()]
    assert not any(found[0])
    assert all(found[30])


def test_cold_rounds_with_resplits_never_lower_the_joint() -> None:
    """At τ near 0 a resplit is accepted only if it raises the joint, whose change it sums from parts."""
    rng, rounds, prior = np.random.default_rng(31), 12, gibbs.Prior(4, SIZES)
    counts, observed = rng.poisson(rng.gamma(0.5, 8, (30, sum(SIZES)))).astype(float), np.ones((6, 30), bool)
    layout = gibbs.Layout.of(np.arange(30))
    group = gibbs.Group(counts, observed)
    sampler = collapsed.Chains([group], layout, prior, collapsed.Annealing(resplits=20), rounds)
    sampler._powers = [(np.full(rounds, 1e9), np.zeros(rounds, bool))]
    state, joints = sampler.init([rng]), []
    for _ in range(rounds):
        state, _ = sampler.step(state, [rng])
        joints.append(collapsed.log_joint(state.states[0][:, 0].T, group, layout, prior).sum(axis=0))
    changes = np.diff(joints, axis=0)
    assert changes.min() > -1e-8
    assert changes.max() > 1


def test_a_child_has_what_its_parents_agree_on() -> None:
    """Whatever the labels: of one partition it is a copy, and cells that both parents keep together stay together."""
    rng = np.random.default_rng(32)
    first, second = np.repeat(np.arange(4), [9, 7, 5, 3]), np.repeat([2, 0, 3, 1], [9, 7, 4, 4])
    copy = collapsed.crossed(first, (first + 1) % 4, 4, rng)
    assert len(set(zip(first.tolist(), copy.tolist(), strict=True))) == len(set(copy.tolist())) == 4
    child = collapsed.crossed(first, second, 4, rng)
    kept = np.array([place not in (20,) for place in range(24)])
    assert len(set(zip(first[kept].tolist(), child[kept].tolist(), strict=True))) == 4


def test_the_search_starts_from_its_best_partition() -> None:
    """A population gets no worse, its members differ, and after the burn-in a chain is in the best of them."""
    rng, burn_in, prior = np.random.default_rng(33), 120, gibbs.Prior(4, SIZES)
    counts, observed = rng.poisson(rng.gamma(0.5, 8, (30, sum(SIZES)))).astype(float), np.ones((3, 30), bool)
    layout, group = gibbs.Layout.of(np.arange(30)), gibbs.Group(counts, observed)
    sampler, worst = collapsed.Chains([group], layout, prior, collapsed.Annealing(20.0), burn_in), []
    state = sampler.init([rng])
    for place in range(burn_in):
        state, _ = sampler.step(state, [rng])
        partitions, joints = state.members[0]
        if place >= burn_in // 3:
            worst.append(joints.min(axis=1))
    assert joints.shape == (3, 3) and np.isfinite(joints).all()
    assert (np.diff(worst, axis=0) >= 0).all() and (worst[-1] > worst[0]).all()
    assert (np.diff(np.sort(joints, axis=1), axis=1) > 1).all()
    found = collapsed.log_joint(state.states[0][:, 0].T, group, layout, prior).sum(axis=0)
    np.testing.assert_allclose(found, joints.max(axis=1), atol=1e-8)
    assert (partitions >= 0).all() and (partitions < 4).all()


@pytest.mark.parametrize("n_states", [3, 6])
def test_real_valued_counts_of_each_chain_and_several_states(n_states) -> None:
    """Also of more states than are weighed at once."""
    n_chains, counts = 3_000, COUNTS * 1.37 + 0.21 * (COUNTS > 1)
    _, exact = exact_state_probabilities(counts, OBSERVED, n_states, 0.5, 1.0)
    group = gibbs.Group(np.tile(counts, (n_chains, 1, 1)), np.tile(OBSERVED, (n_chains, 1)))
    assert chi_square(last_states(group, gibbs.Prior(n_states, SIZES, 0.5)), exact, n_states) > 1e-4


def truncated_logs(group, a: float) -> tuple[np.ndarray, np.ndarray]:
    """All state sequences of 5 cells, K = 2, and their log joint with two fields of two truncated levels each."""
    sequences, _ = exact_state_probabilities(COUNTS, OBSERVED, 2, 1.0, 1.0)
    logs = np.empty(len(sequences))
    for place, states in enumerate(sequences):
        logs[place] = log_states(states, LAYOUT, 2, a) / group.prior_temperature
        for k, (field, low) in itertools.product(range(2), enumerate(group.lows)):
            totals = group.counts[(states == k) & OBSERVED].sum(axis=0)[2 * field : 2 * field + 2]
            law = beta(*(1 + totals / group.temperature))
            logs[place] += betaln(*law.args) + np.log(law.cdf(1 - low) - law.cdf(low))
    return sequences, logs


@pytest.mark.parametrize(("explicit", "power"), [(False, 1.0), (False, 0.3), (True, 1.0)])
def test_truncated_emissions_weigh_the_states_by_their_mass(explicit, power) -> None:
    """Passes alone, also to the power 1/τ, and with the explicit sampler: one law, by incomplete beta functions."""
    lows = (0.3, 0.35)
    group = gibbs.Group(4 * COUNTS[:, :4], np.tile(OBSERVED, (3_000, 1)), 2.0, lows=lows)
    logs = power * truncated_logs(group, 1.0)[1]
    exact = np.exp(logs - logs.max())
    annealing, burn_in = collapsed.Annealing(1.0, 0, 1), 0 if explicit else 100
    sampler = collapsed.Chains([group], LAYOUT, gibbs.Prior(2, (2, 2)), annealing, burn_in)
    sampler._powers[0][0][:] *= power
    ((state, _),) = run(sampler, [np.random.default_rng(26)], draws=1, burn_in=19)
    assert chi_square(state.cold.states.T, exact / exact.sum(), 2) > 1e-4
    if explicit:
        assert all(state.cold.probabilities[:, :, 2 * d : 2 * d + 2].min() >= low for d, low in enumerate(lows))


@pytest.mark.parametrize("prior_temperature", [None, 1.0])
def test_the_log_joint_is_that_of_a_tempered_and_truncated_law(prior_temperature) -> None:
    group = gibbs.Group(4 * COUNTS[:, :4], OBSERVED[None], 2.0, prior_temperature, (0.15, 0.2))
    sequences, exact = truncated_logs(group, 0.7)
    many = replace(group, observed=np.tile(OBSERVED, (len(sequences), 1)))
    found = collapsed.log_joint(sequences.T, many, LAYOUT, gibbs.Prior(2, (2, 2), 0.7)).sum(axis=0)
    np.testing.assert_allclose(found, exact, atol=4 * MASS)


@pytest.mark.parametrize(
    ("settings", "tolerance"),
    [
        # Sums of some hundred terms below 1e4, each to 1e-13 of itself.
        ((1.0, 1.0), 1e-8),
        ((4.0, 4.0), 1e-8),
        # 3 states with 2 truncated fields.
        ((4.0, 4.0, (0.02, 0.02)), 6 * MASS),
        ((4.0, 1.0, (0.02, 0.02)), 6 * MASS),
    ],
)
def test_energies_are_the_collapsed_log_joint_and_chains_repeat_themselves(settings, tolerance) -> None:
    rng = np.random.default_rng(23)
    counts = rng.gamma(0.4, 30.0, size=(4, 5, 5))
    group = gibbs.Group(counts, np.tile(OBSERVED, (4, 1)), *settings)
    prior = gibbs.Prior(3, SIZES, 0.8, 1.0)
    ends = []
    for _ in range(2):
        sampler = collapsed.Chains([group], LAYOUT, prior, collapsed.Annealing(1.0, 0, 1), burn_in=100)
        ((state, _),) = run(sampler, [np.random.default_rng(24)], draws=1, burn_in=6)
        found = collapsed.log_joint(state.cold.states, group, LAYOUT, prior)
        np.testing.assert_allclose(state.energies[0][:, 0], found.T, atol=tolerance)
        ends.append(state)
    np.testing.assert_array_equal(ends[0].states[0], ends[1].states[0])


@pytest.mark.parametrize("lows", [None, (0.02, 0.02)])
def test_what_is_kept_of_a_chain_changes_nothing(lows) -> None:
    """With weights that are computed anew in every pass the chain is the same."""
    rng, prior = np.random.default_rng(28), gibbs.Prior(3, (3, 2))
    counts = rng.gamma(0.4, 30.0, size=(4, 5, 5))
    group = gibbs.Group(counts, np.tile(OBSERVED, (4, 1)), 2.0, lows=lows)
    sampler, ends = collapsed.Chains([group], LAYOUT, prior, collapsed.Annealing(20.0, 2), burn_in=8), []
    for keep in (True, False):
        own = [np.random.default_rng(29)]
        state = sampler.init(own)
        for _ in range(16):
            memory = state.memory if keep else sampler.init([np.random.default_rng(1)]).memory
            state, _ = sampler.step(state._replace(memory=memory), own)
        ends.append(state)
    np.testing.assert_array_equal(ends[0].states[0], ends[1].states[0])
    # Sums of dozens of terms below 1e3; the way ln P is computed changes it by less than its error, six times here.
    np.testing.assert_allclose(ends[0].energies[0], ends[1].energies[0], atol=1e-9 if lows is None else 6 * MASS)


def test_log_gamma_is_scipys() -> None:
    """Inside its table, at the bounds of its intervals, and beyond it."""
    drawn = np.exp(np.random.default_rng(25).uniform(-5, 22, 20_000))
    bounds = np.outer(2.0 ** np.arange(-4, 30), 1 + np.arange(1024) / 1024).ravel()
    x = np.concatenate([[1.0, 2.0, 1e-3], drawn, bounds, np.nextafter(bounds, 0)])
    found = np.array([_log_gamma(value, gamma_table()) for value in x])
    assert np.all(np.abs(found - gammaln(x)) <= 1e-13 * np.maximum(1, np.abs(gammaln(x))))


@pytest.mark.parametrize(("n_states", "b"), [(1, 1.0), (3, 1.0), (10, 2.5), (13, 1.0)])
def test_weights_of_a_cell_are_scipys(n_states, b) -> None:
    """Counts far above the totals and far below, whole and others, and a state that holds the cell or nothing."""
    rng, prior = np.random.default_rng(36), gibbs.Prior(n_states, (13, 2, 151), 1.0, b)
    entries = collapsed.Entries.of(prior)
    counts = np.exp(rng.uniform(-12, 13, sum(prior.sizes))) * (rng.random(sum(prior.sizes)) < 0.6)
    counts[::3] = np.floor(counts[::3])
    for temperature in (1.0, 8.3, 653.0):
        cells = collapsed.Cells.of(counts[None], np.ones(1, bool), temperature, prior.fields)
        own, added = slice(*cells.indptr), np.zeros(len(entries.offset))
        added[cells.index[own]] = cells.value
        totals = entries.offset + np.exp(rng.uniform(-12, 9, (n_states, len(added)))) / temperature
        totals[0] = entries.offset
        for old in (-1, 0, n_states - 1):
            with_cell = totals + (np.arange(n_states) == old)[:, None] * added
            sums = np.stack([with_cell, gammaln(with_cell)], axis=-1)
            found = weigh(n_states, old, cells, entries, sums)
            terms = entries.sign * (gammaln(totals + added) - gammaln(totals))
            # Each ln Γ to 1e-13 of itself.
            bound = 2e-13 * (np.maximum(1, np.abs(gammaln(totals + added)))).sum(axis=1)
            assert (np.abs(found - terms.sum(axis=1)) <= bound).all()


def test_counts_beyond_the_table_are_refused() -> None:
    with pytest.raises(ValueError, match="counts sum to 6e"):
        collapsed.Cells.of(np.full((1, 3), 2e8), np.ones(1, bool), 1.0, [slice(0, 3)])
    for emission in (0.05, 3e8, np.inf):
        with pytest.raises(ValueError, match=f"emission is {emission!r}"):
            collapsed.Entries.of(gibbs.Prior(2, SIZES, 1.0, emission))
