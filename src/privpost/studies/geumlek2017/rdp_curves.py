"""RDP curves of the diffused and concentrated beta-Bernoulli posterior samplers (Geumlek et al. 2017, figure 1)."""

from __future__ import annotations

import numpy as np

from privpost.mechanisms.posterior_sampling import ConcentratedPosterior, DiffusedPosterior, DirectPosterior
from privpost.models.beta_bernoulli import BetaBernoulli
from privpost.pipeline.schema import Choice, Integer, Real, Schema

SETTINGS = Schema(
    alpha=Real(above=0),
    beta=Real(above=0),
    n=Integer(at_least=1),
    coefficient=Real(above=0, at_most=1),
    method=Choice("diffused", "concentrated", "direct"),
    supremum=Choice("paper", "exact"),
    order=Real(above=1),
)


def _mechanism(method: str, config, supremum: str):
    model, order = BetaBernoulli(config.alpha, config.beta), config.order[0]
    if method == "direct":
        return DirectPosterior(model, config.n, order, supremum=supremum)
    kind = {"diffused": DiffusedPosterior, "concentrated": ConcentratedPosterior}[method]
    return kind(model, config.n, order, config.coefficient, supremum=supremum)


def simulate(config, streams, ledger) -> dict:
    """Return `epsilon` (methods, suprema, orders): the RDP curves at one coefficient; nothing is released.

    The direct posterior has no coefficient: its curve is NaN except in the cell of coefficient 1.
    """
    epsilon = np.full((len(config.method), len(config.supremum), len(config.order)), np.nan)
    for i, method in enumerate(config.method):
        if method == "direct" and config.coefficient < 1:
            continue
        for j, supremum in enumerate(config.supremum):
            epsilon[i, j] = _mechanism(method, config, supremum).rdp(config.order)
    return {"epsilon": epsilon}


def tabulate(cells):
    """Return one row per method, coefficient, supremum and order; `epsilon` is inf beyond the asymptote."""
    import pandas as pd

    frames = []
    for cell in cells:
        config = cell.config
        index = pd.MultiIndex.from_product(
            [config.method, [config.coefficient], config.supremum, config.order],
            names=["method", "coefficient", "supremum", "order"],
        )
        frame = pd.DataFrame({"epsilon": cell.arrays["epsilon"].ravel()}, index=index).reset_index()
        frame["asymptote"] = 1 + min(config.alpha, config.beta) / config.coefficient
        frames.append(frame.dropna(subset="epsilon"))
    columns = ["method", "coefficient", "order", "epsilon", "supremum", "asymptote"]
    return pd.concat(frames, ignore_index=True)[columns]
