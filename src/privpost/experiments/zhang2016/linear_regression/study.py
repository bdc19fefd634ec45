"""Mean squared error of private linear regression against the prior's precision (Zhang et al. 2016, figure 2)."""

import itertools
import math

import numpy as np

from privpost.datasets import catalogue, census, prepared
from privpost.evaluation.rows import columns, framed, places
from privpost.evaluation.summaries import mean_columns
from privpost.experiments.ranges import DATASET, EPSILON, FEATURE_BOUND, METHOD, PRECISION, SHARE, VARIANT
from privpost.lab.schema import Choice, DatasetName, Integer, Real, Schema, SettingError
from privpost.mechanisms.draws.linear import LinearSampler
from privpost.models.regression.linear import LinearRegression, Moments
from privpost.privacy.accounting.costs import RELATIVE_TOLERANCE, Cost
from privpost.privacy.ledger.gate import Request

SETTINGS = Schema(
    dataset=DatasetName(task="regression", says=DATASET),
    train_share=SHARE.means("share of the records that train", "share"),
    radius_factor=Real(above=0, says="largest norm of the weights, in prior standard deviations"),
    feature_bound=FEATURE_BOUND,
    label_bound=Real(above=0, says="largest absolute value of a label"),
    acceptance_draws=Integer(at_least=1, says="untruncated draws from which the acceptance of rejection is estimated"),
    epsilon_target=EPSILON.means("budget of one draw; noise_variance must be large enough to meet it", "nats"),
    variant=Choice("paper", says=VARIANT),
    method=Choice("non_private", "sampler_record", says=METHOD),
    noise_variance=Real(above=0, says="variance of a label given the weights", unit="squared label range"),
    prior_precision=PRECISION.means("precision of the normal prior of the weights"),
)
TABLES = {
    "linear_regression": {
        "mse_mean": "mean squared error on the test part [squared label range]",
        "acceptance": "share of untruncated posterior draws that lie in the ball [share]",
        "proposal_acceptance": "share of the exact sampler's proposals that were accepted [share]",
        "mean_norm": "norm of the posterior mean of the weights",
        "rise_mean": "mean squared error beyond that at the smallest prior precision; paired [squared label range]",
        "residual_variance": "residual variance of least squares on the training part [squared label range]",
    },
}
SCORES = ("non_private", "sampler_record", "acceptance", "proposal_acceptance", "mean_norm")


def simulate(config, streams, ledger) -> dict:
    """Return arrays over (noise variance, prior precision, trial), and facts about the data.

    `non_private` and `sampler_record` are mean squared errors on the test rows. `acceptance` is the share of
    untruncated posterior draws in the ball, and `proposal_acceptance` the share of accepted proposals. `mean_norm` is
    the norm of the untruncated posterior mean. `epsilon` and `radius` have shape (noise variance, prior precision), and
    `residual_variance` (trial,).

    Raises:
        SettingError: a draw costs more than the target.
        ValueError: records lie beyond the bounds that the stated privacy cost assumes.
    """
    dataset = catalogue.load(config.dataset)
    columns = prepared.read(config.dataset, dataset)
    features, labels = census.regression(columns, dataset)
    rows = round(config.train_share * len(labels))
    if not 0 < rows < len(labels):
        raise SettingError(f"train_share is {config.train_share}, which leaves none of {len(labels)} records on a side")
    mechanisms = _mechanisms(config, features.shape[1], rows, ledger)
    next(mechanism for _, mechanism in mechanisms.values()).model.check(features, labels)
    everything = Moments.of(features, labels)
    shape = (len(config.noise_variance), len(config.prior_precision))
    arrays = {name: np.full((*shape, config.trials), np.nan) for name in SCORES}
    residual = np.empty(config.trials)
    for block in streams.blocks():
        sampler = streams("sampler", block.index)
        trains = splits(features, labels, rows, block.size, streams("data", block.index))
        statistics = np.stack([train.statistics for train in trains])
        # One draw per split. The proposals for this draw are counted.
        requests = [Request(*opened, statistics, sampler, repeats=block.trials) for opened in mechanisms.values()]
        releases = dict(zip(mechanisms, ledger.release_all(requests), strict=True))
        for number, (trial, train) in enumerate(zip(range(config.trials)[block.trials], trains, strict=True)):
            residual[trial] = train.mean_squared_error(np.linalg.solve(train.gram, train.cross))
            normals = sampler.standard_normal((config.acceptance_draws, features.shape[1]))
            for place, scores in _scores(mechanisms, releases, number, train, everything.without(train), normals):
                for name, value in scores.items():
                    arrays[name][(*place, trial)] = value
    of_points = [mechanism for _, mechanism in mechanisms.values()]
    return {
        **arrays,
        "epsilon": np.array([mechanism.cost().epsilon for mechanism in of_points]).reshape(shape),
        "radius": np.array([mechanism.radius for mechanism in of_points]).reshape(shape),
        "residual_variance": residual,
        "clipped_share": np.array(census.clipped_share(columns, dataset)),
        "stand_in": np.array(dataset.stand_in),
    }


