"""Privacy of a Metropolis chain's state after some steps, by exact computation (Foulds et al. 2016, proposition 3)."""

import itertools
from typing import NamedTuple

import numpy as np
from scipy.special import log_softmax

from privpost.mechanisms.choices.exponential import ExponentialMechanism
from privpost.models.conjugate.beta_bernoulli import BetaBernoulli
from privpost.privacy.divergences.glm import independence_chain_guarantee

CHAINS = ("independence", "random walk")
# The mode depends on the data. A chain that starts there and stops soon may reveal more than an exact draw.
STARTS = ("uniform", "mode")
# The first fields of `Compared`, and the bound on an independence chain's cost (`independence_chain_guarantee`).
COLUMNS = ("exact_cost", "distance", "delta", "cost", "cost_bound")


def posteriors(mechanism: ExponentialMechanism, grid: int) -> np.ndarray:
    """Return the OPS probabilities (n + 1, grid) of equally spaced θ in [a0, 1 − a0], for 0 to n successes."""
    theta, successes = np.linspace(*mechanism.ends, grid), np.arange(mechanism.n + 1)
    parameters = mechanism.release_law(np.stack([successes, mechanism.n - successes], axis=-1)) - 1
    return np.exp(log_softmax(parameters @ np.log([theta, 1 - theta]), axis=1))


def kernels(laws: np.ndarray, chain: str) -> np.ndarray:
    """Return Metropolis transition matrices (..., grid, grid) for target laws (..., grid) and one of `CHAINS`."""
    size = laws.shape[-1]
    steps = (np.eye(size, k=1) + np.eye(size, k=-1)) / 2
    proposal = np.full((size, size), 1 / size) if chain == "independence" else steps
    accepted = proposal * np.minimum(1, laws[..., None, :] / laws[..., :, None])
    return accepted + np.eye(size) * (1 - accepted.sum(axis=-1, keepdims=True))


class Compared(NamedTuple):
    """The largest losses and distances of a chain's state, over data sets or pairs of neighbours."""

    exact_cost: float  # pure ε of an exact draw
    distance: float  # total variation distance of the state from an exact draw
    delta: float  # smallest δ at which the state is (ε, δ)-DP with ε = exact_cost
    cost: float  # pure ε of the state
    distance_there: float  # largest distance on the two neighbours with this pure ε


def compared(states: np.ndarray, laws: np.ndarray, pairs: np.ndarray) -> Compared:
    """Compare laws of chains' states and of exact draws, both (data sets, outcomes), for neighbours `pairs` (2, k)."""
    # An outcome that neither of two neighbours reaches loses no privacy.
    with np.errstate(divide="ignore", invalid="ignore"):
        exact, lost = (np.nanmax(np.abs(np.diff(np.log(p)[pairs], axis=0)[0]), axis=1) for p in (laws, states))
    distances, ratio = np.abs(states - laws).sum(axis=1) / 2, np.exp(exact.max())
    first, second = states[pairs]
    delta = max(np.maximum(p - ratio * q, 0).sum(axis=1).max() for p, q in ((first, second), (second, first)))
    there = distances[pairs[:, lost.argmax()]].max()
    return Compared(exact.max(), distances.max(), delta, lost.max(), there)


def losses(laws: np.ndarray, chain: str, start: str, steps: int) -> tuple[float, ...]:
    """Return the values of `COLUMNS` for a chain's state after `steps` steps."""
    size, successes = laws.shape[-1], np.arange(len(laws))
    starts = np.full(laws.shape, 1 / size) if start == "uniform" else np.eye(size)[laws.argmax(axis=1)]
    states = (starts[:, None] @ np.linalg.matrix_power(kernels(laws, chain), steps))[:, 0]
    exact, distance, delta, cost, _ = compared(states, laws, np.array([successes[:-1], successes[1:]]))
    # Proposals q are uniform, so π/q ≤ M = size · max π.
    rejected = max(0.0, 1 - 1 / (size * laws.max())) ** steps
    bound = np.nan
    if chain == CHAINS[0]:
        # The bound is infinite if a possible start has probability 0 in floating point.
        height = np.divide(starts, laws, out=np.where(starts > 0, np.inf, 0.0), where=laws > 0).max()
        bound = independence_chain_guarantee(exact, rejected, height) if height < np.inf else np.inf
    return exact, distance, delta, cost, float(bound)


def axes(config) -> dict:
    """Return the labels of one ε's rows, by column: kinds of chains, kinds of starts, and numbers of steps."""
    return {"chain": CHAINS, "start": STARTS, "steps": config.steps}


def simulate(config) -> np.ndarray:
    """Return the losses (epsilons, rows, columns) at every ε, chain, start and number of steps."""
    model, by_epsilon = BetaBernoulli(config.alpha, config.beta), []
    for epsilon in config.epsilons:
        laws = posteriors(ExponentialMechanism(model, config.records, epsilon, a0=config.a0[0]), config.states)
        by_epsilon.append([losses(laws, *case) for case in itertools.product(*axes(config).values())])
    return np.array(by_epsilon)
