"""The joint privacy cost of several posterior draws for binary data, by exact composition, Rényi curves and sums."""

import numpy as np

from privpost.discovery import serving
from privpost.evaluation.rows import columns, places
from privpost.experiments.ranges import A0, ALPHA, BETA, DELTA, EPSILON, N
from privpost.lab.schema import Integer, Schema, Vector
from privpost.models.conjugate.beta_bernoulli import BetaBernoulli
from privpost.privacy.accounting import composition
from privpost.privacy.accounting.costs import Cost

SETTINGS = Schema(
    alpha=ALPHA,
    beta=BETA,
    a0=A0,
    n=N,
    epsilon=EPSILON,
    delta=DELTA,
    draws=Vector(Integer(at_least=1), says="numbers of draws from the same data", unit="count"),
    points=Integer(at_least=10, at_most=100_000, says="points of the grid of one draw's privacy losses"),
)
TABLES = {
    "composition": {
        "epsilon": "ε at which one draw is calibrated by its exact privacy curve [nats]",
        "accounting": "`exact`: composed loss distributions; `renyi`: summed Rényi curves; `naive`: summed ε",
        "spent": "ε of all draws together at `delta` [nats]",
        "setting": "calibrated setting: ε of pure mechanisms, or the coefficient",
    }
}
ACCOUNTINGS = ("exact", "renyi", "naive")


def samplers(config, epsilon: float) -> dict:
    """Return, by method id, the mechanisms that draw from beta laws, calibrated to (ε, δ) by exact privacy curves."""
    model, budget = BetaBernoulli(config.alpha, config.beta), Cost("approximate", epsilon, delta=config.delta)
    # This budget only starts the search along the exact curves.
    candidates = serving(model, config.n, Cost("rdp", 1.0, order=2.0), a0=config.a0)
    return {
        method: mechanism.recalibrated(budget)
        for method, mechanism in sorted(candidates.items())
        if mechanism.releases == "sample" and mechanism.calibrated and mechanism.release_law(model.prior) is not None
    }


def spent(mechanism, config) -> np.ndarray:
    """Return the joint ε (accountings, draws) at δ, for each accounting and each number of draws."""
    draws, delta = config.draws, config.delta
    renyi = [composition.renyi_epsilon(mechanism.rdp, k, delta) for k in draws]
    naive = [composition.naive_epsilon(mechanism.privacy_curve, k, delta) for k in draws]
    return np.array([composition.bits_epsilon(mechanism, draws, delta, config.points), renyi, naive])


def simulate(config, streams, ledger) -> dict:
    """Return `spent` (epsilons, methods, accountings, draws), `setting` (epsilons, methods) and `method`."""
    calibrated = [samplers(config, epsilon) for epsilon in config.epsilon]
    methods = list(calibrated[0])
    return {
        "spent": np.array([[spent(at[name], config) for name in methods] for at in calibrated]),
        "setting": np.array([[getattr(at[name], at[name].calibrated) for name in methods] for at in calibrated]),
        "method": np.array(methods),
    }


def tabulate(cells):
    """Yield the joint ε of all draws by method, n, ε of one draw, number of draws and accounting."""
    for cell in cells:
        config, arrays = cell.config, cell.arrays
        axes = {"method": arrays["method"].tolist(), "accounting": ACCOUNTINGS, "draws": config.draws}
        for at, point in places(config, "epsilon", *axes, **axes):
            yield {
                **columns(point, "method", "accounting", "n", "epsilon", "delta", "draws"),
                "spent": arrays["spent"][at],
                "setting": arrays["setting"][at[:2]],
            }
