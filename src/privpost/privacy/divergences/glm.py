"""Rényi DP of sampling from a generalised linear model's posterior, and the settings that meet a budget.

Prior w ~ N(0, (nβ)⁻¹ I), public bounds ‖x‖₂ ≤ c on the features and B on the residual |y − E y| (1 for binary
regression), neighbours: substitution. All formulas are in public quantities, and all arguments broadcast. Geumlek, Song
and Chaudhuri (2017), sections 4 and 5.2.
"""

import math
from typing import Literal, get_args

import numpy as np
from scipy.special import lambertw

from privpost.models.base import check_range
from privpost.privacy.accounting.costs import pure_to_rdp, rdp_to_pure_epsilon
from privpost.privacy.checks import check_choice

# On ‖w‖ ≤ R a record's logistic log-likelihood lies in an interval of length cR, so the posterior's log-ratio is at
# most 2ρcR. The paper, with R = c/β, charges twice as much.
Charge = Literal["paper", "corrected_charge", "smallest_ball"]
CHARGES = get_args(Charge)
# κ = max x/(1 + e^x): at the mode nβ‖w‖² = ρ Σ σ(−s_i) s_i ≤ ρnκ, so that ‖w‖ ≤ √(ρκ/β), whatever the data.
KAPPA = float(lambertw(math.exp(-1)).real)


def posterior_rdp(order, n, prior_precision, power=1.0, feature_bound=1.0, residual_bound=1.0) -> np.ndarray:
    """Rényi DP parameter of one exact draw from a posterior with the likelihood to the power ρ: 2(ρcB)²λ/(nβ).

    Theorem 16 for ρ = 1 (direct and concentrated posterior), theorem 17 for ρ < 1 (diffused).

    Args:
        order: λ ≥ 1.
        n: public number of records.
        prior_precision: β > 0, the prior's precision per record.
        power: ρ in (0, 1].
        feature_bound, residual_bound: c > 0 and B > 0.

    Raises:
        ValueError: an argument outside its range.
    """
    check_range("[1, inf)", order=order, n=n)
    check_range("(0, inf)", prior_precision=prior_precision, feature_bound=feature_bound, residual_bound=residual_bound)
    check_range("(0, 1]", power=power)
    order, n, power = np.asarray(order, float), np.asarray(n, float), np.asarray(power, float)
    return 2 * (power * feature_bound * residual_bound) ** 2 * order / (n * np.asarray(prior_precision, float))


def concentrated_precision(order, epsilon, n, prior_precision, feature_bound=1.0, residual_bound=1.0) -> np.ndarray:
    """Smallest β ≥ β0 at which a posterior draw is (λ, ε)-RDP: max{2(cB)²λ/(nε), β0} (algorithm 4).

    Args:
        order: λ ≥ 1.
        epsilon: ε > 0.
        n: public number of records.
        prior_precision: β0 > 0, the precision per record of the intended prior.
        feature_bound, residual_bound: c > 0 and B > 0.

    Raises:
        ValueError: an argument outside its range.
    """
    check_range("(0, inf)", epsilon=epsilon, prior_precision=prior_precision)
    at_unit_precision = posterior_rdp(order, n, 1.0, 1.0, feature_bound, residual_bound)
    return np.maximum(at_unit_precision / np.asarray(epsilon, float), prior_precision)


def diffused_power(order, epsilon, n, prior_precision, feature_bound=1.0, residual_bound=1.0) -> np.ndarray:
    """Largest power ρ ≤ 1 of the likelihood at which a draw is (λ, ε)-RDP: min{1, √(εnβ/(2(cB)²λ))} (algorithm 5).

    The draw is then (λ', ελ'/λ)-RDP for every λ' ≥ 1: see `posterior_rdp` with this power.

    Arguments and errors as in `concentrated_precision`, with prior_precision the β of the prior.
    """
    check_range("(0, inf)", epsilon=epsilon)
    direct = posterior_rdp(order, n, prior_precision, 1.0, feature_bound, residual_bound)
    return np.minimum(1.0, np.sqrt(np.asarray(epsilon, float) / direct))


