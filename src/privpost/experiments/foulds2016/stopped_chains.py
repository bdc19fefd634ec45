"""Privacy of a Metropolis chain's state after a number of steps, computed (Foulds et al. 2016, proposition 3)."""

import itertools

import numpy as np
from scipy.special import log_softmax

from privpost.mechanisms.exponential import ExponentialMechanism
from privpost.models.beta_bernoulli import BetaBernoulli
from privpost.privacy.glm import independence_chain_guarantee

CHAINS = ("independence", "random walk")
# The second one depends on the data: before the chain converges its state may tell more than a draw.
STARTS = ("uniform", "mode")
# Pure ε of the exact draw; total variation ½‖P − P'‖₁ of the state from it; the smallest δ at which the state is
# (ε, δ)-DP at that ε; the state's pure ε, and its bound for an independence chain (`independence_chain_guarantee`).
COLUMNS = ("exact_cost", "distance", "delta", "cost", "cost_bound")


def posteriors(mechanism: ExponentialMechanism, grid: int) -> np.ndarray:
    """OPS's laws (n + 1, grid) on equally spaced θ in [a0, 1 − a0], by the number of successes."""
    theta, successes = np.linspace(*mechanism.ends, grid), np.arange(mechanism.n + 1)
    parameters = mechanism.release_law(np.stack([successes, mechanism.n - successes], axis=-1)) - 1
    return np.exp(log_softmax(parameters @ np.log([theta, 1 - theta]), axis=1))


def kernels(laws: np.ndarray, chain: str) -> np.ndarray:
    """Metropolis kernels (..., grid, grid) of laws (..., grid): proposals uniform, or one of the two neighbours."""
    size = laws.shape[-1]
    steps = (np.eye(size, k=1) + np.eye(size, k=-1)) / 2
    proposal = np.full((size, size), 1 / size) if chain == "independence" else steps
    accepted = proposal * np.minimum(1, laws[..., None, :] / laws[..., :, None])
    return accepted + np.eye(size) * (1 - accepted.sum(axis=-1, keepdims=True))


def losses(laws: np.ndarray, chain: str, start: str, steps: int) -> tuple[float, ...]:
    """What the state costs after some steps (`COLUMNS`), the largest over neighbours."""
    size = laws.shape[-1]
    starts = np.full(laws.shape, 1 / size) if start == "uniform" else np.eye(size)[laws.argmax(axis=1)]
    states = (starts[:, None] @ np.linalg.matrix_power(kernels(laws, chain), steps))[:, 0]
    # Where neither of two states can be, nothing is lost.
    with np.errstate(divide="ignore", invalid="ignore"):
        exact, cost = (np.nanmax(np.abs(np.diff(np.log(each), axis=0))) for each in (laws, states))
    pairs = np.concatenate([[states[:-1], states[1:]], [states[1:], states[:-1]]], axis=1)
    # A proposal is uniform, so that π/q ≤ M = size · max π.
    rejected = max(0.0, 1 - 1 / (size * laws.max())) ** steps
    bound = np.nan
    if chain == CHAINS[0]:
        # A law that vanishes in floating point where a chain may start has no bound.
        height = np.divide(starts, laws, out=np.where(starts > 0, np.inf, 0.0), where=laws > 0).max()
        bound = independence_chain_guarantee(exact, rejected, height) if height < np.inf else np.inf
    distance = np.abs(states - laws).sum(axis=1).max() / 2
    delta = np.maximum(pairs[0] - np.exp(exact) * pairs[1], 0).sum(axis=1).max()
    return exact, distance, delta, cost, float(bound)


def simulate(config) -> np.ndarray:
    """Return the losses at every ε, chain, start and number of steps, shape (epsilons, rows, columns)."""
    model, by_epsilon = BetaBernoulli(config.alpha, config.beta), []
    for epsilon in config.epsilons:
        laws = posteriors(ExponentialMechanism(model, config.records, epsilon, a0=config.a0[0]), config.states)
        by_epsilon.append([losses(laws, *case) for case in itertools.product(CHAINS, STARTS, config.steps)])
    return np.array(by_epsilon)


def tabulate(config, stopped: np.ndarray):
    """Return one row per ε, chain, start and number of steps."""
    import pandas as pd

    names = ["epsilon", "chain", "start", "steps"]
    index = pd.MultiIndex.from_product([config.epsilons, CHAINS, STARTS, config.steps], names=names)
    return pd.DataFrame(stopped.reshape(-1, len(COLUMNS)), index, COLUMNS).reset_index()
