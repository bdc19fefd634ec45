"""Distance of private posteriors from the true posterior (Bernstein and Sheldon 2018, figure 1c).

The distance is MMD² with the kernel exp(−(p − q)²/2) on the probability (of the first category) or the rate. MMD² is
exact for laws in closed form, and is estimated without bias from Gibbs draws. The method `exact` runs no chain.
"""

import numpy as np

from privpost.evaluation.mmd import mmd2_of_draws
from privpost.evaluation.rows import columns, places
from privpost.evaluation.summaries import mean_columns
from privpost.experiments.bernstein2018.trials import PRIOR, VARIANT, experiment
from privpost.experiments.ranges import BURN_IN, DRAWS, EPSILON, MODEL, N
from privpost.lab.schema import Choice, Integer, Schema
from privpost.samplers.noise_aware.gibbs import run

SETTINGS = Schema(
    model=Choice("binomial", "multinomial", "exponential", says=MODEL),
    prior=PRIOR,
    variant=VARIANT,
    burn_in=BURN_IN,
    draws=Integer(at_least=2, says=DRAWS.says),
    n=N,
    epsilon=EPSILON,
)
TABLES = {
    "utility": {
        "mmd": "root of mmd2_mean, 0 where that is negative",
        "mmd2_mean": "squared maximum mean discrepancy from the non-private posterior, unbiased",
        "below_naive_mean": "squared discrepancy of the noise-naive posterior minus that of the row's method, paired",
        "negative_share": "share of trials with a negative estimate of the squared discrepancy [share]",
    },
}
METHODS = ("gibbs", "exact", "naive")


def simulate(config, streams, ledger) -> dict:
    """Return unbiased `mmd2` (method, n, trials), and `rejected` (method, n): shares of proposals or releases."""
    trial = experiment(config.model, config.prior, config.variant)
    mmd2 = np.empty((len(METHODS), len(config.n), config.trials))
    rejected = np.full((len(METHODS), len(config.n)), np.nan)
    shares: dict[int, list] = {}
    for i, n in enumerate(config.n):
        trial.open(ledger, f"n={n}", n, config.epsilon)
        if np.isinf(trial.naive_cost(config.epsilon).epsilon):
            # The naive method adds private records to the released sum, which no finite ε covers.
            ledger.open(f"naive/n={n}", trial.naive_cost(config.epsilon))
            ledger.charge(f"naive/n={n}", trial.naive_cost(config.epsilon))
        for block in streams.blocks():
            data = trial.data(n, block.size, streams("data", block.index, n=n))
            rng = streams("mechanism", block.index, n=n)
            release = trial.release(ledger, f"n={n}", data, n, config.epsilon, rng, block.trials)
            mmd2[:, i, block.trials], share = _estimates(
                config, trial, data, release, n, streams("sampler", block.index, n=n)
            )
            shares.setdefault(i, []).append(share)
    for i, values in shares.items():
        rejected[[METHODS.index("gibbs"), METHODS.index("naive")], i] = np.mean(values, axis=0)
    return {"mmd2": mmd2, "rejected": rejected}


def _estimates(config, trial, data, release, n: int, rng):
    """Return MMD² (methods, trials), and the shares of rejected Gibbs proposals and of projected naive releases."""
    statistics, projected = trial.naive(data, release, n)
    true, space, sums = trial.features(data.statistics), trial.space, []

    def consume(theta):
        sums.append(space.features(theta.reshape(len(theta), -1, theta.shape[-1])[:, 0]))
        if len(sums) > 1:
            sums[0] += sums.pop()

    proposals = run(trial.kernel(data, release, n), rng, config.burn_in, config.draws, consume)
    estimates = [mmd2_of_draws(space, sums[0], true, config.draws)]
    estimates += [
        space.squared(law - true) for law in (trial.exact_features(data, release, n), trial.features(statistics))
    ]
    return np.stack(estimates), (proposals.rejected_share, projected)


def tabulate(cells):
    """Yield one row per cell, method and n: means over trials with their standard errors."""
    for cell in cells:
        for at, point in places(cell.config, "method", "n", method=METHODS):
            values, other = cell.arrays["mmd2"][at], cell.arrays["mmd2"][METHODS.index("naive"), at[1]]
            squared, below = mean_columns("mmd2", values), mean_columns("below_naive", other - values)
            yield {
                **columns(point, "variant", "model", "n", "epsilon", "method"),
                "sampling": "mcmc" if point.method == "gibbs" else "exact",
                "mmd": np.sqrt(max(squared["mmd2_mean"], 0.0)),
                **squared,
                **(below if point.method != "naive" else dict.fromkeys(below)),
                "negative_share": float((values < 0).mean()),
                "n_trials": point.trials,
                "n_draws": point.draws,
                "rejected_share": float(cell.arrays["rejected"][at]),
            }
