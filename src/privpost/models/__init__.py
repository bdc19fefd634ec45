"""Probabilistic models; a conjugate model in a file of its own is found by `privpost.discovery`."""

from __future__ import annotations


def __getattr__(name: str):
    # Only classes: importing a submodule asks for its name here first, and must not import all the others.
    if name[0].isupper():
        from privpost import discovery

        for found in discovery.models().values():
            if found.__name__ == name:
                return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
