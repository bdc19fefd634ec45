"""Calibration of linear regression on one feature from noisy second moments (Bernstein and Sheldon 2019)."""

from functools import partial

import numpy as np
from scipy.special import stdtr

from privpost.evaluation.calibration import ks_columns, randomised_rank
from privpost.evaluation.diagnostics import diagnose
from privpost.evaluation.rows import columns, places
from privpost.evaluation.spread import spread_columns
from privpost.evaluation.summaries import mean_and_sem
from privpost.experiments.ranges import BURN_IN, DRAWS, EPSILON, METHOD, PRECISION, THIN, N
from privpost.inference_benchmark.tasks.regression import RegressionTask
from privpost.lab.schema import Choice, Integer, Real, Schema
from privpost.mechanisms.noise.moments_laplace import MomentsLaplace
from privpost.privacy.accounting.costs import Cost
from privpost.samplers import chain
from privpost.samplers.noise_aware import regression as noise_aware_regression
from privpost.samplers.noise_aware import regression_quadrature as noise_aware_regression_quadrature

POSITIVE = Real(at_least=1e-6, at_most=1e6)
SETTINGS = Schema(
    own_precision=PRECISION.means("precision b of the weight's prior N(0, σ²/b)"),
    shape=POSITIVE.means("shape of the prior of σ²"),
    rate=POSITIVE.means("rate of the prior of σ²"),
    degrees=POSITIVE.means("degrees of freedom of the prior of the feature's variance"),
    feature_scale=POSITIVE.means("scale of the prior of the feature's variance"),
    n=N,
    burn_in=BURN_IN,
    draws=DRAWS,
    thin=THIN,
    oracles=Integer(at_least=0, says="releases whose posterior is computed by quadrature"),
    method=Choice("non_private", "naive", "gibbs", "gibbs_normal", says=METHOD),
    epsilon=EPSILON,
)
TABLES = {
    "regression_calibration": {
        "method": "method; `gibbs_normal` accepts all normal proposals of moments, like the paper; `gibbs` corrects it",
        "oracle_distance": "largest distance of the draws' distribution function from that by quadrature [probability]",
        "oracle_floor": "expected distance of independent draws, as many as the effective sample size [probability]",
        "n_oracles": "releases whose posterior was computed by quadrature [count]",
        "ess_median": "effective sample size of a chain for the weight, median over trials [count]",
        "sd_of_prior": "posterior sd over the prior's, root mean square over trials",
    },
}
KERNELS = {"gibbs": "wishart", "gibbs_normal": "normal"}
# Number of points at which distribution functions are compared.
POINTS = 60
# √m times the expected largest error of the distribution function of m independent draws: √(π/2) ln 2.
KOLMOGOROV = np.sqrt(np.pi / 2) * np.log(2)


