"""The share of theorem 16's bound (Geumlek et al. 2017) that the worst data sets in a plane reach, by quadrature."""

import math

import numpy as np
from scipy.special import lambertw, log_ndtr

from privpost.experiments.audit.laws import Weights
from privpost.experiments.ranges import ABOVE_ONE, RADIUS, N
from privpost.lab.schema import Choice, Real, Schema, SettingError, Vector
from privpost.models.regression.link import LINKS, LinkRegression
from privpost.privacy.divergences.glm import posterior_rdp

SETTINGS = Schema(
    link=Choice(*LINKS, says="link function of the binary regression"),
    n=Vector(Real(above=1), says=N.says, unit=N.unit),
    betas=Vector(Real(at_least=1e-12, at_most=0.1), says="prior precisions per record, one for each n"),
    orders=Vector(ABOVE_ONE, says="orders at which the divergence is computed"),
    radius=RADIUS,
    angles=Vector(Real(above=0, below=1.5708), says="angles tried for the changed record", unit="radians"),
    pushing=Vector(
        Real(above=0, at_most=1), says="lengths of the other records, which push the weights away", unit="feature norm"
    ),
    limit_betas=Vector(
        Real(at_least=1e-100, at_most=0.01), says="prior precisions per record in the limit of many records"
    ),
)
TABLES = {
    "theorem16": {
        "beta": "prior precision per record",
        "exact": "Rényi divergence of the two posteriors, by quadrature [nats]",
        "bound_paper": "theorem 16's bound with slope bound 1, which the paper uses for each link [nats]",
        "bound_own": "theorem 16's bound with the largest slope that the ball allows [nats]",
        "share_of_paper": "divergence, as a share of the paper's bound [share]",
        "share_of_own": "divergence, as a share of the bound with the ball's slope [share]",
        "limit": "share of the bound that the worst pairs reach in the limit of many records [share]",
        "angle": "angle of the changed record, (± cos a, sin a) [radians]",
        "pushing": "length of the other records, which push the weights away [feature norm]",
    },
    "theorem16_limits": {
        "share": "share of the bound that the worst pairs reach in the limit of many records [share]",
        "distance": "distance of the mode from 0",
        "sine": "sine of the changed record's angle",
    },
}
# The posterior's mass lies within this many prior standard deviations of its mode.
_WIDTHS = 12


def _probit(margin):
    return -log_ndtr(margin)


def _logistic(margin):
    return np.logaddexp(0, -margin)


def _event(margin):
    return np.where(margin < -30, -margin, -np.log(-np.expm1(-np.exp(np.maximum(margin, -30)))))


# Losses of the changed record and of a record that pushes the weights away, as functions of the record's margin.
LOSSES = {
    "logistic": (_logistic, _logistic),
    "probit": (_probit, _probit),
    "cloglog": (lambda margin: np.exp(-margin), _event),
}


def worst_pair(config, n: float, beta: float, order: float, radius: float | None) -> tuple[float, float, float]:
    """Return the largest Rényi divergence of two posteriors in a plane, and the angle a and length t that attain it.

    The changed record is (± cos a, sin a). The other records are (0, −t) with the other label. These records push the
    weights away, so that the changed record's label becomes unlikely.
    """
    changed, pushing = LOSSES[config.link]
    # A logistic record moves the mode by at most 1/(nβ). The slopes of the other losses fall as their records push.
    reach = min(1 / beta + _WIDTHS / math.sqrt(n * beta), radius or math.inf)
    best = (-math.inf, math.nan, math.nan)
    for length in config.pushing:
        for angle in config.angles:

            def law(sign, length=length, angle=angle):
                def log_weight(w):
                    margin = sign * math.cos(angle) * w[..., 0] + math.sin(angle) * w[..., 1]
                    return (
                        -n * beta * (w**2).sum(axis=-1) / 2 - changed(margin) - (n - 1) * pushing(-length * w[..., 1])
                    )

                return Weights(log_weight, 2, reach, radius)

            best = max(best, (law(1).divergence(law(-1), order), angle, length))
    return best


