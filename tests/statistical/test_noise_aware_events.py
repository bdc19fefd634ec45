"""Noise-aware steps for event counts against enumeration of all latent counts, and what no step may change.

Every test has a fixed seed. The last states of independent chains are plain multinomial samples; each chi-square test
fails by chance with probability 1e-4, and there are 14 of them: joint false-alarm rate below 0.2 %.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.special import gammaln
from scipy.stats import chi2

from privpost.samplers import hidden_markov_gibbs as gibbs
from privpost.samplers import noise_aware_events as events
from privpost.samplers.chain import run


def assert_multinomial(found, probabilities) -> None:
    """Pearson's test, rare outcomes pooled; no outcome of probability 0 may occur."""
    assert found[probabilities == 0].sum() == 0
    expected = found.sum() * probabilities
    common = expected > 5
    found, expected = (np.append(values[common], values[~common].sum()) for values in (found, expected))
    found, expected = found[expected > 0], expected[expected > 0]
    statistic = float(((found - expected) ** 2 / expected).sum())
    assert chi2.sf(statistic, len(expected) - 1) > 1e-4


def compositions(n: int, n_levels: int) -> np.ndarray:
    """All counts of levels that sum to n."""
    heads = itertools.product(range(n + 1), repeat=n_levels - 1)
    return np.array([(*head, n - sum(head)) for head in heads if sum(head) <= n])


def first_count_law(noisy, n: int, scale: float, concentration: float) -> np.ndarray:
    """p(C_1 | Ĉ) for Dirichlet-multinomial counts, by enumeration."""
    counts = compositions(n, len(noisy))
    logs = (gammaln(counts + concentration) - gammaln(counts + 1)).sum(axis=1)
    logs -= np.abs(noisy - counts).sum(axis=1) / scale
    weights = np.bincount(counts[:, 0], np.exp(logs - logs.max()), n + 1)
    return weights / weights.sum()


NOISY = np.array([9.3, -2.1, 0.4, 4.8])


@pytest.mark.parametrize("scale", [0.3, 2.0, 50.0])
def test_the_oracle_is_the_enumeration(scale) -> None:
    found = events.count_probabilities(np.stack([NOISY, NOISY[::-1]]), 8, scale)
    # Sums of a few hundred positive terms: rounding of 1e-14 at most.
    assert np.allclose(found[0], first_count_law(NOISY, 8, scale, 1.0), rtol=1e-11, atol=1e-300)
    assert np.allclose(found[1], first_count_law(NOISY[::-1], 8, scale, 1.0), rtol=1e-11, atol=1e-300)


def test_the_oracle_convolves_long_laws_exactly() -> None:
    """Releases between, on, below and above the counts, each once the one that is convolved with last."""
    n, noisy = 60, np.array([7.4, 30.0, -3.2, 71.5, 0.6])
    for last in range(5):
        order, scale = np.roll(noisy, last), 3.0
        weights = np.exp(-np.abs(order[:, None] - np.arange(n + 1)) / scale)
        others = weights[1]
        for weight in weights[2:]:
            others = np.convolve(others, weight)[: n + 1]
        law = weights[0] * others[::-1]
        assert np.allclose(events.count_probabilities(order[None], n, scale)[0], law / law.sum(), rtol=1e-11, atol=0)


def test_the_oracle_s_distribution_function_is_that_of_its_mixture() -> None:
    law = events.count_probabilities(NOISY[None], 8, 2.0)
    rng = np.random.default_rng(1)
    counts = rng.choice(9, size=200_000, p=law[0])
    draws = rng.beta(1 + counts, 3 + 8 - counts)
    for theta in (0.1, 0.4, 0.8):
        share, cdf = np.mean(draws <= theta), events.probability_cdf(law, np.array([theta]), 4)[0]
        # 4.5 standard errors: 7e-6 per comparison.
        assert abs(share - cdf) < 4.5 * math.sqrt(cdf * (1 - cdf) / len(draws))


def check_counts_of_one_cell(scale, concentration, sampled_scale) -> None:
    n, n_chains = 12, 2_000
    prior = gibbs.Prior(1, (len(NOISY),), emission=concentration)
    noisy = np.broadcast_to(NOISY, (n_chains, 1, len(NOISY)))
    latent = events.LatentCounts(noisy, np.ones((n_chains, 1), bool), prior, sampled_scale, n)
    chains = events.Chains([latent], gibbs.Layout.of([0]), prior, 40)
    ((state, _),) = run(chains, [np.random.default_rng(31)], draws=1, burn_in=40)
    found = np.bincount(state.counts[0][:, 0, 0].astype(int), minlength=n + 1)
    assert_multinomial(found, first_count_law(NOISY, n, scale, concentration))


