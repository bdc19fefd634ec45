"""Calibration of Algorithm 2 by bounds and by the covariance between segments (ours).

The paper sets the redaction bounds from the true θ, and adds the segments' variances as if their sums were independent,
though the counts in the segments are multinomial. This study varies both. `exact` is the posterior of the same normal
model of the redacted sum by quadrature, without segments and chains.
"""

import numpy as np

from privpost.evaluation.calibration import ks_columns
from privpost.evaluation.rows import columns, private_places
from privpost.evaluation.spread import ranks_of_shares, spread_columns
from privpost.experiments.bernstein2018.calibration.study import gibbs_quantiles
from privpost.experiments.bernstein2018.trials import CHAINS, VARIANTS, experiment
from privpost.lab.schema import Schema

SETTINGS = Schema(**CHAINS)
TABLES = {
    "truncation": {
        "bounds": "source of the redaction bounds: `public`, or `true_theta`, the private parameter",
        "segments": "covariance between the segments of a redacted sum: `multinomial`, or `independent`, none",
    },
}
# Variants with a posterior by quadrature, which depends on the bounds alone: one for each choice of bounds.
EXACT = ("paper", "corrected")
METHODS = ("non_private", "gibbs", "exact")


def simulate(config, streams, ledger) -> dict:
    """Return quantiles of θ by `gibbs` and `exact` (epsilon, trials) and in the non-private `reference` (trials,), and
    the share `rejected` (epsilon,) of Gibbs proposals.

    `exact` has no rows for a variant without one.
    """
    trial, n = experiment(config.model, config.prior, config.variant), config.n
    size = (len(config.epsilon), config.trials)
    gibbs, rejected, reference = np.empty(size), np.zeros(size), np.empty(config.trials)
    exact = np.empty(size if config.variant in EXACT else (0, 0))
    for epsilon in config.epsilon:
        trial.open(ledger, f"epsilon={epsilon:g}", n, epsilon)
    for block in streams.blocks():
        data = trial.data(n, block.size, streams("data", block.index))
        reference[block.trials] = trial.quantiles(data, data.statistics)[0]
        for j, epsilon in enumerate(config.epsilon):
            rng = streams("mechanism", block.index, epsilon=epsilon)
            release = trial.release(ledger, f"epsilon={epsilon:g}", data, n, epsilon, rng, block.trials)
            if len(exact):
                exact[j, block.trials] = trial.exact_quantiles(data, [release], n)[0, 0]
            rng = streams("sampler", block.index, epsilon=epsilon)
            chains = gibbs_quantiles(trial, data, release, n, config.burn_in, config.draws, rng)
            gibbs[j, block.trials], rejected[j, block.trials] = chains.quantiles[0], chains.rejected
    return {"gibbs": gibbs, "exact": exact, "reference": reference, "rejected": rejected.mean(axis=1)}


def tabulate(cells):
    """Yield the tests of each method and ε; `non_private` has no ε."""
    for cell in cells:
        arrays, (bounds, segments) = cell.arrays, VARIANTS[cell.config.variant]
        for (j, _), point in private_places(cell.config, "epsilon", "method", method=METHODS):
            if point.method == "exact" and not len(arrays["exact"]):
                continue
            quantiles = arrays["reference"] if point.method == "non_private" else arrays[point.method][j]
            ranks = ranks_of_shares(quantiles, point.draws) if point.method == "gibbs" else quantiles
            yield {
                "variant": point.variant,
                "bounds": bounds,
                "segments": segments,
                **columns(point, "model", "n", "epsilon", "method"),
                **ks_columns(quantiles),
                "rejected_share": arrays["rejected"][j] if point.method == "gibbs" else None,
                "uses_private_metadata": bounds == "true_theta",
                **spread_columns(ranks, "theta"),
            }
