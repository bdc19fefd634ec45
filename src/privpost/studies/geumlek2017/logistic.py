"""Bayesian logistic regression under RDP (Geumlek et al. 2017, section 5.2, figure 3 and its appendix figure)."""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import numpy as np

from privpost.datasets import load_design
from privpost.evaluation.diagnostics import assess
from privpost.models.logistic_regression import LogisticPosterior, predictive_metrics
from privpost.pipeline.schema import Choice, DatasetName, Integer, Real, Schema, Vector
from privpost.privacy.accounting import Cost
from privpost.privacy.glm import concentrated_precision, diffused_power, ops_power, ops_rdp, posterior_rdp
from privpost.samplers import elliptical_slice
from privpost.samplers import slice as univariate_slice

VARIANTS = ("paper", "corrected_charge", "corrected")
METHODS = ("concentrated", "diffused", "ops", "non_private")
SETTINGS = Schema(
    dataset=DatasetName(),
    beta0=Real(above=0),
    feature_bound=Real(above=0),
    residual_bound=Real(above=0),
    dropped_level=Choice("first", "last", "none"),
    sampler=Choice("elliptical", "slice"),
    burn_in=Integer(at_least=0),
    diagnostic_chains=Integer(at_least=1),
    diagnostic_draws=Integer(at_least=4),
    glm_orders=Vector(Real(at_least=1)),
    glm_powers=Vector(Real(above=0, at_most=1)),
    variant=Choice(*VARIANTS),
    method=Choice(*METHODS),
    order=Real(at_least=1, optional=True),
    log_epsilon=Real(optional=True),
    n_splits=Integer(at_least=1),
    chains=Integer(at_least=1),
)
METRICS = ("test_error", "test_log_likelihood")
PAIRS = (("ops", "concentrated"), ("ops", "diffused"), ("concentrated", "diffused"))


class Calibration(NamedTuple):
    """What a method does at one budget: prior precision per record, power, radius; the table's coefficient; cost."""

    beta: float
    power: float
    radius: float | None
    coefficient: float | None
    cost: Cost | None


def calibrate(method: str, variant: str, order: float | None, epsilon: float | None, n: int, config) -> Calibration:
    """Return the method's settings at a budget of (order, epsilon)-RDP; they depend on no data but the public n."""
    bounds = config.feature_bound, config.residual_bound
    if method == "non_private":
        return Calibration(config.beta0, 1.0, None, None, None)
    if method == "concentrated":
        beta = float(concentrated_precision(order, epsilon, n, config.beta0, *bounds))
        return Calibration(beta, 1.0, None, beta, _rdp(posterior_rdp(order, n, beta, 1.0, *bounds), order))
    if method == "diffused":
        power = float(diffused_power(order, epsilon, n, config.beta0, *bounds))
        return Calibration(
            config.beta0, power, None, power, _rdp(posterior_rdp(order, n, config.beta0, power, *bounds), order)
        )
    charge = "paper" if variant == "paper" else "corrected_charge"
    power = float(ops_power(order, epsilon, config.beta0, config.feature_bound, charge))
    cost = _rdp(ops_rdp(order, power, config.beta0, config.feature_bound, charge), order)
    return Calibration(config.beta0, power, config.feature_bound / config.beta0, power, cost)


def _rdp(epsilon, order: float) -> Cost:
    return Cost("rdp", float(epsilon), order=order)


def _sample(posterior: LogisticPosterior, gaussian, config, n_chains: int, n_draws: int, rng) -> np.ndarray:
    """Return draws (n_draws, n_chains, d), each chain from a start of its own."""
    if config.sampler == "elliptical":
        draws, _ = elliptical_slice.sample(
            posterior, n_chains=n_chains, n_draws=n_draws, n_burn_in=config.burn_in, rng=rng, gaussian=gaussian
        )
    else:
        # The conditional standard deviations, those of a coordinate when the others stay.
        deviations = 1 / np.linalg.norm(gaussian.factor, axis=1)
        start = gaussian.mean + deviations * rng.standard_normal((n_chains, posterior.dimension))
        draws, _ = univariate_slice.sample(
            posterior,
            start=posterior.into_ball(start),
            # About three of them: few steps out, few shrinks.
            width=3 * float(deviations.mean()),
            n_draws=n_draws,
            n_burn_in=config.burn_in,
            rng=rng,
        )
    return draws


def _design(config, streams, split: int):
    """Return the encoded data under one random split (an official split is the same for each)."""
    bounds = "public" if config.variant == "corrected" else "data"
    return load_design(config.dataset, bounds=bounds, dropped_level=config.dropped_level, rng=streams("split", split))


