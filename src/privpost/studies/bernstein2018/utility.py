"""Distance of private posteriors from the true one (Bernstein and Sheldon 2018, figure 1c).

MMD² between a method's posterior draws and draws from the non-private posterior, on one probability (the first
category's), kernel exp(−(p − q)²/2), the unbiased estimate, averaged over trials.
"""

from __future__ import annotations

import numpy as np

from privpost.evaluation.mmd import TERMS, diagonal_sum, embedding_sum, mmd2_from_sums
from privpost.evaluation.summaries import mean_columns
from privpost.pipeline.schema import Choice, Integer, Real, Schema, Vector
from privpost.samplers.noise_aware_gibbs import run
from privpost.studies.bernstein2018.trials import experiment

SETTINGS = Schema(
    model=Choice("binomial", "multinomial"),
    prior=Vector(Real(above=0)),
    burn_in=Integer(at_least=0),
    draws=Integer(at_least=2),
    n=Integer(at_least=1),
    epsilon=Real(above=0),
)
METHODS = ("gibbs", "naive")
VARIANT = "paper"


def simulate(config, streams, ledger) -> dict:
    """Return `mmd2` (method, n, trials), each trial's unbiased estimate, and `rejected` (method, n).

    Negative estimates are kept. Draws are never stored: samples enter through sums of the features and of k(p_i, q_i).
    """
    trial = experiment(config.model, config.prior, VARIANT)
    mmd2 = np.empty((len(METHODS), len(config.n), config.trials))
    rejected = np.zeros((len(METHODS), len(config.n)))
    blocks = list(streams.blocks())
    for n in config.n:
        trial.open(ledger, f"n={n}", n, config.epsilon)
    for i, n in enumerate(config.n):
        for block in blocks:
            data = trial.data(n, block.size, streams("data", block.index, n=n))
            rng = streams("mechanism", block.index, n=n)
            release = trial.release(ledger, f"n={n}", data, n, config.epsilon, rng, block.trials)
            statistics, projected = trial.naive(data, release, n)
            estimates, share = _estimates(
                config, trial, trial.kernel(data, release, n), data.statistics, statistics, streams, block.index, n
            )
            mmd2[:, i, block.trials] = estimates
            rejected[:, i] += np.array([share, projected]) / len(blocks)
    return {"mmd2": mmd2, "rejected": rejected}


def _estimates(config, trial, kernel, true_statistics, naive_statistics, streams, block: int, n: int):
    """Return MMD² of Gibbs and naive, shape (2, trials), and the Gibbs sampler's share of rejected proposals."""
    true, naive = (trial.marginals(statistics)[:, 0] for statistics in (true_statistics, naive_statistics))
    # The stream of the true posterior's draws is common to all ε, so that methods and ε are compared on one sample.
    true_rng, naive_rng = streams("sampler", block, method="non_private", n=n), streams("sampler", block, n=n, of=1)
    size = true.shape[-1]
    sums = np.zeros((3, TERMS, size))
    diagonals = np.zeros((2, size))

    def consume(theta):
        gibbs = theta.reshape(len(theta), -1, size)[:, 0]
        q = true_rng.beta(*true, size=gibbs.shape)
        p = naive_rng.beta(*naive, size=gibbs.shape)
        for i, sample in enumerate((gibbs, p, q)):
            sums[i] += embedding_sum(sample)
        for i, sample in enumerate((gibbs, p)):
            diagonals[i] += diagonal_sum(sample, q)

    proposals = run(kernel, streams("sampler", block, n=n), config.burn_in, config.draws, consume)
    estimates = [mmd2_from_sums(sums[m], sums[2], diagonals[m], config.draws) for m in range(2)]
    return np.stack(estimates), proposals.rejected_share


def tabulate(cells):
    """Return the means over trials with their standard errors; `mmd` is the root of the mean, 0 if that is negative.

    `sampling` tells whether a method's draws are independent (`exact`) or those of a chain (`mcmc`).
    """
    import pandas as pd

    rows = []
    for cell in cells:
        config, arrays = cell.config, cell.arrays
        for m, method in enumerate(METHODS):
            for i, n in enumerate(config.n):
                values = arrays["mmd2"][m, i]
                other = arrays["mmd2"][METHODS.index("naive"), i]
                found, below = mean_columns("mmd2", values), mean_columns("below_naive", other - values)
                rows.append(
                    {
                        "variant": VARIANT,
                        "model": config.model,
                        "n": n,
                        "epsilon": config.epsilon,
                        "method": method,
                        "sampling": "mcmc" if method == "gibbs" else "exact",
                        "mmd": np.sqrt(max(found["mmd2_mean"], 0.0)),
                        **found,
                        **(below if method != "naive" else dict.fromkeys(below)),
                        "negative_share": float((values < 0).mean()),
                        "n_trials": config.trials,
                        "n_draws": config.draws,
                        "rejected_share": float(arrays["rejected"][m, i]),
                    }
                )
    return pd.DataFrame(rows)
