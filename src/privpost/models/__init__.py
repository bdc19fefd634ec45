"""Probabilistic models; a conjugate model in a file of its own is found by `privpost.discovery`.

A user calls a class, imported from here or from `privpost`. `conjugate` has models whose posterior is of the prior's
family, `regression` linear and binary regressions, `networks` Bayesian networks and their graphs, `events` the hidden
Markov model for counts of events in cells. `base`, the interface of conjugate models, is used by the others.
"""

from privpost import lookup


def __getattr__(name: str):
    return lookup.find(__name__, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *lookup.names(*__path__)})
