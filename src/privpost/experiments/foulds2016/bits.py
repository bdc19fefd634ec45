"""Helpers of studies on binary data: the two mechanisms of Foulds et al. (2016), and limits of relative efficiency."""

import math

from privpost.mechanisms.base import Mechanism
from privpost.mechanisms.choices.exponential import ExponentialMechanism
from privpost.mechanisms.noise.additive import AdditiveNoiseMechanism
from privpost.mechanisms.noise.laplace import LaplaceMechanism
from privpost.models.conjugate.beta_bernoulli import BetaBernoulli
from privpost.privacy.accounting.costs import Cost


def calibrated(method: str, config, n: int, epsilon: float) -> Mechanism:
    """Return the mechanism "laplace" or "ops" with the prior and a0 of a study, calibrated to ε-DP."""
    model, budget = BetaBernoulli(config.alpha, config.beta), Cost("pure", epsilon)
    if method == "laplace":
        return LaplaceMechanism.calibrate(model, n, budget, coordinates="all")
    return ExponentialMechanism.calibrate(model, n, budget, a0=config.a0)


def limit(mechanism: Mechanism | None, statistic: str) -> float:
    """Return the limit of the relative efficiency as n grows, or nan. No mechanism (None) means the true posterior."""
    # Additive noise whose law does not depend on n leaves the limit unchanged.
    if mechanism is None or isinstance(mechanism, AdditiveNoiseMechanism | ExponentialMechanism):
        if statistic == "mean":
            return 1.0
        return 1.0 + mechanism.temperature if isinstance(mechanism, ExponentialMechanism) else 2.0
    return math.nan
