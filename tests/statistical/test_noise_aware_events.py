"""Noise-aware chains of event counts: the law of a noisy count, ranks on the chain's own law, and what it may not read.

Every test has a fixed seed. Each chi-square test fails by chance with probability 1e-4, and there are 8 of them: joint
false-alarm rate below 0.1 %.
"""

from __future__ import annotations

import itertools
import math

import mpmath
import numpy as np
import pytest
from scipy.stats import chi2, poisson

from privpost.samplers import chain
from privpost.samplers.compiled import outer
from privpost.samplers.hidden_markov import gibbs
from privpost.samplers.hidden_markov.joint import log_joint
from privpost.samplers.hidden_markov.seeds import Seeding
from privpost.samplers.noise_aware import event_counts, event_kernels

SCALES = (0.2, 0.5, 1.0, 2.3, 10.0, 100.0)


@outer()
def fits(noisy, mu, law):
    """The logarithm of `event_kernels.fit` of arrays."""
    found = np.empty(len(noisy))
    for i in range(len(noisy)):
        log_factor, factor = event_kernels.fit(noisy[i], mu[i], law)
        found[i] = log_factor + math.log(factor)
    return found


def law_of(scale: float, most: int, nodes: int, per_unit: float = 8.0):
    """The law's argument, with a table of some nodes: none for the law itself."""
    c = math.exp(-1 / scale)
    per_unit = max(per_unit, per_unit / 2 / math.sqrt(c))
    return scale, c, per_unit, np.zeros((most + 1, int(nodes * per_unit), 4))


def by_summation(noisy: float, mu: float, scale: float) -> float:
    """ln of 2s p(noisy | μ), a sum over all counts with forty digits."""
    with mpmath.workdps(40):
        most = int(max(noisy, mu) + 60 * min(scale, 10) + 40 * math.sqrt(mu) + 250)
        mean, s, total = mpmath.mpf(mu), mpmath.mpf(scale), mpmath.mpf(0)
        rise, fall = mean * mpmath.exp(1 / s), mean * mpmath.exp(-1 / s)
        term = mpmath.exp(-mean - abs(noisy) / s)
        for count in range(most):
            total += term
            # Between two counts on either side of the noisy one the density changes by less than a whole step.
            between = mean * mpmath.exp((2 * mpmath.mpf(noisy) - 2 * count - 1) / s) if -1 < count - noisy < 0 else fall
            term *= (rise if count + 1 <= noisy else between) / (count + 1)
        return float(mpmath.log(total))


@pytest.mark.parametrize("scale", SCALES)
def test_the_law_of_a_noisy_count_is_the_sum_over_counts(scale) -> None:
    """Both tails, where they underflow too: 300 below a mean of 3,000 under a noise of .2, 2,500 above one of 1e-6."""
    rng = np.random.default_rng(1)
    mu = np.append(np.exp(rng.uniform(math.log(1e-6), math.log(3000), 14)), [1e-6, 3000.0, 3000.0, 40.0])
    noisy = rng.poisson(mu) + rng.laplace(0, scale, len(mu))
    noisy[::3] = rng.uniform(-100, 3000, len(noisy[::3]))
    noisy[-4:] = 2500.2, 2.7, 2700.0, 40.0
    exact = [by_summation(*pair, scale) for pair in zip(noisy, mu, strict=True)]
    # Logarithms up to 15,000 of sums of a few terms of that size: rounding of some 1e-12.
    assert np.allclose(fits(noisy, mu, law_of(scale, 4000, 0)), exact, rtol=0, atol=1e-9)


@pytest.mark.parametrize("scale", SCALES)
def test_interpolation_between_nodes_errs_by_little(scale) -> None:
    """By 2e-4 nats at most where a noisy count is at all likely, by 1e-5 of them typically; ten nats decide a state."""
    rng = np.random.default_rng(2)
    mu = np.exp(rng.uniform(math.log(1e-6), math.log(3000), 20_000))
    noisy = rng.poisson(mu) + rng.laplace(0, scale, len(mu))
    most = int(noisy.max())
    law = law_of(scale, most, 60)
    error = np.abs(fits(noisy, mu, law) - fits(noisy, mu, law_of(scale, most, 0)))
    assert error.max() < 2e-4
    assert math.sqrt((error**2).mean()) < 1e-5
    # Nodes are computed when they are needed.
    assert 0 < (law[-1][::50, :, 2] != 0).mean() < 0.05


@pytest.mark.parametrize("scale", [0.2, 3.0, 100.0])
def test_the_law_of_a_noisy_count_integrates_to_one(scale) -> None:
    points, weights = np.polynomial.legendre.leggauss(12)
    for mu in (1e-6, 0.3, 7.0, 900.0):
        # Within one whole number to the next the law is smooth; below 0 it is exponential, with s times its value at 0.
        start = np.arange(0.0, int(mu + 12 * math.sqrt(mu) + 40 * max(scale, 1)))
        noisy = (start[:, None] + (1 + points) / 2).ravel()
        law = law_of(scale, len(start), 0)
        total = np.exp(fits(noisy, np.full(len(noisy), mu), law)) @ np.tile(weights / 2, len(start))
        total += scale * math.exp(fits(np.array([-1e-12]), np.array([mu]), law)[0])
        assert total / (2 * scale) == pytest.approx(1, abs=1e-10)


