"""Named random streams, each of which is determined by the study, the point, the role and the block of trials.

A new grid point does not change the numbers of other points, and further trials append blocks. Points that differ only
in `common` axes, such as the method, share data and noise, which gives paired comparisons.
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from privpost.lab.study import Cell, canonical


class Block(NamedTuple):
    """A block of trials: its index, its size, and the slice of the cell's trials that it fills."""

    index: int
    size: int
    trials: slice


@dataclass(frozen=True)
class Streams:
    """The random generators of one cell.

    `streams(role, block, **point)` returns a fresh numpy Generator for a role (`data`, `mechanism`, `sampler`, ...).
    `point` gives the values of the within axes (axes inside a cell) on which the draws depend. Naming an axis that the
    study declares as `common` raises ValueError, since draws must not depend on it.
    """

    study: str
    seed: int
    point: Mapping[str, Any]
    common: tuple[str, ...]
    trials: int | None
    block: int | None

    @classmethod
    def of(cls, cell: Cell) -> "Streams":
        sizes = cell.sizes
        return cls(cell.study, sizes["seed"], cell.point, cell.common, sizes["trials"], sizes["block"])

    def __call__(self, role: str, block: int = 0, **point: Any) -> np.random.Generator:
        if named := sorted({*point} & {*self.common}):
            raise ValueError(f"{self.study}: the stream {role!r} names {', '.join(named)}, common to all points")
        swept = {axis: value for axis, value in self.point.items() if axis not in self.common}
        name = canonical([self.study, swept, role, point])
        digest = hashlib.sha256(name.encode()).digest()
        words = [int.from_bytes(digest[i : i + 4], "little") for i in range(0, 16, 4)]
        return np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(*words, block)))

    def shared(self, name: str, **point: Any) -> "Streams":
        """Return streams under another name and point, from which several studies can draw equal data."""
        return replace(self, study=name, point=point, common=())

    def blocks(self) -> Iterator[Block]:
        """Yield the blocks of trials of this cell."""
        for index in range(self.trials // self.block):
            start = index * self.block
            yield Block(index, self.block, slice(start, start + self.block))
