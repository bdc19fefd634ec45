"""The dense part of the Afghan war diary, with fewer regions and months than `afghanistan`."""

from privpost.datasets.afghanistan import difference, parse

__all__ = ["difference", "parse"]
