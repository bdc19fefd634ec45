"""Records of the hidden Markov model: events with categorical fields, in cells of regions and months."""

import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from privpost.models.base import Checked, check_range, counts


@dataclass(frozen=True)
class EventCounts(metaclass=Checked):
    """Model of events, each of which has the number of its cell and one level per field.

    Statistics count the levels in each cell. The model is that of `samplers.hidden_markov.gibbs` (Foulds et al. 2016,
    section 5).

    Attributes:
        cells: number of cells of each region. A region's cells follow each other in time.
        sizes: number of levels of each field.
        n_states: number K ≥ 1 of hidden states.
        transition: concentration a > 0 of the moves between states.
        emission: concentration b > 0 of the levels' probabilities.

    Raises:
        ValueError: no cell or field, a field of one level, or a number or concentration out of range.

    >>> EventCounts((2,), (2, 3)).statistics_size
    10
    """

    cells: tuple[int, ...]
    sizes: tuple[int, ...]
    n_states: int = 2
    transition: float = field(default=1.0, kw_only=True)
    emission: float = field(default=1.0, kw_only=True)

    bounded: ClassVar[bool] = True
    support: ClassVar[tuple[float, float]] = (0.0, 1.0)

    def __post_init__(self):
        if not self.cells or min(self.cells) < 1:
            raise ValueError(f"cells is {self.cells!r}; each region needs at least 1 cell, and there must be a region")
        if not self.sizes or min(self.sizes) < 2:
            raise ValueError(f"sizes is {self.sizes!r}; each field needs at least 2 levels")
        check_range("[1, inf)", n_states=self.n_states)
        check_range("(0, inf]", transition=self.transition, emission=self.emission)

    @classmethod
    def of(cls, region, sizes, n_states: int, **concentrations) -> "EventCounts":
        """Return the model for cells of events. `region` (cells,) is each cell's region, in ascending order."""
        return cls(tuple(np.unique(region, return_counts=True)[1].tolist()), tuple(sizes), n_states, **concentrations)

    @property
    def regions(self) -> np.ndarray:
        """Index of each cell's region, shape (cells,)."""
        return np.repeat(np.arange(len(self.cells)), self.cells)

    @property
    def records(self) -> np.ndarray:
        """All possible events as rows, shape (cells · ΠK_d, 1 + fields). Field d has K_d levels."""
        return self.events(np.arange(self.n_records))

    @property
    def n_records(self) -> int:
        """Number of possible events, cells ΠK_d."""
        return sum(self.cells) * math.prod(self.sizes)

    def events(self, places) -> np.ndarray:
        """The rows of `records` at the indices `places` (k,), as an array (k, 1 + fields)."""
        return np.stack(np.unravel_index(places, (sum(self.cells), *self.sizes)), axis=-1)

    @property
    def statistics_size(self) -> int:
        """Number of sufficient statistics of one data set, cells ΣK_d."""
        return sum(self.cells) * sum(self.sizes)

    @property
    def prior(self) -> np.ndarray:
        """The concentrations of transition and emission, shape (2,)."""
        return np.array([self.transition, self.emission])

    @property
    def theta_shape(self) -> tuple[int, ...]:
        """Shape (K, ΣK_d) of θ, the probabilities of each level in each state."""
        return (self.n_states, sum(self.sizes))

    def sufficient_statistics(self, data) -> np.ndarray:
        """Counts (..., cells ΣK_d) of each level in each cell, for events (..., n, 1 + fields).

        Raises:
            ValueError: a cell or level that does not exist.
        """
        data = np.asarray(data)
        limits = np.array([sum(self.cells), *self.sizes])
        if not np.all((data >= 0) & (data < limits)):
            raise ValueError(f"data has events outside the {limits.tolist()} cells and levels")
        levels = np.concatenate([[0], np.cumsum(self.sizes)])
        places = data[..., :1] * levels[-1] + levels[:-1] + data[..., 1:]
        return counts(places.reshape(*data.shape[:-2], -1), self.statistics_size)

    def tables(self, statistics) -> np.ndarray:
        """Reshape the statistics to (..., cells, ΣK_d)."""
        statistics = np.asarray(statistics, float)
        return statistics.reshape(*statistics.shape[:-1], sum(self.cells), sum(self.sizes))
