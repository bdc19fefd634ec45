"""Convergence of Markov chains: rank-normalised split R-hat and effective sample sizes.

All of it follows Vehtari, Gelman, Simpson, Carpenter and Bürkner (2021), "Rank-normalization, folding, and
localization: an improved R-hat", Bayesian Analysis 16(2).
"""

from typing import NamedTuple

import numpy as np
from scipy import fft
from scipy.special import ndtri

MINIMUM_CHAINS = 4
MINIMUM_DRAWS = 200
# Chains with a larger R-hat have not converged. The largest of several hundred R-hats exceeds a typical one.
LARGEST_RHAT = 1.1
_TAIL_PROBABILITIES = (0.05, 0.95)


class Assessment(NamedTuple):
    """Worst diagnostics over all quantities, and the `reason` where one is not known, else "".

    `rhat_max` is inf if no chain moves and their values differ. It is nan, which is no agreement, where chains
    cannot be compared, and where a quantity never changes and the others agree. `ess_min` is the smallest bulk or tail
    effective sample size, nan where one of them is not known.
    """

    rhat_max: float
    ess_min: float
    n_chains: int
    n_draws: int
    reason: str

    @property
    def agree(self) -> bool:
        """Whether the chains are known to agree: R-hat is at most `LARGEST_RHAT`."""
        return bool(self.rhat_max <= LARGEST_RHAT)


def diagnose(draws: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rank-normalised split R-hat, and the effective sample sizes of the draws' bulk and of their tails.

    R-hat is the larger of two: of the draws, and of their distances from the median. The bulk's sample size is the
    rank-normalised draws' and shows how well their centre is known. The tails' is the smaller of two: for the shares of
    draws up to the 5 % and up to the 95 % quantile.

    Args:
        draws: shape (n_draws, n_chains, ...), at least 4 draws.

    Returns:
        Three arrays of shape (...): R-hat near 1 for mixed chains, and two numbers of draws; nan for constant draws.

    Raises:
        ValueError: too few draws or a draw that is not finite.
    """
    chains = _split(draws)
    scores = _normal_scores(chains)
    folded = np.abs(chains - np.median(chains, axis=(1, 2), keepdims=True))
    hat = np.maximum(_plain_rhat(scores), _plain_rhat(_normal_scores(folded)))
    quantiles = np.quantile(chains, _TAIL_PROBABILITIES, axis=(1, 2), keepdims=True)
    tail = np.minimum(*(_ess((chains <= quantile).astype(float)) for quantile in quantiles))
    return hat.reshape(draws.shape[2:]), _ess(scores).reshape(draws.shape[2:]), tail.reshape(draws.shape[2:])


def bulk_sizes(draws: np.ndarray) -> np.ndarray:
    """The effective sample sizes of the draws' bulk alone, arguments and errors as of `diagnose`; shape (...)."""
    return _ess(_normal_scores(_split(draws))).reshape(draws.shape[2:])


def assess(draws: np.ndarray) -> Assessment:
    """Assess the chains, or say why that cannot be done: fewer than 4 chains, fewer than 200 draws, no variation.

    What shows that chains disagree is kept, whatever else is not known.

    With many quantities both are extremes of noisy numbers: 4 chains of 200 independent draws of 784 quantities have
    `rhat_max` from 1.010 to 1.015 and `ess_min` from 370 to 500 out of 800.

    Args:
        draws: shape (n_draws, n_chains, ...), burn-in removed.

    Raises:
        ValueError: fewer than two axes.

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
    # Only disagreement is known for certain where one quantity is not known.
    if constant.any() and not rhat_max > LARGEST_RHAT:
        rhat_max = np.nan
    ess_min = np.min(np.minimum(bulk, tail))
    if constant.any():
        reason = "not assessed: a quantity is constant"
    elif np.isnan(ess_min):
        reason = "effective sample size not known: a quantity is constant in its tail"
    return Assessment(float(rhat_max), float(ess_min), n_chains, n_draws, reason)


def _split(draws: np.ndarray) -> np.ndarray:
    """Halves of the chains, shape (quantities, 2 n_chains, n_draws // 2), without the middle one of an odd number."""
    if draws.ndim < 2 or draws.shape[0] < 4 or draws.shape[1] < 1:
        raise ValueError(f"draws must have shape (n_draws >= 4, n_chains >= 1, ...), got {draws.shape}")
    if not np.isfinite(draws).all():
        raise ValueError("draws must be finite")
    half = draws.shape[0] // 2
    halves = np.concatenate([draws[:half], draws[-half:]], axis=1).reshape(half, 2 * draws.shape[1], -1)
    return np.ascontiguousarray(halves.transpose(2, 1, 0), dtype=float)


def _normal_scores(chains: np.ndarray) -> np.ndarray:
    """Normal quantiles of (rank - 3/8) / (S + 1/4), with the average rank for ties."""
    from scipy.stats import rankdata

    pooled = chains.reshape(len(chains), -1)
    return ndtri((rankdata(pooled, axis=1) - 0.375) / (pooled.shape[1] + 0.25)).reshape(chains.shape)


def _variances(chains: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean variance within chains, and the overestimate that also includes the variance between chains."""
    n_draws = chains.shape[2]
    within = chains.var(axis=2, ddof=1).mean(axis=1)
    between = chains.mean(axis=2).var(axis=1, ddof=1)
    return within, within * (n_draws - 1) / n_draws + between


def _plain_rhat(chains: np.ndarray) -> np.ndarray:
    within, pooled = _variances(chains)
    # R-hat is infinite for draws that differ only between chains, and nan for constant draws; variances are rounded.
    within = np.where((chains.max(axis=2) == chains.min(axis=2)).all(axis=1), 0.0, within)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(_constant(chains), np.nan, np.sqrt(pooled / within))


def _constant(chains: np.ndarray) -> np.ndarray:
    """Whether all draws of a quantity are the same; a variance can't tell, as the mean is rounded."""
    return chains.max(axis=(1, 2)) == chains.min(axis=(1, 2))


def _ess(chains: np.ndarray) -> np.ndarray:
    """Effective sample size by Geyer's initial monotone sequence of the chains' combined autocorrelation."""
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
    # The first lag beyond the kept pairs belongs to the sum if it is positive: antithetic chains alternate in sign.
    beyond = np.minimum(2 * positive.sum(axis=1), n_draws - 1)
    time += np.maximum(np.take_along_axis(correlation, beyond[:, None], axis=1)[:, 0], 0.0)
    # Antithetic chains have an effective size above S, but beyond S log10 S it is noise.
    ess = size / np.maximum(time, 1 / np.log10(size))
    return np.where(_constant(chains), np.nan, ess)