@pytest.mark.parametrize(("scale", "concentration"), [(0.5, 1.0), (3.0, 1.0), (30.0, 1.0), (3.0, 2.0), (3.0, 0.5)])
def test_counts_of_one_cell_follow_the_exact_law(scale, concentration) -> None:
    check_counts_of_one_cell(scale, concentration, scale)


def test_a_chain_that_takes_the_noise_for_another_fails_the_comparison() -> None:
    with pytest.raises(AssertionError):
        check_counts_of_one_cell(3.0, 1.0, 4.0)


# Two months of a region, two fields of two levels, five events.
CELLS = np.array([[1.3, 2.2, 0.4, 2.9], [-0.6, 1.8, 1.2, -0.3]])
EVENTS, SCALE = 5, 0.8


def exact_hidden_markov(n_held: int):
    """Laws of the first cell's total and first count, and p(z_1 = z_2), by enumeration of all counts; K = 2."""
    cells = np.array([(n, i, j) for n in range(EVENTS + 1) for i in range(n + 1) for j in range(n + 1)])
    totals = cells[:, 0]
    counts = np.stack([cells[:, 1], totals - cells[:, 1], cells[:, 2], totals - cells[:, 2]], axis=1)

    def emissions(table):
        """Both fields' counts of a state, emissions integrated out."""
        parts = (table[..., :2], table[..., 2:])
        return sum(gammaln(part + 1).sum(-1) - gammaln(part.sum(-1) + 2) for part in parts)

    # Coefficients of two multinomials per cell, and the noise.
    own = [
        2 * gammaln(totals + 1) - gammaln(counts + 1).sum(axis=1) - np.abs(noisy - counts).sum(axis=1) / SCALE
        for noisy in CELLS
    ]
    # In how many ways the other events are spread over the held-out cells.
    others = EVENTS - totals[:, None] - totals
    ways = [math.comb(other + n_held - 1, other) if n_held else int(other == 0) for other in range(EVENTS + 1)]
    possible = np.log(np.maximum(np.where(others >= 0, np.array(ways, float)[others], 0.0), 1e-300))
    possible = possible + own[0][:, None] + own[1]
    # One move from a uniform start, transitions integrated out: both cells share a state with probability 1/2.
    same = np.exp(possible + emissions(counts[:, None] + counts))
    apart = np.exp(possible + emissions(counts)[:, None] + emissions(counts))
    first = (same + apart).sum(axis=1) / (same + apart).sum()
    laws = (np.bincount(values, first, EVENTS + 1) for values in (totals, counts[:, 0]))
    return *laws, same.sum() / (same + apart).sum()


def assert_hidden_markov(state, n_held: int) -> None:
    totals, counts, together = exact_hidden_markov(n_held)
    first, same = state.counts[0][:, 0].astype(int), state.states[0] == state.states[1]
    assert_multinomial(np.bincount(first[:, :2].sum(axis=1), minlength=EVENTS + 1), totals)
    assert_multinomial(np.bincount(first[:, 0], minlength=EVENTS + 1), counts)
    # 4.5 standard errors: 7e-6.
    assert abs(same.mean() - together) < 4.5 * math.sqrt(together * (1 - together) / len(same))


@pytest.mark.parametrize("n_held", [0, 1, 3])
def test_cells_of_a_hidden_markov_model_follow_the_exact_law(n_held) -> None:
    n_chains = 1_200
    prior = gibbs.Prior(2, (2, 2))
    # Cells of a region of its own that are held out: what their release says changes nothing.
    noisy = np.concatenate([CELLS, np.full((n_held, 4), 40.0)])
    observed = np.ones((n_chains, len(noisy)), bool)
    observed[:, 2:] = False
    noisy = np.broadcast_to(noisy, (n_chains, *noisy.shape))
    latent = events.LatentCounts(noisy, observed, prior, SCALE, EVENTS)
    chains = events.Chains([latent], gibbs.Layout.of([0, 0, 1, 1, 1][: noisy.shape[1]]), prior, 130)
    ((state, _),) = run(chains, [np.random.default_rng(32)], draws=1, burn_in=130)
    assert_hidden_markov(state, n_held)