def simulate(config, streams, ledger) -> dict:
    """Return test error and log-likelihood of every repeat, the coefficients and the diagnostics of the chains.

    `metrics` (splits settings, epsilons, 2, repeats): with one split all repeats are chains on the same data, with as
    many splits as repeats each has its own; a repeat is the mean over `chains` independent chains. `coefficient`
    (epsilons,): beta or rho. `rhat`, `ess` (epsilons,): of a diagnostic run on the first split. `n` (): training
    examples, `majority_error` (): test error of guessing the training data's larger class.
    """
    epsilons = [None if value is None else math.exp(value) for value in config.log_epsilon]
    metrics = np.full((len(config.n_splits), len(epsilons), len(METRICS), config.trials), np.nan)
    coefficient, rhat, ess = (np.full(len(epsilons), np.nan) for _ in range(3))
    design = _design(config, streams, 0)
    n = len(design.train_labels)
    calibrations = [calibrate(config.method, config.variant, config.order, e, n, config) for e in epsilons]
    for epsilon, calibration in zip(epsilons, calibrations, strict=True):
        if calibration.cost is not None:
            account = f"{config.method}/epsilon={epsilon:.6g}"
            ledger.open(account, Cost("rdp", epsilon, order=config.order))
            ledger.charge(account, calibration.cost)
    for i, n_splits in enumerate(config.n_splits):
        if config.trials % n_splits:
            raise ValueError(f"n_splits is {n_splits}, but must divide trials, which is {config.trials}")
        repeats = config.trials // n_splits
        for split in range(n_splits):
            data = design if split == 0 else _design(config, streams, split)
            where = slice(split * repeats, (split + 1) * repeats)
            approximation = None
            # From the largest epsilon down: each posterior's mode is the next one's start.
            for j in reversed(range(len(epsilons))):
                coefficient[j] = np.nan if calibrations[j].coefficient is None else calibrations[j].coefficient
                posterior = _posterior(data, calibrations[j])
                approximation = posterior.laplace(approximation)
                # One for the draws and the diagnostic run: it costs as much as a sweep of all chains.
                rng = streams("gaussian", split, log_epsilon=config.log_epsilon[j])
                gaussian = elliptical_slice.recentred(posterior, approximation, rng)
                rng = streams("sampler", split, log_epsilon=config.log_epsilon[j])
                draws = _sample(posterior, gaussian, config, repeats * config.chains, 1, rng)[0]
                values = np.stack(predictive_metrics(draws, data.test_features, data.test_labels))
                metrics[i, j, :, where] = values.reshape(len(METRICS), repeats, config.chains).mean(axis=-1)
                if i == 0 and split == 0:
                    rng = streams("diagnostic", log_epsilon=config.log_epsilon[j])
                    sizes = config.diagnostic_chains, config.diagnostic_draws
                    assessment = assess(_sample(posterior, gaussian, config, *sizes, rng))
                    rhat[j], ess[j] = assessment.rhat_max, assessment.ess_min
    majority = np.mean(design.test_labels != (design.train_labels.mean() > 0.5))
    return {
        "metrics": metrics,
        "coefficient": coefficient,
        "rhat": rhat,
        "ess": ess,
        "n": np.array(n),
        "majority_error": np.array(majority),
    }


def _posterior(data, calibration: Calibration) -> LogisticPosterior:
    n = len(data.train_labels)
    return LogisticPosterior(
        data.train_features,
        data.train_labels,
        prior_precision=n * calibration.beta,
        power=calibration.power,
        radius=calibration.radius,
    )


def tabulate(cells):
    """Return the curves, the split study, paired differences between methods, and the charges `rdp_glm`."""
    import pandas as pd

    rows = list(itertools.chain.from_iterable(map(_rows, cells)))
    # The corrected charge changes OPS only: its other rows are the paper variant's.
    rows += [
        {**row, "variant": "corrected_charge"} for row in rows if row["variant"] == "paper" and row["method"] != "ops"
    ]
    table = pd.DataFrame(rows)
    for rank, column, words in ((0, "variant", VARIANTS), (1, "method", METHODS)):
        table[f"_{rank}"] = table[column].map(words.index)
    table = table.sort_values(["dataset", "_0", "_1", "order", "log_epsilon", "metric", "n_splits"], kind="stable")
    table = table.drop(columns=["_0", "_1"]).reset_index(drop=True)
    single = table[table.chains == 1].drop(columns="chains")
    studied = single.dataset.isin(single.dataset[single.n_splits > 1]) & (single.variant == "paper")
    return {
        "logistic": single[single.n_splits == 1].reset_index(drop=True),
        "logistic_splits": single[studied].reset_index(drop=True),
        "logistic_pairs": pd.DataFrame(_pairs(cells)),
        "rdp_glm": pd.DataFrame(_glm_rows(cells)),
    }


