"""Naive Bayes from counts with Laplace noise: the exact noise-aware posterior, and posteriors that ignore the noise."""

import functools
from typing import NamedTuple

import numpy as np
from scipy.special import betainc

from privpost.evaluation.mmd import beta_embedding, mmd2_of_embeddings
from privpost.evaluation.rows import columns
from privpost.experiments.noise_aware import scores
from privpost.experiments.ranges import ALPHA, ATTRIBUTES, BETA, CONCENTRATION, EPSILON, METHOD, N
from privpost.lab.schema import Choice, Integer, Schema
from privpost.models.networks import graphs
from privpost.models.networks.bayesian_network import BayesianNetwork
from privpost.samplers.naive_bayes import exact as naive_bayes_exact
from privpost.samplers.noise_aware.exact import conditional_cdf

SETTINGS = Schema(
    attributes=ATTRIBUTES,
    alpha=ALPHA,
    beta=BETA,
    concentration=CONCENTRATION.means("c of the law Beta(c, c) from which the true parameters are drawn", "records"),
    n_test=Integer(at_least=1, says="records of the test part", unit="records"),
    n=N,
    method=Choice("non_private", "naive", "exact", says=METHOD),
    epsilon=EPSILON,
)
TABLES = {
    "naive_bayes": {},
    "naive_bayes_pairs": {},
    "naive_bayes_calibration": {},
    "naive_bayes_ecdf": {},
}
# Parameters with rows in the tables, as (attribute, class); None is the class probability. The attributes are
# exchangeable, so one attribute stands for all.
PARAMETERS = {"y": None, "x1 | y = 0": (0, 0), "x1 | y = 1": (0, 1)}
# Columns that identify a cell.
PLACES = ("n", "concentration")
NOTES = [
    "At concentration 1 the true parameters come from the prior of all posteriors. Only then can a posterior be "
    "calibrated, and the noise-aware predictions are the best that a release allows. Other concentrations break this."
]


def simulate(config, streams, ledger) -> dict:
    """Return quantiles of the true parameters and scores, for every line (method and variant) at every ε.

    `quantile` (lines, epsilons, 3, trials) is of the tabulated parameters. `others` (lines, epsilons,
    2 (attributes − 1), trials) is of the other attributes' parameters, nan if families are taken one at a time.
    `sd_of_prior` (epsilons, 3) is the noise-aware posterior's root mean square standard deviation over the prior's.
    Scores (lines, epsilons, trials) are `accuracy`, `log_likelihood` of class and attributes, `label_log_likelihood` of
    the class, `mmd2` to the true posterior, and the share `truncated` of the naive methods' counts.
    """
    model, n = network(config), config.n
    mechanisms = scores.opened(config.epsilon, model, n, ledger)
    shape = (len(scores.lines(config.method)), len(mechanisms))
    quantile = np.empty((*shape, len(PARAMETERS), config.trials))
    others = np.full((*shape, 2 * (config.attributes - 1), config.trials), np.nan)
    variance = np.full((len(mechanisms), len(PARAMETERS)), 0.0 if "exact" in config.method else np.nan)
    names = ("accuracy", "log_likelihood", "label_log_likelihood", "mmd2", "truncated")
    metrics = {name: np.zeros((*shape, config.trials)) for name in names}

    @functools.cache
    def embedding(total: int) -> np.ndarray:
        ones = np.arange(total + 1.0)
        return beta_embedding(config.alpha + ones, config.beta + total - ones).T

    for block in streams.blocks():
        rng = streams("data", block.index)
        theta = rng.beta(config.concentration, config.concentration, (block.size, *model.theta_shape))
        records = model.sample_data(theta, n + config.n_test, rng)
        statistics, tests = model.sufficient_statistics(records[:, :n]), records[:, n:]
        releases = scores.released(mechanisms, statistics, streams, block, ledger)
        posteriors = _posteriors(config, mechanisms, theta, statistics, releases, tests[..., 1:], embedding)
        truth = np.nan
        for i, (method, features, quantiles, log_predictive, truncated, rest) in enumerate(posteriors):
            truth = features if method == "non_private" else truth
            quantile[i, ..., block.trials] = quantiles
            if rest is not None:
                others[i, ..., block.trials] = rest.quantiles
            if rest is not None and rest.variance is not None:
                variance += rest.variance * block.size / config.trials
            metrics["mmd2"][i, :, block.trials] = mmd2_of_embeddings(features, truth).mean(axis=0)
            metrics["truncated"][i, :, block.trials] = truncated
            for name, values in _predictions(log_predictive, tests[..., 0]).items():
                metrics[name][i, :, block.trials] = values
    of_prior = scores.of_prior(config.alpha, config.beta, variance)
    return {"quantile": quantile, "others": others, "sd_of_prior": of_prior, **metrics}


class Rest(NamedTuple):
    """Quantiles (epsilons, 2 (d − 1), trials) of other attributes and, if noise-aware, mean variances (epsilons, 3)."""

    quantiles: np.ndarray
    variance: np.ndarray | None = None


