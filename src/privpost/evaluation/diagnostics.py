"""Convergence of Markov chains: rank-normalised split R-hat and effective sample sizes.

Vehtari, Gelman, Simpson, Carpenter and Bürkner (2021), "Rank-normalization, folding, and localization: an improved
R-hat", Bayesian Analysis 16(2), give the definitions.
"""

from typing import NamedTuple

import numpy as np
from scipy import fft
from scipy.special import ndtri

MINIMUM_CHAINS = 4
MINIMUM_DRAWS = 200
# Chains with a larger R-hat have not converged. The limit is loose because it must hold for hundreds of R-hats at once.
LARGEST_RHAT = 1.1
_TAIL_PROBABILITIES = (0.05, 0.95)


class Assessment(NamedTuple):
    """Worst convergence diagnostics over all quantities.

    Attributes:
        rhat_max: largest R-hat; inf if chains stay at different values, nan if unknown.
        ess_min: smallest effective sample size of a bulk or a tail; nan if one of these sizes is unknown.
        n_chains, n_draws: number of chains, and of draws per chain.
        reason: why a diagnostic is unknown, or an empty text.
    """

    rhat_max: float
    ess_min: float
    n_chains: int
    n_draws: int
    reason: str

    @property
    def agree(self) -> bool:
        """Whether R-hat is known and at most `LARGEST_RHAT`."""
        return bool(self.rhat_max <= LARGEST_RHAT)


