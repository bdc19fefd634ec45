"""Probabilistic models of records.

`conjugate` has models whose posterior belongs to the prior's family, `regression` has linear and binary regressions,
`networks` has Bayesian networks and their graphs, and `events` has the hidden Markov model for counts of events in
cells. `base` is the interface of conjugate models. Users import the classes from here or from `privpost`.
"""

from privpost import lookup


def __getattr__(name: str):
    return lookup.find(__name__, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *lookup.names(*__path__)})
