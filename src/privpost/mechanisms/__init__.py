"""Private releases, one family of mechanisms a file, found by `privpost.discovery` and imported from here."""

from privpost import lookup


def __getattr__(name: str):
    return lookup.find(__name__, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *lookup.names(*__path__)})
