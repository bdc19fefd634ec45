"""Private releases, one family of mechanisms a file, found by `privpost.discovery` and imported from here.

A user calls a class, imported from here or from `privpost`: its `calibrate`, `perturb`, `posterior` and `cost`. `noise`
has statistics plus noise, `draws` has draws from private posteriors, `choices` the exponential mechanism. These serve
them: `base`, the interface of all, `pure`, the base of those that are configured by ε, and `batches`, releases about
several data sets at once.
"""

from privpost import lookup


def __getattr__(name: str):
    return lookup.find(__name__, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *lookup.names(*__path__)})
