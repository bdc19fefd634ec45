"""The law of one or two weights after Langevin steps. Each step is an integral over the weights before the step."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import expit

# The total noise of all steps has nearly all its mass within this many standard deviations of the total noise.
WIDTHS = 9
# Distance between nodes in standard deviations of a step's noise. At this distance, sums equal integrals to 1e-8.
NODES = 0.7
# Fewest nodes of distribution functions, for one weight and for two.
FINE = {1: 4001, 2: 601}


@dataclass(frozen=True)
class Steps:
    """A law of one or two weights, given by a function that computes its density.

    Attributes:
        axis: equally spaced nodes (g,) of the integrals, the same for all weights and for neighbours' laws.
        density_at: function from each weight's nodes (g,) to the density, (g,) for one weight or (g, g) for two.
    """

    axis: np.ndarray
    dimension: int
    density_at: Callable[[np.ndarray], np.ndarray]

    @cached_property
    def _density(self):
        return self.density_at(self.axis)

    def divergence(self, other: Steps, order: float) -> float:
        """Return the Rényi divergence from another law with the same nodes."""
        inside = (self._density > 0) & (other._density > 0)
        p, q = np.log(self._density[inside]), np.log(other._density[inside])
        cell = self.dimension * math.log(self.axis[1] - self.axis[0])
        return float((np.logaddexp.reduce(order * p + (1 - order) * q) + cell) / (order - 1))

    def quantiles(self, draws, rng) -> np.ndarray:
        """Return the weights' distribution functions at the draws. The values are uniform if the draws have this law.

        For two weights, a third column is the second weight's distribution function given the first weight, minus the
        first column, modulo 1. It detects noise that both weights share.
        """
        draws = np.reshape(draws, (len(draws), -1))
        axis = np.linspace(self.axis[0], self.axis[-1], max(FINE[self.dimension], len(self.axis)))
        density = self.density_at(axis)
        if self.dimension == 1:
            return np.interp(draws, axis, _shares(density))
        first, second = (np.interp(draws[:, i], axis, _shares(density.sum(axis=1 - i))) for i in (0, 1))
        away = np.clip((draws - axis[0]) / (axis[1] - axis[0]), 0, len(axis) - 1.001)
        (i, j), (x, y), given = away.astype(int).T, (away % 1).T, _shares(density)
        below, above = ((1 - y) * given[k, j] + y * given[k, j + 1] for k in (i, i + 1))
        return np.stack([first, second, ((1 - x) * below + x * above - first) % 1], axis=1)


def _shares(density) -> np.ndarray:
    """Return distribution functions from densities at evenly spaced nodes (last axis)."""
    mass = np.cumsum((density[..., 1:] + density[..., :-1]) / 2, axis=-1)
    return np.concatenate([np.zeros_like(mass[..., :1]), mass], axis=-1) / np.maximum(mass[..., -1:], 1e-300)


def law_after(records, numbers, *, eta: float, count: int, precision: float, power: float, order: float) -> Steps:
    """Return the law of the weights w after `count` Langevin steps from w = 0.

    A step is w ← w − η(precision · w − ρ Σ z/(1 + exp(z·w))) + √(2η) Z with standard normal Z.

    Args:
        records: records z (k, d), with d at most 2.
        numbers: how often each record occurs (k,).
        eta, count, precision, power: step size η, number of steps, the prior's precision, and power ρ of the
            likelihood.
        order: highest order of a divergence. The nodes reach far enough for it.
    """
    sd, left, dimension = math.sqrt(2 * eta), 1 - eta * precision, records.shape[1]
    # How far a gradient of 1 in every step moves a weight, and the standard deviation of the total noise.
    pushed, spread = (1 - left**count) / precision, sd * math.sqrt((1 - left ** (2 * count)) / (1 - left**2))
    # In a divergence of order λ, the mass of p^λ q^(1 − λ) is up to λ times as far from q's mass as p's mass is.
    # Another record changes the sum of gradients by at most 2 max ‖z‖.
    reach = power * np.sqrt((records**2).sum(axis=1)).max() * (numbers.sum() + 2 * order) * pushed + WIDTHS * spread
    axis = np.linspace(-reach, reach, max(21, math.ceil(2 * reach / (NODES * sd)) + 1))

    def kernels(points, at):
        """Return, for each weight, its densities (m, nodes) at the nodes `at` after a step from points (m, d)."""
        centres = left * points + eta * power * (numbers * expit(-points @ records.T)) @ records
        return [np.exp(-((at - z[:, None]) ** 2) / (2 * sd**2)) / (sd * math.sqrt(2 * math.pi)) for z in centres.T]

    def stepped(weights, first, second=None):
        return weights @ first if second is None else first.T @ (weights[:, None] * second)

    points, weights = np.zeros((1, dimension)), np.ones(1)
    if count > 1:
        nodes = np.stack([grid.ravel() for grid in np.meshgrid(*[axis] * dimension, indexing="ij")], axis=-1)
        cell, between = (axis[1] - axis[0]) ** dimension, kernels(nodes, axis)
        weights = stepped(weights, *kernels(points, axis)).ravel() * cell
        for _ in range(count - 2):
            weights = stepped(weights, *between).ravel() * cell
        points = nodes
    return Steps(axis, dimension, lambda at: stepped(weights, *kernels(points, at)))
