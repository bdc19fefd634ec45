"""What the studies of noise-aware inference share: methods, tables of scores, and the checks of their claims."""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import numpy as np

from privpost.evaluation.calibration import empirical_cdf, ks_limit, ks_p_value, ks_statistic
from privpost.evaluation.claims import Claim, Why, from_checks
from privpost.evaluation.multiplicity import FALSE_ALARM, critical_value
from privpost.mechanisms.consistency import consistent_counts

# What is done with a release before the conjugate update that takes it for the data.
NAIVE_VARIANTS = ("paper", "consistent")
# What claims call these counts.
NAIVE_NAMES = {"paper": "truncated", "consistent": "least-squares"}
# Whether the exact posterior takes all counts together, or one family at a time.
VARIANTS = {"naive": NAIVE_VARIANTS, "exact": ("paper", "families")}
AWARE = ("exact", "gibbs")
# Where empirical distribution functions are tabulated.
_AT = np.linspace(0, 1, 41)


def lines(methods) -> list[tuple[str, str]]:
    """Return the (method, variant) pairs that the methods' variants make."""
    return [(method, variant) for method in methods for variant in VARIANTS.get(method, ("paper",))]


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
                    share = float(arrays["truncated"][i, j].mean()) if method == "naive" else None
                    score = _mean("", arrays[metric][i, j])
                    rows.append({**named, "metric": metric, **score, "truncated_share": share})
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


class Comparison(NamedTuple):
    """What a claim says of one score of the noise-aware method against the noise-naive ones.

    `sign` is −1 for a score of which less is better; without `ahead` it need only not be behind.
    """

    metric: str
    sign: int = 1
    ahead: bool = True


def gains(pairs, comparison: Comparison, places):
    """Return the rows noise-aware against noise-naive of one score: the columns of `pairs` and those of the test.

    `check` names it; `gain` is the difference in the claimed direction, `errors` the same in standard errors, `limit`
    the least number of them, beyond joint chance over the rows of a variant, and `passed` whether it is reached.
    """
    aware = pairs["second"].isin(AWARE) & (pairs.second_variant == "paper")
    rows = pairs[(pairs["first"] == "naive") & aware & (pairs.metric == comparison.metric)]
    gain = -comparison.sign * rows.difference_mean
    errors = gain / rows.difference_sem
    limit = rows.groupby("first_variant").metric.transform(lambda part: critical_value(len(part))).astype(float)
    limit *= 1 if comparison.ahead else -1
    check = [
        f"{row['metric']} against {NAIVE_NAMES[row['first_variant']]} counts: {setting(row, places)}"
        for row in rows.to_dict("records")
    ]
    return rows.assign(check=check, gain=gain, errors=errors, limit=limit, passed=errors > limit)


def gain_checks(pairs, comparisons, places) -> tuple[dict[str, bool], dict[str, float], Why]:
    """Return checks, evidence and the explanation of differences that are too small for the number of repeats."""
    checks, evidence, short = {}, {}, []
    for comparison in comparisons:
        rows = gains(pairs, comparison, places)
        checks |= dict(zip(rows.check, rows.passed, strict=True))
        evidence |= {f"gain in {check}": float(gain) for check, gain in zip(rows.check, rows.gain, strict=True)}
        if comparison.ahead:
            # The row that the verdict hangs on.
            nearest = rows.loc[(rows.errors - rows.limit).idxmin()]
            name = f"nearest its limit, {comparison.metric}"
            evidence |= {name: nearest.check, f"{name}, standard errors": float(nearest.errors)}
            evidence[f"{name}, standard errors asked for"] = float(nearest.limit)
        short.append(rows[~rows.passed & (rows.errors > 0)])
    short = [row for rows in short for row in rows.itertuples()]
    why = Why(
        "The difference has the claimed sign but is too small for the number of repeats: "
        + ", ".join(f"{row.errors:.1f} standard errors where {row.limit:.1f} are asked for" for row in short)
        + f". All of it at epsilon >= {min((row.epsilon for row in short), default=math.nan):.3g}, where all methods "
        "are close to the true posterior.",
        tuple(row.check for row in short),
        "docs/noise_aware.md#where-the-noise-is-small",
    )
    return checks, evidence, why


def setting(row, places) -> str:
    """Return the words for a row's setting."""
    shown = [f"{name} = {row[name] if isinstance(row[name], str) else format(row[name], 'g')}" for name in places]
    return ", ".join([*shown, f"epsilon = {row['epsilon']:.3g}"])


def calibrated(calibration, methods, variants=("paper",)):
    """Return the rows of some methods with the joint limit of their KS statistics (Bonferroni): column `rejected`."""
    rows = calibration[calibration.method.isin(methods) & calibration.variant.isin(variants)]
    limit = np.array([ks_limit(size, FALSE_ALARM / len(rows)) for size in rows.n_trials])
    return rows.assign(limit=limit, rejected=rows.ks > limit)


def calibration_claim(id, statement, test, rows, method, places, evidence, valid=None) -> Claim:
    """Score whether a noise-aware posterior is calibrated, one check per place and ε.

    The true posterior is the control: where it is rejected itself, the draws of the parameters are in doubt, and rows
    of the same parameter and place do not count; nor do those that are not `valid`. Without a row that counts the claim
    cannot be tested.

    Args:
        id, statement, test, evidence: as of `Claim`.
        rows: of `calibrated`, with those of the true posterior.
        method: the noise-aware one.
        places: columns that make a check, with ε.
        valid: whether a noise-aware row counts, by its columns; all when None.
    """
    control = rows[rows.method == "non_private"]
    shared = [name for name in ("n", "concentration", "graph", "parameter") if name in rows]
    doubtful = set(control[control.rejected][shared].itertuples(index=False, name=None))
    aware = rows[rows.method == method]
    sound = np.array([place not in doubtful for place in aware[shared].itertuples(index=False, name=None)], bool)
    counts = sound if valid is None else sound & valid(aware)
    evidence = {
        **evidence,
        "tests of the true posterior that are rejected": f"{int(control.rejected.sum())} of {len(control)}",
        "tests that count": f"{int(counts.sum())} of {len(aware)}",
    }
    if not counts.any():
        reason = "no test counts: the true posterior is rejected too, or chains have not converged"
        return Claim(id, "ours", statement, test, "not testable", evidence, reason=reason)
    checks = {
        setting(part.iloc[0], places): not part.rejected.any()
        for _, part in aware[counts].groupby([*places, "epsilon"])
    }
    return from_checks(id, "ours", statement, test, checks, evidence)
