"""Noise-aware chains on event counts that were released with Laplace noise, and an exact oracle for one field.

The release is Ĉ_cdv = C_cdv + Lap(s) for every cell c, field d and level v, s = 2D/ε (Foulds et al. 2016, section 5).
The counts are latent, as in Bernstein and Sheldon (2018), and not replaced by processed noisy counts:

    C_cd ~ Multinomial(N_c, φ_{z_c d}) for each field d, one N_c for all of them, φ_kd ~ Dir(b, …, b),

where all ways to spread the public number of events over the cells, including held-out cells, are equally likely. The
counts stay integers and no law is replaced by a normal one: every move leaves the joint posterior invariant. A cell's
state and counts are proposed together, with emissions and transitions integrated out (`noise_aware_moves`), because
given counts of hundreds of events a state is certain, and given states the counts hardly move.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import betainc, gammaln, logsumexp

from privpost.privacy import count_tables
from privpost.samplers import hidden_markov_gibbs as gibbs
from privpost.samplers.noise_aware_parts import Data, Latent, Slots, Tables

# Share of the burn-in in which states are annealed: few states, and many. Many are split anew after it, two at a time.
ANNEALED = 0.75
ANNEALED_MANY = 0.4
# Temperature τ at which that begins.
HOTTEST = 10.0


class LatentCounts:
    """Counts of a group's chains behind their noisy release.

    Args:
        noisy: the release, (chains, cells, levels), the fields' levels one after the other.
        observed: (chains, cells) bool; the other cells are held out, and their release is not used.
        prior: sizes of the model and concentration b of the emissions.
        scale: scale s > 0 of the Laplace noise.
        n_events: public number of events in all cells, an integer ≥ 0.
        n_held: number of cells that may have events but no release; the held-out cells when None.

    Raises:
        ValueError: a scale or number of events out of range, or chains that observe different numbers of cells.
    """

    def __init__(self, noisy, observed, prior: gibbs.Prior, scale: float, n_events: int, n_held=None):
        noisy, observed = np.asarray(noisy, float), np.asarray(observed)
        if not scale > 0:
            raise ValueError(f"scale is {scale!r}; it must be > 0")
        if not (n_events >= 0 and n_events == int(n_events)):
            raise ValueError(f"n_events is {n_events!r}; it must be an integer >= 0")
        if np.ptp(observed.sum(axis=1)) or not observed.any():
            raise ValueError("observed must have the same number of cells, at least one, in all chains")
        self.prior, self.scale, self.observed = prior, float(scale), observed
        self._given = (prior, scale, n_events, n_held)
        self.n_events = int(n_events)
        self.n_held = int((~observed[0]).sum()) if n_held is None else n_held
        self.noisy = np.where(observed[..., None], noisy, 0.0)
        self.slots = self._slots()
        # Each level's share of its field's noisy counts, cumulated.
        self.pivots = np.maximum(self.noisy.sum(axis=1), 0.0) + 1
        for field in prior.fields:
            shares = np.cumsum(self.pivots[:, field], axis=1)
            self.pivots[:, field] = shares / shares[:, -1:]

    def of_first(self, number: int) -> LatentCounts:
        """Counts of `number` chains that all have the first chain's release."""
        take = lambda values: np.repeat(values[:1], number, axis=0)  # noqa: E731
        return LatentCounts(take(self.noisy), take(self.observed), *self._given)

    def _slots(self) -> Slots:
        """Return the slots of the cells' counts: levels, numbers of releases above 0, releases, and crossings.

        Levels, (chains, cells, levels), begin in each field with those of a release above 0; their number is (chains,
        cells, fields). The first of the others stands for all of them, with a release of 0. A crossing is the noise's
        part of the ratio of two neighbouring counts' weights where the release lies between them.
        """
        levels = [field.start + np.argsort(self.noisy[..., field] <= 0, kind="stable") for field in self.prior.fields]
        above = [(self.noisy[..., field] > 0).sum(axis=-1) for field in self.prior.fields]
        order = np.concatenate(levels, axis=-1)
        release = np.maximum(np.take_along_axis(self.noisy, order, axis=-1), 0.0)
        crossing = np.exp(-(2 * (np.floor(release) - release) + 1) / self.scale)
        return Slots(order, np.stack(above, axis=-1), release, crossing)

    def start(self) -> tuple[np.ndarray, np.ndarray]:
        """Return integers (chains, cells, levels) roughly proportional to the noisy counts, and held-out events."""
        shares, counts = count_tables.project(self.noisy, self.prior.sizes), np.empty(self.noisy.shape, np.int64)
        totals, held = self._starting_totals()
        for field, size in zip(self.prior.fields, self.prior.sizes, strict=True):
            empty = shares[..., field].sum(axis=-1, keepdims=True) == 0
            counts[..., field] = _shared_out(totals[..., None], np.where(empty, 1 / size, shares[..., field]))
        return counts, held

    def start_states(self, rng) -> np.ndarray:
        """Return states (cells, chains), drawn uniformly."""
        n_chains, n_cells = self.observed.shape
        return rng.integers(self.prior.n_states, size=(n_cells, n_chains))

    def _starting_totals(self) -> tuple[np.ndarray, np.ndarray]:
        """Means of the fields' noisy sums, weighted by their precisions 1/levels, and the remaining events."""
        sizes = np.array(self.prior.sizes)
        means = np.maximum(self.noisy @ np.repeat(1 / sizes, sizes) / (1 / sizes).sum(), 0.0)
        sums = means.sum(axis=1, keepdims=True)
        wanted = np.minimum(sums, self.n_events) if self.n_held else np.full_like(sums, self.n_events)
        totals = _shared_out(np.rint(wanted), np.where(sums == 0, self.observed, means)).astype(np.int64)
        return totals, self.n_events - totals.sum(axis=1)

    @property
    def tables(self) -> Tables:
        """The kernels' tables for j = 0, 1, …, n + 1."""
        numbers, b = np.arange(self.n_events + 2.0), float(self.prior.emission)
        return Tables(gammaln(numbers + b), gammaln(numbers + 1), 1 / np.maximum(numbers, 1), b)