def _posteriors(config, mechanisms, theta, statistics, releases, attributes, embedding):
    """Yield six things per line: method, features, quantiles, log-predictive, truncated share, and `Rest`."""
    model, n = mechanisms[0].model, mechanisms[0].n
    for method, variant in scores.lines(config.method):
        truncated: np.ndarray | float = 0.0
        rest = None
        if method == "exact":
            if variant == "paper":
                scale = np.array([mechanism.scale for mechanism in mechanisms])[:, None]
                posterior = naive_bayes_exact.posterior(model, releases, n, scale)
                log_predictive = naive_bayes_exact.log_predictive(posterior, attributes)
                weights = [posterior.weights] * len(PARAMETERS)
                rest = _aware_rest(posterior, config, theta)
            else:
                root, families = naive_bayes_exact.by_family(posterior)
                log_predictive = conjugate_log_predictive(family_means(posterior), attributes)
                weights = [root, families[..., 0, :], families[..., 0, :]]
            features, quantiles = _aware(posterior, weights, config, theta, embedding)
        else:
            counts, truncated = scores.counts_of(method, variant, mechanisms, statistics, releases)
            parameters = model.posterior(counts)
            log_predictive = conjugate_log_predictive(model.mean(parameters), attributes)
            pairs = model.pairs(parameters)
            features, quantiles = _conjugate(pairs, theta)
            start = len(PARAMETERS)
            rest = Rest(np.swapaxes(betainc(pairs[..., start:, 0], pairs[..., start:, 1], theta[:, start:]), -1, -2))
        yield method, features, quantiles, log_predictive, truncated, rest


def conjugate_log_predictive(theta, attributes) -> np.ndarray:
    """Return ln p(x, y) under independent posteriors, an array (..., trials, tests, 2) with both classes y.

    Args:
        theta: the parameters' posterior means (..., trials, 2d+1).
        attributes: attributes x (trials, tests, d) of the test records.
    """
    attributes = np.asarray(attributes, float)
    both = []
    for log_class, means in ((np.log1p(-theta[..., 0]), theta[..., 1::2]), (np.log(theta[..., 0]), theta[..., 2::2])):
        slope = np.log(means) - np.log1p(-means)
        terms = np.matmul(attributes, slope[..., None])[..., 0]
        both.append(terms + (log_class + np.log1p(-means).sum(axis=-1))[..., None])
    return np.stack(both, axis=-1)


def _predictions(log_predictive, labels) -> dict[str, np.ndarray]:
    """Return accuracy and log-scores (..., trials) of log-predictives (..., trials, tests, 2)."""
    true_label = np.where(labels == 1, log_predictive[..., 1], log_predictive[..., 0])
    total = np.logaddexp(log_predictive[..., 0], log_predictive[..., 1])
    right = (log_predictive[..., 1] > log_predictive[..., 0] + scores.TIE) == (labels == 1)
    return {
        "accuracy": right.mean(axis=-1),
        "log_likelihood": true_label.mean(axis=-1),
        "label_log_likelihood": (true_label - total).mean(axis=-1),
    }


def _conjugate(pairs, theta) -> tuple[np.ndarray, np.ndarray]:
    """Return features (12, 3, epsilons, trials) of beta posteriors, and quantiles (epsilons, 3, trials) of `theta`."""
    a, b = (np.moveaxis(pairs[..., : len(PARAMETERS), side], -1, 0) for side in (0, 1))
    quantiles = betainc(a, b, theta[:, : len(PARAMETERS)].T[:, None])
    return beta_embedding(a, b), np.swapaxes(quantiles, 0, 1)


def family_means(posterior) -> np.ndarray:
    """Return the posterior means (..., 2d+1) of all parameters, each given only the noisy counts of its family."""
    root, families = naive_bayes_exact.by_family(posterior)
    means = np.einsum("...dck,...dk->...dc", posterior.means, families)
    return np.concatenate([(root @ posterior.class_mean)[..., None], means.reshape(*means.shape[:-2], -1)], axis=-1)


def _aware(posterior, weights, config, theta, embedding) -> tuple[np.ndarray, np.ndarray]:
    features, quantiles = [], []
    for index, place in enumerate(PARAMETERS.values()):
        posterior = posterior._replace(weights=weights[index])
        cdf_of = functools.partial(conditional_cdf, (config.alpha, config.beta), theta[:, index])
        feature, cdf = naive_bayes_exact.expectations(posterior, place, embedding, cdf_of)
        features.append(np.moveaxis(feature, -1, 0))
        quantiles.append(np.clip(cdf, 0.0, 1.0))
    return np.stack(features, axis=1), np.stack(quantiles, axis=1)


def _aware_rest(posterior, config, theta) -> Rest:
    """Return the `Rest` of the noise-aware posterior."""
    # Compiled code is loaded only when it is used.
    from privpost.samplers.naive_bayes.quantiles import quantiles

    prior, start = (config.alpha, config.beta), len(PARAMETERS)

    def shared(total: int) -> np.ndarray:
        ones = np.arange(total + 1.0)
        return scores.moments(config.alpha + ones, config.beta + total - ones).T

    placed = np.empty((len(posterior.weights), theta.shape[1] - start, len(theta)))
    for index in range(start, theta.shape[1]):
        # The class's parameter comes first, then two parameters of each attribute: class 0 before class 1.
        placed[:, index - start] = quantiles(posterior, divmod(index - 1, 2), prior, theta[:, index])
    variances = []
    for place in PARAMETERS.values():
        law, _ = naive_bayes_exact.expectations(posterior, place, shared, lambda total: np.zeros((1, total + 1)))
        variances.append((law[..., 1] - law[..., 0] ** 2).mean(axis=-1))
    return Rest(placed, np.stack(variances, axis=-1))


def network(config) -> BayesianNetwork:
    """Return the network of a cell's classifier, with the prior of its parameters."""
    return BayesianNetwork(graphs.naive_bayes(config.attributes), config.alpha, config.beta)


def tabulate(cells):
    """Return four tables: scores, paired differences, tests of calibration, and empirical distribution functions."""
    tables = scores.tabulate(cells, lambda config: columns(config, *PLACES), network)
    return {f"naive_bayes_{name}".rstrip("_"): table for name, table in tables.items()}
