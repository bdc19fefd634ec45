"""The dense part of the Afghan war diary: the same file and loader, fewer regions and months."""

from privpost.datasets.afghanistan import parse

__all__ = ["parse"]
