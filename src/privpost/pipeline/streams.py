"""Random numbers by name: a stream belongs to a study, a point, a role and a block of trials, never to a position.

Adding a grid point changes no other point's numbers, more trials append blocks, and methods that differ only in
`common` axes share their data and noise (common random numbers, paired comparisons).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from privpost.pipeline.study import Cell, canonical


class Block(NamedTuple):
    """A block of trials: its index, its size, and the slice of the cell's trials that it fills."""

    index: int
    size: int
    trials: slice


class Streams:
    """The random generators of one cell.

    `streams(role, block, **point)` returns a fresh numpy Generator for a role (`data`, `mechanism`, `sampler`, ...);
    `point` names the within axes on which the draws depend. Axes that the study declares as `common` are left out.
    """

    def __init__(
        self,
        study: str,
        seed: int,
        point: Mapping[str, Any],
        common: tuple[str, ...],
        trials: int | None,
        block: int | None,
    ):
        self._study = study
        self._seed = seed
        self._common = set(common)
        self._point = {key: value for key, value in point.items() if key not in self._common}
        self._trials = trials
        self._block = block

    @classmethod
    def of(cls, cell: Cell) -> Streams:
        sizes = cell.sizes
        return cls(cell.study, sizes["seed"], cell.point, cell.common, sizes["trials"], sizes["block"])

    def __call__(self, role: str, block: int = 0, **point: Any) -> np.random.Generator:
        extra = {key: value for key, value in point.items() if key not in self._common}
        name = canonical([self._study, self._point, role, extra])
        digest = hashlib.sha256(name.encode()).digest()
        words = [int.from_bytes(digest[i : i + 4], "little") for i in range(0, 16, 4)]
        return np.random.default_rng(np.random.SeedSequence(self._seed, spawn_key=(*words, block)))

    def blocks(self) -> Iterator[Block]:
        """Yield the blocks of trials of this cell."""
        for index in range(self._trials // self._block):
            start = index * self._block
            yield Block(index, self._block, slice(start, start + self._block))