def limit_share(beta: float) -> tuple[float, float, float]:
    """Return three limits as n → ∞: the largest share of theorem 16's bound, the mode's distance M from 0, and sin a.

    The link is logistic. Records of length t push the mode to M with βM = t/(1 + exp(tM)). So M² is at most κ/β, where
    κ is the maximum of x/(1 + exp(x)). In the limit both posteriors are Gaussian around the mode, with the precision nβ
    along the first axis. At every order the share is cos² a/(1 + exp(−M sin a))², maximised over a.
    """
    from scipy.optimize import minimize_scalar

    # κ is Lambert's W at 1/e, as the derivative of x/(1 + exp(x)) vanishes at exp(−x) = x − 1.
    distance = math.sqrt(float(lambertw(math.exp(-1)).real) / beta)

    def share(log_sine):
        sine = math.exp(log_sine)
        return (1 - sine**2) / (1 + math.exp(-distance * sine)) ** 2

    best = minimize_scalar(lambda z: -share(z), bounds=(-math.log(distance), 0), method="bounded")
    return -best.fun, distance, math.exp(best.x)


def check(config) -> None:
    """Raise SettingError unless there is one β for each n."""
    if len(config.n) != len(config.betas):
        raise SettingError(f"betas are {config.betas}; there must be as many as n has, {len(config.n)}")


def simulate(config, streams, ledger) -> dict:
    """Return `pairs` (sizes, orders, 2, 3) from `worst_pair`, and `limits` (betas, 3) from `limit_share`."""
    pairs = np.full((len(config.n), len(config.orders), 2, 3), math.nan)
    for i, j, k in np.ndindex(pairs.shape[:3]):
        radius = (None, config.radius)[k]
        # Without a ball, the cloglog loss exp(z) outgrows every Gaussian, and the probit loss grows like z²/2. Then the
        # divergence is infinite if λ − 1 times the loss outweighs the prior.
        heaviest = {"cloglog": math.inf, "probit": config.orders[j] - 1}.get(config.link, 0)
        if radius is None and heaviest >= config.n[i] * config.betas[i]:
            pairs[i, j, k, 0] = math.inf
        else:
            pairs[i, j, k] = worst_pair(config, config.n[i], config.betas[i], config.orders[j], radius)
    limits = np.array([limit_share(beta) for beta in config.limit_betas])
    return {"pairs": pairs, "limits": limits}


def tabulate(cells):
    """Return two tables: divergences with their shares of the bounds, and the limits of the shares by β."""
    import pandas as pd

    rows, limits = [], []
    for cell in cells:
        config, pairs = cell.config, cell.arrays["pairs"]
        if config.link == "logistic":
            limits = [(beta, *row) for beta, row in zip(config.limit_betas, cell.arrays["limits"], strict=True)]
        slope = LinkRegression(2, link=config.link, radius=config.radius).slope_bound
        for i, j, k in np.ndindex(pairs.shape[:3]):
            (exact, angle, pushing), n, beta, order = pairs[i, j, k], config.n[i], config.betas[i], config.orders[j]
            bound = float(posterior_rdp(order, n, beta))
            bounded = k == 1 or config.link == "logistic"
            bound_own = (
                float(posterior_rdp(order, n, beta, residual_bound=slope if k else 1.0)) if bounded else math.inf
            )
            rows.append(
                {
                    "link": config.link,
                    "n": n,
                    "beta": beta,
                    "order": order,
                    "radius": config.radius if k else None,
                    "exact": exact,
                    "bound_paper": bound,
                    "bound_own": bound_own,
                    "share_of_paper": exact / bound,
                    "share_of_own": exact / bound_own if math.isfinite(bound_own) else None,
                    "limit": limit_share(beta)[0] if k == 0 and config.link == "logistic" else None,
                    "angle": angle,
                    "pushing": pushing,
                }
            )
    return {
        "theorem16": pd.DataFrame(rows),
        "theorem16_limits": pd.DataFrame(limits, columns=["beta", "share", "distance", "sine"]),
    }
