"""Linear regression from noisy second moments (Bernstein and Sheldon 2019) against one posterior draw at the same ε.

The draw is from figure 2 of Zhang et al. (2016): its ball's radius sets its cost, 4 to 121 at noise variance 1.
"""

import math
from functools import partial

import numpy as np

from privpost.datasets import catalogue, census, prepared
from privpost.evaluation.diagnostics import assess
from privpost.evaluation.rows import columns, places
from privpost.evaluation.summaries import mean_columns
from privpost.experiments.ranges import BURN_IN, DATASET, DRAWS, EPSILON, FEATURE_BOUND, METHOD, PRECISION, SHARE, THIN
from privpost.experiments.zhang2016.linear_regression.study import splits
from privpost.lab.schema import Choice, DatasetName, Integer, Real, Schema
from privpost.mechanisms.linear_sampling import LinearSampler
from privpost.mechanisms.moments_laplace import MomentsLaplace
from privpost.models.linear_regression import LinearRegression, Moments
from privpost.models.normal_regression import NormalRegression
from privpost.privacy.accounting import Cost
from privpost.samplers import chain, noise_aware_regression

POSITIVE = Real(at_least=1e-6, at_most=1e6)
SETTINGS = Schema(
    dataset=DatasetName(task="regression", says=DATASET),
    train_share=SHARE.means("share of the records that train", "share"),
    radius_factor=Real(above=0, says="largest norm of the drawn weights, in prior standard deviations"),
    feature_bound=FEATURE_BOUND,
    label_bound=Real(above=0, says="largest absolute value of a label"),
    epsilon_target=EPSILON.means("budget of a draw, and of noisy moments; both cost what the draw does", "nats"),
    noise_variance=Real(above=0, says="variance of a label given the weights, of the draw", unit="squared label range"),
    own_precision=PRECISION.means("precision b of the weights' prior N(0, σ² I/b), of the noise-aware posterior"),
    shape=POSITIVE.means("shape of the prior of σ²"),
    rate=POSITIVE.means("rate of the prior of σ²"),
    degrees=POSITIVE.means("degrees of freedom of the prior of the features' covariance"),
    feature_scale=POSITIVE.means("scale of the prior of the features' covariance"),
    chains=Integer(at_least=4, says="chains per release"),
    burn_in=BURN_IN,
    draws=DRAWS,
    thin=THIN,
    method=Choice("non_private", "sampler_record", "naive", "gibbs", says=METHOD),
    prior_precision=PRECISION.means("precision of the normal prior of the drawn weights, which sets ε"),
)
TABLES = {
    "regression": {
        "mse_mean": "mean squared error on the test part: of the posterior mean, or of the draw [squared label range]",
        "excess_mean": "mean squared error beyond the non-private posterior mean's; paired [squared label range]",
        "draw_excess_mean": "the same of one draw of the weights; paired [squared label range]",
        "sd_ratio": "posterior sd of the weights over the non-private one's, root mean square over weights and splits",
        "rhat_max": "largest R-hat over weights, σ² and splits",
        "ess_min": "smallest effective sample size over weights, σ² and splits [count]",
    },
}
NAMES = ("mse", "draw_mse", "sd_ratio", "rhat", "ess")


def simulate(config, streams, ledger) -> dict:
    """Return `NAMES` (methods, precisions, trials), nan where a method has none; `epsilon` (precisions,); `stand_in`.

    Raises ValueError for records beyond the bounds of the stated privacy cost.
    """
    dataset = catalogue.load(config.dataset)
    features, labels = census.regression(prepared.read(config.dataset, dataset), dataset)
    rows, dimension = round(config.train_share * len(labels)), features.shape[1]
    bounds = config.feature_bound, config.label_bound
    prior = config.own_precision, config.shape, config.rate, config.degrees, config.feature_scale
    model = NormalRegression(dimension, *prior, *bounds)
    model.check(features, labels)
    everything = Moments.of(features, labels)
    pairs = [_mechanisms(config, b, dimension, rows, model, ledger) for b in config.prior_precision]
    shape = (len(config.method), len(pairs), config.trials)
    arrays = {name: np.full(shape, np.nan) for name in NAMES}
    for block in streams.blocks():
        trains = splits(features, labels, rows, block.size, streams("data", block.index))
        tests = [everything.without(train) for train in trains]
        statistics = np.stack([train.statistics for train in trains])
        truth = model.posterior(statistics, rows)
        for i, (account, sampler, noisy) in enumerate(pairs):
            rng = streams("mechanism", block.index, prior_precision=config.prior_precision[i])
            drawn = ledger.release(f"draw/{account}", sampler, statistics, rng, repeats=block.trials).values
            released = ledger.release(f"moments/{account}", noisy, statistics, rng, repeats=block.trials).values
            rng = streams("sampler", block.index, prior_precision=config.prior_precision[i])
            for k, method in enumerate(config.method):
                inferred = _inferred(method, config, model, truth, drawn, noisy, released, rng)
                scores = _scores(inferred, truth, tests)
                for name, value in scores.items():
                    arrays[name][k, i, block.trials] = value
    epsilon = np.array([noisy.cost().epsilon for _, _, noisy in pairs])
    return {**arrays, "epsilon": epsilon, "stand_in": np.array(dataset.stand_in)}


