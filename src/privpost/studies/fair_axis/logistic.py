"""Logistic regression at the same (ε, δ): concentrated, diffused and OPS posterior samples on three data sets."""

from __future__ import annotations

import itertools
import math
from functools import partial

import numpy as np

from privpost.datasets import load_design
from privpost.discovery import serving
from privpost.evaluation.diagnostics import assess
from privpost.mechanisms.logistic_sampling import LogisticSampling
from privpost.models.binary_regression import BinaryRegression
from privpost.models.logistic_regression import LogisticPosterior, predictive_metrics
from privpost.pipeline.schema import Choice, DatasetName, Integer, Real, Schema
from privpost.privacy.accounting import Cost
from privpost.privacy.approximate import converted_epsilon, largest_renyi_budget, pure_from_approximate
from privpost.samplers import elliptical_slice
from privpost.studies.discovered import Discovered
from privpost.studies.fair_axis import calibration

SETTINGS = Schema(
    dataset=DatasetName(),
    methods=Discovered(lambda: calibration.methods(BinaryRegression(1))),
    beta0=Real(above=0),
    dropped_level=Choice("first", "last", "none"),
    burn_in=Integer(at_least=0),
    diagnostic_chains=Integer(at_least=1),
    diagnostic_draws=Integer(at_least=4),
    epsilon=Real(above=0),
    delta=Real(above=0, below=1),
)
METRICS = ("test_error", "test_log_likelihood")
# Order at which Rényi mechanisms are calibrated: their curves are linear, so that any order names the same ones.
ORDER = 2.0


def mechanisms(model: BinaryRegression, n: int, epsilon: float, delta: float) -> dict[str, LogisticSampling]:
    """Every mechanism that can serve a logistic regression, at (ε, δ).

    Pure ones by `pure_from_approximate`; Rényi ones by the largest budget at order 2 whose whole curve converts to at
    most ε (package dp-accounting), which is the best λ for each (ε, δ). The direct posterior only if it is private
    enough as it is.
    """
    found = serving(model, n, Cost("pure", pure_from_approximate(epsilon, delta)))

    for method, kind in serving(model, n, Cost("rdp", 1e6, order=ORDER)).items():
        if method in found:
            continue
        if kind.calibrated is not None:
            found[method] = largest_renyi_budget(partial(_calibrate, kind, model, n), epsilon, delta, ORDER)
        elif converted_epsilon(kind.rdp, delta) <= epsilon:
            found[method] = kind
    return found


def _calibrate(kind: LogisticSampling, model: BinaryRegression, n: int, budget: Cost) -> LogisticSampling:
    return type(kind).calibrate(model, n, budget, **kind.options)


