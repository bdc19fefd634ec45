"""Calibration of Algorithm 2 by bounds and by the covariance between segments (ours).

The paper sets the redaction bounds from the true θ, and adds the segments' variances as if their sums were independent,
though the counts in the segments are multinomial. This study varies both, with more trials than `calibration`. `exact`
is the posterior of the same normal model of the redacted sum by quadrature, without segments and chains.
"""

import numpy as np

from privpost.evaluation.calibration import ks_columns
from privpost.evaluation.rows import columns, private_places
from privpost.experiments.bernstein2018.calibration.study import gibbs_quantiles
from privpost.experiments.bernstein2018.trials import CHAINS, VARIANTS, blocks, experiment
from privpost.lab.schema import Integer, Schema

SETTINGS = Schema(**CHAINS, chain_trials=Integer(at_least=1, says="trials with chains"))
TABLES = {
    "truncation": {
        "bounds": "source of the redaction bounds: `public`, or `true_theta`, the private parameter",
        "segments": "covariance between the segments of a redacted sum: `multinomial`, or `independent`, none",
    },
}
# Variants with a posterior by quadrature, which depends on the bounds alone, and whether for all trials or those with a
# chain, which suffice where the error is large.
EXACT = {"paper": False, "corrected": True}
METHODS = ("non_private", "gibbs", "exact")


def simulate(config, streams, ledger) -> dict:
    """Return quantiles of θ by `gibbs` (epsilon, trials with a chain), `exact` (epsilon, trials) and in the non-private
    `reference` (trials,), and the share `rejected` (epsilon,) of Gibbs proposals.

    `exact` is empty for a variant without one.
    """
    trial, n = experiment(config.model, config.prior, config.variant), config.n
    chained = list(blocks(streams, config.chain_trials))
    size = (len(config.epsilon), chained[-1].trials.stop)
    gibbs, rejected, reference = np.empty(size), np.zeros(len(config.epsilon)), np.empty(config.trials)
    stop = config.trials if EXACT.get(config.variant) else size[1]
    exact = np.empty((len(config.epsilon), stop if config.variant in EXACT else 0))
    for epsilon in config.epsilon:
        trial.open(ledger, f"epsilon={epsilon:g}", n, epsilon)
    for block in streams.blocks():
        if block.trials.stop > stop:
            break
        data = trial.data(n, block.size, streams("data", block.index))
        reference[block.trials] = trial.quantiles(data, data.statistics)[0]
        for j, epsilon in enumerate(config.epsilon):
            rng = streams("mechanism", block.index, epsilon=epsilon)
            release = trial.release(ledger, f"epsilon={epsilon:g}", data, n, epsilon, rng, block.trials)
            if exact.size:
                exact[j, block.trials] = trial.exact_quantiles(data, [release], n)[0, 0]
            if block in chained:
                rng = streams("sampler", block.index, epsilon=epsilon)
                chains = gibbs_quantiles(trial, data, release, n, config.burn_in, config.draws, rng)
                gibbs[j, block.trials] = chains.quantiles[0]
                rejected[j] += chains.rejected / len(chained)
    return {"gibbs": gibbs, "exact": exact, "reference": reference[:stop], "rejected": rejected}


def tabulate(cells):
    """Yield the KS test of each method and ε; `non_private` has no ε."""
    for cell in cells:
        arrays, (bounds, segments) = cell.arrays, VARIANTS[cell.config.variant]
        for (j, _), point in private_places(cell.config, "epsilon", "method", method=METHODS):
            quantiles = arrays["reference"] if point.method == "non_private" else arrays[point.method][j]
            if len(quantiles):
                yield {
                    "variant": point.variant,
                    "bounds": bounds,
                    "segments": segments,
                    **columns(point, "model", "n", "epsilon", "method"),
                    **ks_columns(quantiles),
                    "rejected_share": arrays["rejected"][j] if point.method == "gibbs" else None,
                    "uses_private_metadata": bounds == "true_theta",
                }
