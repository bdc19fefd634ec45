"""Helpers of the claims on war logs: the data sets that are judged, tests of paired scores, and converged chains."""

from collections.abc import Iterator

import numpy as np

from privpost.datasets import catalogue
from privpost.lab.claims import Part, number, word

# Our selection from the paper's data. The paper makes no statement on it.
OWN_SELECTION = ("afghanistan_dense",)
# Limit of a paired difference over splits, in standard errors. It is large, since training parts overlap and splits
# are few. At 9 degrees of freedom (t law), 14 comparisons have a joint false-alarm rate below 2 %.
THRESHOLD = 5.0
# Joint level of a family of t tests over splits. Some data sets have only three splits.
LEVEL = 0.05


def stands_in(dataset: str, ours: bool = False) -> bool:
    """Return whether verdicts leave out a data set: any stand-in and, unless the claim is `ours`, our selection."""
    return catalogue.load(dataset).stand_in or (dataset in OWN_SELECTION and not ours)


def reached(chains) -> Iterator[Part]:
    """Yield the number of settings at which each method's chains converged, as evidence and as the word `reached`."""
    words = []
    for method, rows in chains[chains.sampling == "mcmc"].groupby("method"):
        share = f"{int(rows.converged.astype(bool).sum())} of {len(rows)}"
        yield from number(f"settings whose chains converged, {method}", share)
        words.append(f"{share} settings of {method}")
    yield word("reached", f"Chains have converged at {', '.join(words)}; the other settings count, too")


def p_values(rows, score: str, sign: int = 1) -> np.ndarray:
    """Return the p-values of one-sided t tests that a paired difference over splits has the given sign."""
    from scipy.special import stdtr

    t = sign * (rows[f"{score}_mean"] / rows[f"{score}_sem"]).to_numpy(float)
    return stdtr(rows.n_splits.to_numpy(float) - 1, -t)


def holm(values, level: float = LEVEL) -> np.ndarray:
    """Return whether each test rejects at a joint level, by Holm's step-down procedure on the p-values (tests,)."""
    values = np.asarray(values, float)
    order = np.argsort(values)
    passed = values[order] <= level / np.arange(len(values), 0, -1)
    rejected = np.empty(len(values), bool)
    rejected[order] = np.logical_and.accumulate(passed)
    return rejected