def simulate(config, streams, ledger) -> dict:
    """Return quantiles, effective sample sizes and variances of the weight, and its distances from quadrature.

    `quantile`, `ess` and `variance` are (methods, epsilons, trials). Distances `oracle` are (methods, epsilons,
    oracles).
    """
    prior = config.own_precision, config.shape, config.rate, config.degrees, config.feature_scale
    # Only the prior and the records of this benchmark task are used. The mechanisms are made below, one for each ε.
    task = RegressionTask("regression", prior, config.n, "laplace", Cost("pure", 1.0))
    model, n = task.model, config.n
    accounts, mechanisms = [f"epsilon={epsilon:g}" for epsilon in config.epsilon], []
    for account, epsilon in zip(accounts, config.epsilon, strict=True):
        budget = Cost("pure", epsilon)
        calibrated = partial(MomentsLaplace.calibrate, model, n, budget)
        mechanisms.append(ledger.open(account, budget, calibrated))
    shape = (len(config.method), len(mechanisms), config.trials)
    arrays = {name: np.full(shape, np.nan) for name in ("quantile", "ess", "variance")}
    oracle = np.full((*shape[:2], config.oracles), np.nan)
    for block in streams.blocks():
        data = streams("data", block.index)
        theta = task.prior(block.size, data)
        truth, statistics = theta[:, 0], task.data(theta, data)
        for i, mechanism in enumerate(mechanisms):
            rng, account = streams("mechanism", block.index), accounts[i]
            releases = ledger.release(account, mechanism, statistics, rng, repeats=block.trials).values
            drawn = {}
            for k, method in enumerate(config.method):
                rng = streams("sampler", block.index)
                if method in KERNELS:
                    weights = _chains(config, mechanism, releases, method, rng)
                    below = (weights < truth).sum(axis=0)
                    quantile = randomised_rank(below, len(weights), rng)
                    sizes = diagnose(weights[:, None])[1]
                    variance = weights.var(axis=0)
                    drawn[k] = weights
                else:
                    exact = method == "non_private"
                    law = model.posterior(statistics, n) if exact else mechanism.naive_posterior(releases)
                    scale = np.sqrt(law.rate / law.shape / law.precision[:, 0, 0])
                    quantile = stdtr(2 * law.shape, (truth - law.mean[:, 0]) / scale)
                    variance = scale**2 * law.shape / (law.shape - 1)
                    sizes = np.full(len(truth), np.nan)
                for name, value in (("quantile", quantile), ("ess", sizes), ("variance", variance)):
                    arrays[name][k, i, block.trials] = value
            if block.index == 0 and drawn:
                for j in range(min(config.oracles, block.size)):
                    distances = _distances(mechanism, releases[j], [weights[:, j] for weights in drawn.values()])
                    oracle[list(drawn), i, j] = distances
    of_prior = config.rate / (config.shape - 1) / config.own_precision if config.shape > 1 else np.nan
    return {**arrays, "oracle": oracle, "of_prior": np.array(of_prior)}


def _chains(config, mechanism, releases, method: str, rng) -> np.ndarray:
    """Return draws (draws, trials) of the weight from one chain per release."""
    moments = np.ascontiguousarray(mechanism.moments(releases).T)
    kernel = noise_aware_regression.kernel(
        mechanism.model, moments, mechanism.n, mechanism.noise_law, KERNELS[method]
    )  # fmt: skip
    states = chain.run(kernel, rng, draws=config.draws, burn_in=config.burn_in, thin=config.thin)
    return np.stack([state.theta[:, 0] for state, _ in states])


def _distances(mechanism, release, draws) -> list[float]:
    """Return, for each method, the largest distance of the draws' distribution function from the oracle's."""
    levels = (np.arange(POINTS) + 0.5) / POINTS
    at = np.quantile(np.concatenate(draws), levels)
    exact = noise_aware_regression_quadrature.weight_cdf(
        mechanism.model, mechanism.moments(release), mechanism.n, mechanism.noise_law, at
    )
    return [float(np.abs((weights[:, None] <= at).mean(axis=0) - exact).max()) for weights in draws]


def tabulate(cells):
    """Yield a row for each n, method and ε, with tests of the weight's quantile and distances from the oracle."""
    for cell in cells:
        for (k, i), point in places(cell.config, "method", "epsilon"):
            arrays = cell.arrays
            quantile, sizes = arrays["quantile"][k, i], arrays["ess"][k, i]
            oracle = arrays["oracle"][k, i]
            reached = oracle[np.isfinite(oracle)]
            distance, error = mean_and_sem(reached)
            row = columns(point, "n", "method", "epsilon") | ks_columns(quantile) | spread_columns(quantile, "weight")
            floor = KOLMOGOROV / np.sqrt(np.maximum(sizes[: len(oracle)], 1)).mean() if len(reached) else np.nan
            yield row | {
                "oracle_distance": distance,
                "oracle_distance_sem": error,
                "oracle_floor": float(floor),
                "n_oracles": len(reached),
                "ess_median": float(np.median(sizes)),
                "sd_of_prior": float(np.sqrt(arrays["variance"][k, i].mean() / arrays["of_prior"])),
            }
