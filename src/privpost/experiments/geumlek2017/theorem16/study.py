"""How much of theorem 16's bound two data sets in a plane spend, by link, by quadrature (Geumlek et al. 2017)."""

import math

import numpy as np
from scipy.special import lambertw, log_ndtr

from privpost.experiments.audit.laws import Weights
from privpost.experiments.ranges import ABOVE_ONE, RADIUS, N
from privpost.lab.schema import Choice, Real, Schema, SettingError, Vector
from privpost.models.link_regression import LINKS, steepest
from privpost.privacy.glm import posterior_rdp

SETTINGS = Schema(
    link=Choice(*LINKS, says="link function of the binary regression"),
    n=Vector(Real(above=1), says=N.says, unit=N.unit),
    betas=Vector(Real(at_least=1e-12, at_most=0.1), says="prior precisions per record, one for each n"),
    orders=Vector(ABOVE_ONE, says="orders at which the divergence is computed"),
    radius=RADIUS,
    angles=Vector(Real(above=0, below=1.5708), says="angles that are tried for the changed record", unit="radians"),
    pushing=Vector(
        Real(above=0, at_most=1), says="lengths of the other records, which push the weights", unit="feature norm"
    ),
    limit_betas=Vector(
        Real(at_least=1e-100, at_most=0.01), says="prior precisions per record in the limit of many records"
    ),
)
TABLES = {
    "theorem16": {
        "beta": "prior precision per record",
        "exact": "Rényi divergence of the two posteriors, by quadrature [nats]",
        "bound_paper": "theorem 16's bound with slope bound 1, as the paper has it for each link [nats]",
        "bound_own": "theorem 16's bound with the slopes that the ball allows [nats]",
        "share_of_paper": "divergence, as a share of the paper's bound [share]",
        "share_of_own": "divergence, as a share of the bound with the ball's slopes [share]",
        "limit": "share of the bound that the worst pairs spend in the limit of many records [share]",
        "angle": "angle of the changed record, (± cos a, sin a) [radians]",
        "pushing": "length of the other records, which push the weights [feature norm]",
    },
    "theorem16_limits": {
        "share": "share of the bound that the worst pairs spend in the limit of many records [share]",
        "distance": "distance of the mode from 0",
        "sine": "sine of the changed record's angle",
    },
}
# Standard deviations of the prior that hold what the likelihood leaves of it.
_WIDTHS = 12


def _probit(margin):
    return -log_ndtr(margin)


def _logistic(margin):
    return np.logaddexp(0, -margin)


def _event(margin):
    return np.where(margin < -30, -margin, -np.log(-np.expm1(-np.exp(np.maximum(margin, -30)))))


# Losses of the changed record and of one that pushes the weights away, by the margin of either.
LOSSES = {
    "logistic": (_logistic, _logistic),
    "probit": (_probit, _probit),
    "cloglog": (lambda margin: np.exp(-margin), _event),
}


def worst_pair(config, n: float, beta: float, order: float, radius: float | None) -> tuple[float, float, float]:
    """The largest Rényi divergence between two posteriors of weights in a plane, its angle and the pushers' length.

    The changed record is (± cos a, sin a) with the label that the others make unlikely. Those are (0, −t), t their
    length, with the other label. Short ones push farther: each gives the mode's distance M the force t/(1 + exp(tM)).
    """
    changed, pushing = LOSSES[config.link]
    # A logistic record moves the mode by 1/(nβ) at most; the other losses' slopes fall where they push.
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
    """Share of the bound that the worst pairs spend as n → ∞ at a β, for the logistic link; M, and sin a.

    The mode's distance obeys βM = t/(1 + exp(tM)), so M² is at most κ/β, κ = max x/(1 + exp(x)), which pushers of
    length x/M attain. About it the posteriors narrow to Gaussians of precision nβ along the first axis, which no pusher
    feels, and their log-densities differ there by a slope of 2 cos a/(1 + exp(−M sin a)): by its square over the
    precision the divergence is cos² a/(1 + exp(−M sin a))² of the bound at every order. With sin² a = 1/M it tends to 1
    as β → 0.
    """
    from scipy.optimize import minimize_scalar

    # κ is Lambert's W at 1/e, as the derivative vanishes where exp(−x) = x − 1.
    distance = math.sqrt(float(lambertw(math.exp(-1)).real) / beta)

    def share(log_sine):
        sine = math.exp(log_sine)
        return (1 - sine**2) / (1 + math.exp(-distance * sine)) ** 2

    best = minimize_scalar(lambda z: -share(z), bounds=(-math.log(distance), 0), method="bounded")
    return -best.fun, distance, math.exp(best.x)


def simulate(config, streams, ledger) -> dict:
    """Return `pairs` (sizes, orders, 2, 3): without a ball and on it, the divergence, its angle and its pushers, and
    `limits` (betas, 3): `limit_share` of the logistic link.

    Without a ball it is infinite for the loss exp(z), which outgrows every Gaussian, and where λ − 1 probit losses of
    half a square outweigh the prior.
    """
    if len(config.n) != len(config.betas):
        raise SettingError(f"betas are {config.betas}; there must be as many as n has, {len(config.n)}")
    pairs = np.full((len(config.n), len(config.orders), 2, 3), math.nan)
    for i, j, k in np.ndindex(pairs.shape[:3]):
        radius = (None, config.radius)[k]
        heaviest = {"cloglog": math.inf, "probit": config.orders[j] - 1}.get(config.link, 0)
        if radius is None and heaviest >= config.n[i] * config.betas[i]:
            pairs[i, j, k, 0] = math.inf
        else:
            pairs[i, j, k] = worst_pair(config, config.n[i], config.betas[i], config.orders[j], radius)
    limits = np.array([limit_share(beta) for beta in config.limit_betas])
    return {"pairs": pairs, "limits": limits}


def tabulate(cells):
    """Return one row per link, n, order and ball: the divergence, and its shares of the bounds; and the limits by β.

    `bound_paper` has B = 1, as the paper does for each of the three links, `bound_own` the B of the ball.
    """
    import pandas as pd

    rows, limits = [], []
    for cell in cells:
        config, pairs = cell.config, cell.arrays["pairs"]
        if config.link == "logistic":
            limits = [(beta, *row) for beta, row in zip(config.limit_betas, cell.arrays["limits"], strict=True)]
        slope = sum(steepest(config.link, config.radius)) / 2
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
