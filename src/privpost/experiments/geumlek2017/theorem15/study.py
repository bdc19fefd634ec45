"""Theorem 15 of Geumlek et al. (2017) on binary data: neighbours that differ most, and convexity of the divergence."""

import itertools

import numpy as np

from privpost.evaluation.rows import columns, places
from privpost.experiments.ranges import ABOVE_ONE, ALPHA, BETA, WEIGHT, N
from privpost.lab.schema import Integer, Schema
from privpost.privacy.divergences.renyi import dirichlet_divergence

SETTINGS = Schema(
    alpha=ALPHA,
    beta=BETA,
    points=Integer(at_least=3, at_most=30, says="grid points for each count of the second posterior"),
    coefficient=WEIGHT,
    n=N,
    order=ABOVE_ONE,
)
TABLES = {
    "theorem15": {
        "at_ends": "largest divergence of the neighbours with 0 and 1, or n - 1 and n, successes [nats]",
        "inside": "largest divergence of all other neighbours [nats]",
        "convexity": "smallest relative excess of the mean of two divergences over the divergence at their midpoint "
        "[ratio]",
        "excess_pairs": "pairs of second posteriors compared with their midpoint [count]",
    },
}


def laws(config, counts) -> np.ndarray:
    """Return the beta parameters (..., 2) of diffused posteriors given counts (..., 2) of ones and zeros."""
    return np.array([config.alpha, config.beta]) + config.coefficient * np.asarray(counts, float)


def neighbours(config) -> tuple[float, float]:
    """Return two largest divergences between neighbours: at the ends of the range of counts, and elsewhere."""
    ones = np.arange(config.n + 1)
    counts = laws(config, np.stack([ones, config.n - ones], axis=-1))
    fewer, more = counts[:-1], counts[1:]
    up, down = (dirichlet_divergence(*pair, config.order) for pair in ((fewer, more), (more, fewer)))
    worst = np.maximum(up, down)
    return float(worst[[0, -1]].max()), float(worst[1:-1].max())


def convexity(config) -> tuple[float, int]:
    """Return the smallest relative convexity gap of the Rényi divergence D(P ‖ Q) in Q, and the number of pairs tried.

    P is the posterior without successes. For a pair of laws Q, the gap is the mean of both divergences less the
    divergence at the midpoint, as a share of the mean. The divergence is convex on the grid if no gap is negative.
    """
    axis = np.linspace(0, config.n, config.points)
    first = laws(config, [0, config.n])
    second = laws(config, list(itertools.product(axis, axis)))
    i, j = np.triu_indices(len(second), 1)
    values = dirichlet_divergence(first, second, config.order)
    finite = np.isfinite(values[i]) & np.isfinite(values[j])
    i, j = i[finite], j[finite]
    mean = (values[i] + values[j]) / 2
    half_way = dirichlet_divergence(first, (second[i] + second[j]) / 2, config.order)
    return float((1 - half_way / mean).min()), len(mean)


def simulate(config, streams, ledger) -> dict:
    """Return `found` (n, orders, 4): the results of `neighbours` and of `convexity`."""
    values = np.empty((len(config.n), len(config.order), 4))
    for at, point in places(config, "n", "order"):
        values[at] = *neighbours(point), *convexity(point)
    return {"found": values}


def tabulate(cells):
    """Yield one row per coefficient, n and order."""
    for cell in cells:
        for at, point in places(cell.config, "n", "order"):
            at_ends, inside, excess, pairs = cell.arrays["found"][at].tolist()
            row = {"at_ends": at_ends, "inside": inside, "convexity": excess, "excess_pairs": pairs}
            yield {**columns(point, "coefficient", "n", "order"), **row}
