"""What the studies of noise-aware inference share: methods, tables of scores, and the checks of their claims."""

from __future__ import annotations

import itertools
import math

import numpy as np

from privpost.evaluation.calibration import empirical_cdf, ks_limit, ks_p_value, ks_statistic
from privpost.evaluation.multiplicity import FALSE_ALARM, critical_value
from privpost.mechanisms.consistency import consistent_counts

# What is done with a release before the conjugate update that takes it for the data.
NAIVE_VARIANTS = ("paper", "consistent")
AWARE = ("exact", "gibbs")
# Where empirical distribution functions are tabulated.
_AT = np.linspace(0, 1, 41)


def lines(methods) -> list[tuple[str, str]]:
    """Return the (method, variant) pairs: naive from truncated counts (paper) and from consistent ones."""
    return [
        (method, variant) for method in methods for variant in (NAIVE_VARIANTS if method == "naive" else ("paper",))
    ]


def naive_counts(mechanism, variant: str, release) -> np.ndarray:
    """Return the counts (..., 2m) that a noise-naive analyst takes for the data.

    `paper`: truncated to [0, n]; `consistent`: the nearest ones that some n records have, then truncated.
    """
    if variant == "paper":
        return mechanism.project(release)
    return consistent_counts(mechanism.model, release, mechanism.n)


def tabulate(cells, places, parameters) -> dict:
    """Return the tables that every study has, by the last part of their names.

    `""`: mean scores; `"pairs"`: paired differences between methods; `"calibration"`: KS statistics of the quantiles
    of the true parameters; `"ecdf"`: their empirical distribution functions at the ε next to 1.

    Args:
        cells: with arrays `quantile` (lines, epsilons, parameters, trials) and scores (lines, epsilons, trials).
        places: function of a cell's config that returns its first columns.
        parameters: function of a cell's config that names the parameters.
    """
    import pandas as pd

    rows, pairs, calibration, ecdf = [], [], [], []
    for cell in cells:
        config, arrays = cell.config, cell.arrays
        place = places(config)
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
                # The true posterior has no distance from itself.
                if (method, metric) != ("non_private", "mmd2"):
                    rows.append({**named, "metric": metric, **_mean("", arrays[metric][i, j])})
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
                pairs.append(
                    {**place, **pair, "epsilon": epsilon, "metric": metric, **_mean("difference_", difference)}
                )
    return {
        name: pd.DataFrame(found)
        for name, found in {"": rows, "pairs": pairs, "calibration": calibration, "ecdf": ecdf}.items()
    }


def _mean(prefix, values) -> dict:
    sem = float(values.std(ddof=1) / math.sqrt(len(values)))
    return {f"{prefix}mean": float(values.mean()), f"{prefix}sem": sem, "n_repeats": len(values)}


def comparisons(pairs, metric: str, variant: str):
    """Return the rows noise-aware minus noise-naive (of a variant) of one metric: columns of `pairs` and `gain`."""
    rows = pairs[(pairs["first"] == "naive") & (pairs.first_variant == variant) & pairs["second"].isin(AWARE)]
    rows = rows[rows.metric == metric]
    return rows.assign(gain=-rows.difference_mean)


def gains(pairs, places, metric: str, variant: str, *, sign: int = 1, ahead: bool = True) -> dict[str, bool]:
    """Return the checks that the noise-aware method gains on the naive one, at each setting, beyond joint chance.

    `places` are the columns that name a setting beside ε; `sign` is −1 for a metric of which less is better;
    `ahead=False` asks only for not being behind.
    """
    rows = comparisons(pairs, metric, variant)
    z = critical_value(len(rows))
    return {
        f"{metric} against {variant}: {setting(row, places)}": bool(
            sign * row["gain"] > (z if ahead else -z) * row["difference_sem"]
        )
        for row in rows.to_dict("records")
    }


def gain_evidence(pairs, places, metric: str, variant: str) -> dict[str, float]:
    """Return the gain of the noise-aware method at each setting."""
    return {
        f"gain in {metric} on {variant}, {setting(row, places)}": float(row["gain"])
        for row in comparisons(pairs, metric, variant).to_dict("records")
    }


def setting(row, places) -> str:
    """Return the words for a row's setting."""
    return ", ".join(f"{name} = {row[name]}" for name in places) + f", epsilon = {row['epsilon']:.3g}"


def calibrated(calibration, methods, variants=("paper",)):
    """Return the rows of some methods with the joint limit of their KS statistics (Bonferroni): column `rejected`."""
    rows = calibration[calibration.method.isin(methods) & calibration.variant.isin(variants)]
    limit = np.array([ks_limit(size, FALSE_ALARM / len(rows)) for size in rows.n_trials])
    return rows.assign(limit=limit, rejected=rows.ks > limit)


def quoted(table, calibration, places) -> dict[str, float]:
    """Return mean scores and largest KS statistics at the smallest, a middle and the largest ε, for texts.

    Keys are `<metric>/<method>/<variant>/<places>/eps=<ε>`, the true posterior's without an ε.
    """
    epsilons = sorted(table.epsilon.dropna().unique())
    chosen = {epsilons[0], epsilons[len(epsilons) // 2], epsilons[-1]}
    ks = calibration.groupby(["method", "variant", *places, "epsilon"], dropna=False).ks.max().reset_index()
    rows = table.rename(columns={"mean": "value"}).to_dict("records")
    rows += ks.assign(metric="ks").rename(columns={"ks": "value"}).to_dict("records")
    found = {}
    for row in rows:
        name = "/".join([row["metric"], row["method"], row["variant"], *(f"{place}={row[place]}" for place in places)])
        if row["epsilon"] in chosen:
            found[f"{name}/eps={row['epsilon']:.3g}"] = float(row["value"])
        elif math.isnan(row["epsilon"]):
            found[name] = float(row["value"])
    return found
