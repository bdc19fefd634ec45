"""RDP curves of the diffused and concentrated beta-Bernoulli posterior samplers (Geumlek et al. 2017, figure 1)."""

import numpy as np

from privpost.evaluation.rows import columns, places
from privpost.experiments.ranges import ABOVE_ONE, ALPHA, BETA, METHOD, SUPREMUM, WEIGHT, N
from privpost.lab.schema import Choice, Schema
from privpost.mechanisms.posterior_sampling import PosteriorDraw
from privpost.models.beta_bernoulli import BetaBernoulli

SETTINGS = Schema(
    alpha=ALPHA,
    beta=BETA,
    n=N,
    coefficient=WEIGHT,
    method=Choice("diffused", "concentrated", "direct", says=METHOD),
    supremum=SUPREMUM,
    order=ABOVE_ONE,
)
TABLES = {
    "rdp_curves": {
        "epsilon": "ε of the Rényi guarantee at `order`; inf beyond the asymptote [nats]",
    },
}


def simulate(config, streams, ledger) -> dict:
    """Return `epsilon` (methods, suprema, orders): the RDP curves at one coefficient; nothing is released.

    The direct posterior has no coefficient: its curve is NaN except in the cell of coefficient 1.
    """
    epsilon = np.full((len(config.method), len(config.supremum), len(config.order)), np.nan)
    model = BetaBernoulli(config.alpha, config.beta)
    for at, point in places(config, "method", "supremum"):
        if point.method != "direct" or config.coefficient == 1:
            settings = {"weighting": point.method, "supremum": point.supremum}
            mechanism = PosteriorDraw(model, config.n, 2.0, config.coefficient, **settings)
            epsilon[at] = mechanism.rdp(config.order)
    return {"epsilon": epsilon}


def tabulate(cells):
    """Yield one row per method, coefficient, supremum and order; `epsilon` is inf beyond the asymptote."""
    for cell in cells:
        for at, point in places(cell.config, "method", "supremum", "order"):
            if not np.isnan(epsilon := cell.arrays["epsilon"][at]):
                yield {
                    **columns(point, "method", "coefficient", "order"),
                    "epsilon": epsilon,
                    "supremum": point.supremum,
                    "asymptote": 1 + min(point.alpha, point.beta) / point.coefficient,
                }
