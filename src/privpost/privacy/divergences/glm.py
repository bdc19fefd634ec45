"""Rényi DP of sampling from the posterior of a generalised linear model, and the settings that meet a budget.

The prior is w ~ N(0, (nβ)⁻¹ I). Public bounds are ‖x‖₂ ≤ c for the features and |y − E y| ≤ B for the residual (B = 1
for binary regression). Neighbours differ by substitution. All arguments broadcast. All formulas use public quantities
only and follow Geumlek, Song and Chaudhuri (2017), sections 4 and 5.2.
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
# κ = max x/(1 + e^x): at the mode nβ‖w‖² = ρ Σ σ(−s_i) s_i ≤ ρnκ, so ‖w‖ ≤ √(ρκ/β) for all data.
KAPPA = float(lambertw(math.exp(-1)).real)


def posterior_rdp(order, n, prior_precision, power=1.0, feature_bound=1.0, residual_bound=1.0) -> np.ndarray:
    """Rényi DP parameter 2(ρcB)²λ/(nβ) of one exact draw from a posterior whose likelihood has the power ρ.

    This is theorem 16 for ρ = 1 (direct and concentrated posteriors) and theorem 17 for ρ < 1 (diffused posterior).

    Args:
        order: λ ≥ 1.
        n: public number of records.
        prior_precision: β > 0, the prior's precision per record.
        power: power ρ of the likelihood, in (0, 1].
        feature_bound, residual_bound: c > 0 and B > 0.

    Raises:
        ValueError: an argument is outside its range.
    """
    check_range("[1, inf)", order=order, n=n)
    check_range("(0, inf)", prior_precision=prior_precision, feature_bound=feature_bound, residual_bound=residual_bound)
    check_range("(0, 1]", power=power)
    order, n, power = np.asarray(order, float), np.asarray(n, float), np.asarray(power, float)
    return 2 * (power * feature_bound * residual_bound) ** 2 * order / (n * np.asarray(prior_precision, float))


def concentrated_precision(order, epsilon, n, prior_precision, feature_bound=1.0, residual_bound=1.0) -> np.ndarray:
    """Smallest precision β ≥ β0 at which a posterior draw is (λ, ε)-RDP: max{2(cB)²λ/(nε), β0} (algorithm 4).

    Args:
        order: λ ≥ 1.
        epsilon: ε > 0.
        n: public number of records.
        prior_precision: β0 > 0, the precision per record of the intended prior.
        feature_bound, residual_bound: c > 0 and B > 0.

    Raises:
        ValueError: an argument is outside its range.
    """
    check_range("(0, inf)", epsilon=epsilon, prior_precision=prior_precision)
    at_unit_precision = posterior_rdp(order, n, 1.0, 1.0, feature_bound, residual_bound)
    return np.maximum(at_unit_precision / np.asarray(epsilon, float), prior_precision)


def diffused_power(order, epsilon, n, prior_precision, feature_bound=1.0, residual_bound=1.0) -> np.ndarray:
    """Largest power ρ ≤ 1 of the likelihood at which a draw is (λ, ε)-RDP: min{1, √(εnβ/(2(cB)²λ))} (algorithm 5).

    With this power the draw is (λ', ελ'/λ)-RDP for every λ' ≥ 1 (see `posterior_rdp`).

    Arguments and errors are as in `concentrated_precision`, except that prior_precision is the prior's β itself.
    """
    check_range("(0, inf)", epsilon=epsilon)
    direct = posterior_rdp(order, n, prior_precision, 1.0, feature_bound, residual_bound)
    return np.minimum(1.0, np.sqrt(np.asarray(epsilon, float) / direct))


def ops_pure_epsilon(power, prior_precision, feature_bound=1.0, charge: str = "corrected_charge") -> np.ndarray:
    """Pure ε of one OPS draw, whose prior is truncated to a ball and whose likelihood has the power ρ.

    The charge "paper" is 4c²ρ/β. "corrected_charge" is 2c²ρ/β, as |log p(y|w,x) − log p(y'|w,x')| is at most c²/β on
    ‖w‖ ≤ c/β for logistic regression. "smallest_ball" is 2cρ√(ρκ/β) on ‖w‖ ≤ √(ρκ/β) (`ops_radius`).

    Args:
        power: power ρ of the likelihood, in (0, 1].
        prior_precision: β > 0.
        feature_bound: c > 0.
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
    """Radius of the ball of OPS: c/β or, for "smallest_ball", √(ρκ/β), the least one that holds the mode for all data.

    Arguments and errors are as in `ops_pure_epsilon`.
    """
    if charge == "smallest_ball":
        return np.sqrt(np.asarray(power, float) * KAPPA / np.asarray(prior_precision, float))
    return np.asarray(feature_bound, float) / np.asarray(prior_precision, float)


