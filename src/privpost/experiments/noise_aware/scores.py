"""Parts shared by the studies of noise-aware inference on networks: methods, releases and tables of scores."""

import itertools
from functools import partial

import numpy as np

from privpost.evaluation.calibration import empirical_cdf, ks_p_value, ks_statistic
from privpost.evaluation.spread import among, spread_columns
from privpost.evaluation.summaries import mean_columns
from privpost.mechanisms.noise.network import NetworkLaplace
from privpost.models.networks.bayesian_network import BayesianNetwork
from privpost.models.networks.consistency import consistent_counts
from privpost.privacy.accounting.costs import Cost

# Variants of the naive method process the release differently before they take it for the data. Variants of the exact
# method take all counts together, or one family at a time.
NAIVE_VARIANTS = ("paper", "consistent")
VARIANTS = {"naive": NAIVE_VARIANTS, "exact": ("paper", "families")}
# Methods whose posterior takes the noise into account.
AWARE = ("exact", "gibbs")
METRICS = ("accuracy", "log_likelihood", "label_log_likelihood", "mmd2")
# Class 1 is predicted if its log-probability exceeds that of class 0 by this. Truncated counts often tie, and last
# digits, which differ between processors, must not decide.
TIE = 1e-9
# Points of the empirical distribution functions.
_AT = np.linspace(0, 1, 41)


def lines(methods) -> list[tuple[str, str]]:
    """Return all lines, which are pairs of a method and one of the method's variants."""
    return [(method, variant) for method in methods for variant in VARIANTS.get(method, ("paper",))]


def opened(epsilons, model: BayesianNetwork, n: int, ledger) -> list[NetworkLaplace]:
    """Open a ledger account for each ε, and return the mechanism of each ε."""
    budgets = [Cost("pure", epsilon) for epsilon in epsilons]
    return [
        ledger.open(f"counts/epsilon={budget.epsilon:g}", budget, partial(NetworkLaplace.calibrate, model, n, budget))
        for budget in budgets
    ]


def released(mechanisms, statistics, streams, block, ledger) -> np.ndarray:
    """Return a block's noisy counts (epsilons, trials, 2m), with the same random numbers at every ε."""
    return np.stack(
        [
            ledger.release(
                f"counts/epsilon={mechanism.epsilon:g}",
                mechanism,
                statistics,
                streams("mechanism", block.index),
                repeats=block.trials,
            ).values
            for mechanism in mechanisms
        ]
    )


def naive_counts(mechanisms, variant: str, releases) -> tuple[np.ndarray, np.ndarray]:
    """Return the counts that a noise-naive analyst takes for the data, and the shares of truncated counts.

    The variant `paper` truncates to [0, n]. The variant `consistent` first fits, by least squares, counts that agree
    with each other and with n. `releases` and counts have shape (epsilons, trials, 2m), and shares (epsilons, trials).
    """
    if variant == "consistent":
        releases = consistent_counts(mechanisms[0].model, releases, mechanisms[0].n)
    counts = np.stack([mechanism.project(z) for mechanism, z in zip(mechanisms, releases, strict=True)])
    return counts, (counts != releases).mean(axis=-1)


def counts_of(method: str, variant: str, mechanisms, statistics, releases) -> tuple[np.ndarray, np.ndarray | float]:
    """Return the exact or naive counts for a conjugate update, and the share of truncated counts."""
    if method == "naive":
        return naive_counts(mechanisms, variant, releases)
    return np.broadcast_to(statistics, releases.shape), 0.0


def moments(a, b) -> np.ndarray:
    """Return mean and mean square of Beta(a, b), stacked along a new first axis."""
    mean = a / (a + b)
    return np.stack([mean, mean * (a + 1) / (a + b + 1)])


def of_prior(alpha: float, beta: float, variance) -> np.ndarray:
    """Return the square root of a posterior variance, over the standard deviation of the prior Beta(α, β)."""
    mean, square = moments(alpha, beta)
    return np.sqrt(variance / (square - mean**2))


def alike(model: BayesianNetwork) -> list[tuple]:
    """Return a label for each parameter. Parameters with equal labels are exchangeable in the network and the release.

    Nodes with the same parents and children are exchangeable. If alpha = beta, a node's parameters for different values
    of the parents are exchangeable too.
    """
    labels = []
    for node, parents in model.parents:
        children = frozenset(child for child, others in model.parents if node in others)
        for values in itertools.product((0, 1), repeat=len(parents)):
            labels.append((frozenset(parents), children, () if model.alpha == model.beta else values))
    return labels