def ops_pure_epsilon(power, prior_precision, feature_bound=1.0, charge: str = "corrected_charge") -> np.ndarray:
    """Pure ε of one OPS draw: the prior is truncated to a ball, and the likelihood has the power ρ.

    `charge="paper"`: 4c²ρ/β. `"corrected_charge"`: 2c²ρ/β, since on ‖w‖ ≤ c/β |log p(y|w,x) − log p(y'|w,x')| is at
    most c²/β for logistic regression. `"smallest_ball"`: 2cρ√(ρκ/β) on ‖w‖ ≤ √(ρκ/β) (`ops_radius`).

    Args:
        power: ρ in (0, 1].
        prior_precision: β > 0.
        feature_bound: c > 0.
        charge: one of `CHARGES`.

    Raises:
        ValueError: an argument outside its range.
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
    """Radius of the ball of OPS: c/β, or √(ρκ/β), the smallest radius that always contains the mode.

    Arguments and errors as in `ops_pure_epsilon`.
    """
    if charge == "smallest_ball":
        return np.sqrt(np.asarray(power, float) * KAPPA / np.asarray(prior_precision, float))
    return np.asarray(feature_bound, float) / np.asarray(prior_precision, float)


def ops_power_at(epsilon, prior_precision, feature_bound=1.0, charge: str = "corrected_charge") -> np.ndarray:
    """Largest power ρ ≤ 1 at which the pure ε of OPS is at most ε; arguments and errors as in `ops_pure_epsilon`."""
    share = np.asarray(epsilon, float) / ops_pure_epsilon(1.0, prior_precision, feature_bound, charge)
    return np.minimum(1.0, share ** (2 / 3) if charge == "smallest_ball" else share)


def ops_rdp(order, power, prior_precision, feature_bound=1.0, charge: str = "corrected_charge") -> np.ndarray:
    """Rényi DP parameter of one OPS draw at order λ.

    `charge="paper"` charges the pure ε at every order; the others charge what ε-DP implies at λ (`pure_to_rdp`).

    Arguments and errors as in `ops_pure_epsilon`, with order λ ≥ 1.
    """
    check_range("[1, inf)", order=order)
    epsilon = ops_pure_epsilon(power, prior_precision, feature_bound, charge)
    if charge == "paper":
        return np.broadcast_arrays(epsilon, np.asarray(order, float))[0].copy()
    return pure_to_rdp(epsilon, order)


def ops_power(order, epsilon, prior_precision, feature_bound=1.0, charge: str = "corrected_charge") -> np.ndarray:
    """Largest power ρ ≤ 1 of the likelihood at which an OPS draw is charged at most ε at order λ.

    `charge="paper"`: min{1, εβ/(4c²)} at every order. The others: `ops_power_at` of the largest pure guarantee ε₀ that
    is (λ, ε)-RDP (`rdp_to_pure_epsilon`), such as min{1, ε₀β/(2c²)}.

    Args:
        order: λ ≥ 1.
        epsilon: ε > 0.
        prior_precision: β > 0.
        feature_bound: c > 0.
        charge: one of `CHARGES`.

    Raises:
        ValueError: an argument outside its range.
    """
    check_range("[1, inf)", order=order)
    check_range("(0, inf)", epsilon=epsilon)
    order, epsilon = np.broadcast_arrays(np.asarray(order, float), np.asarray(epsilon, float))
    pure = epsilon if charge == "paper" else rdp_to_pure_epsilon(epsilon, order)
    return ops_power_at(pure, prior_precision, feature_bound, charge)


def langevin_mu(steps, step_size, curvature, change) -> np.ndarray:
    """μ of the Gaussian DP after k noisy gradient steps w ← w − η∇f + √(2η) Z from a start without data.

    μ² = Δ² (η/2) (1 + C)/(1 − C) (1 − C^k)/(1 + C^k), C = 1 − ηm, at most Δ²/m for every k (Feldman et al. 2018;
    Bok, Su and Altschuler 2024): a change j steps before the end has shrunk by Cʲ.

    Args:
        steps: k ≥ 1.
        step_size: η > 0, at most 2/(M + m) for f of curvature between m and M.
        curvature: m > 0.
        change: Δ > 0, bound on the norm by which neighbours' gradients differ.

    Raises:
        ValueError: an argument outside its range.
    """
    check_range("[1, inf)", steps=steps)
    check_range("(0, inf)", step_size=step_size, curvature=curvature, change=change)
    rate = -np.log1p(-np.asarray(step_size, float) * curvature)
    # (1 + C)/(1 − C) and (1 − C^k)/(1 + C^k) are hyperbolic in ln C.
    return change * np.sqrt(step_size / 2 * np.tanh(rate * steps / 2) / np.tanh(rate / 2))


def independence_chain_guarantee(epsilon, rejected, height, order=None) -> np.ndarray:
    """Pure ε, or at an order the Rényi ε, of the state of an independence chain after k steps.

    The chain accepts proposals q for π with π/q ≤ M, so that its step is π/M + (1 − 1/M)R with R reversible, and the
    density of its state with respect to π lies in [1 − a, 1 + a(H − 1)], a = (1 − 1/M)^k. That costs
    ε + ln[(1 + a(H − 1))/(1 − a)], or ε + λ/(λ − 1) ln(1 + a(H − 1)) − ln(1 − a).

    Args:
        epsilon: pure or Rényi ε of an exact draw from π.
        rejected: a in [0, 1), the larger of the two data sets'.
        height: H ≥ 1, largest density of the start with respect to π, the larger of the two data sets'.
        order: λ > 1 of a Rényi guarantee.

    Raises:
        ValueError: an argument outside its range.
    """
    check_range("[0, 1)", rejected=rejected)
    check_range("[1, inf)", height=height)
    power = 1.0 if order is None else order / (order - 1)
    return epsilon + power * np.log1p(np.multiply(rejected, np.subtract(height, 1))) - np.log1p(-np.asarray(rejected))
