"""What the studies of noise-aware inference share: methods, tables of scores, and the checks of their claims."""

import itertools
from functools import partial

import numpy as np

from privpost.evaluation.calibration import empirical_cdf, ks_p_value, ks_statistic
from privpost.evaluation.summaries import mean_columns
from privpost.mechanisms.network_laplace import NetworkLaplace
from privpost.models.bayesian_network import BayesianNetwork
from privpost.models.consistency import consistent_counts
from privpost.privacy.accounting import Cost

# What is done with a release before the conjugate update that takes it for the data.
NAIVE_VARIANTS = ("paper", "consistent")
# Whether the exact posterior takes all counts together, or one family at a time.
VARIANTS = {"naive": NAIVE_VARIANTS, "exact": ("paper", "families")}
# Where empirical distribution functions are tabulated.
_AT = np.linspace(0, 1, 41)


def lines(methods) -> list[tuple[str, str]]:
    """Return the (method, variant) pairs that the methods' variants make."""
    return [(method, variant) for method in methods for variant in VARIANTS.get(method, ("paper",))]


def opened(epsilons, model: BayesianNetwork, n: int, ledger) -> list[NetworkLaplace]:
    """Return the mechanism at each ε, each with an account of its own: all methods work on the same release."""
    budgets = [Cost("pure", epsilon) for epsilon in epsilons]
    return [
        ledger.open(f"counts/epsilon={each.epsilon:g}", each, partial(NetworkLaplace.calibrate, model, n, each))
        for each in budgets
    ]


def released(mechanisms, statistics, streams, block, ledger) -> np.ndarray:
    """Return the noisy counts (epsilons, trials, 2m) of a block of trials, with common random numbers."""
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
    """Return the counts that a noise-naive analyst takes for the data, and the share of them that was truncated.

    `paper`: truncated to [0, n]; `consistent`: the least-squares fit by counts that agree with each other and with n,
    then truncated to [0, n], after which they need not agree any more.

    Args:
        mechanisms: one per ε.
        releases: shape (epsilons, trials, 2m), as the counts; the shares have shape (epsilons, trials).
    """
    if variant == "consistent":
        releases = consistent_counts(mechanisms[0].model, releases, mechanisms[0].n)
    counts = np.stack([mechanism.project(z) for mechanism, z in zip(mechanisms, releases, strict=True)])
    return counts, (counts != releases).mean(axis=-1)


def tabulate(cells, places, parameters) -> dict:
    """Return the tables that every study has, by the last part of their names.

    `""`: mean scores; `"pairs"`: paired differences between methods; `"calibration"`: KS statistics of the quantiles
    of the true parameters; `"ecdf"`: their empirical distribution functions at the ε next to 1.

    Args:
        cells: with arrays `quantile` (lines, epsilons, parameters, trials), and scores and `truncated`, the share of
            counts that were truncated (lines, epsilons, trials).
        places: function of a cell's config that returns its first columns.
        parameters: function of a cell's config that names the parameters.
    """
    rows, pairs, calibration, ecdf = [], [], [], []
    for cell in cells:
        config, arrays = cell.config, cell.arrays
        place = places(config)
        repeats = {"n_repeats": config.trials}
        every = lines(config.method)
        metrics = [name for name in ("accuracy", "log_likelihood", "label_log_likelihood", "mmd2") if name in arrays]
        middle = int(np.argmin(np.abs(np.log(config.epsilon))))
        for (i, (method, variant)), (j, epsilon) in itertools.product(enumerate(every), enumerate(config.epsilon)):
            # The true posterior has no ε.
            if method == "non_private" and j > 0:
                continue
            shown = None if method == "non_private" else epsilon
            named = {**place, "method": method, "variant": variant, "epsilon": shown}
            for metric in metrics:
                # The true posterior has no distance from itself, and without it the others have none.
                if (method, metric) != ("non_private", "mmd2") and not np.isnan(arrays[metric][i, j]).any():
                    share = float(arrays["truncated"][i, j].mean()) if method == "naive" else None
                    score = mean_columns("", arrays[metric][i, j])
                    rows.append({**named, "metric": metric, **score, **repeats, "truncated_share": share})
            for name, values in zip(parameters(config), arrays["quantile"][i, j], strict=True):
                ks = float(ks_statistic(values))
                p_value = float(ks_p_value(ks, len(values)))
                calibration.append({**named, "parameter": name, "ks": ks, "p_value": p_value, "n_trials": len(values)})
        for i, (method, variant) in enumerate(every):
            for name, values in zip(parameters(config), arrays["quantile"][i, middle], strict=True):
                named = {**place, "method": method, "variant": variant, "epsilon": config.epsilon[middle]}
                shares = empirical_cdf(values, _AT)
                ecdf += [{**named, "parameter": name, "u": u, "ecdf": x} for u, x in zip(_AT, shares, strict=True)]
        for (i, first), (k, second) in itertools.combinations(enumerate(every), 2):
            for (j, epsilon), metric in itertools.product(enumerate(config.epsilon), metrics):
                pair = {"first": first[0], "first_variant": first[1], "second": second[0], "second_variant": second[1]}
                difference = arrays[metric][i, j] - arrays[metric][k, j]
                if np.isnan(difference).any():
                    continue
                row = {"epsilon": epsilon, "metric": metric, **mean_columns("difference", difference), **repeats}
                pairs.append({**place, **pair, **row})
    return {"": rows, "pairs": pairs, "calibration": calibration, "ecdf": ecdf}
