"""Named tuples that the compiled loops of the noise-aware hidden Markov model pass to each other.

Where chains are started, arrays hold all chains, (chains, …); in the loops they hold one chain.
"""

from typing import NamedTuple

import numpy as np


class Slots(NamedTuple):
    """The release in the order in which counts are drawn; see `noise_aware_events.LatentCounts`.

    Attributes:
        levels: each field's levels, first those with a release above 0, (cells, levels).
        near: number of levels with a release above 0, (cells, fields).
        releases: releases in this order, 0 where they are not above 0, (cells, levels).
        crossings: the noise's factor in the weight ratio of two neighbouring counts with the release between them.
    """

    levels: np.ndarray
    near: np.ndarray
    releases: np.ndarray
    crossings: np.ndarray


class Data(NamedTuple):
    """The release, and what the burn-in learns about it.

    Attributes:
        noisy: release, (cells, levels).
        slots: the release in the order of slots.
        scale: scale of the Laplace noise.
        sizes: the fields' numbers of levels.
        free: whether states move.
        offsets: where searches for tilts start, (cells, fields); changed in place.
        openness: probability that a cell is in a state other than its present one, (cells,); changed in place.
        pivots: cumulative shares of the levels in their field's noisy counts, (levels,).
    """

    noisy: np.ndarray
    slots: Slots
    scale: float
    sizes: np.ndarray
    free: bool
    offsets: np.ndarray
    openness: np.ndarray
    pivots: np.ndarray


class Latent(NamedTuple):
    """States (cells,), counts (cells, levels) and numbers of events (cells,); integers, changed in place."""

    states: np.ndarray
    counts: np.ndarray
    totals: np.ndarray


class Sums(NamedTuple):
    """Counts (K, levels) and events (K,) of each state's cells, moves between states (K, K), and their row sums."""

    counts: np.ndarray
    events: np.ndarray
    moves: np.ndarray
    leaving: np.ndarray


class Tables(NamedTuple):
    """ln Γ(j + b), ln j! and 1/j for j = 0, 1, …, and the concentration b of the emissions."""

    log_gammas: np.ndarray
    log_factorials: np.ndarray
    inverse: np.ndarray
    concentration: float


class Moments(NamedTuple):
    """Each slot's α, mean and variance of its weights w, Σ w/w(start), and start of the summation."""

    alphas: np.ndarray
    means: np.ndarray
    variances: np.ndarray
    masses: np.ndarray
    starts: np.ndarray


class Work(NamedTuple):
    """Work arrays of the loops.

    Attributes:
        moments: `Moments` of each state, (K, levels) each.
        thetas: tilts of each state's fields, (K, fields).
        weights: weights of one slot's counts.
        logs: log-weights of the states.
        proposal: counts that are proposed, (levels,).
        site: p(state of a cell | other states), (K,).
        estimates: of a cell's weights in the states, (K,).
        drawn: counts that a transfer proposes for its two cells, (2, levels).
        slot_counts: counts of a cell's slots.
        cumulated, guide, urn: arrays of a Pólya urn; see `noise_aware_proposals._split`.
    """

    moments: Moments
    thetas: np.ndarray
    weights: np.ndarray
    logs: np.ndarray
    proposal: np.ndarray
    site: np.ndarray
    estimates: np.ndarray
    drawn: np.ndarray
    slot_counts: np.ndarray
    cumulated: np.ndarray
    guide: np.ndarray
    urn: np.ndarray
