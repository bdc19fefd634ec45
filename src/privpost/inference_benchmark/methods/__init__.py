"""Methods of noise-aware inference, one per file.

A file's function `infer(task, releases, rng, budget)` gets releases (k, q) and returns `base.Inferred`. If the method
cannot serve the task, `infer` raises `base.Refused` with the reason in one line.
"""

from collections.abc import Callable
from importlib import import_module
from pkgutil import iter_modules

from privpost.inference_benchmark.base import Inferred

Infer = Callable[..., Inferred]


def names() -> set[str]:
    """Return the names of all methods, which are the names of the files in this folder."""
    return {module.name for module in iter_modules(__path__)}


def method(name: str) -> Infer:
    """Return the function `infer` of a method."""
    return import_module(f"{__name__}.{name}").infer
