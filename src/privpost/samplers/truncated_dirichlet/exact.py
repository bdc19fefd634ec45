"""Exact draws from a Dirichlet distribution truncated to probabilities of at least a lower bound."""

import numpy as np


def sample(alpha, low, rng: np.random.Generator) -> np.ndarray:
    """Draw x ~ Dirichlet(α), shape (..., K), given x_i ≥ low for all i.

    Let α_K be the largest α. The other entries are proposed from Gamma(α_i, rate c) above `low`, and x_K is 1 minus
    their sum. The proposal is accepted with probability f(x_K) / max f, where f(x) = x^(α_K−1) e^(−cx). Draws are exact
    for every rate c.

    Args:
        alpha: concentrations α ≥ 1, shape (..., K), K ≥ 2.
        low: lower bound of every entry, 0 ≤ low < 1/K, broadcast against the leading axes.

    Raises:
        ValueError: an α below 1, fewer than two levels, or a bound outside its range.
    """
    return sample_counted(alpha, low, rng)[0]


def sample_counted(alpha, low, rng: np.random.Generator) -> tuple[np.ndarray, int]:
    """Return the draws of `sample` and the number of random variates used."""
    alpha = np.asarray(alpha, float)
    if alpha.ndim < 1 or alpha.shape[-1] < 2:
        raise ValueError(f"alpha has shape {alpha.shape}; it needs at least 2 levels on its last axis")
    if not np.all((alpha >= 1) & np.isfinite(alpha)):
        raise ValueError("alpha must be finite and >= 1")
    n_levels = alpha.shape[-1]
    low = np.broadcast_to(np.asarray(low, float), alpha.shape[:-1]).flatten()
    if not np.all((low >= 0) & (low * n_levels < 1)):
        raise ValueError(f"low must lie in [0, 1/{n_levels})")
    # Imported here and not above: loading the compiler takes longer than most commands.
    from privpost.samplers.truncated_dirichlet.kernels import draw_rows

    rows = np.ascontiguousarray(alpha.reshape(-1, n_levels))
    draws = np.empty_like(rows)
    variates = draw_rows(rows, low, rng, draws)
    return draws.reshape(alpha.shape), variates
