"""Logistic regression at the same (ε, δ) by exact privacy curves: all methods of posterior draws on three data sets."""

import itertools
import math
from typing import NamedTuple

import numpy as np

from privpost.datasets import load_design
from privpost.evaluation.summaries import mean_columns
from privpost.experiments.discovered import Discovered, Failed
from privpost.experiments.fair_axis import calibration
from privpost.experiments.ranges import BETA0, DELTA, DESIGN, DROPPED_LEVEL, EPSILON
from privpost.lab.schema import Schema
from privpost.mechanisms.draws.logistic_ops import LogisticOps
from privpost.mechanisms.draws.logistic_sampling import LogisticDraw, LogisticSampling
from privpost.models.regression.binary import BinaryRegression
from privpost.models.regression.logistic import predictive_metrics
from privpost.privacy.accounting.approximate import pure_from_approximate
from privpost.privacy.accounting.costs import Cost

SETTINGS = Schema(
    dataset=DESIGN,
    methods=Discovered(lambda: calibration.methods(BinaryRegression(1)), says="methods that take part"),
    beta0=BETA0,
    dropped_level=DROPPED_LEVEL,
    epsilon=EPSILON,
    delta=DELTA,
)
TABLES = {
    "logistic": {
        "converted_coefficient": "coefficient that the converted guarantee allows",
        "variant": "`smallest_ball` for OPS on its smallest ball, else empty",
    },
    "logistic_pairs": {
        "first": "method, with its variant if it has one",
        "second": "the other method, with its variant if it has one",
    },
}
METRICS = ("test_error", "test_log_likelihood")


class Row(NamedTuple):
    """A method at one (ε, δ): its mechanism, its variant, and the coefficient that the converted guarantee allows."""

    method: str
    epsilon: float
    delta: float
    mechanism: LogisticSampling
    converted: float = math.nan
    variant: str = ""

    @property
    def name(self) -> str:
        """The method with its variant, if it has one."""
        return f"{self.method}_{self.variant}" if self.variant else self.method

    @property
    def account(self) -> str:
        """The name of the row's account in the ledger."""
        return f"{self.name}/epsilon={self.epsilon:g}/delta={self.delta:g}"


def rows(config, model: BinaryRegression, n: int, failed: Failed) -> list[Row]:
    """Return the rows: the true posterior, then each method at each (ε, δ), calibrated by its exact privacy curve."""
    # In a simulation, the time of a release need not be public.
    options = {"public_time": False}
    direct = LogisticDraw(model, n, calibration.ORDER, weighting="direct", **options)
    entries = [Row("non_private", math.nan, math.nan, direct)]
    for epsilon, delta in itertools.product(config.epsilon, config.delta):
        for method, mechanism in calibration.converted(model, n, epsilon, delta, **options).items():
            if method in config.methods and method not in failed:
                with failed.alone(method):
                    exact = mechanism.recalibrated(Cost("approximate", epsilon, delta=delta))
                    entries.append(Row(method, epsilon, delta, exact, mechanism.coefficient))
        if "ops" in config.methods and "ops_smallest_ball" not in failed:
            with failed.alone("ops_smallest_ball"):
                pure = Cost("pure", pure_from_approximate(epsilon, delta))
                ops = LogisticOps.calibrate(model, n, pure, charge="smallest_ball", **options)
                exact = ops.recalibrated(Cost("approximate", epsilon, delta=delta))
                entries.append(Row("ops", epsilon, delta, exact, ops.coefficient, "smallest_ball"))
    return entries


