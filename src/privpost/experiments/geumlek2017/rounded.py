"""Privacy and error of posterior draws that are rounded down to b binary digits (figure 1 of Geumlek et al. 2017)."""

import math

import numpy as np
from scipy.special import betaln, logsumexp

from privpost.distributions import truncated_beta
from privpost.mechanisms.draws.posterior import PosteriorDraw

# Quadrature nodes in a cell, which is an interval [k/2^bits, (k+1)/2^bits) of rounding.
NODES = 8
# Number of cells at either end in which a density is not close to a polynomial.
ENDS = 64


def log_masses(parameters: np.ndarray, bits: int) -> np.ndarray:
    """Return the log-probabilities (laws, 2^bits) of rounding cells under beta laws."""
    size = 2**bits
    node, weight = np.polynomial.legendre.leggauss(NODES)
    inner = np.arange(ENDS, size - ENDS)
    masses = np.empty((len(parameters), size))
    if inner.size:
        theta = (inner[:, None] + (node + 1) / 2) / size
        steps = np.stack([np.log(theta), np.log1p(-theta)])
        for law, (a, b) in zip(masses, parameters, strict=True):
            density = np.tensordot([a - 1, b - 1], steps, axes=1)
            top = density.max(axis=-1)
            total = np.exp(density - top[:, None]) @ weight
            law[ENDS : size - ENDS] = np.log(total) + top - betaln(a, b) - math.log(2 * size)
    outer = np.setdiff1d(np.arange(size), inner)
    masses[:, outer] = truncated_beta.log_mass(parameters[:, None], outer / size, (outer + 1) / size)
    return masses


def coarser(masses: np.ndarray) -> np.ndarray:
    """Return the log-masses (laws, size / 2) of cells that are twice as wide."""
    return np.logaddexp(masses[:, ::2], masses[:, 1::2])


def largest_divergences(masses: np.ndarray, orders) -> np.ndarray:
    """Return the largest Rényi divergences (orders,) between neighbours, at each order λ > 1.

    `masses` has the laws for 0, 1, ..., n successes. Adjacent laws belong to neighbours. The order may be inf.
    """
    worst = np.zeros(len(orders))
    for first, second in zip(masses[1:], masses[:-1], strict=True):
        ratio = first - second
        for p, sign in ((first, 1.0), (second, -1.0)):
            divergences = [
                np.max(sign * ratio) if math.isinf(order) else logsumexp(p + (order - 1) * sign * ratio) / (order - 1)
                for order in orders
            ]
            worst = np.maximum(worst, divergences)
    return worst


def errors(masses: np.ndarray, mechanism: PosteriorDraw, parameters: np.ndarray) -> float:
    """Return the largest factor by which rounding to midpoints raises a law's root mean squared error."""
    size = masses.shape[1]
    middle = (np.arange(size) + 0.5) / size
    mean, variance = mechanism.model.mean(parameters), mechanism.model.variance(parameters)
    squared = np.exp(masses) @ middle**2 - 2 * mean * (np.exp(masses) @ middle) + mean**2
    return float(np.sqrt(squared / variance).max())


def curves(mechanism: PosteriorDraw, bits: list[int], orders) -> tuple[np.ndarray, np.ndarray]:
    """Return Rényi ε (bits, orders) and error factors (bits,) of rounded draws. The numbers of bits must ascend."""
    successes = np.arange(mechanism.n + 1.0)
    parameters = mechanism.release_law(np.stack([successes, mechanism.n - successes], axis=-1))
    epsilon, error = np.empty((len(bits), len(orders))), np.empty(len(bits))
    masses = log_masses(parameters, bits[-1])
    for width in range(bits[-1], bits[0] - 1, -1):
        if width in bits:
            place = bits.index(width)
            epsilon[place] = largest_divergences(masses, orders)
            error[place] = errors(masses, mechanism, parameters)
        masses = coarser(masses)
    return epsilon, error
