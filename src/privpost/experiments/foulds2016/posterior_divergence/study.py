"""KL divergence from the true posterior to the Laplace and the OPS posterior (Foulds et al. 2016, lemma 1)."""

import math
from functools import partial

import numpy as np
from scipy.special import xlog1py, xlogy

from privpost.distributions import truncated_beta
from privpost.evaluation.rows import columns, places
from privpost.evaluation.summaries import mean_and_sem
from privpost.experiments.foulds2016.bits import calibrated
from privpost.experiments.ranges import A0, ALPHA, BETA, EPSILON, METHOD, WITHOUT_POLE, N, P
from privpost.lab.schema import Choice, Integer, Schema
from privpost.mechanisms.choices.exponential import ExponentialMechanism
from privpost.models.conjugate.beta_bernoulli import BetaBernoulli
from privpost.privacy.accounting.costs import Cost
from privpost.privacy.divergences.renyi import dirichlet_divergence

SETTINGS = Schema(
    alpha=WITHOUT_POLE.means(ALPHA.says, ALPHA.unit),
    beta=WITHOUT_POLE.means(BETA.says, BETA.unit),
    p=P,
    a0=A0,
    quadrature_nodes=Integer(at_least=20, says="nodes of the quadrature"),
    method=Choice("laplace", "ops", says=METHOD),
    epsilon=EPSILON,
    n=N,
)
TABLES = {
    "posterior_divergence": {
        "kl_mean": "KL divergence from the true posterior, mean over trials [nats]",
        "kl_theory": "KL divergence that the paper's expansion gives [nats]",
    },
}
# The bulk of a density ends where the density is e^−50 times its maximum.
DEPTH = 50.0


def _log_kernel(theta, parameters):
    return xlogy(parameters[..., 0] - 1, theta) + xlog1py(parameters[..., 1] - 1, -theta)


def _edge(parameters, mode, end):
    """Return the point between mode and end where the log-density is DEPTH below its maximum, or else the end."""
    floor = _log_kernel(mode, parameters) - DEPTH
    inside, outside = mode.copy(), np.broadcast_to(end, mode.shape).copy()
    within = _log_kernel(outside, parameters) >= floor
    for _ in range(60):
        middle = (inside + outside) / 2
        above = _log_kernel(middle, parameters) >= floor
        inside, outside = np.where(above, middle, inside), np.where(above, outside, middle)
    return np.where(within, end, outside)


def truncated_kl(parameters_p, parameters_q, low: float, high: float, nodes: int) -> np.ndarray:
    """Return KL(P‖Q), shape (...), for beta distributions P and Q truncated to [low, high].

    The parameters (α, β) of P and of Q have shape (..., 2) and must be at least 1. The Gauss-Legendre quadrature has
    `nodes` nodes on either side of the mode of P.
    """
    p, q = np.broadcast_arrays(np.asarray(parameters_p, float), np.asarray(parameters_q, float))
    excess = p - 1
    total = excess.sum(axis=-1)
    mode = np.clip(np.where(total > 0, excess[..., 0] / np.where(total > 0, total, 1.0), 0.5), low, high)
    node, weight = np.polynomial.legendre.leggauss(nodes)
    divergence = np.zeros(mode.shape)
    for end in (low, high):
        edge = _edge(p, mode, end)
        half = (edge - mode)[..., None] / 2
        theta = np.clip(mode[..., None] + half * (node + 1), low, high)
        log_p = truncated_beta.log_density(theta, p[..., None, :], low, high)
        log_q = truncated_beta.log_density(theta, q[..., None, :], low, high)
        divergence += np.sum(np.abs(half) * weight * np.exp(log_p) * (log_p - log_q), axis=-1)
    return np.maximum(divergence, 0.0)


def ops_limit(temperature: float) -> float:
    """Return the limit ½(ln T + 1/T − 1) of KL(posterior ‖ OPS density) as n grows, for OPS at temperature T."""
    return (math.log(temperature) + 1 / temperature - 1) / 2


def laplace_first_order(scale: float, p: float, n: int) -> float:
    """Return the mean KL divergence to order 1/n, b²(p² + q²)/(npq), for Laplace noise of scale b and q = 1 − p."""
    return scale**2 * (p**2 + (1 - p) ** 2) / (n * p * (1 - p))


def simulate(config, streams, ledger) -> dict:
    """Return the KL divergence with its standard error (method, epsilon, n, 2), and `theory` (method, epsilon, n)."""
    model, p = BetaBernoulli(config.alpha, config.beta), config.p
    shape = (len(config.method), len(config.epsilon), len(config.n))
    kl, theory, opened = np.empty((*shape, 2)), np.empty(shape), {}
    for place, point in places(config, "method", "epsilon", "n"):
        account = f"{point.method}/epsilon={point.epsilon:g}/n={point.n}"
        make = partial(calibrated, point.method, config, point.n, point.epsilon)
        mechanism = ledger.open(account, Cost("pure", point.epsilon), make)
        if point.method == "laplace":
            theory[place] = laplace_first_order(mechanism.scale, p, point.n)
        else:
            theory[place] = ops_limit(mechanism.temperature)
        opened[place] = account, mechanism
    for place, (account, mechanism) in opened.items():
        n, values = mechanism.n, np.empty(config.trials)
        for block in streams.blocks():
            successes = streams("data", block.index, n=n).binomial(n, p, block.size).astype(float)
            if mechanism.releases == "statistics":
                statistics = np.stack([successes, n - successes], axis=-1)
                rng = streams("mechanism", block.index, method=mechanism.method, n=n)
                release = ledger.release(account, mechanism, statistics, rng, repeats=block.trials).values
                divergences = dirichlet_divergence(model.posterior(statistics), mechanism.naive_posterior(release), 1)
            else:
                divergences = _divergences(mechanism, successes, config.quadrature_nodes)
            values[block.trials] = divergences
        kl[place] = mean_and_sem(values)
    return {"kl": kl, "theory": theory}


def _divergences(mechanism: ExponentialMechanism, successes, nodes: int) -> np.ndarray:
    """Return KL(true posterior ‖ OPS density) for each number of successes."""
    # The divergence depends on the count alone, so it is computed once for each distinct count.
    counts, which = np.unique(successes, return_inverse=True)
    statistics = np.stack([counts, mechanism.n - counts], axis=-1)
    true = mechanism.model.posterior(statistics)
    return truncated_kl(true, mechanism.release_law(statistics), *mechanism.ends, nodes)[which]


def tabulate(cells):
    """Yield one row per method, p, epsilon and n: the KL divergence, its standard error and its theoretical value."""
    for cell in cells:
        for at, point in places(cell.config, "method", "epsilon", "n"):
            yield {
                **columns(point, "method", "p"),
                "a0": point.a0 if point.method == "ops" else None,
                **columns(point, "epsilon", "n"),
                "kl_mean": cell.arrays["kl"][at][0],
                "kl_sem": cell.arrays["kl"][at][1],
                "kl_theory": cell.arrays["theory"][at],
                "n_repeats": point.trials,
            }