def _shared_out(totals, weights) -> np.ndarray:
    """Integers roughly proportional to the weights that sum to the totals along the last axis."""
    ends = np.cumsum(weights, axis=-1)
    return np.diff(np.rint(totals * ends / ends[..., -1:]), prepend=0.0, axis=-1)


class State(NamedTuple):
    """All chains after a sweep: as `hidden_markov_gibbs.State`, with statistics of the moves.

    `log_joint` of states, counts and release, up to a constant; the share of joint moves that were `accepted`; the
    number of moves that `changed` a state; all (chains,). `held` (chains,) is the number of events in cells without a
    release.
    """

    states: np.ndarray
    counts: Sequence[np.ndarray]
    held: np.ndarray
    probabilities: np.ndarray | None = None
    log_probabilities: np.ndarray | None = None
    transitions: np.ndarray | None = None
    log_joint: np.ndarray | None = None
    accepted: np.ndarray | None = None
    changed: np.ndarray | None = None

    def part(self, group: int, chains: slice) -> State:
        """The chains of one group, as views."""
        return State(
            self.states[:, chains],
            self.counts[group : group + 1],
            *(values[chains] for values in (self.held, self.probabilities, self.log_probabilities)),
            self.transitions[:, :, chains],
            *(values[chains] for values in (self.log_joint, self.accepted, self.changed)),
        )