PRIOR, LAYOUT, MEAN = gibbs.Prior(2, (3, 2)), gibbs.Layout.of(np.repeat([0, 1, 2], 6)), 60.0


def own_data(n_sets: int, scale: float, rng):
    """Emissions, states, rates and noisy counts that the chain's own law draws, of `n_sets` data sets."""
    n_cells = len(LAYOUT.first)
    steps = rng.dirichlet(np.ones(2), (n_sets, 2))
    states = np.empty((n_sets, n_cells), int)
    for t in range(n_cells):
        stay = 0.5 if LAYOUT.first[t] else steps[np.arange(n_sets), states[:, t - 1], 1]
        states[:, t] = rng.random(n_sets) < stay
    phi = np.concatenate([rng.dirichlet(np.ones(size), (n_sets, 2)) for size in PRIOR.sizes], axis=2)
    rates = rng.exponential(MEAN, (n_sets, n_cells))
    counts = rng.poisson(rates[..., None] * np.take_along_axis(phi, states[..., None], axis=1))
    return phi, states, rates, counts + rng.laplace(0, scale, counts.shape)


def functionals(phi, states, rates, noisy):
    """What is ranked, (quantities, sets): nothing depends on the states' names, the last on the data too."""
    own = np.take_along_axis(phi, states[..., None], axis=1)
    apart = np.abs(phi[:, 0] - phi[:, 1])
    moves = ((states[:, 1:] != states[:, :-1]) & ~LAYOUT.last[:-1]).sum(axis=1)
    distance = np.abs(noisy - rates[..., None] * own).sum(axis=(1, 2))
    return np.stack([own[:, 0, 0], own[:, 8, 3], apart[:, 1], rates[:, 3], rates.sum(axis=1), moves, distance])


def ranks_p_values(epsilon: float, factor: float = 1.0) -> np.ndarray:
    """p-values of each functional's ranks among 4 draws of a chain whose noise has the scale times a factor."""
    n_sets, scale, rng = 300, 2 * len(PRIOR.sizes) / epsilon, np.random.default_rng(3)
    phi, states, rates, noisy = own_data(n_sets, scale, rng)
    given = event_counts.NoisyCounts(noisy, np.ones(noisy.shape[:2], bool), factor * scale, MEAN * len(LAYOUT.first))
    sampler = event_counts.Chains(given, LAYOUT, PRIOR)
    draws = [
        functionals(state.probabilities, state.states.T, state.rates, noisy)
        for state, _ in chain.run(sampler, np.random.default_rng(4), draws=4, burn_in=80, thin=10)
    ]
    truth = functionals(phi, states, rates, noisy)
    # Equal numbers of moves are put in random order.
    draws = np.array(draws) + 1e-9 * rng.random((4, *truth.shape))
    rank = (draws < truth + 1e-9 * rng.random(truth.shape)).sum(axis=0)
    found = np.array([np.bincount(row, minlength=5) for row in rank])
    return chi2.sf(((found - n_sets / 5) ** 2 / (n_sets / 5)).sum(axis=1), 4)


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_ranks_on_data_from_the_chain_s_own_prior_are_uniform(epsilon) -> None:
    assert ranks_p_values(epsilon).min() > 1e-4 / 7


def test_a_chain_that_takes_the_noise_for_less_fails_the_ranks() -> None:
    assert ranks_p_values(1.0, 0.8).min() < 1e-4 / 7


def test_one_cell_s_emissions_follow_their_law_by_quadrature() -> None:
    """One state, one cell, a field of two levels: mean and spread of the first level's probability over a grid of λ."""
    noisy, scale, mean = np.array([13.4, 2.6]), 4.0, 30.0
    phi, rate = np.meshgrid((np.arange(50) + 0.5) / 50, np.arange(1.0, 150, 2), indexing="ij")
    counts = np.arange(150)
    one, other = (np.exp(-np.abs(each - counts) / scale) for each in noisy)
    # The other level's shares are these in reverse.
    mass = poisson.pmf(counts, (rate * phi)[..., None])
    law = np.exp(-rate / mean) * (mass @ one) * (mass[::-1] @ other)
    law /= law.sum()
    exact = (law * phi).sum(), math.sqrt((law * phi**2).sum() - (law * phi).sum() ** 2)
    n_chains = 4000
    given = event_counts.NoisyCounts(np.tile(noisy, (n_chains, 1, 1)), np.ones((n_chains, 1), bool), scale, mean)
    sampler = event_counts.Chains(given, gibbs.Layout.of([0]), gibbs.Prior(1, (2,)))
    ((state, _),) = chain.run(sampler, np.random.default_rng(5), draws=1, burn_in=60)
    found = state.probabilities[:, 0, 0]
    # 4.5 standard errors of a mean and, roughly, of a standard deviation.
    assert abs(found.mean() - exact[0]) < 4.5 * exact[1] / math.sqrt(n_chains)
    assert abs(found.std() - exact[1]) < 4.5 * exact[1] / math.sqrt(2 * n_chains)


