"""What the claims on noise-aware inference share: calibration, and gains over the noise-naive methods."""

import math
from typing import NamedTuple

import numpy as np

from privpost.evaluation.calibration import LEVEL, ks_limit
from privpost.evaluation.claims import Claim, Why, from_checks
from privpost.evaluation.multiplicity import critical_value
from privpost.evaluation.summaries import in_standard_errors
from privpost.experiments.claim_helpers import at_joint_level, ks_evidence

# What claims call these counts.
NAIVE_NAMES = {"paper": "truncated", "consistent": "least-squares"}
AWARE = ("exact", "gibbs")


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
    errors = -comparison.sign * in_standard_errors(rows)
    limit = rows.groupby("first_variant").metric.transform(lambda part: critical_value(len(part), LEVEL)).astype(float)
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
        evidence |= {f"gain in {check}": gain for check, gain in zip(rows.check, rows.gain, strict=True)}
        if comparison.ahead:
            # The row that the verdict hangs on.
            nearest = rows.loc[(rows.errors - rows.limit).idxmin()]
            name = f"nearest its limit, {comparison.metric}"
            evidence |= {name: nearest.check, f"{name}, standard errors": nearest.errors}
            evidence[f"{name}, standard errors asked for"] = nearest.limit
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


def gain_claim(id, statement, test, pairs, comparisons, places) -> Claim:
    """Score whether the noise-aware method gains over the noise-naive ones in some scores, at every place and ε."""
    checks, evidence, why = gain_checks(pairs, comparisons, places)
    return from_checks(id, "ours", statement, test, checks, evidence, whys=[why], variant="paper, consistent")


def setting(row, places) -> str:
    """Return the words for a row's setting."""
    shown = [f"{name} = {row[name] if isinstance(row[name], str) else format(row[name], 'g')}" for name in places]
    return ", ".join([*shown, f"epsilon = {row['epsilon']:.3g}"])


def calibrated(calibration, methods, variants=("paper",)):
    """Return the rows of some methods with the joint limit of their KS statistics (Bonferroni): column `rejected`."""
    rows = calibration[calibration.method.isin(methods) & calibration.variant.isin(variants)]
    limit = np.array([ks_limit(size, LEVEL / len(rows)) for size in rows.n_trials])
    return at_joint_level(rows).assign(limit=limit, rejected=rows.ks > limit)


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
        **ks_evidence(aware, "the noise-aware posterior"),
    }
    checks = {
        setting(part.iloc[0], places): not part.rejected.any()
        for _, part in aware[counts].groupby([*places, "epsilon"])
    }
    untestable = "no test counts: the true posterior is rejected too, or chains have not converged"
    return from_checks(id, "ours", statement, test, checks, evidence, untestable=untestable)