def test_transfers_of_wide_steps_follow_the_exact_law() -> None:
    """Two cells of one state under noise as wide as their counts; steps are wider than a Newton step's law."""
    n, scale, n_chains, prior = 60, 25.0, 3_000, gibbs.Prior(1, (2,))
    noisy = np.array([[31.0, -8.0], [22.0, 35.0]])
    total, first, second = np.meshgrid(*[np.arange(n + 1)] * 3, indexing="ij")
    counts = np.stack([first, total - first, second, n - total - second])
    possible = (counts >= 0).all(axis=0)
    counts = np.maximum(counts, 0)
    logs = gammaln(total + 1) + gammaln(n - total + 1) - gammaln(counts + 1).sum(axis=0)
    logs += gammaln(counts[0] + counts[2] + 1) + gammaln(counts[1] + counts[3] + 1)
    logs -= np.abs(counts - noisy.reshape(4, 1, 1, 1)).sum(axis=0) / scale
    law = (possible * np.exp(logs - logs[possible].max())).sum(axis=(1, 2))
    latent = events.LatentCounts(np.tile(noisy, (n_chains, 1, 1)), np.ones((n_chains, 2), bool), prior, scale, n)
    chains = events.Chains([latent], gibbs.Layout.of([0, 0]), prior, 60)
    ((state, _),) = run(chains, [np.random.default_rng(39)], draws=1, burn_in=100)
    found = state.counts[0][:, 0].sum(axis=1).astype(int)
    assert_multinomial(np.bincount(found, minlength=n + 1), law / law.sum())


def test_totals_of_cells_under_wide_noise_are_forgotten_within_twenty_sweeps() -> None:
    """Twelve cells of 20 events under noise of scale 40. With a transfer in four sweeps .47 of a total's deviation was
    left after twenty, and posteriors of 28 draws five sweeps apart were 3 % too narrow; a draw of each total's own
    would leave 0, with a standard error of .02 here.
    """
    rng, n_chains, prior, layout = np.random.default_rng(46), 40, gibbs.Prior(2, (3, 2)), [0] * 6 + [1] * 6
    counts = np.concatenate([rng.multinomial(20, np.full(size, 1 / size), (n_chains, 12)) for size in (3, 2)], axis=2)
    noisy = counts + rng.laplace(0, 40.0, counts.shape)
    latent = events.LatentCounts(noisy, np.ones((n_chains, 12), bool), prior, 40.0, 240)
    chains = events.Chains([latent], gibbs.Layout.of(layout), prior, 40)
    draws = run(chains, [np.random.default_rng(47)], draws=300, burn_in=40)
    totals = np.array([state.counts[0][..., :3].sum(axis=-1) for state, _ in draws])
    totals = totals - totals.mean(axis=0)
    assert (totals[20:] * totals[:-20]).mean() < 0.2 * (totals**2).mean()


# Three months of a region, one field, six events: a run of two states' cells is longer or shorter than the others.
MONTHS, FEW = np.array([[2.6, -0.4], [1.7, 0.6], [-0.2, 2.1]]), 6


def patterns(states) -> np.ndarray:
    """Which of three cells share a state, as one of five numbers; states (3, ...)."""
    first, second, third = states
    return np.array([0, 4, 4, 3, 4, 2, 1, 4])[4 * (second != first) + 2 * (third != second) + (third != first)]


def exact_states(transition: float, n_states: int, scale: float) -> np.ndarray:
    """Probabilities of the five `patterns`, by enumeration of all counts; states are exchangeable."""
    cells = np.array([(i, j) for i in range(FEW + 1) for j in range(FEW + 1 - i)])
    found = np.zeros(5)
    for counts in itertools.product(cells, repeat=3):
        table = np.array(counts)
        if table.sum() != FEW:
            continue
        totals = table.sum(axis=1)
        own = (gammaln(totals + 1) - gammaln(table + 1).sum(axis=1)).sum() - np.abs(MONTHS - table).sum() / scale
        for states in ((0, 0, 0), (0, 0, 1), (0, 1, 0), (0, 1, 1), (0, 1, 2))[: 2 + n_states]:
            of_state = np.array([table[np.equal(states, k)].sum(axis=0) for k in range(n_states)])
            moves = np.zeros((n_states, n_states))
            for a, b in itertools.pairwise(states):
                moves[a, b] += 1
            logs = own + (gammaln(of_state + 1).sum(axis=1) - gammaln(of_state.sum(axis=1) + 2)).sum()
            logs += (
                gammaln(n_states * transition)
                - gammaln(n_states * transition + moves.sum(axis=1))
                + (gammaln(transition + moves) - gammaln(transition)).sum(axis=1)
            ).sum()
            found[patterns(np.array(states))] += math.perm(n_states, len(set(states))) * np.exp(logs)
    return found / found.sum()


