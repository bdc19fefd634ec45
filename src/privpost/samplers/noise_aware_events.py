"""Noise-aware Gibbs steps for event counts that were released with Laplace noise, and an exact oracle for one field.

The release is Ĉ_cdv = C_cdv + Lap(s) for every cell c, field d and level v, s = 2D/ε (Foulds et al. 2016, section 5).
Instead of taking processed noisy counts for the counts, the counts are latent, as in Bernstein and Sheldon (2018):

    C_cd ~ Multinomial(N_c, φ_{z_c d}) for each field d, one N_c for all of them, φ_kd ~ Dir(b, …, b),

N_c is fixed (naive Bayes: the number of events is public) or geometric with the public mean of events per cell. The
counts stay integers; no law is replaced by a normal one, and every move leaves the joint posterior of counts, emissions
and states invariant. Given the counts, emissions and states are drawn by `hidden_markov_gibbs`; given those,
`LatentCounts` changes the counts. What the geometric law leaves out is that the N_c sum to the public number of events.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from scipy.special import betainc, expit, gammaln, xlog1py, xlogy

from privpost.mechanisms import count_tables
from privpost.samplers import hidden_markov_gibbs as gibbs

# Changes of the cells' totals that one update proposes: each moves one level per field, hence a little of the total.
TOTAL_MOVES = 8


class LatentCounts:
    """Counts of a group's chains behind their noisy release, and the moves that change them in place.

    Args:
        noisy: the release, (chains, cells, levels), the fields' levels one after the other.
        observed: (chains, cells) bool; the other cells are held out, and their release is not used.
        prior: sizes of the model and concentration b of the emissions.
        scale: scale s > 0 of the Laplace noise.
        n_events: public number of events in each chain's observed cells, (chains,), at least 1.
        rng: source of all random numbers of these chains.
        fixed: whether the only cell of each chain is known to hold all of its events.

    Raises:
        ValueError: a scale or numbers of events out of range, or fixed totals with several cells.
    """

    def __init__(self, noisy, observed, prior: gibbs.Prior, scale: float, n_events, rng, *, fixed: bool = False):
        noisy, observed, n_events = np.asarray(noisy, float), np.asarray(observed), np.asarray(n_events, float)
        n_chains, n_cells, n_levels = noisy.shape
        if not scale > 0:
            raise ValueError(f"scale is {scale!r}; it must be > 0")
        if n_events.shape != (n_chains,) or not np.all(n_events >= 1):
            raise ValueError(f"n_events is {n_events!r}; it must be >= 1 for each of the {n_chains} chains")
        if fixed and n_cells != 1:
            raise ValueError(f"fixed is {fixed!r}, but there are {n_cells} cells; it needs exactly one")
        self.prior, self.scale, self.rng, self.fixed = prior, float(scale), rng, fixed
        self.observed = observed
        noisy = np.where(observed[..., None], noisy, 0.0)
        mean = n_events / observed.sum(axis=1)
        # A geometric law of mean m has p(N) ∝ (m/(1 + m))^N.
        self._log_growth = np.repeat(np.log(mean / (1 + mean)), n_cells)
        self.totals = np.repeat(n_events, n_cells) if fixed else self._starting_totals(noisy).reshape(-1)
        # Levels first, chains and cells along the last axis: a pair of levels is a pair of contiguous rows.
        self._noisy = np.ascontiguousarray(noisy.reshape(-1, n_levels).T)
        self._counts = np.ascontiguousarray(self._starting_counts(noisy).reshape(-1, n_levels).T)
        self.counts = self._counts.reshape(n_levels, n_chains, n_cells).transpose(1, 2, 0)

    def _starting_totals(self, noisy) -> np.ndarray:
        """Means of the fields' noisy sums, weighted by their precisions 1/levels, as integers ≥ 0; (chains, cells)."""
        sizes = np.array(self.prior.sizes)
        return np.maximum(np.rint(noisy @ np.repeat(1 / sizes, sizes) / (1 / sizes).sum()), 0.0)

    def _starting_counts(self, noisy) -> np.ndarray:
        """Integers with the totals, field by field in proportion to the projected noisy counts."""
        shares = count_tables.project(noisy, self.prior.sizes)
        counts = np.empty_like(noisy)
        totals = self.totals.reshape(noisy.shape[:2])[..., None]
        for field, size in zip(self.prior.fields, self.prior.sizes, strict=True):
            empty = shares[..., field].sum(axis=-1, keepdims=True) == 0
            share = np.where(empty, 1 / size, shares[..., field])
            ends = np.cumsum(share, axis=-1)
            counts[..., field] = np.diff(np.rint(totals * ends / ends[..., -1:]), prepend=0.0, axis=-1)
        return counts

    def update(self, states, log_probabilities) -> None:
        """Change the counts given states and emissions, which stay as they are.

        Args:
            states: (cells, chains).
            log_probabilities: (chains, K, levels).
        """
        n_chains, n_states, n_levels = log_probabilities.shape
        emissions = np.ascontiguousarray(log_probabilities.transpose(2, 0, 1)).reshape(n_levels, -1)
        state = (states.T + n_states * np.arange(n_chains)[:, None]).reshape(-1)
        member = (states.T[..., None] == np.arange(n_states)) & self.observed[..., None]
        first, second = self._pairs()
        self._exchange_by_state(first, second, emissions, state, member.astype(float))
        # Emissions of the first moves' pairs have changed, in place.
        first, second = self._pairs()
        self._exchange_in_cells(first, second, emissions, state)
        if not self.fixed:
            for _ in range(TOTAL_MOVES):
                self._change_totals(emissions, state, n_states)

    def _pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """Two lists of levels: disjoint random pairs within each field."""
        orders = [self.rng.permutation(np.arange(field.start, field.stop)) for field in self.prior.fields]
        halves = [(order[: len(order) // 2], order[len(order) // 2 : 2 * (len(order) // 2)]) for order in orders]
        return tuple(np.concatenate(part) for part in zip(*halves, strict=True))

    def _misfit(self, levels, counts) -> np.ndarray:
        return np.abs(self._noisy[levels] - counts)

    def _exchange_by_state(self, first, second, emissions, state, member) -> None:
        """Move the odds of two levels in a state, and with them events of all of its cells, of one kind into the other.

        With p the first level's share of the pair, an event of the level that loses goes over with probability
        |p′ − p| over its share. As Binomial(m, p) counts become Binomial(m, p′) ones by that, and back in the same
        way, a move is accepted by the prior of p and the noise alone: it does not stall where noise hides the counts.
        """
        rng, (n_chains, n_cells, n_states) = self.rng, member.shape

        def by_state(values):
            """Sums (pairs, chains × states) over the observed cells of each state."""
            stacked = values.reshape(len(first), n_chains, n_cells).transpose(1, 0, 2) @ member
            return stacked.transpose(1, 0, 2).reshape(len(first), -1)

        ones, others = self._counts[first], self._counts[second]
        share = expit(emissions[first] - emissions[second])
        both = by_state(ones + others)
        cells = member.sum(axis=1).reshape(-1)
        # As wide as the noise on the pair's share; it must not depend on what the move changes.
        width = self.scale * np.sqrt(2 * cells) / np.maximum(both, 1.0) * np.exp(rng.standard_normal(both.shape))
        folded = np.mod(share + width * rng.standard_normal(both.shape), 2.0)
        proposal = np.where(folded > 1, 2 - folded, folded)
        down = proposal < share
        # A share of 0 or 1 to rounding has nothing to lose.
        lost = np.where(down, share - proposal, proposal - share) / np.maximum(np.where(down, share, 1 - share), 1e-300)
        down_in_cell = down[:, state]
        sources = np.where(down_in_cell, ones, others)
        moved = np.zeros_like(sources)
        some = np.flatnonzero(sources)
        chance = np.minimum(lost[:, state].reshape(-1)[some], 1.0)
        moved.reshape(-1)[some] = rng.binomial(sources.reshape(-1)[some].astype(np.int64), chance)
        moved *= np.where(down_in_cell, -1.0, 1.0)
        change = self._misfit(first, ones + moved) - self._misfit(first, ones)
        change += self._misfit(second, others - moved) - self._misfit(second, others)
        b = self.prior.emission - 1
        log_ratio = xlogy(b, proposal) + xlog1py(b, -proposal) - xlogy(b, share) - xlog1py(b, -share)
        log_ratio -= by_state(change) / self.scale
        accepted = np.log(rng.random(log_ratio.shape)) < log_ratio
        moved *= accepted[:, state]
        self._counts[first] = ones + moved
        self._counts[second] = others - moved
        pair = np.logaddexp(emissions[first], emissions[second])
        share = np.where(accepted, proposal, share)
        tiny = np.finfo(float).tiny
        emissions[first] = pair + np.log(np.maximum(share, tiny))
        emissions[second] = pair + np.log(np.maximum(1 - share, tiny))

    def _exchange_in_cells(self, first, second, emissions, state) -> None:
        """Move some events of a cell from one level to another (Metropolis, one step per pair of levels and cell)."""
        rng = self.rng
        ones, others = self._counts[first], self._counts[second]
        places = np.flatnonzero(ones + others)
        a, b = ones.reshape(-1)[places], others.reshape(-1)[places]
        odds = (emissions[first] - emissions[second])[:, state].reshape(-1)[places]
        share = expit(odds)
        # The spread given the emissions, or the noise if that is less; neither depends on what the move changes.
        width = np.minimum(np.sqrt((a + b) * share * (1 - share)), self.scale)
        step = np.floor(1 + 2 * width * rng.standard_exponential(len(places)))
        step *= np.where(rng.random(len(places)) < 0.5, -1.0, 1.0)
        valid = (a + step >= 0) & (b - step >= 0)
        step *= valid
        noise_a, noise_b = self._noisy[first].reshape(-1)[places], self._noisy[second].reshape(-1)[places]
        misfit = np.abs(noise_a - a - step) - np.abs(noise_a - a) + np.abs(noise_b - b + step) - np.abs(noise_b - b)
        log_ratio = step * odds - misfit / self.scale
        log_ratio += gammaln(a + 1) - gammaln(a + step + 1) + gammaln(b + 1) - gammaln(b - step + 1)
        step *= np.log(rng.random(len(places))) < log_ratio
        ones.reshape(-1)[places] += step
        others.reshape(-1)[places] -= step
        self._counts[first], self._counts[second] = ones, others

    def _change_totals(self, emissions, state, n_states: int) -> None:
        """Add events to every cell or take them away: as many of one level in each field (Metropolis).

        The levels are drawn from the emissions, one for all cells in a state; pairs of levels share them out later.
        """
        rng, n_fields = self.rng, len(self.prior.sizes)
        n_columns = len(state)
        levels = np.empty((n_fields, emissions.shape[1]), np.intp)
        for row, field in zip(levels, self.prior.fields, strict=True):
            ends = np.cumsum(np.exp(emissions[field]), axis=0)
            row[:] = field.start + (ends[:-1] <= rng.random(ends.shape[1]) * ends[-1]).sum(axis=0)
        step = np.floor(1 + max(self.scale, 1.0) ** rng.random(n_columns) * rng.standard_exponential(n_columns))
        step *= np.where(rng.random(n_columns) < 0.5, -1.0, 1.0)
        log_probability = np.take_along_axis(emissions, levels, axis=0).sum(axis=0)[state]
        levels = levels[:, state]
        columns = np.arange(n_columns)
        counts, noisy = self._counts[levels, columns], self._noisy[levels, columns]
        valid = (counts + step >= 0).all(axis=0)
        step *= valid
        log_ratio = step * (log_probability + self._log_growth)
        log_ratio += n_fields * (gammaln(self.totals + step + 1) - gammaln(self.totals + 1))
        log_ratio += (gammaln(counts + 1) - gammaln(counts + step + 1)).sum(axis=0)
        log_ratio -= (np.abs(noisy - counts - step) - np.abs(noisy - counts)).sum(axis=0) / self.scale
        step *= np.log(rng.random(n_columns)) < log_ratio
        self._counts[levels, columns] = counts + step
        self.totals += step


def run(
    groups: Sequence[gibbs.Group],
    latents: Sequence[LatentCounts | None],
    layout: gibbs.Layout,
    prior: gibbs.Prior,
    iterations: int,
) -> Iterator[gibbs.State]:
    """Run all chains as `hidden_markov_gibbs.run` does, changing the latent counts of a group after each iteration.

    Args:
        groups: a group with latent counts has their `counts` as its own.
        latents: one for each group, None where the counts are known.
    """
    ends = np.cumsum([len(group.observed) for group in groups])
    for state in gibbs.run(groups, layout, prior, iterations):
        yield state
        for group, latent, end in zip(groups, latents, ends, strict=True):
            if latent is not None:
                chains = slice(end - len(group.observed), end)
                latent.update(state.states[:, chains], state.log_probabilities[chains])


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
