"""Reproducible studies of Bayesian inference under differential privacy.

Models, mechanisms, costs, the ledger and evaluations of draws can be imported from here.
"""

__version__ = "0.2.0"


def _homes(package: str) -> dict[str, str]:
    """Map each public name to the module that defines the name, according to the package's stub for type checkers."""
    import re
    from pathlib import Path

    stub = Path(__file__).parent.joinpath(*package.split(".")[1:], "__init__.pyi").read_text(encoding="utf-8")
    homes = {}
    for module in re.findall(r"^from (\S+) import \*", stub, re.MULTILINE):
        homes |= _homes(module)
    return homes | {name: module for module, name in re.findall(r"^from (\S+) import (\w+) as", stub, re.MULTILINE)}


_HOMES = _homes(__name__)
__all__ = sorted(_HOMES)  # noqa: PLE0605


def __getattr__(name: str):
    from importlib import import_module

    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if now := import_module(f"{__name__}.moved").told("name", name):
        # This is no AttributeError, since `from privpost import` would not show the text of an AttributeError.
        raise ImportError(f"there is no {name!r} in {__name__}.{now}")
    hint = import_module(f"{__name__}.lookup").nearest(name, _HOMES)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}{hint}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