def _mechanisms(config, b: float, dimension: int, rows: int, model, ledger):
    """Return an account's name, the draw and the noisy moments that cost the same, at most the target."""
    bounds = config.feature_bound, config.label_bound
    drawn = LinearRegression(dimension, b, config.noise_variance, *bounds)
    account, target = f"prior_precision={b:g}", Cost("pure", config.epsilon_target)
    sampler = LinearSampler(drawn, rows, config.radius_factor / math.sqrt(b))
    sampler = ledger.open(f"draw/{account}", target, sampler)
    calibrated = partial(MomentsLaplace.calibrate, model, rows, sampler.cost())
    return account, sampler, ledger.open(f"moments/{account}", target, calibrated)


def _inferred(method: str, config, model, truth, drawn, noisy, released, rng):
    """Return mean of the weights (trials, d), one draw, their sd or None, and draws (draws, chains, trials, d + 1)."""
    d = model.dimension
    if method == "sampler_record":
        return drawn, drawn, None, None
    if method == "gibbs":
        moments = np.repeat(noisy.moments(released), config.chains, axis=0).T
        kernel = noise_aware_regression.kernel(model, np.ascontiguousarray(moments), noisy.n, noisy.noise_law)
        states = chain.run(kernel, rng, draws=config.draws, burn_in=config.burn_in, thin=config.thin)
        theta = np.stack([state.theta for state, _ in states])
        theta = theta.reshape(config.draws, len(released), config.chains, d + 1).swapaxes(1, 2)
        weights = theta[..., :d]
        return weights.mean(axis=(0, 1)), weights[-1, -1], weights.std(axis=(0, 1)), theta
    law = truth if method == "non_private" else noisy.naive_posterior(released)
    return law.mean, model.sample(law, rng)[..., :d], _sd(law), None


def _sd(law) -> np.ndarray:
    """Return the sd (trials, d) of the weights' law, Student's with 2 · shape degrees of freedom."""
    spread = np.diagonal(np.linalg.inv(law.precision), axis1=-2, axis2=-1)
    return np.sqrt(spread * (law.rate / (law.shape - 1))[:, None])


def _scores(inferred, truth, tests) -> dict:
    mean, draw, sd, chains = inferred
    scores = {name: np.array([test.mean_squared_error(w) for test, w in zip(tests, weights, strict=True)])
              for name, weights in (("mse", mean), ("draw_mse", draw))}  # fmt: skip
    if sd is not None:
        scores["sd_ratio"] = np.sqrt(np.square(sd / _sd(truth)).mean(axis=1))
    if chains is not None:
        assessed = [assess(chains[:, :, t]) for t in range(chains.shape[2])]
        scores |= {"rhat": [part.rhat_max for part in assessed], "ess": [part.ess_min for part in assessed]}
    return scores


def tabulate(cells):
    """Yield errors and spreads by method and ε, and paired differences from the non-private posterior mean."""
    for cell in cells:
        arrays, methods = cell.arrays, cell.config.method
        truth = arrays["mse"][methods.index("non_private")] if "non_private" in methods else arrays["mse"][0] * np.nan
        for (k, i), point in places(cell.config, "method", "prior_precision"):
            scores = {name: arrays[name][k, i] for name in NAMES}
            row = columns(point, "dataset", "method", "prior_precision")
            row |= {"stand_in": arrays["stand_in"].item(), "epsilon": float(arrays["epsilon"][i])}
            row |= mean_columns("mse", scores["mse"]) | mean_columns("excess", scores["mse"] - truth[i])
            row |= mean_columns("draw_excess", scores["draw_mse"] - truth[i])
            row["sd_ratio"] = float(np.sqrt(np.square(scores["sd_ratio"]).mean()))
            yield row | {
                "rhat_max": float(scores["rhat"].max()),
                "ess_min": float(scores["ess"].min()),
                "n_repeats": point.trials,
            }