@pytest.mark.parametrize(("n_states", "scale"), [(2, SCALE), (3, 60.0)])
def test_states_that_runs_of_cells_change_together_follow_the_exact_law(n_states, scale) -> None:
    """With three states, an empty one is proposed less often than one with cells; wide noise gives more runs."""
    n_chains, prior = 3_000, gibbs.Prior(n_states, (2,), transition=0.3)
    noisy = np.broadcast_to(MONTHS, (n_chains, *MONTHS.shape))
    latent = events.LatentCounts(noisy, np.ones((n_chains, 3), bool), prior, scale, FEW)
    chains = events.Chains([latent], gibbs.Layout.of([0, 0, 0]), prior, 10)
    ((state, _),) = run(chains, [np.random.default_rng(33)], draws=1, burn_in=60)
    assert_multinomial(np.bincount(patterns(state.states), minlength=5), exact_states(0.3, n_states, scale))


def test_states_are_split_anew_in_the_burn_in_alone() -> None:
    """Two clear groups in one state and a third one in two halves: re-splits lead out, and moves of cells do not."""
    rng, n_chains, prior = np.random.default_rng(44), 6, gibbs.Prior(5, (40, 3))
    truth, layout = np.repeat([0, 1, 2, 2], 6), gibbs.Layout.of(np.repeat([0, 1], 12))
    emissions = [rng.dirichlet(np.ones(size), 3) for size in prior.sizes]
    # Alone in a state a cell is worth less than among cells that are somewhat like it.
    counts = np.concatenate([rng.multinomial(120, 0.6 * own[truth] + 0.4 * own[0]) for own in emissions], axis=1)
    release = np.tile(counts + rng.laplace(0, 1.0, counts.shape), (n_chains, 1, 1))
    latent = events.LatentCounts(release, np.ones((n_chains, 24), bool), prior, 1.0, 120 * 24)
    together, found = truth[:, None] == truth, []
    for burn_in in (0, 12):
        chains, stream = events.Chains([latent], layout, prior, burn_in), [np.random.default_rng(45)]
        chains._powers = chains._powers[:0]
        state = chains.init(stream)
        state.states[:] = np.repeat([3, 3, 0, 4], 6)[:, None]
        ((state, _),) = run(chains, stream, draws=1, burn_in=12, state=state)
        (table,) = state.counts
        assert (table >= 0).all() and np.array_equal(table[..., :40].sum(axis=-1), table[..., 40:].sum(axis=-1))
        found.append([np.array_equal(own[:, None] == own, together) for own in state.states.T])
    assert not any(found[0]) and all(found[1])


def test_cells_whose_states_pass_for_certain_follow_the_exact_law() -> None:
    n_chains, prior = 1_200, gibbs.Prior(2, (2, 2))
    latent = events.LatentCounts(np.tile(CELLS, (n_chains, 1, 1)), np.ones((n_chains, 2), bool), prior, SCALE, EVENTS)
    chains = events.Chains([latent], gibbs.Layout.of([0, 0]), prior, 0)
    rng = [np.random.default_rng(35)]
    state = chains.init(rng)
    # Both cells share a state, which runs of both never change.
    state.states[:] = 0
    chains._learnt[0][1][:] = 0.0
    ((state, _),) = run(chains, rng, draws=1, burn_in=200, state=state)
    assert_hidden_markov(state, 0)


def test_annealed_chains_find_the_states_of_clear_cells_and_never_read_held_out_releases() -> None:
    """Each from random states of its own: labels differ, and the partition of the cells that are seen does not."""
    rng, n_chains, prior = np.random.default_rng(36), 20, gibbs.Prior(4, (9, 3))
    truth = np.repeat([0, 1, 2, 0, 1, 2], 5)
    emissions = [rng.dirichlet(np.full(size, 0.5), 3) for size in prior.sizes]
    counts = np.concatenate([rng.multinomial(80, own[truth]) for own in emissions], axis=1)
    observed = np.ones(len(truth), bool)
    observed[[3, 17]] = False
    noisy, ends = counts + rng.laplace(0, 1.0, counts.shape), []
    for other in (0.0, 1e4):
        release = np.tile(np.where(observed[:, None], noisy, other), (n_chains, 1, 1))
        seen = np.tile(observed, (n_chains, 1))
        latent = events.LatentCounts(release, seen, prior, 1.0, 80 * len(truth))
        chains = events.Chains([latent], gibbs.Layout.of(np.repeat([0, 1], 15)), prior, 40)
        ((state, _),) = run(chains, [np.random.default_rng(37)], draws=1, burn_in=40)
        ends.append(state.states[observed])
    assert np.array_equal(*ends)
    together = truth[observed][:, None] == truth[observed]
    for states in ends[0].T:
        assert np.array_equal(states[:, None] == states, together)
    assert len(np.unique(ends[0][0])) > 1


