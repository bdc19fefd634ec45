"""OPS for logistic regression at one pure ε on balls of many radii (section 5.2 of Geumlek et al. 2017; ours)."""

import math

import numpy as np

from privpost.datasets import load_design
from privpost.evaluation.rows import columns, places
from privpost.evaluation.summaries import mean_columns
from privpost.experiments.ranges import BETA0, DESIGN, DROPPED_LEVEL, FEATURE_BOUND, LOG_EPSILON
from privpost.lab.schema import Real, Schema
from privpost.mechanisms.logistic_ops import LogisticOps
from privpost.models.binary_regression import BinaryRegression
from privpost.models.logistic_regression import predictive_metrics
from privpost.privacy.accounting import Cost
from privpost.privacy.glm import ops_power_at, ops_radius

SETTINGS = Schema(
    dataset=DESIGN,
    beta0=BETA0,
    feature_bound=FEATURE_BOUND,
    dropped_level=DROPPED_LEVEL,
    log_epsilon=LOG_EPSILON,
    times_smallest=Real(
        at_least=1e-3,
        at_most=1e3,
        optional=True,
        says="radius of the ball over that of the smallest one sure to hold the mode at this ε; empty for c/β, "
        "the paper's",
    ),
)
TABLES = {
    "ops_radius": {
        "radius": "R of the ball",
        "power": "ρ = ε/(2cR), at most 1",
        "mode_bound": "norm that no mode exceeds at this power, whatever the data: √(ρκ/β)",
        "mode_farthest": "norm of the farthest mode that equal records of some length have at this power",
        "spent": "pure ε that the draw costs, 2cρR [nats]",
        "majority_error": "test error of always guessing the majority [share]",
    }
}
METRICS = ("test_error", "test_log_likelihood")


def mechanism(model: BinaryRegression, n: int, epsilon: float, times: float | None) -> LogisticOps:
    """Return OPS at a pure ε on a ball: a multiple of the smallest one at this ε, or c/β for None."""
    beta, bound = model.prior_precision, model.feature_bound
    smallest = ops_radius(ops_power_at(epsilon, beta, bound, "smallest_ball"), beta, bound, "smallest_ball")
    ball = bound / beta if times is None else times * float(smallest)
    return LogisticOps.calibrate(model, n, Cost("pure", epsilon), ball=ball, public_time=False)


def farthest_mode(power: float, beta: float, bound: float) -> float:
    """Return the norm of the farthest mode of equal records, over their length t ≤ c.

    At the mode βw = ρt/(1 + exp(tw)), an equation with one root w, which rises with t up to the length sought.
    """
    from scipy.optimize import brentq, minimize_scalar

    def norm(length: float) -> float:
        high = power * length / beta
        return float(brentq(lambda w: beta * w - power * length / (1 + math.exp(length * w)), 0, high, xtol=1e-13))

    best = minimize_scalar(lambda length: -norm(length), bounds=(0, bound), method="bounded", options={"xatol": 1e-9})
    return -float(best.fun)


def simulate(config, streams, ledger) -> dict:
    """Return `metrics` (radii, 2, repeats), and of each radius `radius`, `power`, `spent`, `proposals` a draw.

    Also `n` (), and `majority_error` (): test error of guessing the larger class of the training data.
    """
    design = load_design(config.dataset, bounds="data", dropped_level=config.dropped_level, rng=streams("split", 0))
    n, dimension = design.train_features.shape
    model = BinaryRegression(dimension, config.beta0, config.feature_bound)
    statistics = model.statistics_of(design.train_features, design.train_labels)
    epsilon = math.exp(config.log_epsilon)
    mechanisms = [mechanism(model, n, epsilon, times) for times in config.times_smallest]
    metrics = np.empty((len(mechanisms), len(METRICS), config.trials))
    proposals, start = np.zeros(len(mechanisms)), None
    for i, ops in enumerate(mechanisms):
        account = f"ops/{i}"
        ledger.open(account, Cost("pure", epsilon), ops)
        for block in streams.blocks():
            rng = streams("sampler", block.index, times_smallest=config.times_smallest[i])
            how = {"size": block.size, "repeats": block.trials, "start": start}
            draws, drawn = ledger.release(account, ops, statistics, rng, **how)
            # The next ball's mode is sought from this one's.
            start = drawn.start
            proposals[i] += drawn.proposals * block.size / config.trials
            metrics[i, :, block.trials] = np.stack(predictive_metrics(draws, design.test_features, design.test_labels))
    return {
        "metrics": metrics,
        "radius": np.array([ops.radius for ops in mechanisms]),
        "power": np.array([ops.power for ops in mechanisms]),
        "spent": np.array([ops.cost().epsilon for ops in mechanisms]),
        "proposals": proposals,
        "n": np.array(n),
        "majority_error": np.array(np.mean(design.test_labels != (design.train_labels.mean() > 0.5))),
    }


def tabulate(cells):
    """Yield one row per data set, radius and metric."""
    for cell in cells:
        config, arrays = cell.config, cell.arrays
        for (i, k), point in places(config, "times_smallest", "metric", metric=METRICS):
            power, beta, bound = float(arrays["power"][i]), config.beta0, config.feature_bound
            values = arrays["metrics"][i, k]
            yield {
                **columns(point, "dataset", "log_epsilon", "times_smallest", "metric"),
                **mean_columns("", values),
                "n_repeats": len(values),
                **{name: float(arrays[name][i]) for name in ("radius", "power", "spent", "proposals")},
                "mode_bound": float(ops_radius(power, beta, bound, "smallest_ball")),
                "mode_farthest": farthest_mode(power, beta, bound),
                "n_train": int(arrays["n"]),
                "majority_error": float(arrays["majority_error"]),
                "sampling": "exact",
                "uses_private_metadata": True,
            }
