"""Probabilistic models; each conjugate model is one file, which `privpost.discovery` finds.

Users call classes, imported from here or from `privpost`. `conjugate` has models whose posterior belongs to the prior's
family, `regression` linear and binary regressions, `networks` Bayesian networks and their graphs, `events` the hidden
Markov model for counts of events in cells. All these modules use `base`, the interface of conjugate models.
"""

from privpost import lookup


def __getattr__(name: str):
    return lookup.find(__name__, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *lookup.names(*__path__)})
