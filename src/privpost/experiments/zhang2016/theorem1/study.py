"""Exact mean loss of algorithm 1 of Zhang et al. (2016) on one node, as n grows, against the terms of its table 1.

Table 1 bounds KL(true ‖ released posterior) by O(mn ln n)(1 − exp(−nε/(2|I|))) + √(−O(mn ln n) ln δ), here with m = 1
parameter of |I| = 1 node.
"""

import math

import numpy as np

from privpost.evaluation.rows import columns, places
from privpost.experiments.ranges import ALPHA, BETA, DELTA, N
from privpost.lab.schema import Choice, Integer, Schema
from privpost.privacy.renyi import dirichlet_divergence

SETTINGS = Schema(
    alpha=ALPHA,
    beta=BETA,
    delta=DELTA,
    nodes=Integer(at_least=10, at_most=1000, says="nodes of the quadrature over counts between 0 and n"),
    epsilon_times=Choice("n", "n_squared", says="what ε falls with: n ε = 2, or n² ε = 1"),
    n=N,
)
TABLES = {
    "theorem1": {
        "epsilon": "ε of one release [nats]",
        "mean_loss": "mean KL divergence of the released posterior from the true one [nats]",
        "first_term": "first term of table 1, without a constant [nats]",
        "second_term": "second term of table 1, without a constant [nats]",
    },
}


def mean_loss(config, epsilon: float) -> float:
    """Return E KL for n/2 ones and zeros, each with Laplace noise of scale 2/ε and truncated to [0, n]."""
    half, scale = config.n / 2, 2 / epsilon
    node, weight = np.polynomial.legendre.leggauss(config.nodes)
    # Twice: the density has a kink at the true count.
    distance = half * (node + 1) / 2
    inner = half / 2 * weight * np.exp(-distance / scale) / (2 * scale)
    outside = math.exp(-half / scale) / 2
    values = np.concatenate([[0.0], half - distance, half + distance, [config.n]])
    chances = np.concatenate([[outside], inner, inner, [outside]])
    prior = np.array([config.alpha, config.beta])
    released = np.stack(np.meshgrid(values, values, indexing="ij"), axis=-1)
    losses = dirichlet_divergence(prior + half, prior + released, 1.0)
    return float(chances @ losses @ chances)


def simulate(config, streams, ledger) -> dict:
    """Return `loss` (n): an expectation in closed form and by quadrature; nothing is released."""
    return {"loss": np.array([mean_loss(point, budget(point)) for _, point in places(config, "n")])}


def budget(point) -> float:
    """Return ε at one n."""
    return 2 / point.n if point.epsilon_times == "n" else point.n**-2.0


def tabulate(cells):
    """Yield one row per rule for ε and n."""
    for cell in cells:
        for at, point in places(cell.config, "n"):
            epsilon, size = budget(point), point.n * math.log(point.n)
            yield {
                **columns(point, "epsilon_times", "n"),
                "epsilon": epsilon,
                "mean_loss": cell.arrays["loss"][at],
                "first_term": -size * math.expm1(-point.n * epsilon / 2),
                "second_term": math.sqrt(-size * math.log(point.delta)),
            }
