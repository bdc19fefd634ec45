"""Methods that need a package outside requirements.lock, one per file. No study runs these methods."""

from importlib import import_module
from pkgutil import iter_modules

from privpost.inference_benchmark.methods import Infer


def names() -> list[str]:
    """Return the names of the optional methods, which are the names of the files in this folder."""
    return sorted(module.name for module in iter_modules(__path__))


def method(name: str) -> Infer:
    """Return the function `infer` of an optional method."""
    return import_module(f"{__name__}.{name}").infer
