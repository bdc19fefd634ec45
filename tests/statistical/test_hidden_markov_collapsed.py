"""The collapsed sampler of the hidden Markov model against enumeration, and its arithmetic against scipy.

Fixed seeds. Each statistical check is a chi-square test at a p-value of 1e-4, and there are fewer than 20.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numba import njit
from scipy.special import betaln, gammaln
from scipy.stats import beta, chi2
from test_hidden_markov_gibbs import COUNTS, LAYOUT, OBSERVED, SIZES, exact_state_probabilities, log_states

from privpost.samplers import hidden_markov_collapsed as collapsed
from privpost.samplers import hidden_markov_exchange as exchange
from privpost.samplers import hidden_markov_gibbs as gibbs
from privpost.samplers import hidden_markov_kernels as kernels
from privpost.samplers.chain import run

# Loops that are compiled into others have no entry of their own.
_log_mass = njit(exchange.log_mass.py_func)


def log_mass(totals, low: float, guess: float = 0.0) -> float:
    """ln P(all x_i ≥ low), x ~ Dirichlet(1 + totals)."""
    return _log_mass(totals, gammaln(1 + totals), gammaln((1 + totals).sum()), low, guess)[0]


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


@pytest.mark.parametrize(
    ("temperature", "prior_temperature", "a", "b"),
    [(1.0, 1.0, 1.0, 1.0), (4.0, 4.0, 0.7, 2.0), (3.0, 1.0, 1.5, 1.0)],
)
def test_every_replica_follows_its_law(temperature, prior_temperature, a, b) -> None:
    n_states, n_chains, ladder = 2, 6_000, collapsed.Ladder(3, 5.0)
    _, exact = exact_state_probabilities(COUNTS, OBSERVED, n_states, a, b, temperature, prior_temperature)
    group = gibbs.Group(COUNTS, np.tile(OBSERVED, (n_chains, 1)), temperature, prior_temperature)
    sampler = collapsed.Chains([group], LAYOUT, gibbs.Prior(n_states, SIZES, a, b), ladder, burn_in=100)
    # The last states of independent chains: a multinomial sample, if 20 rounds on 5 cells forget the start.
    ((state, _),) = run(sampler, [np.random.default_rng(21)], draws=1, burn_in=19)
    for replica, power in enumerate(ladder.powers(temperature)):
        law = exact**power
        assert chi_square(state.states[0][:, replica], law / law.sum(), n_states) > 1e-4


def test_real_valued_counts_of_each_chain_and_three_states() -> None:
    n_chains, counts = 4_000, COUNTS * 1.37 + 0.21 * (COUNTS > 1)
    _, exact = exact_state_probabilities(counts, OBSERVED, 3, 0.5, 1.0)
    group = gibbs.Group(np.tile(counts, (n_chains, 1, 1)), np.tile(OBSERVED, (n_chains, 1)))
    sampler = collapsed.Chains([group], LAYOUT, gibbs.Prior(3, SIZES, 0.5), collapsed.Ladder(2, 3.0), burn_in=100)
    ((state, _),) = run(sampler, [np.random.default_rng(22)], draws=1, burn_in=19)
    assert chi_square(state.states[0][:, 0], exact, 3) > 1e-4


@pytest.mark.parametrize("explicit", [False, True])
def test_truncated_emissions_weigh_the_states_by_their_mass(explicit) -> None:
    """Passes alone, by the saddlepoint, and with the explicit sampler after every round, which is exact."""
    n_chains, temperature, lows, counts = 4_000, 2.0, (0.15, 0.2), 4 * COUNTS[:, :4]
    sequences, _ = exact_state_probabilities(COUNTS, OBSERVED, 2, 1.0, 1.0)
    logs = np.empty(len(sequences))
    for place, states in enumerate(sequences):
        logs[place] = log_states(states, LAYOUT, 2, 1.0) / temperature
        for k, (field, low) in itertools.product(range(2), enumerate(lows)):
            alpha = 1 + counts[(states == k) & OBSERVED].sum(axis=0)[2 * field : 2 * field + 2] / temperature
            law = beta(*alpha)
            logs[place] += betaln(*alpha) + np.log(law.cdf(1 - low) - law.cdf(low))
    exact = np.exp(logs - logs.max())
    group = gibbs.Group(counts, np.tile(OBSERVED, (n_chains, 1)), temperature, lows=lows)
    ladder, burn_in = collapsed.Ladder(3, 5.0), 0 if explicit else 100
    sampler = collapsed.Chains([group], LAYOUT, gibbs.Prior(2, (2, 2)), ladder, burn_in)
    ((state, _),) = run(sampler, [np.random.default_rng(26)], draws=1, burn_in=19)
    assert chi_square(state.cold.states.T, exact / exact.sum(), 2) > 1e-4
    if explicit:
        assert all(state.cold.probabilities[:, :, 2 * d : 2 * d + 2].min() >= low for d, low in enumerate(lows))


@pytest.mark.parametrize("levels", [2, 13, 151])
def test_the_mass_of_a_truncated_dirichlet_is_that_of_draws(levels) -> None:
    """Against Beta tails, and the share of Dirichlet draws inside; the saddlepoint errs most without counts."""
    rng = np.random.default_rng(27)
    for scale in (2.0, 10.0, 40.0):
        totals, low = rng.gamma(0.5, scale, levels) * (rng.random(levels) < 0.7), 0.1 / levels
        found = log_mass(totals, low)
        if levels == 2:
            assert abs(found - np.log(np.diff(beta(*(1 + totals)).cdf([low, 1 - low]))[0])) < 0.06
        inside = rng.dirichlet(1 + totals, 40_000).min(axis=1) >= low
        if inside.sum() > 50:
            error = np.sqrt((1 - inside.mean()) / inside.sum())
            assert abs(found - np.log(inside.mean())) < 0.06 + 4.5 * error
    # Without counts the mass is (1 − levels × low)^(levels − 1) exactly.
    assert abs(log_mass(np.zeros(levels), low) - (levels - 1) * np.log(1 - levels * low)) < 0.06


def test_energies_are_the_collapsed_log_joint_and_chains_repeat_themselves() -> None:
    rng = np.random.default_rng(23)
    counts = rng.gamma(0.4, 30.0, size=(4, 5, 5))
    group = gibbs.Group(counts, np.tile(OBSERVED, (4, 1)))
    prior = gibbs.Prior(3, SIZES, 0.8, 1.0)
    ends = []
    for _ in range(2):
        sampler = collapsed.Chains([group], LAYOUT, prior, collapsed.Ladder(4, 20.0), burn_in=100)
        ((state, _),) = run(sampler, [np.random.default_rng(24)], draws=1, burn_in=6)
        found = collapsed.log_joint(state.cold.states, counts, group.observed, LAYOUT, prior)
        # Sums of some hundred terms below 1e4, each to 1e-13 of itself.
        np.testing.assert_allclose(state.energies[0][:, 0], found.T, atol=1e-8)
        ends.append(state)
    np.testing.assert_array_equal(ends[0].states[0], ends[1].states[0])


@pytest.mark.parametrize("lows", [None, (0.02, 0.02)])
def test_what_is_kept_of_a_replica_changes_nothing(lows) -> None:
    """With weights that are computed anew in every pass the chain is the same."""
    rng, prior = np.random.default_rng(28), gibbs.Prior(3, (3, 2))
    counts = rng.gamma(0.4, 30.0, size=(4, 5, 5))
    group = gibbs.Group(counts, np.tile(OBSERVED, (4, 1)), 2.0, lows=lows)
    sampler, ends = collapsed.Chains([group], LAYOUT, prior, collapsed.Ladder(4, 20.0), burn_in=8), []
    for keep in (True, False):
        own = [np.random.default_rng(29)]
        state = sampler.init(own)
        for _ in range(16):
            memory = state.memory if keep else sampler.init([np.random.default_rng(1)]).memory
            state, _ = sampler.step(state._replace(memory=memory), own)
        ends.append(state)
    np.testing.assert_array_equal(ends[0].states[0], ends[1].states[0])
    # Sums of some dozen terms below 1e3; the mass of truncation depends on the guess of its saddlepoint.
    np.testing.assert_allclose(ends[0].energies[0], ends[1].energies[0], atol=1e-9 if lows is None else 1e-2)


def test_log_gamma_is_scipys() -> None:
    x = np.concatenate([[1.0, 2.0, 1e-3], np.exp(np.random.default_rng(25).uniform(-5, 16, 5_000))])
    found = np.empty_like(x)
    kernels.log_gammas(x, found)
    # Stirling's series at x + 7 ends below 1e-16; what is left is rounding of terms as large as ln Γ(x + 7).
    assert np.all(np.abs(found - gammaln(x)) <= 2e-13 * np.maximum(1, np.abs(gammaln(x))))