def simulate(config, streams, ledger) -> dict:
    """Return `metrics` (rows, 2, repeats) with names and settings of the rows, and their diagnostics.

    The first row is the true posterior. All rows share the split and the random numbers of the sampler; features are
    scaled by public bounds.
    """
    design = load_design(config.dataset, bounds="public", dropped_level=config.dropped_level, rng=streams("split", 0))
    n, dimension = design.train_features.shape
    model = BinaryRegression(dimension, config.beta0)
    # A record is the example with the sign of its label; a zero row stays one.
    listed = [("non_private", math.nan, math.nan, None)]
    for epsilon, delta in itertools.product(config.epsilon, config.delta):
        for method, mechanism in mechanisms(model, n, epsilon, delta).items():
            if method not in config.methods:
                continue
            listed.append((method, epsilon, delta, mechanism))
            account = f"{method}/epsilon={epsilon:g}/delta={delta:g}"
            ledger.open(account, Cost("approximate", epsilon, delta=delta))
            ledger.charge(account, Cost("approximate", epsilon, delta=delta))
    metrics = np.empty((len(listed), len(METRICS), config.trials))
    rhat, ess = np.full(len(listed), np.nan), np.full(len(listed), np.nan)
    approximations: dict[str, object] = {}
    # From the weakest privacy on: each method's mode is the next one's start.
    for i in sorted(range(len(listed)), key=lambda i: -np.nan_to_num(listed[i][1], nan=np.inf)):
        method, _, _, mechanism = listed[i]
        posterior = LogisticPosterior(
            design.train_features,
            design.train_labels,
            prior_precision=n * (config.beta0 if mechanism is None else mechanism.precision),
            power=1.0 if mechanism is None else mechanism.power,
            radius=None if mechanism is None else mechanism.radius,
        )
        approximation = posterior.laplace(approximations.get(method))
        approximations[method] = approximation
        for block in streams.blocks():
            draws, _ = elliptical_slice.sample(
                posterior,
                n_chains=block.size,
                n_draws=1,
                n_burn_in=config.burn_in,
                rng=streams("sampler", block.index),
                approximation=approximation,
            )
            scored = predictive_metrics(draws[0], design.test_features, design.test_labels)
            metrics[i, :, block.trials] = np.stack(scored)
        draws, _ = elliptical_slice.sample(
            posterior,
            n_chains=config.diagnostic_chains,
            n_draws=config.diagnostic_draws,
            n_burn_in=config.burn_in,
            rng=streams("diagnostic"),
            approximation=approximation,
        )
        assessment = assess(draws)
        rhat[i], ess[i] = assessment.rhat_max, assessment.ess_min
    return {
        "metrics": metrics,
        "method": np.array([row[0] for row in listed]),
        "epsilon": np.array([row[1] for row in listed]),
        "delta": np.array([row[2] for row in listed]),
        "coefficient": np.array([_coefficient(row[3]) for row in listed]),
        "rhat": rhat,
        "ess": ess,
        "n": np.array(n),
    }


def _coefficient(mechanism: LogisticSampling | None) -> float:
    """β of the concentrated posterior, ρ of the others."""
    if mechanism is None:
        return math.nan
    return mechanism.precision if mechanism.method == "concentrated" else mechanism.power


def tabulate(cells):
    """Return the metrics, and paired differences between methods at the same data set, ε and δ."""
    import pandas as pd

    rows, pairs = [], []
    for cell in cells:
        arrays, dataset = cell.arrays, cell.config.dataset
        for i, k in np.ndindex(arrays["metrics"].shape[:2]):
            values = arrays["metrics"][i, k]
            private = math.isfinite(arrays["epsilon"][i])
            assessed = math.isfinite(arrays["rhat"][i])
            rows.append(
                {
                    "dataset": dataset,
                    "method": arrays["method"][i],
                    "epsilon": arrays["epsilon"][i] if private else None,
                    "delta": arrays["delta"][i] if private else None,
                    "metric": METRICS[k],
                    "mean": values.mean(),
                    "sem": values.std(ddof=1) / math.sqrt(len(values)),
                    "n_repeats": len(values),
                    "coefficient": arrays["coefficient"][i],
                    "rhat_max": arrays["rhat"][i] if assessed else "not assessed",
                    "ess_min": arrays["ess"][i] if assessed else "not assessed",
                    "n_train": int(arrays["n"]),
                    "sampling": "mcmc",
                    "uses_private_metadata": False,
                }
            )
        keys = list(zip(arrays["epsilon"], arrays["delta"], strict=True))
        for key in dict.fromkeys(k for k in keys if math.isfinite(k[0])):
            members = [i for i, k in enumerate(keys) if k == key]
            for (i, j), k in itertools.product(itertools.combinations(members, 2), range(len(METRICS))):
                values = arrays["metrics"][i, k] - arrays["metrics"][j, k]
                pairs.append(
                    {
                        "dataset": dataset,
                        "first": arrays["method"][i],
                        "second": arrays["method"][j],
                        "epsilon": key[0],
                        "delta": key[1],
                        "metric": METRICS[k],
                        "difference_mean": values.mean(),
                        "difference_sem": values.std(ddof=1) / math.sqrt(len(values)),
                        "n_repeats": len(values),
                    }
                )
    return {"logistic": pd.DataFrame(rows), "logistic_pairs": pd.DataFrame(pairs)}