def names(model: BayesianNetwork) -> list[str]:
    """Return the names of a network's parameters, such as `x1 | y = 0` for the node x1 if its parent y is 0."""
    named = []
    for node, parents in model.parents:
        for values in itertools.product((0, 1), repeat=len(parents)):
            given = ", ".join(f"{parent} = {value}" for parent, value in zip(parents, values, strict=True))
            named.append(f"{node} | {given}" if given else node)
    return named


def tabulate(cells, places, network) -> dict:
    """Return the four tables that all studies on networks have, by the ends of the tables' names.

    `""` has mean scores, and `"pairs"` has paired differences between methods. `"calibration"` has tests of the true
    parameters' quantiles. `"ecdf"` has distribution functions of the quantiles at the ε nearest to 1.

    Args:
        cells: cells with scores, `quantile` (lines, epsilons, parameters, trials), `truncated` (lines, epsilons,
            trials) and `sd_of_prior` (epsilons, parameters). Optional `others` are quantiles of parameters without
            rows.
        places: function of a cell's config that returns the first columns of the cell's rows.
        network: function of a cell's config that returns the network.
    """
    tables: dict[str, list] = {"": [], "pairs": [], "calibration": [], "ecdf": []}
    for cell in cells:
        place, model = places(cell.config), network(cell.config)
        tables[""] += _scores(cell, place)
        tables["pairs"] += _pairs(cell, place)
        tables["calibration"] += _calibration(cell, place, names(model), alike(model))
        tables["ecdf"] += _ecdf(cell, place, names(model))
    return tables


def _named(cell):
    """Yield the array index and the identifying columns of every row."""
    for (i, (method, variant)), (j, epsilon) in itertools.product(
        enumerate(lines(cell.config.method)), enumerate(cell.config.epsilon)
    ):
        if method != "non_private":
            yield (i, j), {"method": method, "variant": variant, "epsilon": epsilon}
        elif j == 0:
            yield (i, j), {"method": method, "variant": variant, "epsilon": None}


def _scores(cell, place):
    arrays = cell.arrays
    for at, named in _named(cell):
        for metric in (metric for metric in METRICS if metric in arrays):
            # The true posterior gets no row for its distance from itself. Other distances are nan if it was not run.
            if (named["method"], metric) != ("non_private", "mmd2") and not np.isnan(arrays[metric][at]).any():
                share = float(arrays["truncated"][at].mean()) if named["method"] == "naive" else None
                score = {"metric": metric, **mean_columns("", arrays[metric][at]), "n_repeats": cell.config.trials}
                yield {**place, **named, **score, "truncated_share": share}


def _calibration(cell, place, names, labels):
    for at, named in _named(cell):
        quantiles = cell.arrays["quantile"][at]
        all_quantiles = np.concatenate([quantiles, cell.arrays["others"][at]]) if "others" in cell.arrays else quantiles
        known = ~np.isnan(all_quantiles).any(axis=1)
        tests: dict = {}
        for j, values in enumerate(quantiles):
            ks = float(ks_statistic(values))
            test = {"ks": ks, "p_value": float(ks_p_value(ks, len(values))), "n_trials": len(values)}
            if labels[j] not in tests:
                members = [k for k, label in enumerate(labels) if label == labels[j] and known[k]]
                tests[labels[j]] = spread_columns(all_quantiles[members], among([names[k] for k in members]))
            share = cell.arrays["sd_of_prior"][at[1], j] if named["method"] in AWARE else None
            yield {**place, **named, "parameter": names[j], **test, **tests[labels[j]], "sd_of_prior": share}


def _ecdf(cell, place, names):
    middle = int(np.argmin(np.abs(np.log(cell.config.epsilon))))
    for i, (method, variant) in enumerate(lines(cell.config.method)):
        named = {**place, "method": method, "variant": variant, "epsilon": cell.config.epsilon[middle]}
        for name, values in zip(names, cell.arrays["quantile"][i, middle], strict=False):
            for u, share in zip(_AT, empirical_cdf(values, _AT), strict=True):
                yield {**named, "parameter": name, "u": u, "ecdf": share}


def _pairs(cell, place):
    metrics = [metric for metric in METRICS if metric in cell.arrays]
    for (i, first), (k, second) in itertools.combinations(enumerate(lines(cell.config.method)), 2):
        pair = {"first": first[0], "first_variant": first[1], "second": second[0], "second_variant": second[1]}
        for (j, epsilon), metric in itertools.product(enumerate(cell.config.epsilon), metrics):
            difference = cell.arrays[metric][i, j] - cell.arrays[metric][k, j]
            if not np.isnan(difference).any():
                row = {"epsilon": epsilon, "metric": metric, **mean_columns("difference", difference)}
                yield {**place, **pair, **row, "n_repeats": cell.config.trials}
