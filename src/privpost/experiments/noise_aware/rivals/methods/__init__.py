"""Methods of noise-aware inference, a file each: `infer(task, releases, rng, budget)` gives draws of θ.

A new file takes part by itself, by its name. `infer` gets releases (k, q) and returns `Inferred`, or raises `Refused`
with the reason in one line.
"""

from importlib import import_module
from pkgutil import iter_modules
from typing import NamedTuple

import numpy as np


class Inferred(NamedTuple):
    """Draws (releases, chains, draws, p) of θ.

    `effective` (releases,) is how many independent draws they are worth, where the method knows; None: as R-hat's
    companion says, or all of them where there is one chain.
    """

    draws: np.ndarray
    effective: np.ndarray | None = None


def names() -> set[str]:
    """Return the names of all methods: those of the files in this folder."""
    return {module.name for module in iter_modules(__path__)}


def method(name: str):
    """Return the function `infer` of a method."""
    return import_module(f"{__name__}.{name}").infer
