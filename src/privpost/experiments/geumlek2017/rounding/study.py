"""Privacy and error of a posterior draw of bits that is rounded down to b bits, for figure 1 of Geumlek et al. 2017."""

import math

import numpy as np
from scipy.special import betaln, logsumexp

from privpost.distributions import truncated_beta
from privpost.evaluation.rows import columns, places
from privpost.experiments.ranges import ABOVE_ONE, ALPHA, BETA, METHOD, WEIGHT, N
from privpost.lab.schema import Choice, Integer, Schema
from privpost.mechanisms.posterior_sampling import PosteriorDraw
from privpost.models.beta_bernoulli import BetaBernoulli

SETTINGS = Schema(
    alpha=ALPHA,
    beta=BETA,
    n=N,
    coefficient=WEIGHT,
    method=Choice("diffused", "concentrated", "direct", says=METHOD),
    bits=Integer(at_least=1, at_most=16, says="binary digits of the draw after the point", unit="bits"),
    order=ABOVE_ONE,
)
TABLES = {
    "rounding": {
        "ideal": "ε of the draw without rounding [nats]",
        "error_ratio": "error of the rounded draw, as a multiple of the ideal draw's [ratio]",
    },
}
# Quadrature nodes of a cell.
NODES = 8
# Cells at either end in which a density is not close to a polynomial.
ENDS = 64


def log_masses(parameters: np.ndarray, bits: int) -> np.ndarray:
    """Return ln P(k/2^bits ≤ θ < (k+1)/2^bits) of beta laws, (laws, 2^bits), accurate where the masses underflow.

    Gauss-Legendre quadrature is used inside, the incomplete beta function near both ends.
    """
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
    """Return the log-masses with one bit fewer, (laws, size / 2)."""
    return np.logaddexp(masses[:, ::2], masses[:, 1::2])


def largest_divergences(masses: np.ndarray, orders) -> np.ndarray:
    """Return the largest Rényi divergence of neighbours at each order, shape (orders,).

    Args:
        masses: log-masses of the laws for 0, 1, ..., n successes; adjacent ones are neighbours.
        orders: λ > 1; inf is max-divergence.
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
    """Return how much rounding to midpoints raises the root mean squared distance from the mean, for the worst law."""
    size = masses.shape[1]
    middle = (np.arange(size) + 0.5) / size
    mean, variance = mechanism.model.mean(parameters), mechanism.model.variance(parameters)
    squared = np.exp(masses) @ middle**2 - 2 * mean * (np.exp(masses) @ middle) + mean**2
    return float(np.sqrt(squared / variance).max())


def simulate(config, streams, ledger) -> dict:
    """Return `epsilon` (methods, bits, orders + 1), the last order infinite, `ideal` without rounding, `error_ratio`.

    Nothing is released. The direct posterior has no coefficient: it is NaN except in the cell of coefficient 1.
    """
    orders, bits = [*config.order, math.inf], sorted(config.bits)
    shape = len(config.method), len(bits)
    epsilon, error = np.full((*shape, len(orders)), np.nan), np.full(shape, np.nan)
    ideal = np.full((shape[0], len(orders)), np.nan)
    for i, method in enumerate(config.method):
        if (method == "direct") is not (config.coefficient == 1):
            continue
        model = BetaBernoulli(config.alpha, config.beta)
        mechanism = PosteriorDraw(model, config.n, 2.0, config.coefficient, weighting=method)
        successes = np.arange(config.n + 1.0)
        parameters = mechanism.release_law(np.stack([successes, config.n - successes], axis=-1))
        ideal[i] = [*mechanism.rdp(np.array(config.order)), math.inf]
        masses = log_masses(parameters, bits[-1])
        for width in range(bits[-1], bits[0] - 1, -1):
            if width in bits:
                place = bits.index(width)
                epsilon[i, place] = largest_divergences(masses, orders)
                error[i, place] = errors(masses, mechanism, parameters)
            masses = coarser(masses)
    return {"epsilon": epsilon, "ideal": ideal, "error_ratio": error}


def tabulate(cells):
    """Yield one row per method, coefficient, bits and order; `ideal` is ε without rounding, or inf."""
    for cell in cells:
        axes = {"bits": sorted(cell.config.bits), "order": [*cell.config.order, math.inf]}
        for (i, j, k), point in places(cell.config, "method", "bits", "order", **axes):
            if not np.isnan(epsilon := cell.arrays["epsilon"][i, j, k]):
                yield {
                    **columns(point, "method", "coefficient", "bits", "order"),
                    "epsilon": epsilon,
                    "ideal": cell.arrays["ideal"][i, k],
                    "error_ratio": cell.arrays["error_ratio"][i, j],
                    "asymptote": 1 + min(point.alpha, point.beta) / point.coefficient,
                }
