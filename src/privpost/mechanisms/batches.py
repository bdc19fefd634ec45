"""Helpers for mechanisms that make all releases about one data set as a batch."""

from abc import abstractmethod
from collections.abc import Callable
from typing import ClassVar

import numpy as np

from privpost.privacy.ledger.gate import Release


def batches(replicate: Callable, statistics, rng: np.random.Generator) -> np.ndarray:
    """Return one release per row of statistics (..., d). Releases about equal rows are made as one batch.

    Args:
        replicate: function that returns releases, given one data set's statistics (d,), a number of releases and rng.
    """
    statistics = np.asarray(statistics, float)
    rows = statistics.reshape(-1, statistics.shape[-1])
    if np.all(rows == rows[0]):
        drawn = replicate(rows[0], len(rows), rng)
        return drawn.reshape(*statistics.shape[:-1], *drawn.shape[1:])
    alike: dict[bytes, list[int]] = {}
    for place, row in enumerate(rows):
        alike.setdefault(row.tobytes(), []).append(place)
    places = list(alike.values())
    drawn = np.concatenate([replicate(rows[same[0]], len(same), rng) for same in places])
    draws = np.empty_like(drawn)
    draws[np.concatenate(places)] = drawn
    return draws.reshape(*statistics.shape[:-1], *draws.shape[1:])


class Batched:
    """Mixin for mechanisms whose `draw` makes several releases about one data set as a batch."""

    releases: ClassVar[str] = "sample"

    @abstractmethod
    def draw(self, statistics, rng, size: int | None = None) -> Release:
        """Return `size` releases about one data set, or one release per leading index if `size` is None."""

    def _perturb(self, statistics, rng):
        """Return one release per leading index. Releases about equal statistics are made as one batch."""
        return batches(self.replicate, statistics, rng)

    def replicate(self, statistics, size, rng) -> np.ndarray:
        """Return `size` independent releases about one data set's statistics, along a new first axis."""
        return self.draw(statistics, rng, size).values
