"""Private releases, one mechanism a file; each is found by `privpost.discovery` and can be imported from here."""

from privpost import lookup


def __getattr__(name: str):
    return lookup.find(__name__, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *lookup.names(*__path__)})