def simulate(config, streams, ledger) -> dict:
    """Return `metrics` (rows, 2, repeats), the rows' names and settings, and the rows' proposals per draw."""
    design = load_design(config.dataset, bounds="public", dropped_level=config.dropped_level, rng=streams("split", 0))
    n, dimension = design.train_features.shape
    model = BinaryRegression(dimension, config.beta0)
    statistics = model.statistics_of(design.train_features, design.train_labels)
    failed = Failed()
    entries = rows(config, model, n, failed)
    ledger.open(entries[0].account, Cost("rdp", math.inf, order=calibration.ORDER), entries[0].mechanism)
    for row in entries[1:]:
        with failed.alone(row.name):
            budget = Cost("approximate", row.epsilon, delta=row.delta)
            ledger.open(row.account, budget, row.mechanism, accounting="exact")
    metrics = np.empty((len(entries), len(METRICS), config.trials))
    proposals, expected = np.zeros(len(entries)), np.empty(len(entries))
    starts: dict[str, object] = {}
    # The order is from the largest ε down, as each search for a method's mode starts at the method's previous mode.
    for i in sorted(range(len(entries)), key=lambda i: -np.nan_to_num(entries[i].epsilon, nan=np.inf)):
        row = entries[i]
        for block in () if row.name in failed else streams.blocks():
            how = {"size": block.size, "repeats": block.trials, "start": starts.get(row.name)}
            rng = streams("sampler", block.index)
            with failed.alone(row.name):
                draws, drawn = ledger.release(row.account, row.mechanism, statistics, rng, **how)
                starts[row.name] = drawn.start
                scored = predictive_metrics(draws, design.test_features, design.test_labels)
                metrics[i, :, block.trials] = np.stack(scored)
                proposals[i] += drawn.proposals * block.size / config.trials
                expected[i] = drawn.expected
    at = [i for i, row in enumerate(entries) if row.method not in failed]
    entries, metrics, proposals, expected = [entries[i] for i in at], metrics[at], proposals[at], expected[at]
    return {
        "metrics": metrics,
        **{key: np.array([getattr(row, key) for row in entries]) for key in ("method", "variant", "epsilon", "delta")},
        "coefficient": np.array([math.nan, *(row.mechanism.coefficient for row in entries[1:])]),
        "converted_coefficient": np.array([row.converted for row in entries]),
        "proposals": proposals,
        "expected_proposals": expected,
        "n": np.array(n),
    }


def tabulate(cells):
    """Return two tables: the metrics, and paired differences between methods at the same data set, ε and δ."""
    scores, pairs = [], []
    for cell in cells:
        scores += _rows(cell)
        pairs += _pairs(cell)
    return {"logistic": scores, "logistic_pairs": pairs}


def _rows(cell):
    arrays = cell.arrays
    for i, k in np.ndindex(arrays["metrics"].shape[:2]):
        private = math.isfinite(arrays["epsilon"][i])
        yield {
            "dataset": cell.config.dataset,
            "method": arrays["method"][i],
            "variant": arrays["variant"][i] or None,
            "epsilon": arrays["epsilon"][i] if private else None,
            "delta": arrays["delta"][i] if private else None,
            "metric": METRICS[k],
            **mean_columns("", arrays["metrics"][i, k]),
            "n_repeats": arrays["metrics"].shape[-1],
            **{
                name: arrays[name][i]
                for name in ("coefficient", "converted_coefficient", "proposals", "expected_proposals")
            },
            "n_train": int(arrays["n"]),
            "sampling": "steps" if arrays["method"][i] == "langevin" else "exact",
            "uses_private_metadata": False,
        }


def _pairs(cell):
    arrays = cell.arrays
    names = [f"{m}_{v}" if v else m for m, v in zip(arrays["method"], arrays["variant"], strict=True)]
    budgets = list(zip(arrays["epsilon"], arrays["delta"], strict=True))
    for epsilon, delta in dict.fromkeys(budget for budget in budgets if math.isfinite(budget[0])):
        members = [i for i, budget in enumerate(budgets) if budget == (epsilon, delta)]
        for (i, j), k in itertools.product(itertools.combinations(members, 2), range(len(METRICS))):
            yield {
                "dataset": cell.config.dataset,
                "first": names[i],
                "second": names[j],
                "epsilon": epsilon,
                "delta": delta,
                "metric": METRICS[k],
                **mean_columns("difference", arrays["metrics"][i, k] - arrays["metrics"][j, k]),
                "n_repeats": arrays["metrics"].shape[-1],
            }