def _rows(cell):
    config, arrays = cell.config, cell.arrays
    for (i, n_splits), (j, log_epsilon), (k, metric) in itertools.product(
        enumerate(config.n_splits), enumerate(config.log_epsilon), enumerate(METRICS)
    ):
        values = arrays["metrics"][i, j, k]
        assessed = math.isfinite(arrays["rhat"][j])
        yield {
            "dataset": config.dataset,
            "variant": config.variant,
            "method": config.method,
            "order": config.order,
            "log_epsilon": log_epsilon,
            "metric": metric,
            "mean": values.mean(),
            "sem": values.std(ddof=1) / math.sqrt(len(values)),
            "n_repeats": len(values),
            "coefficient": arrays["coefficient"][j],
            "rhat_max": arrays["rhat"][j] if assessed else "not assessed",
            "ess_min": arrays["ess"][j] if assessed else "not assessed",
            "n_splits": n_splits,
            "chains": config.chains,
            "n_train": int(arrays["n"]),
            "majority_error": float(arrays["majority_error"]),
            "sampling": "mcmc",
            "uses_private_metadata": config.variant != "corrected",
        }


def _glm_rows(cells):
    """Yield the RDP guarantees of one posterior draw and of OPS under the same parameters, by data set."""
    sizes = {cell.config.dataset: (int(cell.arrays["n"]), cell.config) for cell in cells}
    for dataset, (n, config) in sorted(sizes.items()):
        for power in config.glm_powers:
            # On both sides of the orders 2n/rho and n/rho, where OPS is said to become the better one.
            near = [factor * n / power for factor in (0.99, 1.01, 1.98, 2.02)]
            orders = np.array(sorted({*config.glm_orders, *near}))
            bounds = config.feature_bound, config.residual_bound
            draw = "direct" if power == 1 else "diffused"
            curves = {(draw, "paper"): posterior_rdp(orders, n, config.beta0, power, *bounds)}
            for charge in ("paper", "corrected_charge"):
                curves["ops", charge] = ops_rdp(orders, power, config.beta0, config.feature_bound, charge)
            for (method, variant), curve in curves.items():
                for order, epsilon in zip(orders, curve, strict=True):
                    yield {
                        "method": method,
                        "variant": variant,
                        "dataset": dataset,
                        "power": power,
                        "n": n,
                        "order": order,
                        "epsilon": float(epsilon),
                    }


def _pairs(cells):
    """Yield paired differences (first less second method) of both metrics.

    The methods share splits and random numbers, and a difference is taken within each repeat: one chain on the one
    split, or the mean of many chains on a split of its own.
    """
    chosen = {}
    for cell in cells:
        config = cell.config
        if config.method == "non_private":
            continue
        for n_splits, values in zip(config.n_splits, cell.arrays["metrics"], strict=True):
            if n_splits == 1 or config.chains > 1:
                key = config.dataset, config.variant, config.order, n_splits, config.chains
                chosen[(*key, config.method)] = (config.log_epsilon, values)
    for key in sorted({key[:-1] for key in chosen}):
        dataset, variant, order, n_splits, chains = key
        for first, second in PAIRS:
            # Under the corrected charge the other methods are the paper variant's.
            found = [
                chosen.get((*key, method)) or chosen.get((dataset, "paper", *key[2:], method))
                for method in (first, second)
            ]
            if None in found or (variant == "corrected_charge" and first != "ops"):
                continue
            (log_epsilon, left), (_, right) = found
            difference = left - right
            for (j, value), (k, metric) in itertools.product(enumerate(log_epsilon), enumerate(METRICS)):
                values = difference[j, k]
                yield {
                    "dataset": dataset,
                    "variant": variant,
                    "order": order,
                    "log_epsilon": value,
                    "metric": metric,
                    "first": first,
                    "second": second,
                    "difference_mean": values.mean(),
                    "difference_sem": values.std(ddof=1) / math.sqrt(len(values)),
                    "n_repeats": len(values),
                    "n_splits": n_splits,
                    "chains": chains,
                }