def _scores(mechanisms, releases, number: int, train: Moments, test: Moments, normals):
    """Yield the place and the `SCORES` of every mechanism's release about one split of a block."""
    # All precisions b I + XᵀX/σ² have the eigenvectors of XᵀX.
    values, vectors = np.linalg.eigh(train.gram)
    for place, (_, mechanism) in mechanisms.items():
        model = mechanism.model
        mean, _ = model.posterior(train.statistics)
        spread = np.sqrt(model.prior_precision + values / model.noise_variance)
        untruncated = vectors.T @ mean + normals / spread
        drawn, accepted = releases[place]
        scores = (
            test.mean_squared_error(mean),
            test.mean_squared_error(drawn[number]),
            np.mean((untruncated**2).sum(axis=1) <= mechanism.radius**2),
            accepted[number],
            np.linalg.norm(mean),
        )
        yield place, dict(zip(SCORES, scores, strict=True))


def _mechanisms(config, dimension: int, rows: int, ledger) -> dict:
    """Return account and sampler by the indices of noise variance and prior precision."""
    mechanisms = {}
    for place in itertools.product(range(len(config.noise_variance)), range(len(config.prior_precision))):
        variance, b = config.noise_variance[place[0]], config.prior_precision[place[1]]
        model = LinearRegression(dimension, b, variance, config.feature_bound, config.label_bound)
        account = f"sampler_record/noise_variance={variance:g}/prior_precision={b:g}"
        mechanism = LinearSampler(model, rows, config.radius_factor / math.sqrt(b))
        if (cost := mechanism.cost().epsilon) > config.epsilon_target * (1 + RELATIVE_TOLERANCE):
            raise SettingError(
                f"epsilon_target is {config.epsilon_target:g}, but one draw costs {cost:g} at noise_variance "
                f"{variance:g} and prior_precision {b:g}. Nothing is scaled to the target: raise noise_variance, or "
                "lower radius_factor."
            )
        mechanisms[place] = account, ledger.open(account, Cost("pure", config.epsilon_target), mechanism)
    return mechanisms


def splits(features, labels, rows: int, size: int, rng) -> list[Moments]:
    """Return the moments of `size` random sets of training rows."""
    subsets = (rng.choice(len(labels), rows, replace=False, shuffle=False) for _ in range(size))
    return [Moments.of(features[subset], labels[subset]) for subset in subsets]


def tabulate(cells):
    """Return mean squared errors by method, noise variance and prior precision, with paired differences.

    `excess` is the difference from the non-private error. `rise` is the difference from the error at the smallest prior
    precision.
    """
    names = ["dataset", "stand_in", "variant", "method", "noise_variance", "prior_precision", "epsilon"]
    names += ["mse_mean", "mse_sem", "n_repeats", "acceptance", "proposal_acceptance", "radius", "mean_norm"]
    names += ["excess_mean", "excess_sem", "rise_mean", "rise_sem", "residual_variance", "clipped_share"]
    return framed(_rows(cells), *names)


def _rows(cells):
    for cell in cells:
        arrays = cell.arrays
        for (_, s, i), point in places(cell.config, "method", "noise_variance", "prior_precision"):
            errors, private = arrays[point.method], point.method != "non_private"
            row = columns(point, "dataset", "variant", "method", "noise_variance", "prior_precision")
            for name in ("stand_in", "clipped_share", *(("epsilon", "radius") if private else ())):
                row[name] = arrays[name][s, i].item() if arrays[name].ndim else arrays[name].item()
            for name in ("mean_norm", *(("acceptance", "proposal_acceptance") if private else ())):
                row[name] = float(arrays[name][s, i].mean())
            row |= {"n_repeats": point.trials, "residual_variance": float(arrays["residual_variance"].mean())}
            row |= mean_columns("mse", errors[s, i]) | mean_columns("rise", errors[s, i] - errors[s, 0])
            yield row | (mean_columns("excess", errors[s, i] - arrays["non_private"][s, i]) if private else {})
