"""Noise-aware Gibbs steps for event counts that were released with Laplace noise, and an exact oracle for one field.

The release is Ĉ_cdv = C_cdv + Lap(s) for every cell c, field d and level v, s = 2D/ε (Foulds et al. 2016, section 5).
Instead of taking processed noisy counts for the counts, the counts are latent, as in Bernstein and Sheldon (2018):

    C_cd ~ Multinomial(N_c, φ_{z_c d}) for each field d, one N_c for all of them, φ_kd ~ Dir(b, …, b),

where all ways to spread the public number of events over the cells are equally likely; with one cell (naive Bayes) N is
known. The counts stay integers and no law is replaced by a normal one: every move leaves the joint posterior of counts,
emissions and states invariant. Given the counts, emissions and states are drawn by `hidden_markov_gibbs`; given those,
`LatentCounts` changes the counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import betainc, expit, gammaln, logsumexp, xlog1py, xlogy

from privpost.privacy import count_tables
from privpost.samplers import hidden_markov_gibbs as gibbs

# How often an update pairs up the cells to move events between them: one level per field, hence a few events at a time.
TRANSFERS = 4


class LatentCounts:
    """Counts of a group's chains behind their noisy release, and the moves that change them.

    Args:
        noisy: the release, (chains, cells, levels), the fields' levels one after the other.
        observed: (chains, cells) bool; the other cells are held out, and their release is not used.
        prior: sizes of the model and concentration b of the emissions.
        scale: scale s > 0 of the Laplace noise.
        n_events: public number of events in each chain's observed cells, (chains,), integers ≥ 0.

    Raises:
        ValueError: a scale or numbers of events out of range, or chains that observe different numbers of cells.
    """

    def __init__(self, noisy, observed, prior: gibbs.Prior, scale: float, n_events):
        noisy, observed, n_events = np.asarray(noisy, float), np.asarray(observed), np.asarray(n_events, float)
        n_chains = len(noisy)
        if not scale > 0:
            raise ValueError(f"scale is {scale!r}; it must be > 0")
        if n_events.shape != (n_chains,) or not np.all((n_events >= 0) & (n_events == np.rint(n_events))):
            raise ValueError(f"n_events is {n_events!r}; it must be an integer >= 0 for each of the {n_chains} chains")
        if np.ptp(observed.sum(axis=1)) or not observed.any():
            raise ValueError("observed must have the same number of cells, at least one, in all chains")
        self.prior, self.scale, self.observed, self.n_events = prior, float(scale), observed, n_events
        self._fields = prior.fields
        self._release = np.where(observed[..., None], noisy, 0.0)
        self._noisy = _levels_first(self._release)
        self._log_factorials = gammaln(1.0 + np.arange(64))

    def start(self) -> np.ndarray:
        """Return integers (chains, cells, levels) with the public sums, about in proportion to the noisy counts."""
        shares, counts = count_tables.project(self._release, self.prior.sizes), np.empty_like(self._release)
        totals = self._starting_totals(self._release)[..., None]
        for field, size in zip(self._fields, self.prior.sizes, strict=True):
            empty = shares[..., field].sum(axis=-1, keepdims=True) == 0
            counts[..., field] = _shared_out(totals, np.where(empty, 1 / size, shares[..., field]))
        return self._table(_levels_first(counts))

    def _table(self, counts) -> np.ndarray:
        """Counts (levels, chains × cells) as a view of shape (chains, cells, levels)."""
        return counts.reshape(-1, *self.observed.shape).transpose(1, 2, 0)

    def _starting_totals(self, noisy) -> np.ndarray:
        """Means (chains, cells) of the fields' noisy sums, weighted by their precisions 1/levels, made to sum to n."""
        sizes = np.array(self.prior.sizes)
        means = np.maximum(noisy @ np.repeat(1 / sizes, sizes), 0.0)
        empty = means.sum(axis=1, keepdims=True) == 0
        return _shared_out(self.n_events[:, None], np.where(empty, self.observed, means))

    def _log_factorial(self, counts) -> np.ndarray:
        """ln c! of integers held as floats, from a table that grows."""
        index = counts.astype(np.intp)
        largest = int(index.max(initial=0))
        if largest >= len(self._log_factorials):
            self._log_factorials = gammaln(1.0 + np.arange(2 * largest))
        return np.take(self._log_factorials, index)

    def update(self, counts, states, log_probabilities, rng) -> np.ndarray:
        """Return counts that were changed given states and emissions, which stay as they are.

        Args:
            counts: (chains, cells, levels), as `start` or the last update returned them; overwritten.
            states: (cells, chains).
            log_probabilities: (chains, K, levels).
            rng: source of randomness.
        """
        n_chains, n_states, _ = log_probabilities.shape
        counts, emissions = _levels_first(counts), _levels_first(log_probabilities)
        state = (states.T + n_states * np.arange(n_chains)[:, None]).reshape(-1)
        member = (states.T[..., None] == np.arange(n_states)) & self.observed[..., None]
        pairs = self._pairs(rng)
        by_state = rng.random(len(pairs)) < 0.5
        if by_state.any():
            self._exchange_by_state(counts, *pairs[by_state].T, emissions, state, member.astype(float), rng)
        if not by_state.all():
            self._exchange_in_cells(counts, *pairs[~by_state].T, emissions, state, rng)
        totals = counts[self._fields[0]].sum(axis=0)
        for _ in range(TRANSFERS):
            self._transfer(counts, totals, emissions, state, rng)
        return self._table(counts)

    def _pairs(self, rng) -> np.ndarray:
        """Disjoint random pairs of levels of the same field, (pairs, 2)."""
        fields = zip(self._fields, self.prior.sizes, strict=True)
        orders = [field.start + rng.permutation(size)[: size // 2 * 2] for field, size in fields]
        return np.concatenate(orders).reshape(-1, 2)

    @staticmethod
    def _change_of_misfit(noise, step) -> np.ndarray:
        """|Ĉ − C| after `step` is added to C less that before; `noise` is Ĉ − C before."""
        return np.abs(noise - step) - np.abs(noise)

    def _exchange_by_state(self, counts, first, second, emissions, state, member, rng) -> None:
        """Move the odds of two levels in a state, and with them events of all of its cells, of one kind into the other.

        With p the first level's share of the pair, an event of the level that loses goes over with probability
        |p′ − p| over its share. As Binomial(m, p) counts become Binomial(m, p′) ones by that, and back in the same
        way, a move is accepted by the prior of p and the noise alone: it does not stall where noise hides the counts.
        """
        n_chains, n_cells, _ = member.shape

        def by_state(values):
            """Sums (pairs, chains × states) over the observed cells of each state."""
            stacked = values.reshape(len(first), n_chains, n_cells).transpose(1, 0, 2) @ member
            return stacked.transpose(1, 0, 2).reshape(len(first), -1)

        ones, others = counts[first], counts[second]
        # Rounding must not make a share 0 or 1, where the prior's density may be infinite.
        ends = np.finfo(float).tiny, 1 - np.finfo(float).epsneg
        share = np.clip(expit(emissions[first] - emissions[second]), *ends)
        both = by_state(ones + others)
        cells = member.sum(axis=1).reshape(-1)
        # As wide as the noise on the pair's share; it must not depend on what the move changes.
        width = self.scale * np.sqrt(2 * cells) / np.maximum(both, 1.0) * np.exp(rng.standard_normal(both.shape))
        folded = np.mod(share + width * rng.standard_normal(both.shape), 2.0)
        proposal = np.clip(np.where(folded > 1, 2 - folded, folded), *ends)
        down = proposal < share
        lost = np.where(down, share - proposal, proposal - share) / np.where(down, share, 1 - share)
        down_in_cell = down[:, state]
        sources = np.where(down_in_cell, ones, others)
        moved = np.zeros_like(sources)
        some = np.flatnonzero(sources)
        chance = np.minimum(lost[:, state].reshape(-1)[some], 1.0)
        moved.reshape(-1)[some] = rng.binomial(sources.reshape(-1)[some].astype(np.int64), chance)
        moved *= np.where(down_in_cell, -1.0, 1.0)
        change = self._change_of_misfit(self._noisy[first] - ones, moved)
        change += self._change_of_misfit(self._noisy[second] - others, -moved)
        b = self.prior.emission - 1
        log_ratio = xlogy(b, proposal) + xlog1py(b, -proposal) - xlogy(b, share) - xlog1py(b, -share)
        log_ratio -= by_state(change) / self.scale
        accepted = -rng.standard_exponential(log_ratio.shape) < log_ratio
        moved *= accepted[:, state]
        counts[first] = ones + moved
        counts[second] = others - moved
        pair = np.logaddexp(emissions[first], emissions[second])
        emissions[first] = np.where(accepted, pair + np.log(proposal), emissions[first])
        emissions[second] = np.where(accepted, pair + np.log1p(-proposal), emissions[second])

    def _exchange_in_cells(self, counts, first, second, emissions, state, rng) -> None:
        """Move some events of a cell from one level to another (Metropolis, one step per pair of levels and cell)."""
        ones, others = counts[first], counts[second]
        places = np.flatnonzero(ones + others)
        a, b = ones.reshape(-1)[places], others.reshape(-1)[places]
        odds = (emissions[first] - emissions[second])[:, state].reshape(-1)[places]
        share = expit(odds)
        # The spread given the emissions, or the noise if that is less; neither depends on what the move changes.
        width = np.minimum(np.sqrt((a + b) * share * (1 - share)), self.scale)
        step = np.floor(1 + 2 * width * rng.standard_exponential(len(places)))
        step *= 2.0 * rng.integers(0, 2, len(places), np.int8) - 1
        valid = (a + step >= 0) & (b - step >= 0)
        step *= valid
        noise_a, noise_b = self._noisy[first].reshape(-1)[places] - a, self._noisy[second].reshape(-1)[places] - b
        change = self._change_of_misfit(noise_a, step) + self._change_of_misfit(noise_b, -step)
        log_ratio = step * odds - change / self.scale
        log_ratio += self._log_factorial(a) + self._log_factorial(b)
        log_ratio -= self._log_factorial(a + step) + self._log_factorial(b - step)
        # −ln U is standard exponential.
        step *= -rng.standard_exponential(len(places)) < log_ratio
        ones.reshape(-1)[places] += step
        others.reshape(-1)[places] -= step
        counts[first], counts[second] = ones, others

    def _transfer(self, counts, totals, emissions, state, rng) -> None:
        """Take events from a cell and add as many to another, all of one level in each field (Metropolis).

        The levels are drawn from the emissions, for all cells in a state alike; pairs of levels share them out later.
        """
        n_chains, n_cells = self.observed.shape
        n_pairs = int(self.observed[0].sum()) // 2
        if not n_pairs:
            return
        order = np.argsort(np.where(self.observed, rng.random(self.observed.shape), 2.0), axis=1)
        order = order[:, : 2 * n_pairs] + n_cells * np.arange(n_chains)[:, None]
        # The cells that gain and those that lose, (2, pairs).
        columns = np.stack([order[:, :n_pairs].reshape(-1), order[:, n_pairs:].reshape(-1)])
        levels = np.empty((len(self.prior.sizes), emissions.shape[1]), np.intp)
        for row, field in zip(levels, self._fields, strict=True):
            ends = np.cumsum(np.exp(emissions[field]), axis=0)
            row[:] = field.start + (ends[:-1] <= rng.random(ends.shape[1]) * ends[-1]).sum(axis=0)
        log_probability = np.take_along_axis(emissions, levels, axis=0).sum(axis=0)[state[columns]]
        levels = levels[:, state[columns]]
        # From single events to as many as the noise hides.
        step = np.floor(
            1 + max(self.scale, 1.0) ** rng.random(columns.shape[1]) * rng.standard_exponential(columns.shape[1])
        )
        step = np.stack([step, -step])
        old, noisy, size = counts[levels, columns], self._noisy[levels, columns], totals[columns]
        step = step * (old + step >= 0).all(axis=(0, 1))
        factorial = self._log_factorial
        log_ratio = step * log_probability + len(levels) * (factorial(size + step) - factorial(size))
        log_ratio += (factorial(old) - factorial(old + step)).sum(axis=0)
        log_ratio -= self._change_of_misfit(noisy - old, step).sum(axis=0) / self.scale
        step *= -rng.standard_exponential(columns.shape[1]) < log_ratio.sum(axis=0)
        counts[levels, columns] = old + step
        totals[columns] = size + step


def _shared_out(totals, weights) -> np.ndarray:
    """Integers that sum to the totals along the last axis, about in proportion to the weights."""
    ends = np.cumsum(weights, axis=-1)
    return np.diff(np.rint(totals * ends / ends[..., -1:]), prepend=0.0, axis=-1)


def _levels_first(table) -> np.ndarray:
    """Shape (levels, all the rest) of (..., levels): a pair of levels is then a pair of contiguous rows."""
    return np.ascontiguousarray(np.moveaxis(table, -1, 0)).reshape(table.shape[-1], -1)


class Chains(gibbs.Chains):
    """Chains of `hidden_markov_gibbs` whose counts, if latent, change before each iteration but the first.

    Args:
        groups: where its counts are latent, those of a group are what they `start` with.
        latents: one for each group, None where the counts are known.
    """

    def __init__(self, groups: Sequence[gibbs.Group], latents, layout: gibbs.Layout, prior: gibbs.Prior):
        super().__init__(groups, layout, prior)
        self.latents: Sequence[LatentCounts | None] = latents

    def start(self, states):
        """As there, with a copy of the latent counts."""
        state = super().start(states)
        pairs = zip(state.counts, self.latents, strict=True)
        return state._replace(counts=tuple(own if latent is None else own.copy("K") for own, latent in pairs))

    def step(self, state, rng):
        """Change the latent counts given states and emissions, then draw those given the counts."""
        if state.log_probabilities is not None:
            parts = zip(state.counts, self.latents, self.slices, rng, strict=True)
            counts = tuple(
                own
                if latent is None
                else latent.update(own, state.states[:, chains], state.log_probabilities[chains], generator)
                for own, latent, chains, generator in parts
            )
            state = state._replace(counts=counts)
        return super().step(state, rng)


class RowState(NamedTuple):
    """Latent counts and logarithms of probabilities, both (chains, rows, levels); none before the first step."""

    counts: np.ndarray
    log_probabilities: np.ndarray | None = None


class Rows:
    """Chains (`chain.Sampler`) on latent counts, each row of which has probabilities of its own: naive Bayes."""

    def __init__(self, latent: LatentCounts):
        self.latent = latent
        n_chains, n_rows = latent.observed.shape
        self._states = np.tile(np.arange(n_rows)[:, None], n_chains)

    def init(self, rng) -> RowState:
        """Return counts in proportion to the noisy ones."""
        return RowState(self.latent.start())

    def step(self, state: RowState, rng) -> tuple[RowState, None]:
        """Change the counts given the probabilities, then draw those given the counts."""
        counts, prior = state.counts, self.latent.prior
        if state.log_probabilities is not None:
            counts = self.latent.update(counts, self._states, state.log_probabilities, rng)
        return RowState(counts, log_dirichlet(prior.emission + counts, prior.fields, rng)), None


def log_dirichlet(parameters, fields: list[slice], rng) -> np.ndarray:
    """Logarithms of Dirichlet draws, field by field along the last axis; they stay finite where draws underflow."""
    # Gamma(α) = Gamma(α + 1) U^(1/α).
    logs = np.log(rng.standard_gamma(parameters + 1)) - rng.standard_exponential(parameters.shape) / parameters
    for field in fields:
        logs[..., field] -= logsumexp(logs[..., field], axis=-1, keepdims=True)
    return logs


def count_probabilities(noisy, n: int, scale: float) -> np.ndarray:
    """p(C_1 | Ĉ) for the first of a field's levels under a flat Dirichlet prior: the exact answer, by convolution.

    With φ ~ Dir(1, …, 1) integrated out all counts that sum to n are equally likely, so that the law of C_1 is
    proportional to exp(−|Ĉ_1 − c|/s) times the convolution of the other levels' such weights at n − c.

    Args:
        noisy: Ĉ, (trials, levels), at least 2 levels.
        n: public number of events.
        scale: scale s > 0 of the Laplace noise.

    Returns:
        Probabilities of 0..n, shape (trials, n + 1).
    """
    weights = np.exp(-np.abs(np.asarray(noisy, float)[..., None] - np.arange(n + 1.0)) / scale)
    weights /= weights.max(axis=-1, keepdims=True)
    found = np.empty((len(weights), n + 1))
    for row, of_levels in zip(found, weights, strict=True):
        others = of_levels[1]
        for weight in of_levels[2:]:
            others = np.convolve(others, weight)[: n + 1]
            others /= others.max()
        row[:] = of_levels[0] * others[::-1]
    return found / found.sum(axis=1, keepdims=True)


def probability_cdf(count_law, theta, n_levels: int) -> np.ndarray:
    """P(φ_1 ≤ θ) when C_1 has the given law and φ ~ Dir(1, …, 1) a priori.

    Args:
        count_law: probabilities of 0..n, (trials, n + 1).
        theta: (trials,) in (0, 1).

    Returns:
        Shape (trials,).
    """
    n = count_law.shape[1] - 1
    counts = np.arange(n + 1.0)
    cdf = betainc(1 + counts, n_levels - 1 + n - counts, np.asarray(theta, float)[:, None])
    return np.clip((count_law * cdf).sum(axis=1), 0.0, 1.0)
