"""Dirichlet distribution truncated to probabilities of at least a lower bound: exact draws for any number of levels."""

from __future__ import annotations

import numpy as np
from scipy.special import gammaincc, gammaln

# Tries per row and round are limited, so that a round never needs much more memory than the first.
_MOST_TRIES = 64


def sample(alpha, low, rng: np.random.Generator) -> np.ndarray:
    """One exact draw per leading index of x ~ Dirichlet(α) given x_i ≥ low for all i.

    All entries but the one with the largest α are proposed from Gamma(α_i, rate c) truncated at `low`, with c such
    that the means sum to about 1; the last one is what is left to 1, and the proposal is accepted with probability
    f(x_K) / max f, f(x) = x^(α_K−1) e^(−cx). Any c is exact; c only sets the share of accepted proposals. Where all
    α are 1 the draw is a shifted uniform one.

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
    """The draws of `sample`, and the number of variates that a proposal at a time takes for them."""
    alpha = np.asarray(alpha, float)
    if alpha.ndim < 1 or alpha.shape[-1] < 2:
        raise ValueError(f"alpha has shape {alpha.shape}; it needs at least 2 levels on its last axis")
    if not np.all((alpha >= 1) & np.isfinite(alpha)):
        raise ValueError("alpha must be finite and >= 1")
    n_levels = alpha.shape[-1]
    low = np.broadcast_to(np.asarray(low, float), alpha.shape[:-1]).ravel()
    if not np.all((low >= 0) & (low * n_levels < 1)):
        raise ValueError(f"low must lie in [0, 1/{n_levels})")
    rows = alpha.reshape(-1, n_levels)
    draws = np.empty_like(rows)
    flat = np.all(rows == 1, axis=1)
    variates = int(flat.sum()) * n_levels
    if flat.any():
        exponentials = rng.standard_exponential((int(flat.sum()), n_levels))
        shares = exponentials / exponentials.sum(axis=1, keepdims=True)
        draws[flat] = low[flat, None] + (1 - n_levels * low[flat, None]) * shares
    pending = np.flatnonzero(~flat)
    if pending.size:
        draws[pending], taken = _rejection(rows[pending], low[pending], rng)
        variates += taken
    return draws.reshape(alpha.shape), variates


def _rejection(alpha, low, rng) -> tuple[np.ndarray, int]:
    n_rows, n_levels = alpha.shape
    everyone = np.arange(n_rows)
    largest = alpha.argmax(axis=1)
    rate = _rate(alpha, low)
    others = alpha.copy()
    # The entry that is left out is drawn too, so that the rows stay rectangular.
    others[everyone, largest] = 1.0
    power = alpha[everyone, largest] - 1
    mode = np.clip(power / rate, low, 1 - (n_levels - 1) * low)
    # ln f at its maximum; power > 0, since the largest α exceeds 1, and so mode > 0.
    peak = power * np.log(mode) - rate * mode
    threshold = (rate * low)[:, None]
    start = np.where(others == 1, threshold, 0.0)
    draws = np.empty_like(alpha)
    pending, variates = everyone, 0
    while pending.size:
        tries = min(_MOST_TRIES, max(1, n_rows // pending.size))
        row = np.repeat(pending, tries)
        proposal = _truncated_gamma(others[row], start[row], threshold[row], rng)
        proposal /= rate[row, None]
        proposal[np.arange(row.size), largest[row]] = 0.0
        rest = 1 - proposal.sum(axis=1)
        inside = rest >= low[row]
        log_f = power[row] * np.log(np.where(inside, rest, 1.0)) - rate[row] * rest
        accepted = inside & (-rng.standard_exponential(row.size) <= log_f - peak[row])
        proposal[np.arange(row.size), largest[row]] = rest
        accepted = accepted.reshape(-1, tries)
        done = accepted.any(axis=1)
        first = accepted.argmax(axis=1)
        # Tries after the first accepted one are a matter of vectorising, not of the method.
        variates += int(np.where(done, first + 1, tries).sum()) * n_levels
        draws[pending[done]] = proposal.reshape(-1, tries, n_levels)[done, first[done]]
        pending = pending[~done]
    return draws, variates


def _rate(alpha, low) -> np.ndarray:
    """The rate c at which the means of the truncated gammas sum to about 1, shape (rows,).

    The mean of Gamma(α, c) beyond `low` is (α + h)/c with h = t^α e^(−t) / Γ(α, t), t = c low.
    """
    total = alpha.sum(axis=1)
    rate = total / (1 - 0.5 * alpha.shape[1] * low)
    for _ in range(3):
        rate = total + _hazard(alpha, rate * low).sum(axis=1)
    return rate


def _hazard(alpha, t) -> np.ndarray:
    """h = t^α e^(−t) / Γ(α, t) for α of shape (rows, K) and t of shape (rows,).

    For small t by t (t/(1+t))^(α−1), exact at α = 1 and α = 2 and much cheaper.
    """
    small = (t > 0) & (t < 2)
    if small.all():
        return _small_hazard(alpha, t)
    hazard = np.zeros_like(alpha)
    if small.any():
        hazard[small] = _small_hazard(alpha[small], t[small])
    large = t >= 2
    if large.any():
        shape, beyond = alpha[large], t[large, None]
        tail = gammaincc(shape, beyond)
        log_density = shape * np.log(beyond) - beyond - gammaln(shape)
        with np.errstate(divide="ignore", over="ignore"):
            exact = np.exp(log_density - np.log(tail))
        # Far in the tail the mass underflows; there the density's logarithm falls almost linearly.
        hazard[large] = np.where(tail > 1e-290, exact, np.maximum(beyond - shape + 1, 0))
    return hazard


def _small_hazard(alpha, t) -> np.ndarray:
    below = t[:, None]
    return below * np.exp((alpha - 1) * np.log(below / (1 + below)))


def _truncated_gamma(alpha, start, threshold, rng) -> np.ndarray:
    """Gamma(α, 1) variates beyond a threshold per row, exact by rejection.

    `alpha` ≥ 1 and `start` are (rows, K); `start` is the threshold where α = 1, whose tail is a shifted exponential,
    and 0 elsewhere; `threshold` is (rows, 1).
    """
    draws = rng.standard_gamma(alpha)
    draws += start
    again = np.nonzero(draws < threshold)
    if again[0].size:
        draws[again] = _tail(alpha[again], threshold[again[0], 0], rng)
    return draws


def _tail(alpha, threshold, rng) -> np.ndarray:
    """Gamma(α, 1) variates beyond thresholds, α > 1 and thresholds of shape (n,)."""
    draws = np.empty(alpha.size)
    # Beyond the mean the tail is near an exponential one; below it most untruncated draws are good.
    far = threshold > alpha
    pending = np.flatnonzero(far)
    while pending.size:
        power, begin = alpha[pending] - 1, threshold[pending]
        # The exponential that is tangent to the density's logarithm at the threshold.
        excess = rng.standard_exponential(pending.size) / (begin - power)
        draws[pending] = begin * (1 + excess)
        accept = -rng.standard_exponential(pending.size) <= power * (np.log1p(excess) - excess)
        pending = pending[~accept]
    pending = np.flatnonzero(~far)
    while pending.size:
        draws[pending] = rng.standard_gamma(alpha[pending])
        pending = pending[draws[pending] < threshold[pending]]
    return draws
