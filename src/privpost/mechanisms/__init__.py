"""Private releases, one mechanism a file; each is found by `privpost.discovery` and can be imported from here."""

from __future__ import annotations


def __getattr__(name: str):
    # Only classes: importing a submodule asks for its name here first, and must not import all the others.
    if name[0].isupper():
        from privpost import discovery

        for found in (kind for kinds in discovery.mechanisms().values() for kind in kinds):
            if found.__name__ == name:
                return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