def ops_power_at(epsilon, prior_precision, feature_bound=1.0, charge: str = "corrected_charge") -> np.ndarray:
    """Largest power ρ ≤ 1 at which an OPS draw is ε-DP. The other arguments are as in `ops_pure_epsilon`."""
    share = np.asarray(epsilon, float) / ops_pure_epsilon(1.0, prior_precision, feature_bound, charge)
    return np.minimum(1.0, share ** (2 / 3) if charge == "smallest_ball" else share)


def ops_rdp(order, power, prior_precision, feature_bound=1.0, charge: str = "corrected_charge") -> np.ndarray:
    """Rényi DP parameter of one OPS draw at order λ.

    The charge "paper" is the pure ε at every order. The other charges are what ε-DP implies at λ (`pure_to_rdp`).

    The order is λ ≥ 1. The other arguments and the errors are as in `ops_pure_epsilon`.
    """
    check_range("[1, inf)", order=order)
    epsilon = ops_pure_epsilon(power, prior_precision, feature_bound, charge)
    if charge == "paper":
        return np.broadcast_arrays(epsilon, np.asarray(order, float))[0].copy()
    return pure_to_rdp(epsilon, order)


def ops_power(order, epsilon, prior_precision, feature_bound=1.0, charge: str = "corrected_charge") -> np.ndarray:
    """Largest power ρ ≤ 1 of the likelihood at which an OPS draw is charged at most ε at order λ.

    For the charge "paper", ρ is min{1, εβ/(4c²)} at every order. For the other charges, ρ is `ops_power_at` of ε₀, the
    largest pure ε that implies (λ, ε)-RDP (`rdp_to_pure_epsilon`). For "corrected_charge", ρ is min{1, ε₀β/(2c²)}.

    Args:
        order: λ ≥ 1.
        epsilon: ε > 0.
        prior_precision: β > 0.
        feature_bound: c > 0.
        charge: one of `CHARGES`.

    Raises:
        ValueError: an argument is outside its range.
    """
    check_range("[1, inf)", order=order)
    check_range("(0, inf)", epsilon=epsilon)
    order, epsilon = np.broadcast_arrays(np.asarray(order, float), np.asarray(epsilon, float))
    pure = epsilon if charge == "paper" else rdp_to_pure_epsilon(epsilon, order)
    return ops_power_at(pure, prior_precision, feature_bound, charge)


def langevin_mu(steps, step_size, curvature, change) -> np.ndarray:
    """μ of the Gaussian DP after k steps w ← w − η∇f + √(2η) Z from a start that does not depend on the data.

    μ² = Δ² (η/2) (1 + C)/(1 − C) (1 − C^k)/(1 + C^k) with C = 1 − ηm, and μ² ≤ Δ²/m for every k (Feldman et al. 2018;
    Bok, Su and Altschuler 2024). A change of w made j steps before the end has shrunk by the factor Cʲ.

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
    """Pure ε, or Rényi ε at an order, of the state after k steps of an independence Metropolis-Hastings chain.

    Let π be the target, q the law of the proposals with π/q ≤ M, and H a bound on the density of the start with respect
    to π. A step is then π/M + (1 − 1/M)R with a reversible
    kernel R. The density of the state with respect to π lies in [1 − a, 1 + a(H − 1)] for a = (1 − 1/M)^k. The pure
    cost is ε + ln[(1 + a(H − 1))/(1 − a)], and the Rényi cost is ε + λ/(λ − 1) ln(1 + a(H − 1)) − ln(1 − a).

    Args:
        epsilon: pure or Rényi ε of an exact draw from π.
        rejected: the larger a, in [0, 1), of the two neighbouring data sets.
        height: the larger H ≥ 1 of the two neighbouring data sets.
        order: order λ > 1 of a Rényi guarantee; None for pure DP.

    Raises:
        ValueError: an argument is outside its range.
    """
    check_range("[0, 1)", rejected=rejected)
    check_range("[1, inf)", height=height)
    power = 1.0 if order is None else order / (order - 1)
    return epsilon + power * np.log1p(np.multiply(rejected, np.subtract(height, 1))) - np.log1p(-np.asarray(rejected))
