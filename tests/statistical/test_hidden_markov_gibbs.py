"""The sampler of the hidden Markov model against enumeration, against its own joint distribution, and on known states.

Every test has a fixed seed. Joint false-alarm rate of the file below 1 %: each statistical check uses 4.5 standard
errors (7e-6) or a p-value of 1e-4, and there are fewer than 160 of them.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.special import gammaln

from privpost.samplers.chain import run
from privpost.samplers.hidden_markov import gibbs
from privpost.samplers.hidden_markov.kernels import explicit_sweep

# Two regions of three and two months, two fields of three and two levels.
REGION = np.array([0, 0, 0, 1, 1])
LAYOUT = gibbs.Layout.of(REGION)
SIZES = (3, 2)
COUNTS = np.array([[2, 1, 0, 2, 1], [0, 1, 1, 1, 1], [3, 0, 1, 4, 0], [0, 0, 2, 0, 2], [1, 0, 1, 0, 2]], float)
OBSERVED = np.array([True, True, True, True, False])


def log_states(states, layout, n_states: int, a: float) -> float:
    """ln p(z), the transitions integrated out, from scratch: a product of Dirichlet-multinomials."""
    moves = np.zeros((n_states, n_states))
    for t in range(len(states) - 1):
        if not layout.last[t]:
            moves[states[t], states[t + 1]] += 1
    chains = int(layout.first.sum())
    rows = gammaln(n_states * a) - gammaln(n_states * a + moves.sum(1)) + (gammaln(a + moves) - gammaln(a)).sum(1)
    return float(rows.sum() - chains * math.log(n_states))


def exact_state_probabilities(counts, observed, n_states, a, b, temperature=1.0, prior_temperature=1.0):
    """p(z) of the tempered joint for all state sequences, emissions integrated out in closed form (no truncation)."""
    sequences = np.array(list(itertools.product(range(n_states), repeat=len(counts))))
    logs = []
    for states in sequences:
        value = log_states(states, LAYOUT, n_states, a) / prior_temperature
        for k in range(n_states):
            total = counts[(states == k) & observed].sum(axis=0) / temperature
            start = 0
            for size in SIZES:
                alpha = 1 + (b - 1) / prior_temperature + total[start : start + size]
                value += gammaln(alpha).sum() - gammaln(alpha.sum())
                start += size
        logs.append(value)
    weights = np.exp(np.array(logs) - max(logs))
    return sequences, weights / weights.sum()


def last(law, prior, iterations, rng):
    """The state after some iterations."""
    ((state, _),) = run(gibbs.Chains(law, LAYOUT, prior), rng, draws=1, burn_in=iterations - 1)
    return state


@pytest.mark.parametrize(
    ("temperature", "prior_temperature", "a", "b"),
    [(1.0, 1.0, 1.0, 1.0), (4.0, 4.0, 0.7, 2.0), (3.0, 1.0, 1.5, 1.0)],
)
def test_state_sequences_occur_as_often_as_enumeration_says(temperature, prior_temperature, a, b) -> None:
    n_states, n_chains, iterations = 2, 20_000, 25
    sequences, exact = exact_state_probabilities(COUNTS, OBSERVED, n_states, a, b, temperature, prior_temperature)
    observed = np.tile(OBSERVED, (n_chains, 1))
    law = gibbs.Law(COUNTS, observed, temperature, prior_temperature)
    prior = gibbs.Prior(n_states, SIZES, a, b)
    state = last(law, prior, iterations, np.random.default_rng(11))
    # The last states of independent chains: a plain multinomial sample, if 25 iterations of 5 cells forget the start.
    codes = (state.states * (n_states ** np.arange(len(COUNTS) - 1, -1, -1))[:, None]).sum(axis=0)
    found = np.bincount(codes, minlength=len(sequences))
    expected = n_chains * exact
    assert expected.min() > 5
    chi_square = float(((found - expected) ** 2 / expected).sum())
    from scipy.stats import chi2

    assert chi2.sf(chi_square, len(exact) - 1) > 1e-4


def test_many_states_and_per_chain_counts_agree_with_enumeration() -> None:
    n_states, n_chains = 3, 20_000
    sequences, exact = exact_state_probabilities(COUNTS, OBSERVED, n_states, 0.5, 1.0)
    law = gibbs.Law(np.tile(COUNTS, (n_chains, 1, 1)), np.tile(OBSERVED, (n_chains, 1)))
    state = last(law, gibbs.Prior(n_states, SIZES, 0.5), 25, np.random.default_rng(12))
    # Each cell pair's joint states; 243 sequences are too many for a chi-square test of the whole table.
    for s, t in itertools.combinations(range(len(COUNTS)), 2):
        for i, j in itertools.product(range(n_states), repeat=2):
            p = exact[(sequences[:, s] == i) & (sequences[:, t] == j)].sum()
            share = np.mean((state.states[s] == i) & (state.states[t] == j))
            assert abs(share - p) < 4.5 * math.sqrt(p * (1 - p) / n_chains)


def test_the_prior_of_a_site_is_the_ratio_of_joint_probabilities() -> None:
    rng = np.random.default_rng(13)
    n_states, a, n_chains = 3, 0.8, 12
    states = rng.integers(n_states, size=(5, n_chains))
    transitions = gibbs.transition_counts(states, LAYOUT, n_states)
    sites = np.tile(np.arange(5)[:, None], n_chains)
    found = gibbs.site_prior(states, transitions, sites, LAYOUT, a)
    for t in range(5):
        for chain in range(n_chains):
            logs = []
            for k in range(n_states):
                other = states[:, chain].copy()
                other[t] = k
                logs.append(log_states(other, LAYOUT, n_states, a))
            expected = np.exp(logs) / np.exp(logs).sum()
            # Sums of gamma functions of numbers below 10: rounding of 1e-13 at most.
            assert np.allclose(found[t, :, chain], expected, rtol=1e-11)


def summaries(states, phi, counts):
    """Return statistics of states, emissions and counts, shape (statistics, chains)."""
    same = [(states[t] == states[t + 1]).astype(float) for t in range(4) if not LAYOUT.last[t]]
    return np.array(
        [
            *same,
            same[0] * same[1],
            phi[:, 0, 0],
            phi[:, 0, 0] ** 2,
            phi[:, 1, 3],
            phi[:, 0, 0] * phi[:, 1, 0],
            states[0].astype(float),
            counts[:, 0, 0],
            counts[:, 0, 0] * counts[:, 1, 0],
            counts[:, 2, 3] * (states[2] == states[1]),
            counts[:, 0, 0] * phi[np.arange(len(phi)), states[0], 0],
        ]
    )


@pytest.mark.parametrize("lows", [None, (0.1, 0.15)])
def test_joint_distribution_is_the_same_forwards_and_by_alternating(lows) -> None:
    joint_distribution(lows, 4_000, lambda states, *_: states)


def joint_distribution(lows, n_chains: int, one_pass) -> None:
    """Geweke (2004): parameters and data drawn forwards, against Gibbs steps alternated with new data.

    Before each step states (cells, chains) have a pass of another sampler: a function of them, the counts and rng.
    """
    n_states, a = 2, 1.0
    events = [6, 4, 5, 3, 4]
    prior = gibbs.Prior(n_states, SIZES, a)
    rng = np.random.default_rng(14)

    def emissions(shape):
        fields = []
        for field, size in enumerate(SIZES):
            low = 0.0 if lows is None else lows[field]
            draws = rng.dirichlet(np.ones(size), size=shape)
            fields.append(low + (1 - size * low) * draws)
        return np.concatenate(fields, axis=-1)

    def counts_of(states, phi):
        counts = np.empty((n_chains, len(events), sum(SIZES)))
        for t, n in enumerate(events):
            chosen = phi[np.arange(n_chains), states[t]]
            for field in prior.fields:
                counts[:, t, field] = rng.multinomial(n, chosen[:, field])
        return counts

    theta = rng.dirichlet(np.full(n_states, a), size=(n_chains, n_states))
    states = np.empty((len(events), n_chains), int)
    for t in range(len(events)):
        if LAYOUT.first[t]:
            states[t] = rng.integers(n_states, size=n_chains)
        else:
            states[t] = rng.random(n_chains) < theta[np.arange(n_chains), states[t - 1], 1]
    phi = emissions((n_chains, n_states))

    counts = counts_of(states, phi)
    forward = summaries(states, phi, counts)
    # Start far from the law's centre, so that a sampler that does nothing is noticed.
    states = np.zeros_like(states)
    counts = counts_of(states, phi)
    observed = np.ones((n_chains, len(events)), bool)
    for _ in range(40):
        chains = gibbs.Chains(gibbs.Law(counts, observed, lows=lows), LAYOUT, prior)
        state, _ = chains.step(gibbs.State(one_pass(states, counts, rng)), rng)
        states, phi = state.states, np.exp(state.log_probabilities)
        counts = counts_of(states, phi)
    alternating = summaries(states, phi, counts)
    difference = forward.mean(axis=1) - alternating.mean(axis=1)
    error = np.sqrt((forward.var(axis=1) + alternating.var(axis=1)) / n_chains)
    assert np.all(np.abs(difference) < 4.5 * error), difference / error


def test_single_cells_and_whole_sweeps_keep_the_counts_of_moves() -> None:
    region = np.array([0, 1, 1, 1, 2, 2, 3])
    layout = gibbs.Layout.of(region)
    rng = np.random.default_rng(15)
    counts = rng.poisson(3.0, size=(7, 5)).astype(float)
    law = gibbs.Law(counts, rng.random((3, 7)) < 0.8, temperature=5.0, lows=(0.01, 0.02))
    for state, _ in run(gibbs.Chains(law, layout, gibbs.Prior(4, SIZES)), rng, draws=10):
        assert np.array_equal(state.transitions, gibbs.transition_counts(state.states, layout, 4))
        assert state.states.min() >= 0
        assert state.states.max() < 4
        assert np.exp(state.log_probabilities[:, :, :3]).min() >= 0.01 - 1e-12
        assert np.allclose(np.exp(state.log_probabilities[:, :, 3:]).sum(axis=-1), 1, rtol=1e-12)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"temperature": 0.5}, "temperature is 0.5"),
        ({"prior_temperature": 0.0}, "prior_temperature is 0.0"),
        ({"counts": np.where(COUNTS == 0, np.nan, COUNTS)}, "counts must be finite"),
    ],
)
def test_groups_out_of_range_are_refused(change, message) -> None:
    settings = {"counts": COUNTS, "observed": OBSERVED[None], **change}
    with pytest.raises(ValueError, match=message):
        gibbs.Law(**settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [((0, SIZES), "n_states is 0"), ((2, SIZES, 0.0), "transition is 0.0"), ((2, SIZES, 1.0, 0.0), "emission is 0.0")],
)
def test_priors_out_of_range_are_refused(settings, message) -> None:
    with pytest.raises(ValueError, match=message):
        gibbs.Prior(*settings)


def test_the_compiled_sweep_is_the_loop_over_sites(monkeypatch) -> None:
    """The benchmark's peer, chain by chain, takes the same decisions with the same uniforms."""
    from pathlib import Path

    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parents[2] / "benchmarks"))
    from hidden_markov_loop import sweep

    rng = np.random.default_rng(16)
    layout = gibbs.Layout.of(np.array([0, 0, 0, 0, 1, 2, 2, 3, 3, 3]))
    n_states, n_chains, a = 4, 50, 0.7
    states = rng.integers(n_states, size=(10, n_chains))
    weights = rng.random((10, n_states, n_chains))
    uniforms = rng.random((10, n_chains))
    loop = states.copy()
    for chain in range(n_chains):
        column = loop[:, chain].copy()
        sweep(column, weights[:, :, chain], uniforms[:, chain], layout, a)
        loop[:, chain] = column
    moves, likelihoods = gibbs.transition_counts(states, layout, n_states), weights.transpose(2, 1, 0)
    explicit_sweep(states, likelihoods, uniforms, tuple(layout), 1.0, a, moves)
    assert np.array_equal(states, loop)
    assert np.array_equal(moves, gibbs.transition_counts(loop, layout, n_states))
