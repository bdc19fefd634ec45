"""Calibration to one (ε, δ), by converted guarantees, for all mechanisms that serve a model."""

from functools import cache

from privpost import discovery
from privpost.discovery import serving
from privpost.experiments.discovered import Failed
from privpost.mechanisms.base import Mechanism
from privpost.privacy.accounting.approximate import largest_renyi_budget, pure_from_approximate
from privpost.privacy.accounting.costs import Cost

# Order at which Rényi mechanisms are calibrated. Any finite order would do, as the whole Rényi curve is converted.
ORDER = 2.0
# A mechanism takes part if it can meet one of these budgets.
BUDGETS = Cost("pure", 1.0), Cost("rdp", 1e6, order=ORDER)


@cache
def methods(model, **settings) -> set[str]:
    """Return the ids of all mechanisms that can serve a model, under pure or Rényi DP."""
    return set().union(*(serving(model, 10, budget, **settings) for budget in BUDGETS))


def left_out(model, **settings) -> dict[str, str]:
    """Return the reasons why mechanisms cannot serve a model, by the mechanisms' class names."""
    return discovery.left_out(model, 10, BUDGETS, **settings)


@cache
def converted(model, n: int, epsilon: float, delta: float, **settings) -> dict[str, Mechanism]:
    """Return all mechanisms that can serve a model, calibrated so that their guarantees imply (ε, δ), by method id.

    Pure mechanisms get the ε0 of `pure_from_approximate`. Rényi mechanisms get the largest budget at order 2 whose
    Rényi curve converts to at most ε (package dp-accounting). The direct posterior takes part if it is private enough.
    A mechanism whose curve cannot be computed is left out, with a line on standard error. `n` is the public number of
    records, and `settings` are options of the mechanisms.
    """
    budget = Cost("approximate", epsilon, delta=delta)
    mechanisms, failed = serving(model, n, Cost("pure", pure_from_approximate(epsilon, delta)), **settings), Failed()
    for method, kind in serving(model, n, Cost("rdp", 1e6, order=ORDER), **settings).items():
        if method in mechanisms:
            continue
        with failed.alone(method):
            if kind.calibrated is not None:
                mechanisms[method] = largest_renyi_budget(
                    lambda within, kind=kind: type(kind).calibrate(model, n, within, **kind.options),
                    epsilon, delta, ORDER,
                )  # fmt: skip
            elif kind.cost_in(budget).epsilon <= epsilon:
                mechanisms[method] = kind
    return mechanisms
