"""Probabilistic models; a conjugate model in a file of its own is found by `privpost.discovery`.

A user calls a class, imported from here or from `privpost`. `conjugate` has models whose posterior is of the prior's
family, `regression` has linear and binary ones, `networks` has Bayesian networks and their graphs, `events` has counts
of events in cells, which the hidden Markov model is about. `base`, the interface of conjugate models, serves them.
"""

from privpost import lookup


def __getattr__(name: str):
    return lookup.find(__name__, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *lookup.names(*__path__)})
