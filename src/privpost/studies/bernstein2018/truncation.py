"""Calibration of Algorithm 2 by bounds and by the covariance between segments (ours).

The paper sets the redaction bounds from the true θ and adds the segments' variances as if their sums were independent,
though the counts in the segments are multinomial. Both are varied here, with more trials than the calibration study.
"""

from __future__ import annotations

import itertools

import numpy as np

from privpost.evaluation.calibration import ks_limit, ks_p_value, ks_statistic
from privpost.pipeline.schema import Choice, Integer, Real, Schema, Text, Vector
from privpost.studies.bernstein2018.calibration import gibbs_quantiles
from privpost.studies.bernstein2018.trials import VARIANTS, experiment

SETTINGS = Schema(
    model=Text(),
    prior=Vector(Real()),
    variant=Choice(*VARIANTS),
    burn_in=Integer(at_least=0),
    draws=Integer(at_least=1),
    n=Integer(at_least=1),
    epsilon=Real(above=0),
)


def simulate(config, streams, ledger) -> dict:
    """Return Gibbs `quantiles` (n, epsilon, trials), `reference` (n, trials) and `rejected` (n, epsilon).

    `reference` are the quantiles in the non-private posterior.
    """
    trial = experiment(config.model, config.prior, config.variant)
    quantiles = np.empty((len(config.n), len(config.epsilon), config.trials))
    reference = np.empty((len(config.n), config.trials))
    rejected = np.zeros(quantiles.shape[:2])
    blocks = list(streams.blocks())
    for n, epsilon in itertools.product(config.n, config.epsilon):
        trial.open(ledger, f"n={n}/epsilon={epsilon:g}", n, epsilon)
    for i, n in enumerate(config.n):
        for block in blocks:
            data = trial.data(n, block.size, streams("data", block.index, n=n))
            reference[i, block.trials] = trial.quantiles(data, data.statistics)[0]
            for j, epsilon in enumerate(config.epsilon):
                point = {"n": n, "epsilon": epsilon}
                rng = streams("mechanism", block.index, **point)
                release = trial.release(ledger, f"n={n}/epsilon={epsilon:g}", data, n, epsilon, rng, block.trials)
                rng = streams("sampler", block.index, **point)
                values, share = gibbs_quantiles(trial, data, release, n, config.burn_in, config.draws, rng)
                quantiles[i, j, block.trials] = values[0]
                rejected[i, j] += share / len(blocks)
    return {"quantiles": quantiles, "reference": reference, "rejected": rejected}


def tabulate(cells):
    """Return the KS statistics with their limit and p-values; rows of `non_private` have no ε."""
    import pandas as pd

    rows = []
    for cell in cells:
        config, arrays = cell.config, cell.arrays
        bounds, segments = VARIANTS[config.variant]
        for i, n in enumerate(config.n):
            values = [
                ("gibbs", epsilon, arrays["quantiles"][i, j], arrays["rejected"][i, j])
                for j, epsilon in enumerate(config.epsilon)
            ]
            for method, epsilon, quantiles, rejected in [("non_private", None, arrays["reference"][i], None), *values]:
                statistic = float(ks_statistic(quantiles))
                rows.append(
                    {
                        "variant": config.variant,
                        "bounds": bounds,
                        "segments": segments,
                        "model": config.model,
                        "n": n,
                        "epsilon": epsilon,
                        "method": method,
                        "ks": statistic,
                        "ks_limit": ks_limit(config.trials),
                        "p_value": float(ks_p_value(statistic, config.trials)),
                        "n_trials": config.trials,
                        "rejected_share": rejected,
                        "uses_private_metadata": bounds == "true_theta",
                    }
                )
    return pd.DataFrame(rows)
