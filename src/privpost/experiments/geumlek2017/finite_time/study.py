"""Error and privacy charge of private logistic regression with Langevin steps instead of exact draws (ours)."""

import numpy as np

from privpost.datasets import load_design
from privpost.evaluation.rows import columns, places
from privpost.evaluation.summaries import mean_and_sem, mean_columns
from privpost.experiments.ranges import BETA0, DESIGN, DROPPED_LEVEL, LOG_EPSILON, ORDER
from privpost.lab.schema import Real, Schema, Vector
from privpost.mechanisms.draws.logistic_finite import LogisticLangevin, LogisticOutputNoise
from privpost.mechanisms.draws.logistic_ops import LogisticOps
from privpost.mechanisms.draws.logistic_sampling import LogisticDraw
from privpost.models.regression.binary import BinaryRegression
from privpost.models.regression.logistic import predictive_metrics
from privpost.privacy.accounting.costs import Cost

SETTINGS = Schema(
    dataset=DESIGN,
    beta0=BETA0,
    dropped_level=DROPPED_LEVEL,
    order=ORDER,
    log_epsilon=LOG_EPSILON,
    step=Real(above=0, at_most=1, says="Langevin step size times the largest curvature"),
    relaxations=Vector(Real(above=0), says="length of the Langevin chain, in its relaxation times"),
)
TABLES = {
    "finite_time": {
        "steps": "steps of the chain [count]",
        "charge": "ε that the Rényi guarantee charges at `order`; for OPS its pure ε [nats]",
        "variant": "`smallest_ball` for OPS on its smallest ball, else empty",
        "share_of_budget": "charge, as a share of the exact draw's [share]",
        "behind_mean": "how much worse the metric is than that of the exact draw at the budget; not paired",
    },
}
METRICS = ("test_error", "test_log_likelihood")


def compared(config, budget: Cost, model: BinaryRegression, n: int) -> list:
    """Return the compared mechanisms: an exact draw, noise on the mode, Langevin chains of each length, and OPS."""
    exact = LogisticDraw.calibrate(model, n, budget, weighting="diffused", public_time=False)
    steps = [
        LogisticLangevin(model, n, config.order, exact.coefficient, step=config.step, relaxations=relaxations)
        for relaxations in sorted(config.relaxations)
    ]
    pure = Cost("pure", budget.epsilon)
    ops = LogisticOps.calibrate(model, n, pure, charge="smallest_ball", public_time=False)
    return [exact, LogisticOutputNoise.calibrate(model, n, budget), *steps, ops]


def simulate(config, streams, ledger) -> dict:
    """Return the `metrics` (mechanisms, 2, repeats), four facts about each mechanism, and the training size `n`."""
    design = load_design(config.dataset, bounds="public", dropped_level=config.dropped_level, rng=streams("split", 0))
    n, dimension = design.train_features.shape
    model = BinaryRegression(dimension, config.beta0)
    statistics = model.statistics_of(design.train_features, design.train_labels)
    budget = Cost("rdp", float(np.exp(config.log_epsilon)), order=config.order)
    mechanisms = compared(config, budget, model, n)
    metrics = np.empty((len(mechanisms), len(METRICS), config.trials))
    for i, mechanism in enumerate(mechanisms):
        ledger.open(f"{mechanism.method}/{i}", budget, mechanism)
    for block in streams.blocks():
        # All lengths share one chain. Each length continues from the end of the next shorter length.
        chain, settings = streams("sampler", block.index), {}
        for i, mechanism in enumerate(mechanisms):
            steps = isinstance(mechanism, LogisticLangevin)
            draws = ledger.release(
                f"{mechanism.method}/{i}",
                mechanism,
                statistics,
                chain if steps else streams("sampler", block.index),
                size=block.size,
                repeats=block.trials,
                **(settings if steps else {}),
            ).values
            settings = {"after": (mechanism, draws)} if steps else {}
            metrics[i, :, block.trials] = np.stack(predictive_metrics(draws, design.test_features, design.test_labels))
    return {
        "metrics": metrics,
        "method": np.array([mechanism.method for mechanism in mechanisms]),
        "charge": np.array([mechanism.cost().epsilon for mechanism in mechanisms]),
        "steps": np.array([getattr(mechanism, "steps", np.nan) for mechanism in mechanisms]),
        "power": np.array([mechanism.coefficient for mechanism in mechanisms]),
        "n": np.array(n),
    }


def tabulate(cells):
    """Yield one row per mechanism and metric."""
    for cell in cells:
        arrays = cell.arrays
        for (i, k), point in places(cell.config, "mechanism", "metric", mechanism=arrays["method"], metric=METRICS):
            values, sign = arrays["metrics"][i, k], 1 if point.metric == "test_error" else -1
            means, sems = mean_and_sem(np.stack([values, arrays["metrics"][0, k]]))
            yield {
                **columns(point, "dataset", "order", "log_epsilon"),
                "method": point.mechanism,
                "variant": "smallest_ball" if point.mechanism == "ops" else None,
                "steps": arrays["steps"][i],
                "metric": point.metric,
                **mean_columns("", values),
                "n_repeats": len(values),
                "charge": arrays["charge"][i],
                "share_of_budget": arrays["charge"][i] / arrays["charge"][0],
                "power": arrays["power"][i],
                # The difference is not paired, as the methods use their random numbers differently.
                "behind_mean": sign * float(means[0] - means[1]),
                "behind_sem": float(np.hypot(*sems)),
                "n_train": int(arrays["n"]),
                "sampling": "steps" if point.mechanism == "langevin" else "exact",
                "uses_private_metadata": False,
            }
