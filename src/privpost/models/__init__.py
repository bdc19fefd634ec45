"""Probabilistic models; a conjugate model in a file of its own is found by `discover`."""

from __future__ import annotations

import inspect
from importlib import import_module
from pkgutil import iter_modules

from privpost.models.base import ConjugateModel


def discover() -> dict[str, type[ConjugateModel]]:
    """Every conjugate model of this folder, keyed by the name of its module.

    Raises:
        ValueError: a module that defines more than one conjugate model.
    """
    found: dict[str, type[ConjugateModel]] = {}
    for module_info in iter_modules(__path__):
        module = import_module(f"{__name__}.{module_info.name}")
        for _, member in inspect.getmembers(module, inspect.isclass):
            defined_here = member.__module__ == module.__name__
            if defined_here and issubclass(member, ConjugateModel) and not inspect.isabstract(member):
                if module_info.name in found:
                    raise ValueError(f"{module.__file__} defines more than one conjugate model")
                found[module_info.name] = member
    return found


def __getattr__(name: str):
    # Only classes: importing a submodule asks for its name here first, and must not import all the others.
    if name[0].isupper():
        for model in discover().values():
            if model.__name__ == name:
                return model
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
