"""Densities of the true, the Laplace and the OPS posterior of one data set (Foulds et al. 2016, figure 1)."""

from functools import partial

import numpy as np

from privpost.experiments.ranges import A0, ALPHA, BETA, DRAWS, EPSILON, WITHOUT_POLE, N, P
from privpost.lab.schema import Integer, Schema
from privpost.mechanisms.choices.exponential import ExponentialMechanism
from privpost.mechanisms.noise.laplace import LaplaceMechanism
from privpost.models.conjugate.beta_bernoulli import BetaBernoulli
from privpost.privacy.accounting.costs import Cost

SETTINGS = Schema(
    alpha=WITHOUT_POLE.means(ALPHA.says, ALPHA.unit),
    beta=WITHOUT_POLE.means(BETA.says, BETA.unit),
    epsilon=EPSILON,
    n=N,
    p=P,
    a0=A0,
    draws=DRAWS,
    points=Integer(at_least=2, says="values of θ per curve"),
)
TABLES = {
    "posterior_shapes": {
        "draw": "number of the release, from 0",
    },
}


def simulate(config, streams, ledger) -> dict:
    """Return densities of the true and the OPS posterior (points,) and of Laplace posteriors (draws, points).

    `theta` is the grid of `true` and `laplace`. `ops_theta`, over [a0, 1−a0], is the grid of `ops`. `temperature` is
    the temperature of OPS.
    """
    model, budget = BetaBernoulli(config.alpha, config.beta), Cost("pure", config.epsilon)
    successes = float(round(config.p * config.n))
    statistics = np.array([successes, config.n - successes])
    laplace = ledger.open(
        "laplace", budget, partial(LaplaceMechanism.calibrate, model, config.n, budget, coordinates="all")
    )
    ops = ledger.open("ops", budget, partial(ExponentialMechanism.calibrate, model, config.n, budget, a0=config.a0))
    theta = np.linspace(0, 1, config.points)
    ops_theta = np.linspace(config.a0, 1 - config.a0, config.points)
    rng, repeats = streams("mechanism", method="laplace"), slice(0, config.draws)
    releases = ledger.release("laplace", laplace, statistics, rng, size=config.draws, repeats=repeats).values
    return {
        "theta": theta,
        "true": np.exp(model.log_density(theta, model.posterior(statistics))),
        "laplace": np.exp(model.log_density(theta, laplace.naive_posterior(releases)[:, None, :])),
        "ops_theta": ops_theta,
        "ops": np.exp(ops.log_density(ops_theta, statistics)),
        "temperature": np.array(ops.temperature),
    }


def tabulate(cells):
    """Return one row per curve and θ, with the density. The column `draw` numbers the Laplace posteriors from 0."""
    import pandas as pd

    (cell,) = cells
    config, arrays = cell.config, cell.arrays
    fixed = {"epsilon": config.epsilon, "n": config.n, "a0": None, "temperature": None}
    ops = {**fixed, "a0": config.a0, "temperature": float(arrays["temperature"])}
    curves = [("non_private", None, arrays["theta"], arrays["true"], {**fixed, "epsilon": None})]
    curves += [("laplace", draw, arrays["theta"], density, fixed) for draw, density in enumerate(arrays["laplace"])]
    curves.append(("ops", None, arrays["ops_theta"], arrays["ops"], ops))
    rows = [
        {"method": method, "draw": draw, "theta": theta, "density": density, **settings}
        for method, draw, thetas, densities, settings in curves
        for theta, density in zip(thetas, densities, strict=True)
    ]
    return pd.DataFrame(rows).astype({"draw": "Int64"})
