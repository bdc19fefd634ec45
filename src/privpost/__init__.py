"""Reproducible studies of Bayesian inference under differential privacy.

Every mechanism and every model can be imported from here, and so can `Cost`, `Ledger` and `Release`; a class is
imported when it is first asked for.
"""

__version__ = "0.1.0"

# Beside those in `mechanisms` and `models`: what an account of releases is made of.
_OTHERS = {"Cost": "privacy.accounting", "Ledger": "privacy.ledger", "Release": "privacy.ledger"}
_FOLDERS = ("mechanisms", "models")


def __getattr__(name: str):
    from importlib import import_module
    from pathlib import Path

    if name in _OTHERS:
        return getattr(import_module(f"{__name__}.{_OTHERS[name]}"), name)
    if name[0].isupper():
        from privpost import lookup

        for folder in _FOLDERS:
            if lookup.home(name, Path(__file__).parent / folder):
                return lookup.find(f"{__name__}.{folder}", name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    from pathlib import Path

    from privpost import lookup

    found = {name for folder in _FOLDERS for name in lookup.names(Path(__file__).parent / folder)}
    return sorted({*globals(), *_OTHERS, *found})
