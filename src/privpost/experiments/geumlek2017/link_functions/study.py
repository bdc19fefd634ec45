"""Logistic, probit and complementary log-log regression under RDP, drawn exactly (Geumlek et al. 2017, section 4)."""

import math
from functools import partial

import numpy as np
from scipy.special import ndtr

from privpost.datasets import load_design
from privpost.evaluation.rows import columns, places
from privpost.evaluation.summaries import mean_columns
from privpost.experiments.ranges import BETA0, DESIGN, DROPPED_LEVEL, LOG_EPSILON, METHOD, ORDER, RADIUS
from privpost.lab.schema import Choice, Schema
from privpost.mechanisms.link_sampling import LinkDraw
from privpost.models.link_regression import LINKS, LinkRegression
from privpost.privacy.accounting import Cost
from privpost.privacy.ledger import Request

SETTINGS = Schema(
    dataset=DESIGN,
    beta0=BETA0,
    dropped_level=DROPPED_LEVEL,
    order=ORDER,
    link=Choice(*LINKS, says="link function of the binary regression"),
    radius=RADIUS,
    method=Choice("diffused", "concentrated", says=METHOD),
    log_epsilon=LOG_EPSILON,
)
TABLES = {
    "link_functions": {
        "slope_bound": "largest slope of the loss on the ball",
    },
}
METRICS = ("test_error", "test_log_likelihood")


def probabilities(link: str, predictors) -> np.ndarray:
    """Return P(y = 1) at linear predictors."""
    if link == "probit":
        return ndtr(predictors)
    return -np.expm1(-np.exp(predictors)) if link == "cloglog" else 1 / (1 + np.exp(-predictors))


def simulate(config, streams, ledger) -> dict:
    """Return `metrics` (methods, epsilons, 2, repeats), `coefficient` and `proposals` (methods, epsilons), and `n`."""
    design = load_design(config.dataset, bounds="public", dropped_level=config.dropped_level, rng=streams("split", 0))
    n, dimension = design.train_features.shape
    model = LinkRegression(dimension, config.beta0, link=config.link, radius=config.radius)
    statistics = model.statistics_of(design.train_features, np.asarray(design.train_labels, float))
    shape = len(config.method), len(config.log_epsilon)
    metrics = np.empty((*shape, len(METRICS), config.trials))
    coefficient, proposals = np.empty(shape), np.empty(shape)
    test, labels = design.test_features, design.test_labels == 1
    opened = {}
    for i, j in np.ndindex(shape):
        budget = Cost("rdp", math.exp(config.log_epsilon[j]), order=config.order)
        make = partial(LinkDraw.calibrate, model, n, budget, weighting=config.method[i], public_time=False)
        account = f"{config.method[i]}/log_epsilon={config.log_epsilon[j]:g}"
        opened[i, j] = account, ledger.open(account, budget, make)
        coefficient[i, j] = opened[i, j][1].coefficient
    for block in streams.blocks():
        rngs = [streams("sampler", block.index, log_epsilon=config.log_epsilon[j]) for _, j in opened]
        requests = [
            Request(*pair, statistics, rng, block.size, block.trials)
            for pair, rng in zip(opened.values(), rngs, strict=True)
        ]
        for (i, j), (draws, drawn) in zip(opened, ledger.release_all(requests), strict=True):
            p = np.clip(probabilities(config.link, draws @ test.T), 1e-300, 1 - 1e-16)
            metrics[i, j, 0, block.trials] = ((p > 0.5) != labels).mean(axis=1)
            metrics[i, j, 1, block.trials] = np.log(np.where(labels, p, 1 - p)).mean(axis=1)
            proposals[i, j] = drawn.proposals
    return {
        "metrics": metrics,
        "coefficient": coefficient,
        "proposals": proposals,
        "slope_bound": np.array(model.slope_bound),
        "n": np.array(n),
    }


def tabulate(cells):
    """Yield one row per data set, link, method, epsilon and metric."""
    for cell in cells:
        arrays = cell.arrays
        for at, point in places(cell.config, "method", "log_epsilon", "metric", metric=METRICS):
            values = arrays["metrics"][at]
            yield {
                **columns(point, "dataset", "link", "method", "order", "log_epsilon", "metric"),
                **mean_columns("", values),
                "n_repeats": len(values),
                "coefficient": arrays["coefficient"][at[:2]],
                "radius": point.radius,
                "slope_bound": float(arrays["slope_bound"]),
                "proposals": arrays["proposals"][at[:2]],
                "n_train": int(arrays["n"]),
                "sampling": "exact",
                "uses_private_metadata": False,
            }
