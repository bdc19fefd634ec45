"""OPS for logistic regression at one pure ε on balls of many radii (section 5.2 of Geumlek et al. 2017; ours)."""

import math

from privpost.evaluation.rows import columns, places
from privpost.evaluation.summaries import mean_columns
from privpost.mechanisms.draws.logistic_ops import LogisticOps
from privpost.models.regression.binary import BinaryRegression
from privpost.privacy.accounting.costs import Cost
from privpost.privacy.divergences.glm import ops_power_at, ops_radius

TABLE = {
    "radius": "R of the ball",
    "power": "ρ = ε/(2cR), at most 1",
    "mode_bound": "norm that no mode exceeds at this power, whatever the data: √(ρκ/β)",
    "mode_farthest": "largest norm of the mode of equal records at this power, over their length",
    "spent": "pure ε that the draw costs, 2cρR [nats]",
    "majority_error": "test error of always guessing the majority [share]",
}


def mechanism(model: BinaryRegression, n: int, epsilon: float, times: float | None) -> LogisticOps:
    """Return OPS at a pure ε on a ball of `times` the smallest radius, or on the paper's ball if `times` is None."""
    beta, bound = model.prior_precision, model.feature_bound
    smallest = ops_radius(ops_power_at(epsilon, beta, bound, "smallest_ball"), beta, bound, "smallest_ball")
    ball = bound / beta if times is None else times * float(smallest)
    return LogisticOps.calibrate(model, n, Cost("pure", epsilon), ball=ball, public_time=False)


def farthest_mode(power: float, beta: float, bound: float) -> float:
    """Return the largest norm of the posterior mode when all records are equal.

    For records of length t the norm w solves βw = ρt/(1 + exp(tw)), where ρ is the power of the likelihood and β the
    prior precision. The maximum is over lengths t up to `bound`.
    """
    from scipy.optimize import brentq, minimize_scalar

    def norm(length: float) -> float:
        high = power * length / beta
        return float(brentq(lambda w: beta * w - power * length / (1 + math.exp(length * w)), 0, high, xtol=1e-13))

    best = minimize_scalar(lambda length: -norm(length), bounds=(0, bound), method="bounded", options={"xatol": 1e-9})
    return -float(best.fun)


def rows(cells, metrics):
    """Yield one row per data set, ε, radius and metric."""
    for cell in cells:
        config, arrays = cell.config, cell.arrays
        for (j, t, k), point in places(config, "log_epsilon", "times_smallest", "metric", metric=metrics):
            beta, bound = config.beta0, config.feature_bound
            power, values = float(arrays["coefficient"][j, t]), arrays["metrics"][0, j, t, k]
            yield {
                **columns(point, "dataset", "log_epsilon", "times_smallest", "metric"),
                **mean_columns("", values),
                "n_repeats": len(values),
                "radius": float(arrays["radius"][j, t]),
                "power": power,
                "spent": float(arrays["spent"][j, t]),
                "proposals": float(arrays["proposals"][0, j, t]),
                "mode_bound": float(ops_radius(power, beta, bound, "smallest_ball")),
                "mode_farthest": farthest_mode(power, beta, bound),
                "n_train": int(arrays["n"]),
                "majority_error": float(arrays["majority_error"]),
                "sampling": "exact",
                "uses_private_metadata": True,
            }
