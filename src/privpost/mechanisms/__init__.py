"""Private releases; a mechanism in a file of its own is found by `discover` and can be imported from here."""

from __future__ import annotations

import inspect
from importlib import import_module
from pkgutil import iter_modules

from privpost.mechanisms.base import Mechanism


def discover() -> dict[str, tuple[type[Mechanism], ...]]:
    """Every mechanism of this folder, keyed by its method id, in the order of module and class names."""
    found: dict[str, tuple[type[Mechanism], ...]] = {}
    for module_info in iter_modules(__path__):
        module = import_module(f"{__name__}.{module_info.name}")
        for _, member in inspect.getmembers(module, inspect.isclass):
            defined_here = member.__module__ == module.__name__
            if defined_here and issubclass(member, Mechanism) and not inspect.isabstract(member):
                found[member.method] = (*found.get(member.method, ()), member)
    return found


def __getattr__(name: str):
    # Only classes: importing a submodule asks for its name here first, and must not import all the others.
    if name[0].isupper():
        for same_method in discover().values():
            for mechanism in same_method:
                if mechanism.__name__ == name:
                    return mechanism
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
