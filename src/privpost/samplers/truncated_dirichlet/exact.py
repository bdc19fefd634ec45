"""Dirichlet distribution truncated to probabilities of at least a lower bound: exact draws for any number of levels."""

import numpy as np


def sample(alpha, low, rng: np.random.Generator) -> np.ndarray:
    """Draw x ~ Dirichlet(α) given x_i ≥ low for all i, exactly and once per leading index.

    All entries but the one with the largest α are proposed from Gamma(α_i, rate c) truncated at `low`, with c such
    that the means sum to about 1. The remaining entry x_K is 1 less their sum, and the proposal is accepted with
    probability f(x_K) / max f, f(x) = x^(α_K−1) e^(−cx). A proposal ends as soon as too little is left for x_K. Any c
    gives exact draws; c affects only the share of accepted proposals. If all α are 1, the law is uniform and is drawn
    without rejection.

    Args:
        alpha: α ≥ 1, shape (..., K), K ≥ 2.
        low: lower bound of every entry, 0 ≤ low < 1/K, broadcast against the leading axes.

    Returns:
        Draws of shape (..., K), summing to 1 up to rounding.

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
    low = np.broadcast_to(np.asarray(low, float), alpha.shape[:-1]).ravel()
    if not np.all((low >= 0) & (low * n_levels < 1)):
        raise ValueError(f"low must lie in [0, 1/{n_levels})")
    # Imported here and not above: loading the compiler takes longer than most commands.
    from privpost.samplers.truncated_dirichlet.kernels import draw_rows

    rows = np.ascontiguousarray(alpha.reshape(-1, n_levels))
    draws = np.empty_like(rows)
    variates = draw_rows(rows, np.ascontiguousarray(low), rng, draws)
    return draws.reshape(alpha.shape), variates
