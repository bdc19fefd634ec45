"""Events with categorical fields in cells of regions and months: the records of the hidden Markov model."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np


@dataclass(frozen=True)
class EventCounts:
    """A record is an event: the number of its cell, and one level per field; statistics are the counts per cell.

    The model is that of `samplers.hidden_markov_gibbs` (Foulds et al. 2016, section 5) with both concentrations 1.

    Attributes:
        regions: number of the region of each cell, ascending; cells of a region follow each other in time.
        sizes: number of levels of each field.
        n_states: K ≥ 1.

    Raises:
        ValueError: no cell or field, a field of one level, or regions that are not ascending.
    """

    regions: tuple[int, ...]
    sizes: tuple[int, ...]
    n_states: int = 2

    bounded: ClassVar[bool] = True

    def __post_init__(self):
        if not self.regions or list(self.regions) != sorted(self.regions):
            raise ValueError(f"regions is {self.regions!r}; it must be ascending and not empty")
        if not self.sizes or min(self.sizes) < 2:
            raise ValueError(f"sizes is {self.sizes!r}; each field needs at least 2 levels")
        if self.n_states < 1:
            raise ValueError(f"n_states is {self.n_states!r}; it must be >= 1")

    @property
    def records(self):
        """All events, shape (cells ΠK_d, 1 + fields)."""
        return np.array(list(itertools.product(range(len(self.regions)), *map(range, self.sizes))))

    @property
    def prior(self):
        """The two concentrations, 1 each."""
        return np.ones(2)

    @property
    def theta_shape(self):
        """Probabilities of each level in each state, the fields one after the other: (K, ΣK_d)."""
        return (self.n_states, sum(self.sizes))

    @property
    def support(self):
        """[0, 1]."""
        return (0.0, 1.0)

    def sufficient_statistics(self, data):
        """Counts of every cell and level, shape (..., cells ΣK_d), for events (..., n, 1 + fields).

        Raises:
            ValueError: a cell or level that does not exist.
        """
        data = np.asarray(data)
        limits = np.array([len(self.regions), *self.sizes])
        if not np.all((data >= 0) & (data < limits)):
            raise ValueError(f"data has events outside the {limits.tolist()} cells and levels")
        levels = np.concatenate([[0], np.cumsum(self.sizes)])
        size = int(len(self.regions) * levels[-1])
        leading = data.shape[:-2]
        places = (data[..., :1] * levels[-1] + levels[:-1] + data[..., 1:]).reshape(math.prod(leading), -1)
        shifted = places + size * np.arange(len(places))[:, None]
        return np.bincount(shifted.ravel(), minlength=size * len(places)).reshape(*leading, size).astype(float)

    def tables(self, statistics) -> np.ndarray:
        """The statistics as (..., cells, ΣK_d)."""
        statistics = np.asarray(statistics, float)
        return statistics.reshape(*statistics.shape[:-1], len(self.regions), sum(self.sizes))
