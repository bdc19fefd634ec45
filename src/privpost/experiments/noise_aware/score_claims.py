"""Checks shared by claims on noise-aware inference: calibration, and gains over the noise-naive methods."""

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

# Names of the naive variants' counts in the texts of claims.
NAIVE_NAMES = {"paper": "truncated", "consistent": "least-squares"}


class Comparison(NamedTuple):
    """A claim that the noise-aware method is better in one score than the noise-naive methods.

    `sign` is −1 if a smaller score is better. If `ahead` is False, the claim is that the noise-aware method is not
    significantly worse.
    """

    metric: str
    sign: int = 1
    ahead: bool = True


def gained(pairs, comparisons, places):
    """Yield, for each score, place and ε, a check that the noise-aware method beats the noise-naive methods."""
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
            # The row nearest to its limit decides the verdict.
            nearest, name = (errors - limits).idxmin(), f"nearest its limit, {metric}"
            yield from number(name, names[nearest])
            yield from number(f"{name}, standard errors", errors[nearest])
            yield from number(f"{name}, standard errors asked for", limits[nearest])


def setting(row, places) -> str:
    """Return a row's place and ε as text."""
    shown = [f"{name} = {row[name] if isinstance(row[name], str) else format(row[name], 'g')}" for name in places]
    return ", ".join([*shown, f"epsilon = {row['epsilon']:.3g}"])


def calibrated(calibration, methods, variants=("paper",)):
    """Return rows of some methods with two columns: `limit`, the joint KS limit (Bonferroni), and `rejected`."""
    rows = calibration[calibration.method.isin(methods) & calibration.variant.isin(variants)]
    limit = np.array([ks_limit(size, LEVEL / len(rows)) for size in rows.n_trials])
    return at_joint_level(rows).assign(limit=limit, rejected=rows.ks > limit)


def uniform(rows, method, places, valid=None):
    """Yield evidence and, for each place and ε, a check that neither KS nor z² rejects the noise-aware posterior.

    A row counts if it is `valid`, and if no test rejects the true posterior at the same parameter and place. If no row
    counts, the claim cannot be tested.

    Args:
        rows: rows of the noise-aware method and of the true posterior.
        method: the noise-aware method.
        places: columns that, with ε, identify a check.
        valid: function that returns which noise-aware rows are valid. If None, all are.
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
