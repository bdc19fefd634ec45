"""Privacy of draws from the posterior of a generalised linear model, and the settings that meet a budget.

The prior is w ~ N(0, (nβ)⁻¹ I). The bounds ‖x‖₂ ≤ c for the features and |y − E y| ≤ B for the residual are public,
with B = 1 for binary regression. Neighbours differ by substitution. All arguments broadcast. The formulas follow
Geumlek, Song and Chaudhuri (2017), sections 4 and 5.2.
"""

import math
from typing import Literal, get_args

import numpy as np
from scipy.special import lambertw

from privpost.models.base import check_range
from privpost.privacy.accounting.costs import pure_to_rdp, rdp_to_pure_epsilon
from privpost.privacy.checks import check_choice

# On ‖w‖ ≤ R a record's logistic log-likelihood lies in an interval of length cR, so the posterior's log-ratio is at
# most 2ρcR. The paper takes R = c/β and charges twice as much.
Charge = Literal["paper", "corrected_charge", "smallest_ball"]
CHARGES = get_args(Charge)
# κ = max x/(1 + e^x): at the mode, nβ‖w‖² = ρ Σ σ(−s_i) s_i ≤ ρnκ, so ‖w‖ ≤ √(ρκ/β) for all data.
KAPPA = float(lambertw(math.exp(-1)).real)


def posterior_rdp(order, n, prior_precision, power=1.0, feature_bound=1.0, residual_bound=1.0) -> np.ndarray:
    """Rényi DP parameter 2(ρcB)²λ/(nβ) of one exact draw from a posterior whose likelihood has the power ρ.

    The formula is theorem 16 for ρ = 1 and theorem 17 for ρ < 1.

    Args:
        order: λ ≥ 1.
        n: public number of records.
        prior_precision: β > 0, the prior's precision per record.
        power: power ρ of the likelihood, in (0, 1].
        feature_bound: bound c > 0 on the norm of the features.
        residual_bound: bound B > 0 on the residual.

    Raises:
        ValueError: an argument is outside its range.
    """
    check_range("[1, inf)", order=order, n=n)
    check_range("(0, inf)", prior_precision=prior_precision, feature_bound=feature_bound, residual_bound=residual_bound)
    check_range("(0, 1]", power=power)
    order, n, power = np.asarray(order, float), np.asarray(n, float), np.asarray(power, float)
    return 2 * (power * feature_bound * residual_bound) ** 2 * order / (n * np.asarray(prior_precision, float))


def concentrated_precision(order, epsilon, n, prior_precision, feature_bound=1.0, residual_bound=1.0) -> np.ndarray:
    """Smallest precision β ≥ β0 of the prior at which a posterior draw is (λ, ε)-Rényi DP (algorithm 4).

    The precision is max{2(cB)²λ/(nε), β0}. The other arguments and the errors are as in `posterior_rdp`.

    Args:
        epsilon: ε > 0.
        prior_precision: β0 > 0, the precision per record of the intended prior.
    """
    check_range("(0, inf)", epsilon=epsilon, prior_precision=prior_precision)
    at_unit_precision = posterior_rdp(order, n, 1.0, 1.0, feature_bound, residual_bound)
    return np.maximum(at_unit_precision / np.asarray(epsilon, float), prior_precision)


def diffused_power(order, epsilon, n, prior_precision, feature_bound=1.0, residual_bound=1.0) -> np.ndarray:
    """Largest power ρ ≤ 1 of the likelihood at which a posterior draw is (λ, ε)-Rényi DP (algorithm 5).

    The power is min{1, √(εnβ/(2(cB)²λ))}, for ε > 0. The other arguments and the errors are as in `posterior_rdp`.
    """
    check_range("(0, inf)", epsilon=epsilon)
    direct = posterior_rdp(order, n, prior_precision, 1.0, feature_bound, residual_bound)
    return np.minimum(1.0, np.sqrt(np.asarray(epsilon, float) / direct))


def ops_pure_epsilon(power, prior_precision, feature_bound=1.0, charge: str = "corrected_charge") -> np.ndarray:
    """Pure ε of an OPS draw: one posterior sample under a prior that is truncated to a ball.

    The charge "paper" is 4c²ρ/β. "corrected_charge" is 2c²ρ/β, as |log p(y|w,x) − log p(y'|w,x')| is at most c²/β on
    ‖w‖ ≤ c/β for logistic regression. "smallest_ball" is 2cρ√(ρκ/β) on the ball ‖w‖ ≤ √(ρκ/β), with κ as in `KAPPA`.

    Args:
        power: power ρ of the likelihood, in (0, 1].
        prior_precision: β > 0, the prior's precision per record.
        feature_bound: bound c > 0 on the norm of the features.
        charge: one of `CHARGES`.

    Raises:
        ValueError: an argument is outside its range.
    """
    check_choice("charge", charge, CHARGES)
    check_range("(0, inf)", prior_precision=prior_precision, feature_bound=feature_bound)
    check_range("(0, 1]", power=power)
    power = np.asarray(power, float)
    if charge == "smallest_ball":
        return 2 * feature_bound * power * ops_radius(power, prior_precision, feature_bound, charge)
    loss_range = np.square(feature_bound) / np.asarray(prior_precision, float)
    return (4.0 if charge == "paper" else 2.0) * power * loss_range