class Chains:
    """Chains (`chain.Sampler`) on latent counts of several groups; `rng` is one generator per group.

    A step is a sweep of joint moves and transfers, after which emissions are drawn given states and counts. Chains
    start from `LatentCounts.start_states`. The first sweeps anneal: they draw a state by its estimated odds to the
    power 1/τ < 1, τ falling in geometric steps, and accept all counts, so they leave no law invariant. A search given
    projected counts could end in modes made by the noise, where chains of many states would stay.
    """

    def __init__(self, latents: Sequence[LatentCounts], layout: gibbs.Layout, prior: gibbs.Prior, burn_in: int):
        # Imported only to run chains: loading the compiler takes longer than most commands.
        from privpost.samplers import noise_aware_moves

        self._sweeps, self.latents, self.prior = noise_aware_moves.sweeps, latents, prior
        annealed = int(burn_in * (ANNEALED_MANY if prior.n_states > noise_aware_moves.STATES else ANNEALED))
        self._powers, self._burn_in = np.geomspace(1 / HOTTEST, 1, annealed + 1)[:-1], burn_in
        ends = np.cumsum([len(latent.observed) for latent in latents])
        self.slices = [slice(int(end - len(own.observed)), int(end)) for end, own in zip(ends, latents, strict=True)]
        self._layout, self._sizes = layout, np.array(prior.sizes)
        self._tables = [latent.tables for latent in latents]
        self._restart()

    def _restart(self) -> None:
        """Forget what a burn-in learnt: the starts of the searches for tilts, and which states are certain."""
        self._swept, fields = 0, len(self._sizes)
        shapes = [latent.observed.shape for latent in self.latents]
        self._learnt = [(np.zeros((*shape, fields)), np.ones(shape)) for shape in shapes]

    def init(self, rng: Sequence[np.random.Generator]) -> State:
        """Return random states, and counts in proportion to the noisy ones."""
        self._restart()
        counts, held = zip(*(latent.start() for latent in self.latents), strict=True)
        states = [latent.start_states(group_rng) for latent, group_rng in zip(self.latents, rng, strict=True)]
        return State(np.concatenate(states, axis=1), counts, np.concatenate(held))

    def step(self, state: State, rng: Sequence[np.random.Generator]) -> tuple[State, np.ndarray]:
        """One sweep of every chain, then emissions; the cost is their number of variates, (groups,)."""
        power = float(self._powers[self._swept]) if self._swept < len(self._powers) else 1.0
        self._swept += 1
        states, held = state.states.T.copy(), state.held.copy()
        tally, draws = np.empty((4, len(states))), []
        for latent, group_rng, chains, tables, learnt, counts in zip(
            self.latents, rng, self.slices, self._tables, self._learnt, state.counts, strict=True
        ):
            data = Data(latent.noisy, latent.slots, latent.scale, self._sizes, True, *learnt, latent.pivots)
            totals = counts[..., self.prior.fields[0]].sum(axis=2)
            rest = np.stack([np.full_like(held[chains], latent.n_held), held[chains]], axis=1)
            self._sweeps(
                data, latent.observed, Latent(states[chains], counts, totals), self.prior.n_states, rest, self._layout,
                float(self.prior.transition), tables, power, group_rng, tally[:, chains], self._swept <= self._burn_in,
            )  # fmt: skip
            held[chains] = rest[:, 1]
            group = gibbs.Group(counts, latent.observed)
            sums = gibbs.state_totals(counts, states[chains].T, latent.observed, self.prior.n_states)
            draws.append(gibbs.draw_emissions(group, sums, self.prior, group_rng)[0])
        probabilities = np.concatenate(draws)
        moves = gibbs.transition_counts(states.T, self._layout, self.prior.n_states)
        drawn = probabilities, np.log(probabilities), moves
        variates = np.array([values.size for values in draws])
        return State(states.T, state.counts, held, *drawn, tally[3], tally[0], tally[1]), variates


def log_dirichlet(parameters, fields: list[slice], rng) -> np.ndarray:
    """Logarithms of Dirichlet draws, field by field along the last axis; they stay finite where draws underflow."""
    # Gamma(α) = Gamma(α + 1) U^(1/α).
    logs = np.log(rng.standard_gamma(parameters + 1)) - rng.standard_exponential(parameters.shape) / parameters
    for field in fields:
        logs[..., field] -= logsumexp(logs[..., field], axis=-1, keepdims=True)
    return logs


def class_posterior(release, sizes, concentration: float, n: int, scale: float, size: int, rng):
    """Independent draws of a naive Bayes model given its noisy counts; arguments as of `class_counts`.

    All ways to spread the records over the classes are equally likely: a flat prior on the classes' shares.

    Returns:
        The classes' shares (size, classes), and their levels' probabilities (size, classes, levels).
    """
    from privpost.samplers.noise_aware_exact_counts import class_counts

    counts = class_counts(release, sizes, concentration, n, scale, size, rng)
    totals = counts[..., : sizes[0]].sum(axis=-1)
    shares = log_dirichlet(1.0 + totals, [slice(None)], rng)
    fields = [slice(end - levels, end) for levels, end in zip(sizes, np.cumsum(sizes), strict=True)]
    return np.exp(shares), np.exp(log_dirichlet(concentration + counts, fields, rng))


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
    from privpost.samplers.noise_aware_convolution import convolved

    # By level, so that all arrays have the same memory layout: loops are compiled for each layout.
    noisy = np.asarray(noisy, float).T.copy()
    weights = np.exp(-np.abs(noisy[:2, :, None] - np.arange(n + 1.0)) / scale)
    weights /= weights.max(axis=-1, keepdims=True)
    others = weights[1]
    for releases in noisy[2:]:
        others = convolved(others, releases, float(scale))
        others /= others.max(axis=1, keepdims=True)
    law = weights[0] * others[:, ::-1]
    return law / law.sum(axis=1, keepdims=True)


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
