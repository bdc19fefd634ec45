"""RDP curves of the diffused and concentrated beta-Bernoulli posterior samplers (Geumlek et al. 2017, figure 1)."""

import math

import numpy as np

from privpost.evaluation.rows import columns, places
from privpost.experiments.geumlek2017 import rounded
from privpost.experiments.ranges import ABOVE_ONE, ALPHA, BETA, METHOD, SUPREMUM, WEIGHT, N
from privpost.lab.schema import Choice, Integer, Schema, Vector
from privpost.mechanisms.draws.posterior import PosteriorDraw
from privpost.models.conjugate.beta_bernoulli import BetaBernoulli

SETTINGS = Schema(
    alpha=ALPHA,
    beta=BETA,
    n=N,
    coefficient=WEIGHT,
    method=Choice("diffused", "concentrated", "direct", says=METHOD),
    supremum=SUPREMUM,
    order=ABOVE_ONE,
    rounded_coefficients=Vector(WEIGHT, says="coefficients at which rounded draws are computed"),
    rounded_orders=Vector(ABOVE_ONE, says="orders of rounded draws, in addition to pure DP"),
    bits=Vector(Integer(at_least=1, at_most=16), says="binary digits of a rounded draw after the point", unit="bits"),
)
TABLES = {
    "rdp_curves": {
        "epsilon": "ε of the Rényi guarantee at `order`; inf beyond the asymptote [nats]",
    },
    "rounding": {
        "bits": "binary digits of the draw after the point [bits]",
        "ideal": "ε of the draw without rounding [nats]",
        "error_ratio": "error of the rounded draw, as a multiple of the ideal draw's [ratio]",
    },
}


def simulate(config, streams, ledger) -> dict:
    """Return the RDP curves at one coefficient, and the privacy and error of rounded draws.

    The curves `epsilon` have shape (methods, suprema, orders). `rounded` (methods, bits, orders + 1) is the ε of
    rounded draws, and `ideal` (methods, orders + 1) is the ε without rounding. The last order of both is infinity.
    `error_ratio` (methods, bits) is the error over the error without rounding. The direct posterior is nan at
    coefficients below 1.
    """
    epsilon = np.full((len(config.method), len(config.supremum), len(config.order)), np.nan)
    orders, bits = _axes(config)
    rounded_draws = np.full((len(config.method), len(bits), len(orders)), np.nan)
    ideal, error = rounded_draws[:, 0].copy(), rounded_draws[..., 0].copy()
    model = BetaBernoulli(config.alpha, config.beta)
    for i, method in enumerate(config.method):
        for j, supremum in enumerate(config.supremum):
            if method != "direct" or config.coefficient == 1:
                mechanism = PosteriorDraw(model, config.n, 2.0, config.coefficient, weighting=method, supremum=supremum)
                epsilon[i, j] = mechanism.rdp(config.order)
        # Coefficient 1 is the direct posterior.
        if config.coefficient in config.rounded_coefficients and (method == "direct") is (config.coefficient == 1):
            mechanism = PosteriorDraw(model, config.n, 2.0, config.coefficient, weighting=method)
            ideal[i] = [*mechanism.rdp(np.array(orders[:-1])), math.inf]
            rounded_draws[i], error[i] = rounded.curves(mechanism, bits, orders)
    return {"epsilon": epsilon, "rounded": rounded_draws, "ideal": ideal, "error_ratio": error}


def _axes(config) -> tuple[list[float], list[int]]:
    """Return the orders for rounded draws, ending with infinity, and the ascending numbers of bits."""
    return [*config.rounded_orders, math.inf], sorted(config.bits)


def tabulate(cells):
    """Return two tables: `rdp_curves` has the curves, and `rounding` has privacy and error of rounded draws."""
    return {"rdp_curves": _curves(cells), "rounding": _rounding(cells)}


def _curves(cells):
    for cell in cells:
        for at, point in places(cell.config, "method", "supremum", "order"):
            if not np.isnan(epsilon := cell.arrays["epsilon"][at]):
                yield {
                    **columns(point, "method", "coefficient", "order"),
                    "epsilon": epsilon,
                    "supremum": point.supremum,
                    "asymptote": _asymptote(point),
                }


def _rounding(cells):
    for cell in cells:
        orders, bits = _axes(cell.config)
        for (i, j, k), point in places(cell.config, "method", "bits", "order", bits=bits, order=orders):
            if not np.isnan(epsilon := cell.arrays["rounded"][i, j, k]):
                yield {
                    **columns(point, "method", "coefficient", "bits", "order"),
                    "epsilon": epsilon,
                    "ideal": cell.arrays["ideal"][i, k],
                    "error_ratio": cell.arrays["error_ratio"][i, j],
                    "asymptote": _asymptote(point),
                }


def _asymptote(point) -> float:
    return 1 + min(point.alpha, point.beta) / point.coefficient
