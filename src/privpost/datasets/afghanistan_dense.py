"""The dense part of the Afghan war diary: the same files and loader, fewer regions and months."""

from privpost.datasets.afghanistan import difference, parse

__all__ = ["difference", "parse"]