def test_all_proposals_are_accepted_while_states_are_annealed_and_not_later() -> None:
    n_chains, prior = 40, gibbs.Prior(2, (2, 2))
    latent = events.LatentCounts(np.tile(CELLS, (n_chains, 1, 1)), np.ones((n_chains, 2), bool), prior, SCALE, EVENTS)
    chains = events.Chains([latent], gibbs.Layout.of([0, 0]), prior, 8)
    rng = [np.random.default_rng(38)]
    state = chains.init(rng)
    for sweep in range(8):
        state, _ = chains.step(state, rng)
        assert (state.accepted == 1).all() == (sweep < 6)


@pytest.mark.parametrize("hottest", [1 + 1e-9, 1e9])
def test_states_are_annealed_from_the_highest_temperature(monkeypatch, hottest) -> None:
    """There all states are alike; at τ = 1 two cells that are alike share one."""
    monkeypatch.setattr(events, "HOTTEST", hottest)
    n_chains, prior = 400, gibbs.Prior(2, (4, 2))
    release = np.tile([[40.0, 0, 0, 0, 40, 0]], (n_chains, 2, 1))
    latent = events.LatentCounts(release, np.ones((n_chains, 2), bool), prior, 0.5, 80)
    chains = events.Chains([latent], gibbs.Layout.of([0, 0]), prior, 40)
    ((state, _),) = run(chains, [np.random.default_rng(39)], draws=1, burn_in=2)
    share = (state.states[0] == state.states[1]).mean()
    # 4.5 standard errors: 7e-6.
    assert (abs(share - 0.5) < 4.5 * 0.5 / math.sqrt(n_chains)) == (hottest > 2)


def test_updates_keep_counts_consistent_and_never_read_held_out_releases() -> None:
    rng = np.random.default_rng(33)
    sizes, n_chains, n_cells = (7, 2), 3, 6
    prior = gibbs.Prior(3, sizes)
    observed = np.ones((n_chains, n_cells), bool)
    for chain, cell in enumerate((1, 4, 5)):
        observed[chain, cell] = False
    noisy = 20 + 15 * rng.standard_normal((n_chains, n_cells, 9))
    for n_events in (0, 200):
        ends = []
        for other in (0.0, 1e4):
            release = np.where(observed[..., None], noisy, other)
            latent = events.LatentCounts(release, observed, prior, 5.0, n_events)
            sampler = events.Chains([latent], gibbs.Layout.of([0, 0, 0, 1, 1, 1]), prior, 8)
            for state, _ in run(sampler, [np.random.default_rng(34)], draws=30):
                (counts,) = state.counts
                assert (counts >= 0).all()
                assert np.array_equal(counts[..., :7].sum(axis=-1), counts[..., 7:].sum(axis=-1))
                assert np.array_equal(
                    (counts[..., 7:].sum(axis=-1) * observed).sum(axis=1) + state.held, [n_events] * 3
                )
            ends.append(counts.copy())
        assert np.array_equal(*ends)
    assert np.ptp(ends[0][0], axis=0).max() > 0


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"scale": 0.0}, "scale is 0.0"),
        ({"n_events": 3.5}, "n_events is 3.5"),
        ({"n_events": -1}, "n_events is -1"),
        ({"observed": np.array([[True, False], [True, True]])}, "observed"),
        ({"observed": np.zeros((2, 2), bool)}, "observed"),
    ],
)
def test_impossible_settings_are_refused(changed, message) -> None:
    settings = {
        "noisy": np.ones((2, 2, 3)),
        "observed": np.ones((2, 2), bool),
        "prior": gibbs.Prior(2, (3,)),
        "scale": 1.0,
        "n_events": 9,
    }
    with pytest.raises(ValueError, match=message):
        events.LatentCounts(**{**settings, **changed})