def ops_radius(power, prior_precision, feature_bound=1.0, charge: str = "corrected_charge") -> np.ndarray:
    """Radius of the ball to which an OPS draw is truncated: c/β, or √(ρκ/β) for the charge "smallest_ball".

    The ball of radius √(ρκ/β) contains the mode for all data. The arguments are as in `ops_pure_epsilon`.
    """
    if charge == "smallest_ball":
        return np.sqrt(np.asarray(power, float) * KAPPA / np.asarray(prior_precision, float))
    return np.asarray(feature_bound, float) / np.asarray(prior_precision, float)


def ops_power_at(epsilon, prior_precision, feature_bound=1.0, charge: str = "corrected_charge") -> np.ndarray:
    """Largest power ρ ≤ 1 at which an OPS draw is ε-DP. The other arguments are as in `ops_pure_epsilon`."""
    share = np.asarray(epsilon, float) / ops_pure_epsilon(1.0, prior_precision, feature_bound, charge)
    return np.minimum(1.0, share ** (2 / 3) if charge == "smallest_ball" else share)


def ops_rdp(order, power, prior_precision, feature_bound=1.0, charge: str = "corrected_charge") -> np.ndarray:
    """Rényi DP parameter of one OPS draw at order λ ≥ 1.

    For the charge "paper", the parameter is the pure ε at every order. For other charges, the parameter is what ε-DP
    implies (`pure_to_rdp`). The other arguments and the errors are as in `ops_pure_epsilon`.
    """
    check_range("[1, inf)", order=order)
    epsilon = ops_pure_epsilon(power, prior_precision, feature_bound, charge)
    if charge == "paper":
        return np.broadcast_arrays(epsilon, np.asarray(order, float))[0].copy()
    return pure_to_rdp(epsilon, order)


def ops_power(order, epsilon, prior_precision, feature_bound=1.0, charge: str = "corrected_charge") -> np.ndarray:
    """Largest power ρ ≤ 1 of the likelihood at which an OPS draw is charged at most ε at order λ.

    For the charge "paper", ρ is `ops_power_at` of ε > 0. For the other charges, ρ is `ops_power_at` of the largest pure
    ε that implies (λ, ε)-Rényi DP. The other arguments and the errors are as in `ops_rdp`.
    """
    check_range("[1, inf)", order=order)
    check_range("(0, inf)", epsilon=epsilon)
    order, epsilon = np.broadcast_arrays(np.asarray(order, float), np.asarray(epsilon, float))
    pure = epsilon if charge == "paper" else rdp_to_pure_epsilon(epsilon, order)
    return ops_power_at(pure, prior_precision, feature_bound, charge)


def langevin_mu(steps, step_size, curvature, change) -> np.ndarray:
    """μ of the Gaussian DP after k Langevin steps w ← w − η∇f + √(2η) Z.

    The start must not depend on the data. μ² = Δ² (η/2) (1 + C)/(1 − C) (1 − C^k)/(1 + C^k) with C = 1 − ηm (Feldman et
    al. 2018; Bok, Su and Altschuler 2024).

    Args:
        steps: number k ≥ 1 of steps.
        step_size: η > 0, at most 2/(M + m) if the curvature of f lies between m and M.
        curvature: smallest curvature m > 0 of f.
        change: bound Δ > 0 on the norm of the difference between the gradients of neighbours.

    Raises:
        ValueError: an argument is outside its range.
    """
    check_range("[1, inf)", steps=steps)
    check_range("(0, inf)", step_size=step_size, curvature=curvature, change=change)
    rate = -np.log1p(-np.asarray(step_size, float) * curvature)
    # (1 + C)/(1 − C) and (1 − C^k)/(1 + C^k) are hyperbolic in ln C.
    return change * np.sqrt(step_size / 2 * np.tanh(rate * steps / 2) / np.tanh(rate / 2))


def independence_chain_guarantee(epsilon, rejected, height, order=None) -> np.ndarray:
    """Pure or Rényi ε of the state after k steps of an independence Metropolis-Hastings chain with the target π.

    The density of the state with respect to π lies in [1 − a, 1 + a(H − 1)], where a = (1 − 1/M)^k. M bounds the
    density of π with respect to the law of the proposals, and H bounds the density of the start with respect to π. The
    pure cost is ε + ln[(1 + a(H − 1))/(1 − a)], and the Rényi cost is ε + λ/(λ − 1) ln(1 + a(H − 1)) − ln(1 − a).

    Args:
        epsilon: pure or Rényi ε of an exact draw from π.
        rejected: a in [0, 1), the larger of its values for the two neighbouring data sets.
        height: H ≥ 1, the larger of its values for the two neighbouring data sets.
        order: order λ > 1 of a Rényi guarantee; None for pure DP.

    Raises:
        ValueError: an argument is outside its range.
    """
    check_range("[0, 1)", rejected=rejected)
    check_range("[1, inf)", height=height)
    power = 1.0 if order is None else order / (order - 1)
    return epsilon + power * np.log1p(np.multiply(rejected, np.subtract(height, 1))) - np.log1p(-np.asarray(rejected))
