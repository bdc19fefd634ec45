"""What claims on war logs share: data sets that are judged, tests of paired scores, and which chains have converged."""

from collections.abc import Iterator

import numpy as np

from privpost.datasets import catalogue
from privpost.lab.claims import Part, number, word

# Our selection from the paper's data: the paper says nothing about it alone.
OWN_SELECTION = ("afghanistan_dense",)
# Standard errors of a paired difference over splits. The splits overlap in training and their standard error has few
# degrees of freedom; 5 leaves a joint rate of false alarms below 2 % for 14 comparisons even at 9 degrees (t law).
THRESHOLD = 5.0
# Joint level of a family of tests by Student's t over splits, of which some have three.
LEVEL = 0.05


def stands_in(dataset: str, ours: bool = False) -> bool:
    """Whether no verdict on a claim of the paper's, or on one of ours, rests on the data set."""
    return catalogue.load(dataset).stand_in or (dataset in OWN_SELECTION and not ours)


def reached(chains) -> Iterator[Part]:
    """Yield at how many of its settings each method's chains have converged: as evidence, and as the word `reached`."""
    words = []
    for method, rows in chains[chains.sampling == "mcmc"].groupby("method"):
        share = f"{int(rows.converged.astype(bool).sum())} of {len(rows)}"
        yield from number(f"settings whose chains converged, {method}", share)
        words.append(f"{method} at {share}")
    yield word("reached", f"Settings whose chains converged: {', '.join(words)}; all of them count")


def p_values(rows, score: str, sign: int = 1) -> np.ndarray:
    """Return one-sided p-values, by Student's t over splits, that a paired difference has the sign."""
    from scipy.special import stdtr

    t = sign * (rows[f"{score}_mean"] / rows[f"{score}_sem"]).to_numpy(float)
    return stdtr(rows.n_splits.to_numpy(float) - 1, -t)


def holm(values, level: float = LEVEL) -> np.ndarray:
    """Return which p-values (tests,) reject at a joint level, by Holm's step-down procedure."""
    values = np.asarray(values, float)
    order = np.argsort(values)
    passed = values[order] <= level / np.arange(len(values), 0, -1)
    rejected = np.empty(len(values), bool)
    rejected[order] = np.logical_and.accumulate(passed)
    return rejected
