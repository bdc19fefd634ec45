"""RDP curves of Dirichlet-categorical posterior sampling (Geumlek et al. 2017, appendix)."""

import numpy as np
from scipy.special import polygamma

from privpost.evaluation.rows import columns, places
from privpost.experiments.ranges import ABOVE_ONE, CONCENTRATION, METHOD, SHARE, SUPREMUM, WEIGHT, N
from privpost.lab.schema import Choice, Integer, Schema
from privpost.mechanisms.draws.posterior import PosteriorDraw
from privpost.models.conjugate.dirichlet_categorical import DirichletCategorical

SETTINGS = Schema(
    total_concentration=CONCENTRATION.means("sum of the Dirichlet prior's parameters", "records"),
    n=N,
    categories=Integer(at_least=2, at_most=50, says="categories of the Dirichlet-categorical model"),
    prior=Choice(
        "symmetric",
        "asymmetric",
        says="prior of the parameters: all concentrations equal, or proportional to 1, 2, ...",
    ),
    method=Choice("diffused", "concentrated", "direct", says=METHOD),
    coefficient=WEIGHT,
    supremum=SUPREMUM,
    order=ABOVE_ONE,
    truncation=SHARE.means(
        "end of the range of `tcdp_ratio`'s bound, as a share of the smallest concentration", "share"
    ),
)
TABLES = {
    "dirichlet": {
        "epsilon": "ε of the Rényi guarantee at `order`; inf beyond the asymptote [nats]",
        "bound_ratio": "truncated concentrated DP bound of ε, best at each order, over the exact supremum [ratio]",
        "tcdp_ratio": "the same bound with one constant for all orders, over the exact supremum [ratio]",
    },
}


def concentration(prior: str, categories: int, total: float) -> np.ndarray:
    """Return a prior's concentrations: shares of `total` that are equal (symmetric) or proportional to 1, ..., d."""
    shares = np.ones(categories) if prior == "symmetric" else np.arange(1, categories + 1, dtype=float)
    return total * shares / shares.sum()


def truncated_bound(order, smallest: float, r: float, truncation) -> np.ndarray:
    """Return the Rényi DP bound on Dirichlet posterior sampling by truncated concentrated DP (Ponnoprat 2022).

    (ρ, ω)-tCDP bounds the Rényi divergence D_λ by ρλ at all orders λ ≤ ω. For any γ < α_min, ω is 1 + γ/r, and ρ is
    r² ψ₁(α_min − γ) with the trigamma function ψ₁. At orders above ω the bound is inf.

    Args:
        order: orders λ > 1.
        smallest: smallest concentration α_min > 0 of the prior.
        r: weight of the data.
        truncation: γ/α_min in (0, 1), or None for the best γ at each order, which is (λ − 1)r.
    """
    order = np.asarray(order, float)
    gamma = (order - 1) * r if truncation is None else np.full_like(order, truncation * smallest)
    # The bound covers the order ω itself. The factor allows for the rounding of ω.
    covered = (gamma < smallest) & ((order - 1) * r <= gamma * (1 + 1e-12))
    return np.where(covered, order * r**2 * polygamma(1, np.where(covered, smallest - gamma, 1.0)), np.inf)


def simulate(config, streams, ledger) -> dict:
    """Return `epsilon` (priors, methods, coefficients, suprema, orders), and `smallest` concentrations (priors,)."""
    shape = tuple(map(len, (config.prior, config.method, config.coefficient, config.supremum, config.order)))
    epsilon = np.full(shape, np.nan)
    smallest = np.empty(len(config.prior))
    for at, point in places(config, "prior", "method", "coefficient", "supremum"):
        alpha = concentration(point.prior, config.categories, config.total_concentration)
        smallest[at[0]] = alpha.min()
        if point.method != "direct" or point.coefficient == 1:
            model = DirichletCategorical(tuple(alpha))
            settings = {"weighting": point.method, "supremum": point.supremum}
            mechanism = PosteriorDraw(model, config.n, 2.0, point.coefficient, **settings)
            epsilon[at] = mechanism.rdp(config.order)
    return {"epsilon": epsilon, "smallest": smallest}


def tabulate(cells):
    """Yield one row per prior, number of categories, method, coefficient, supremum and order."""
    for cell in cells:
        for at, point in places(cell.config, "prior", "method", "coefficient", "supremum", "order"):
            epsilon, smallest = cell.arrays["epsilon"][at], cell.arrays["smallest"][at[0]]
            if np.isnan(epsilon):
                continue
            asymptote, ratios = 1 + smallest / point.coefficient, np.full(2, np.nan)
            # At the asymptote itself, rounding errors decide whether ε is finite.
            if (point.method, point.supremum) == ("diffused", "exact") and abs(point.order - asymptote) > 1e-9:
                ends = (None, point.truncation)
                bounds = np.array([truncated_bound(point.order, smallest, point.coefficient, end) for end in ends])
                ratios = np.where(np.isfinite(bounds), bounds, np.nan) / epsilon
            yield {
                **columns(point, "method", "coefficient", "order"),
                "epsilon": epsilon,
                **columns(point, "supremum", "categories", "prior"),
                "asymptote": asymptote,
                **dict(zip(("bound_ratio", "tcdp_ratio"), ratios, strict=True)),
            }
