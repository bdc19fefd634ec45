"""Mechanisms for bits at one (ε, δ), by conversion of their guarantees or by their exact privacy curves."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from privpost import discovery
from privpost.discovery import serving
from privpost.mechanisms.base import Mechanism
from privpost.mechanisms.exponential import ExponentialMechanism
from privpost.mechanisms.gaussian import GaussianMechanism
from privpost.mechanisms.laplace import LaplaceMechanism
from privpost.mechanisms.posterior_sampling import PosteriorSampling
from privpost.models.beta_bernoulli import BetaBernoulli
from privpost.privacy.accounting import Cost
from privpost.privacy.approximate import (
    beta_curve,
    converted_epsilon,
    gaussian_from_approximate,
    laplace_from_approximate,
    largest_renyi_budget,
    largest_within,
    pure_from_approximate,
)

ACCOUNTINGS = ("converted", "exact")
# Order at which Rényi mechanisms are calibrated; their whole curve is converted, so that any finite one would do.
ORDER = 2.0


def methods(model, **settings) -> set[str]:
    """Ids of all mechanisms that can serve a model, under pure or Rényi DP."""
    budgets = Cost("pure", 1.0), Cost("rdp", 1e6, order=ORDER)
    return set().union(*(serving(model, 10, budget, **settings) for budget in budgets))


def converted(model: BetaBernoulli, n: int, epsilon: float, delta: float, a0: float) -> dict[str, Mechanism]:
    """Every mechanism that can serve bits, calibrated by what its stated guarantee implies at (ε, δ).

    Pure ones get the ε0 of `pure_from_approximate`, Rényi ones the largest budget at order 2 whose curve converts to at
    most ε (package dp-accounting). Noise goes on the count alone, as n is public.
    """
    settings = {"a0": a0, "coordinates": "free"}
    found = serving(model, n, Cost("pure", pure_from_approximate(epsilon, delta)), **settings)

    def at(method: str, budget: float) -> Mechanism | None:
        return serving(model, n, Cost("rdp", budget, order=ORDER), **settings).get(method)

    direct = at("direct", 1e6)
    for method in sorted(discovery.mechanisms().keys() - found.keys()):
        if method == "direct":
            if direct is not None and converted_epsilon(direct.rdp, delta) <= epsilon:
                found[method] = direct
            continue
        kind = at(method, 1.0)
        if kind is None or kind.notion != "rdp":
            continue
        calibrate = partial(_calibrate, kind, model, n)
        found[method] = largest_renyi_budget(calibrate, epsilon, delta, ORDER)
    return found


def _calibrate(kind: Mechanism, model, n: int, budget: Cost) -> Mechanism:
    return type(kind).calibrate(model, n, budget, **kind.options)


def exact(mechanism: Mechanism, epsilon: float, delta: float) -> Mechanism | None:
    """The mechanism of the same kind that just meets (ε, δ) by its exact privacy curve; None where that is unknown.

    Laplace and Gaussian noise on one number have theirs in closed form. The laws of posterior samples are beta
    distributions, so that theirs is the largest `beta_curve` over all neighbouring counts.
    """
    if isinstance(mechanism, LaplaceMechanism):
        return replace(mechanism, epsilon=laplace_from_approximate(epsilon, delta))
    if isinstance(mechanism, GaussianMechanism):
        return replace(mechanism, sigma=mechanism.sensitivity * gaussian_from_approximate(epsilon, delta))
    low, high = (mechanism.a0, 1 - mechanism.a0) if isinstance(mechanism, ExponentialMechanism) else (0.0, 1.0)
    if isinstance(mechanism, PosteriorSampling):
        name, smallest, largest = mechanism.calibrated, 1e-6, 1.0
    elif isinstance(mechanism, ExponentialMechanism):
        # Beyond 2Δ the temperature is 1 and the mechanism the same.
        name, smallest, largest = "epsilon", 1e-6, 2 * mechanism.sensitivity
    else:
        return None
    if name is None:
        return mechanism if largest_delta(mechanism, epsilon, low, high) <= delta else None
    value = largest_within(
        lambda value: largest_delta(replace(mechanism, **{name: value}), epsilon, low, high) <= delta,
        smallest,
        largest,
        steps=30,
    )
    return replace(mechanism, **{name: value})


def largest_delta(mechanism: Mechanism, epsilon: float, low: float, high: float) -> float:
    """δ(ε) of a mechanism that draws from a beta law: the maximum over all neighbouring counts, both ways."""
    successes = np.arange(mechanism.n + 1.0)
    laws = mechanism.posterior(np.stack([successes, mechanism.n - successes], axis=-1))
    both = beta_curve(laws[1:], laws[:-1], epsilon, low, high), beta_curve(laws[:-1], laws[1:], epsilon, low, high)
    return float(np.max(both))
