"""Exact mean loss of algorithm 1 of Zhang et al. (2016) on one node as n grows, against the terms of their table 1.

Table 1 bounds the loss KL(true ‖ released posterior) by O(mn ln n)(1 − exp(−nε/(2|I|))) + √(−O(mn ln n) ln δ). Here
there is m = 1 parameter of |I| = 1 node.
"""

import itertools
import math

import numpy as np

from privpost.privacy.divergences.renyi import dirichlet_divergence

# Rules by which ε falls as n grows. The first is n ε = 2, the least that the refined bound asks for. The other is
# n² ε = 1.
RULES = {"n": lambda n: 2 / n, "n_squared": lambda n: n**-2.0}


def mean_loss(prior, n: int, epsilon: float, nodes: int) -> float:
    """Return the mean KL from the true to the released posterior for n/2 ones and n/2 zeros.

    Both counts get Laplace noise of scale 2/ε and are clipped to [0, n]. `prior` is (α, β). `nodes` is the number of
    quadrature nodes on each side of the true count.
    """
    half, scale = n / 2, 2 / epsilon
    node, weight = np.polynomial.legendre.leggauss(nodes)
    # One quadrature rule on each side of the true count, where the density has a kink.
    distance = half * (node + 1) / 2
    inner = half / 2 * weight * np.exp(-distance / scale) / (2 * scale)
    outside = math.exp(-half / scale) / 2
    values = np.concatenate([[0.0], half - distance, half + distance, [n]])
    chances = np.concatenate([[outside], inner, inner, [outside]])
    released = np.stack(np.meshgrid(values, values, indexing="ij"), axis=-1)
    losses = dirichlet_divergence(np.array(prior) + half, np.array(prior) + released, 1.0)
    return float(chances @ losses @ chances)


def rows(config):
    """Yield one row per rule for ε and per n: the mean loss, and the terms of table 1's bound without constants."""
    for (rule, epsilon_at), n in itertools.product(RULES.items(), config.loss_sizes):
        epsilon, size = epsilon_at(n), n * math.log(n)
        yield {
            "epsilon_times": rule,
            "n": n,
            "epsilon": epsilon,
            "mean_loss": mean_loss((config.alpha, config.beta), n, epsilon, config.loss_nodes),
            "first_term": -size * math.expm1(-n * epsilon / 2),
            "second_term": math.sqrt(-size * math.log(config.loss_delta)),
        }