@outer()
def states_alone(noisy, observed, first, states, rates, phi, moves, transition, law, rng, sweeps, ends):
    """States at the ends of chains of `draw_states`, the emissions and rates given."""
    for row in range(len(ends)):
        for _ in range(sweeps):
            event_kernels.draw_states(noisy, observed, first, states, rates, phi, moves, transition, law, rng)
        ends[row] = states


@pytest.mark.parametrize("transition", [0.4, 2.0])
def test_states_follow_their_law_by_enumeration(transition) -> None:
    """Regions of four and of two months, one cell of them held out, transitions integrated out by gamma functions."""
    layout, rng, scale, n_states = gibbs.Layout.of([0, 0, 0, 0, 1, 1]), np.random.default_rng(6), 2.0, 2
    phi, rates = np.array([[0.6, 0.4], [0.35, 0.65]]), rng.uniform(1, 4, 6)
    noisy, observed = rng.poisson(rates[:, None] * 0.5, (6, 2)) + rng.laplace(0, scale, (6, 2)), np.arange(6) != 2
    given, law = [noisy, observed, layout.first], law_of(scale, 40, 20)
    weight = np.array([[fits(noisy[t], rates[t] * own, law).sum() for own in phi] for t in range(6)])
    weight[~observed] = 0
    sequences = np.array(list(itertools.product(range(n_states), repeat=6)))
    prior = gibbs.Prior(n_states, (2,), transition)
    empty = gibbs.Law(np.zeros((6, 2)), np.zeros((len(sequences), 6), bool))
    logs = log_joint(gibbs.State(sequences.T), empty, layout, prior)[1]
    logs = logs + np.take_along_axis(weight[None], sequences[..., None], axis=2)[..., 0].sum(axis=1)
    exact = np.exp(logs - logs.max())
    exact *= 5000 / exact.sum()
    states, ends = np.zeros(6, np.int64), np.empty((5000, 6), np.int64)
    moves = gibbs.transition_counts(states[:, None], layout, n_states)[..., 0]
    states_alone(*given, states, rates, phi, moves, transition, law, np.random.default_rng(7), 12, ends)
    assert np.array_equal(moves, gibbs.transition_counts(states[:, None], layout, n_states)[..., 0])
    found = np.bincount(ends @ 2 ** np.arange(5, -1, -1), minlength=64)
    assert exact.min() > 5
    assert chi2.sf(((found - exact) ** 2 / exact).sum(), len(exact) - 1) > 1e-4


def held_out_chains(other: float, behind: float = 0.0):
    """The last state of chains whose held-out cells have a release of `other`, and one of `behind` in the loops."""
    rng = np.random.default_rng(8)
    noisy = own_data(3, 4.0, rng)[-1]
    observed = rng.random(noisy.shape[:2]) < 0.8
    given = event_counts.NoisyCounts(np.where(observed[..., None], noisy, other), observed, 4.0, 900)
    sampler = event_counts.Chains(given, LAYOUT, PRIOR, Seeding(3, 5))
    assert not given.noisy[~observed].any()
    given.noisy[~observed] = behind
    ((state, _),) = chain.run(sampler, np.random.default_rng(9), draws=1, burn_in=20)
    return state, observed


def test_the_release_of_held_out_cells_changes_no_bit() -> None:
    first, observed = held_out_chains(0.0)
    for other, behind in ((1e6, 0.0), (math.nan, 0.0), (0.0, 1e6), (0.0, -50.0)):
        second, _ = held_out_chains(other, behind)
        for name in ("states", "probabilities", "log_probabilities", "transitions"):
            assert np.array_equal(getattr(first, name), getattr(second, name))
        assert np.array_equal(first.rates[observed], second.rates[observed])
    assert not observed.all() and np.ptp(first.probabilities, axis=0).max() > 0
    assert np.array_equal(first.transitions, gibbs.transition_counts(first.states, LAYOUT, 2))
    assert np.allclose(first.probabilities[..., :3].sum(axis=-1), 1, rtol=1e-12)


def test_chains_are_the_same_for_the_same_seed_and_independent_of_each_other() -> None:
    again, once = held_out_chains(0.0)[0], held_out_chains(0.0)[0]
    assert np.array_equal(again.probabilities, once.probabilities) and np.array_equal(again.rates, once.rates)
    assert len({states.tobytes() for states in once.states.T}) == 3


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"scale": 0.0}, "scale is 0.0"),
        ({"n": 0}, "n is 0"),
        ({"noisy": np.full((2, 3, 5), np.nan)}, "noisy must be finite"),
    ],
)
def test_impossible_settings_are_refused(changed, message) -> None:
    settings = {"noisy": np.ones((2, 3, 5)), "observed": np.ones((2, 3), bool), "scale": 1.0, "n": 9}
    with pytest.raises(ValueError, match=message):
        event_counts.NoisyCounts(**{**settings, **changed})
