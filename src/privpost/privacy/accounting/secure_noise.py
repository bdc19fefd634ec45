"""Finds the least discrete noise that a budget allows, by the privacy maps of the package opendp."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from privpost.distributions import noise
from privpost.privacy.accounting.approximate import gaussian_from_approximate, largest_within


def least(
    make: Callable[[float], Any], epsilon: float, delta: float | None, *, secure: bool, by_opendp: bool
) -> tuple[Any, float | None]:
    """Return the mechanism with the least noise that a budget allows, and the ε that opendp proves for it.

    The returned ε is None for simulated noise, for which nothing is proved.

    Args:
        make: function that returns the mechanism, given ε for Laplace noise, or σ for Gaussian noise.
        epsilon, delta: the budget; δ is None for Laplace noise.
        secure: whether opendp draws the noise.
        by_opendp: whether to take σ from the map of opendp instead of the exact σ of continuous noise.

    Raises:
        ValueError: the scale would be larger than 2^40.
        Exception: errors of opendp, which have no common type.
    """
    if delta is not None:
        sensitivity = math.nextafter(make(1.0).sensitivity, math.inf)
        mechanism = make((secure_sigma if by_opendp else analytic_sigma)(epsilon, delta, sensitivity))
        if not secure:
            return mechanism, None
        _check_scale(mechanism.sigma)
        return mechanism, noise.gaussian_epsilon(mechanism.sigma, sensitivity, delta)
    setting, mechanism = epsilon, make(epsilon)
    if not secure:
        return mechanism, None
    _check_scale(mechanism.scale)
    while (proved := noise.laplace_epsilon(mechanism.scale, round(mechanism.sensitivity))) > epsilon:
        setting = math.nextafter(setting, 0.0)
        mechanism = make(setting)
    return mechanism, proved


def _check_scale(scale: float) -> None:
    if scale > noise.LARGEST_SCALE:
        raise ValueError(f"the noise would have scale {scale:g}, beyond 2^40")


def analytic_sigma(epsilon: float, delta: float, sensitivity: float) -> float:
    """Return the smallest σ at which continuous Gaussian noise is (ε, δ)-DP (Balle and Wang 2018)."""
    with np.errstate(divide="ignore"):
        return gaussian_from_approximate(epsilon, delta) * sensitivity


def secure_sigma(epsilon: float, delta: float, sensitivity: float) -> float:
    """Return the smallest σ that opendp's privacy map allows. The map uses zero-concentrated DP.

    This σ is 1.03 to 1.14 times the `analytic_sigma` if δ is from 1e-12 to 1e-6 and ε is from 0.001 to 10. The factor
    is at most 1.52 if δ = 0.1.
    """
    analytic = analytic_sigma(epsilon, delta, sensitivity)
    # Larger scales would be refused later, after seconds of computation in opendp.
    _check_scale(analytic)
    # The search is for the ratio of the analytic σ to the secure σ, to a precision of 1e-6.
    return analytic / largest_within(
        lambda share: noise.gaussian_epsilon(analytic / share, sensitivity, delta) <= epsilon, 2.0**-6, 1.0, steps=22
    )