def diagnose(draws: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the rank-normalised split R-hat, and the effective sample sizes of the bulk and of the tails.

    R-hat is the larger of two values: for the draws, and for their distances from the median. The bulk size is the
    effective sample size of the rank-normalised draws. The tail size is the smaller of the sizes for two indicators:
    draws up to the 5 % quantile, and draws up to the 95 % quantile.

    Args:
        draws: shape (n_draws, n_chains, ...), at least 4 draws.

    Returns:
        R-hat (near 1 for mixed chains), bulk size and tail size, each of shape (...); nan for constant draws.

    Raises:
        ValueError: there are too few draws, or a draw is not finite.
    """
    chains = _split(draws)
    scores = _normal_scores(chains)
    folded = np.abs(chains - np.median(chains, axis=(1, 2), keepdims=True))
    hat = np.maximum(_plain_rhat(scores), _plain_rhat(_normal_scores(folded)))
    quantiles = np.quantile(chains, _TAIL_PROBABILITIES, axis=(1, 2), keepdims=True)
    tail = np.minimum(*(_ess((chains <= quantile).astype(float)) for quantile in quantiles))
    return hat.reshape(draws.shape[2:]), _ess(scores).reshape(draws.shape[2:]), tail.reshape(draws.shape[2:])


def bulk_sizes(draws: np.ndarray) -> np.ndarray:
    """Return the bulk effective sample sizes (...) that `diagnose` returns."""
    return _ess(_normal_scores(_split(draws))).reshape(draws.shape[2:])


def assess(draws: np.ndarray) -> Assessment:
    """Return the worst diagnostics of chains, or the reason why the chains were not assessed.

    Chains are assessed if there are at least 4 chains of 200 draws. With many quantities, `rhat_max` and `ess_min` are
    extremes of noisy numbers. For 784 quantities and 4 chains of 200 independent draws, `rhat_max` lies between 1.010
    and 1.015, and `ess_min` between 370 and 500.

    Args:
        draws: shape (n_draws, n_chains, ...), burn-in removed.

    Raises:
        ValueError: draws have fewer than two axes.

    >>> assess(rng.normal(size=(1000, 4))).reason
    ''
    """
    if draws.ndim < 2:
        raise ValueError(f"draws must have shape (n_draws, n_chains, ...), got {draws.shape}")
    n_draws, n_chains = draws.shape[:2]
    reason = ""
    if n_chains < MINIMUM_CHAINS:
        reason = f"not assessed: {n_chains} chains, fewer than {MINIMUM_CHAINS}"
    elif n_draws < MINIMUM_DRAWS:
        reason = f"not assessed: {n_draws} draws per chain, fewer than {MINIMUM_DRAWS}"
    elif draws.size == 0:
        reason = "not assessed: no quantity"
    elif not np.isfinite(draws).all():
        reason = "not assessed: draws that are not finite"
    if reason:
        return Assessment(np.nan, np.nan, n_chains, n_draws, reason)
    hat, bulk, tail = map(np.atleast_1d, diagnose(draws))
    constant = np.isnan(hat)
    rhat_max = np.max(hat, initial=-np.inf, where=~constant)
    # If one quantity is constant, the chains may be known to disagree, but not to agree.
    if constant.any() and not rhat_max > LARGEST_RHAT:
        rhat_max = np.nan
    ess_min = np.min(np.minimum(bulk, tail))
    if constant.any():
        reason = "not assessed: a quantity is constant"
    elif np.isnan(ess_min):
        reason = "effective sample size not known: a quantity is constant in its tail"
    return Assessment(float(rhat_max), float(ess_min), n_chains, n_draws, reason)


def _split(draws: np.ndarray) -> np.ndarray:
    """Return half chains (quantities, 2 n_chains, n_draws // 2), without an odd middle draw."""
    if draws.ndim < 2 or draws.shape[0] < 4 or draws.shape[1] < 1:
        raise ValueError(f"draws must have shape (n_draws >= 4, n_chains >= 1, ...), got {draws.shape}")
    if not np.isfinite(draws).all():
        raise ValueError("draws must be finite")
    half = draws.shape[0] // 2
    halves = np.concatenate([draws[:half], draws[-half:]], axis=1).reshape(half, 2 * draws.shape[1], -1)
    return np.ascontiguousarray(halves.transpose(2, 1, 0), dtype=float)


def _normal_scores(chains: np.ndarray) -> np.ndarray:
    """Return normal quantiles of (rank − 3/8) / (S + 1/4) for S draws, with the average rank for ties."""
    from scipy.stats import rankdata

    pooled = chains.reshape(len(chains), -1)
    return ndtri((rankdata(pooled, axis=1) - 0.375) / (pooled.shape[1] + 0.25)).reshape(chains.shape)


def _variances(chains: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean variance within chains, and the pooled variance within and between chains."""
    n_draws = chains.shape[2]
    within = chains.var(axis=2, ddof=1).mean(axis=1)
    between = chains.mean(axis=2).var(axis=1, ddof=1)
    return within, within * (n_draws - 1) / n_draws + between


def _plain_rhat(chains: np.ndarray) -> np.ndarray:
    within, pooled = _variances(chains)
    # Rounding can make a zero variance positive; R-hat must be inf if chains are constant, nan if all draws are equal.
    within = np.where((chains.max(axis=2) == chains.min(axis=2)).all(axis=1), 0.0, within)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(_constant(chains), np.nan, np.sqrt(pooled / within))


def _constant(chains: np.ndarray) -> np.ndarray:
    """Return whether all draws of each quantity are equal."""
    # The variance cannot show this, because the mean is rounded.
    return chains.max(axis=(1, 2)) == chains.min(axis=(1, 2))


def _ess(chains: np.ndarray) -> np.ndarray:
    """Return the effective sample size, by Geyer's initial monotone sequence of autocorrelations."""
    _, n_chains, n_draws = chains.shape
    size = n_chains * n_draws
    within, pooled = _variances(chains)
    length = fft.next_fast_len(2 * n_draws - 1, real=True)
    spectrum = fft.rfft(chains - chains.mean(axis=2, keepdims=True), length, axis=2)
    power = (spectrum.real**2 + spectrum.imag**2).mean(axis=1)
    covariance = fft.irfft(power, length, axis=1)[:, :n_draws] / n_draws
    with np.errstate(divide="ignore", invalid="ignore"):
        correlation = 1 - (within[:, None] - covariance) / pooled[:, None]
    correlation[:, 0] = 1.0
    # The last three lags are averages of three products or fewer.
    n_pairs = max(1, (n_draws - 3) // 2)
    pairs = correlation[:, : 2 * n_pairs].reshape(-1, n_pairs, 2).sum(axis=2)
    positive = np.logical_and.accumulate(pairs > 0, axis=1)
    time = -1 + 2 * np.where(positive, np.minimum.accumulate(pairs, axis=1), 0.0).sum(axis=1)
    # Antithetic chains alternate in sign. So the first lag after the kept pairs is added if this lag is positive.
    beyond = np.minimum(2 * positive.sum(axis=1), n_draws - 1)
    time += np.maximum(np.take_along_axis(correlation, beyond[:, None], axis=1)[:, 0], 0.0)
    # Antithetic chains can have an effective size above the number S of draws. A value above S log10 S is noise.
    ess = size / np.maximum(time, 1 / np.log10(size))
    return np.where(_constant(chains), np.nan, ess)
