"""Mechanisms that make private releases.

A user imports a class from here or from `privpost`, and calls its `calibrate`, `perturb`, `posterior` and `cost`.
`noise` adds noise to statistics, `draws` samples from private posteriors, and `choices` has the exponential mechanism.
Developers need `base`, the interface of all mechanisms; `pure`, the base class of mechanisms with a setting ε; and
`batches`, which makes several releases about one data set together.
"""

from privpost import lookup


def __getattr__(name: str):
    return lookup.find(__name__, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *lookup.names(*__path__)})
