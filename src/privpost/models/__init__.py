"""Probabilistic models; a conjugate model in a file of its own is found by `privpost.discovery`."""

from privpost import lookup


def __getattr__(name: str):
    return lookup.find(__name__, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *lookup.names(*__path__)})
