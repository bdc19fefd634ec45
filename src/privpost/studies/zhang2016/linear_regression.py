"""Mean squared error of private linear regression against the prior's precision (Zhang et al. 2016, figure 2)."""

from __future__ import annotations

import math

import numpy as np

from privpost.datasets import catalogue, census, prepared
from privpost.evaluation.summaries import mean_columns
from privpost.mechanisms.linear_sampling import LinearSampler
from privpost.models.linear_regression import LinearRegression, Moments
from privpost.pipeline.schema import Choice, DatasetName, Integer, Real, Schema
from privpost.privacy.accounting import Cost

SETTINGS = Schema(
    dataset=DatasetName(),
    noise_variance=Real(above=0),
    train_share=Real(above=0, below=1),
    radius_factor=Real(above=0),
    feature_bound=Real(above=0),
    label_bound=Real(above=0),
    acceptance_draws=Integer(at_least=1),
    epsilon_target=Real(above=0),
    variant=Choice("paper"),
    method=Choice("non_private", "sampler_record"),
    prior_precision=Real(above=0),
)


def simulate(config, streams, ledger) -> dict:
    """Return arrays over (prior precision, trial): `non_private` and `sampler_record`, the mean squared errors on the
    test rows; `acceptance`, of rejection from the untruncated posterior, and `proposal_acceptance`, of the proposals
    used; and `mean_norm`, the norm of the untruncated posterior mean. Also `epsilon` and `radius` (prior precision,)
    and `stand_in`.

    Raises ValueError for a ball that costs more than the target, and for records that exceed the bounds that the
    privacy cost is stated for.
    """
    dataset = catalogue.load(config.dataset)
    features, labels = census.regression(prepared.read(config.dataset, dataset), dataset)
    rows = round(config.train_share * len(labels))
    mechanisms = {}
    for b in config.prior_precision:
        model = LinearRegression(features.shape[1], b, config.noise_variance, config.feature_bound, config.label_bound)
        account = f"sampler_record/prior_precision={b:g}"
        mechanisms[account] = LinearSampler(model, rows, config.radius_factor / math.sqrt(b))
        ledger.open(account, Cost("pure", config.epsilon_target), mechanisms[account])
    model.check(features, labels)
    everything = Moments.of(features, labels)
    names = ("non_private", "sampler_record", "acceptance", "proposal_acceptance", "mean_norm")
    arrays = {name: np.full((len(mechanisms), config.trials), np.nan) for name in names}
    for block in streams.blocks():
        splits, sampler = streams("data", block.index), streams("sampler", block.index)
        for trial in range(block.trials.start, block.trials.stop):
            chosen = splits.choice(len(labels), rows, replace=False, shuffle=False)
            train = Moments.of(features[chosen], labels[chosen])
            test = everything.without(train)
            normals = sampler.standard_normal((config.acceptance_draws, features.shape[1]))
            for i, (account, mechanism) in enumerate(mechanisms.items()):
                mean, precision = mechanism.model.posterior(train.statistics)
                arrays["non_private"][i, trial] = test.mean_squared_error(mean)
                arrays["mean_norm"][i, trial] = np.linalg.norm(mean)
                values, vectors = np.linalg.eigh(precision)
                untruncated = mean + (normals / np.sqrt(values)) @ vectors.T
                arrays["acceptance"][i, trial] = np.mean((untruncated**2).sum(axis=1) <= mechanism.radius**2)
                # A draw per split, whose proposals are counted.
                drawn, arrays["proposal_acceptance"][i, trial] = ledger.release(
                    account, mechanism, train.statistics, sampler, size=1, repeats=slice(trial, trial + 1)
                )
                arrays["sampler_record"][i, trial] = test.mean_squared_error(drawn[0])
    return {
        **arrays,
        "epsilon": np.array([mechanism.cost().epsilon for mechanism in mechanisms.values()]),
        "radius": np.array([mechanism.radius for mechanism in mechanisms.values()]),
        "stand_in": np.array(dataset.stand_in),
    }


def tabulate(cells):
    """Return mean squared errors per data set, method and prior precision, with paired excesses of the private one."""
    import pandas as pd

    rows = []
    for cell in cells:
        config, arrays = cell.config, cell.arrays
        for method in config.method:
            for i, b in enumerate(config.prior_precision):
                errors = arrays[method][i]
                row = {
                    "dataset": config.dataset,
                    "stand_in": bool(arrays["stand_in"]),
                    "variant": config.variant,
                    "method": method,
                    "prior_precision": b,
                    **mean_columns("mse", errors),
                    "n_repeats": config.trials,
                    "mean_norm": float(arrays["mean_norm"][i].mean()),
                }
                if method != "non_private":
                    row["epsilon"] = float(arrays["epsilon"][i])
                    row["radius"] = float(arrays["radius"][i])
                    row["acceptance"] = float(arrays["acceptance"][i].mean())
                    row["proposal_acceptance"] = float(arrays["proposal_acceptance"][i].mean())
                    row |= mean_columns("excess", errors - arrays["non_private"][i])
                # A stronger prior with the same splits and noise.
                row |= mean_columns("rise", errors - arrays[method][0])
                rows.append(row)
    columns = ["dataset", "stand_in", "variant", "method", "prior_precision", "epsilon", "mse_mean", "mse_sem"]
    columns += ["n_repeats", "acceptance", "proposal_acceptance", "radius", "mean_norm"]
    columns += ["excess_mean", "excess_sem", "rise_mean", "rise_sem"]
    return pd.DataFrame(rows, columns=columns)
