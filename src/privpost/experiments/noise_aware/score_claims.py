"""What claims on noise-aware inference share: calibration, and gains over the noise-naive methods."""

from typing import NamedTuple

import numpy as np
import pandas as pd

from privpost.evaluation.calibration import LEVEL, ks_limit
from privpost.evaluation.multiplicity import critical_value
from privpost.evaluation.summaries import in_standard_errors
from privpost.experiments import width_claims
from privpost.experiments.claim_helpers import at_joint_level
from privpost.experiments.noise_aware.scores import AWARE
from privpost.lab.claims import check, number, numbers, untestable, word

# Names of the counts in claims.
NAIVE_NAMES = {"paper": "truncated", "consistent": "least-squares"}


class Comparison(NamedTuple):
    """A claim's statement about one score of the noise-aware method against the noise-naive ones.

    `sign` is −1 for a score of which less is better; without `ahead` it need only not be behind.
    """

    metric: str
    sign: int = 1
    ahead: bool = True


def gained(pairs, comparisons, places):
    """Yield whether the noise-aware method gains over the noise-naive ones in some scores, at every place and ε.

    Gains are differences in the claimed direction, in standard errors beyond joint chance over the rows of a variant.
    """
    aware = pairs["second"].isin(AWARE) & (pairs.second_variant == "paper") & (pairs["first"] == "naive")
    for metric, sign, ahead in comparisons:
        rows = pairs[aware & (pairs.metric == metric)]
        limits = rows.groupby("first_variant").metric.transform(lambda part: critical_value(len(part), LEVEL))
        limits = limits.astype(float) * (1 if ahead else -1)
        errors = pd.Series(-sign * in_standard_errors(rows), rows.index)
        names = {}
        for index, row in rows.iterrows():
            naive = NAIVE_NAMES[row["first_variant"]]
            names[index] = f"{metric} against {naive} counts: {setting(row, places)}"
            yield check(names[index], errors[index] > limits[index])
            yield from number(f"gain in {names[index]}", -sign * row.difference_mean)
        if ahead:
            # The row that decides the verdict.
            nearest, name = (errors - limits).idxmin(), f"nearest its limit, {metric}"
            yield from number(name, names[nearest])
            yield from number(f"{name}, standard errors", errors[nearest])
            yield from number(f"{name}, standard errors asked for", limits[nearest])


def setting(row, places) -> str:
    """Return the words for a row's setting."""
    shown = [f"{name} = {row[name] if isinstance(row[name], str) else format(row[name], 'g')}" for name in places]
    return ", ".join([*shown, f"epsilon = {row['epsilon']:.3g}"])


def calibrated(calibration, methods, variants=("paper",)):
    """Return the rows of some methods with the joint limit of their KS statistics (Bonferroni): column `rejected`."""
    rows = calibration[calibration.method.isin(methods) & calibration.variant.isin(variants)]
    limit = np.array([ks_limit(size, LEVEL / len(rows)) for size in rows.n_trials])
    return at_joint_level(rows).assign(limit=limit, rejected=rows.ks > limit)


def uniform(rows, method, places, valid=None):
    """Yield whether a noise-aware posterior is calibrated by KS and z², one check per place and ε, and words of tests.

    The true posterior is the control: where it is rejected itself, the draws of the parameters are in doubt, and rows
    of the same parameter and place do not count; nor do rows that are not `valid`. Without a row that counts the claim
    cannot be tested.

    Args:
        rows: of the method and of the true posterior.
        method: the noise-aware one.
        places: columns that make a check, with ε.
        valid: whether a noise-aware row counts, by its columns; all when None.
    """
    control, aware = (width_claims.tested(rows[rows.method == name]) for name in ("non_private", method))
    shared = [name for name in ("n", "concentration", "graph", "parameter") if name in rows]
    doubtful = control[control.rejected].set_index(shared).index
    counts = ~aware.set_index(shared).index.isin(doubtful) & (True if valid is None else valid(aware))
    rejected = int(control.rejected.sum())
    yield untestable("no test counts: the true posterior is rejected too, or chains have not converged")
    yield from number("tests of the true posterior that are rejected", f"{rejected} of {len(control)}")
    yield from number("tests that count", f"{int(counts.sum())} of {len(aware)}")
    yield word("tests", len(aware))
    yield width_claims.power(aware)
    yield from numbers(width_claims.evidence(aware, "the noise-aware posterior"))
    for _, part in aware[counts].groupby([*places, "epsilon"]):
        yield check(setting(part.iloc[0], places), not part.rejected.any())
