"""RDP curves of Dirichlet-categorical posterior sampling (Geumlek et al. 2017, appendix)."""

from __future__ import annotations

import numpy as np
from scipy.special import polygamma

from privpost.mechanisms.posterior_sampling import ConcentratedPosterior, DiffusedPosterior, DirectPosterior
from privpost.models.dirichlet_categorical import DirichletCategorical
from privpost.pipeline.schema import Choice, Integer, Real, Schema

SETTINGS = Schema(
    total_concentration=Real(above=0),
    n=Integer(at_least=1),
    categories=Integer(at_least=2, at_most=50),
    prior=Choice("symmetric", "asymmetric"),
    method=Choice("diffused", "concentrated", "direct"),
    coefficient=Real(above=0, at_most=1),
    supremum=Choice("paper", "exact"),
    order=Real(above=1),
)


def concentration(prior: str, categories: int, total: float) -> np.ndarray:
    """Return the prior's d concentrations, which add up to `total`: equal, or proportional to 1, ..., d."""
    shares = np.ones(categories) if prior == "symmetric" else np.arange(1, categories + 1, dtype=float)
    return total * shares / shares.sum()


def upper_bound(order, smallest: float, r: float) -> np.ndarray:
    """Return a closed-form bound on the exact supremum of the diffused mechanism, inf where it says nothing.

    0.5 λ Δ₂² ψ₁(α_min − (λ−1) Δ∞), with Δ₂² = 2r², Δ∞ = r: second-order Taylor expansion of the log-partition
    function, its curvature bounded by the trigamma function at the smallest concentration that is reached.
    """
    reached = smallest - (np.asarray(order, float) - 1) * r
    return np.where(reached > 0, order * r**2 * polygamma(1, np.where(reached > 0, reached, 1.0)), np.inf)


def simulate(config, streams, ledger) -> dict:
    """Return `epsilon` (priors, methods, coefficients, suprema, orders) and `smallest` (priors,); nothing is released.

    The direct posterior has no coefficient: its curves are NaN except at coefficient 1.
    """
    shape = tuple(map(len, (config.prior, config.method, config.coefficient, config.supremum, config.order)))
    epsilon = np.full(shape, np.nan)
    smallest = np.empty(len(config.prior))
    for i, prior in enumerate(config.prior):
        alpha = concentration(prior, config.categories, config.total_concentration)
        smallest[i] = alpha.min()
        model = DirichletCategorical(tuple(alpha))
        for k, coefficient in enumerate(config.coefficient):
            for m, supremum in enumerate(config.supremum):
                common = {"supremum": supremum}
                mechanisms = {
                    "diffused": DiffusedPosterior(model, config.n, config.order[0], coefficient, **common),
                    "concentrated": ConcentratedPosterior(model, config.n, config.order[0], coefficient, **common),
                    "direct": DirectPosterior(model, config.n, config.order[0], **common),
                }
                for j, method in enumerate(config.method):
                    if method != "direct" or coefficient == 1:
                        epsilon[i, j, k, m] = mechanisms[method].rdp(config.order)
    return {"epsilon": epsilon, "smallest": smallest}


def tabulate(cells):
    """Return one row per prior, number of categories, method, coefficient, supremum and order.

    `bound` is the closed-form upper bound on the exact supremum of the diffused mechanism, empty for other rows.
    """
    import pandas as pd

    frames = []
    for cell in cells:
        config = cell.config
        names = ["prior", "method", "coefficient", "supremum", "order"]
        index = pd.MultiIndex.from_product([getattr(config, name) for name in names], names=names)
        frame = pd.DataFrame({"epsilon": cell.arrays["epsilon"].ravel()}, index=index).reset_index()
        frame["categories"] = config.categories
        smallest = frame.prior.map(dict(zip(config.prior, cell.arrays["smallest"], strict=True)))
        frame["asymptote"] = 1 + smallest / frame.coefficient
        bound = [upper_bound(o, a, r) for o, a, r in zip(frame.order, smallest, frame.coefficient, strict=True)]
        frame["bound"] = np.where((frame.method == "diffused") & (frame.supremum == "exact"), np.array(bound), np.nan)
        frames.append(frame.dropna(subset="epsilon"))
    columns = ["method", "coefficient", "order", "epsilon", "supremum", "categories", "prior", "asymptote", "bound"]
    return pd.concat(frames, ignore_index=True)[columns]
