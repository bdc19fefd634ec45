"""How long a run will still take: what is done, and what the rest took when it was published."""

import contextlib
import time
from collections.abc import Sequence
from typing import TextIO

from privpost.lab import published, store
from privpost.lab.study import Cell
from privpost.progress import Progress

# How often the store is looked at, in seconds.
PAUSE = 2.0
# Assumed for a cell without a published time.
DEFAULT_SECONDS = 2.0
# Seconds of computing for which the published times weigh as much as this run's: the first cells tell little of others.
TRUSTED = 10.0


class Watch:
    """Looks at the store and shows how far a rebuild is, and the time left.

    Args:
        jobs: the cells of each job that the store lacked when the run began; a job computes one after another.
        stream: where the progress goes.
        cores: how many jobs run at a time.
        scale: at which the published times are known, or not.
    """

    def __init__(self, jobs: Sequence[Sequence[Cell]], stream: TextIO, cores: int, scale: str):
        cells = [cell for job in jobs for cell in job]
        self._waiting = {cell.digest: cell for cell in cells}
        self._total, self._start = len(self._waiting), time.time()
        self._jobs, self._cores = jobs, cores
        # At another scale nothing is known: as if all cells took the same.
        known = published.expected_seconds() if scale == "paper" else {}
        took = {cell.digest: known.get(cell.study, {}).get(cell.slug, [DEFAULT_SECONDS]) for cell in cells}
        self._expected = {digest: sum(seconds) / len(seconds) for digest, seconds in took.items()}
        # What the finished cells took, and what they were expected to.
        self._took = self._should = TRUSTED
        self.progress = Progress(stream, "cells")

    def left(self) -> float:
        """Return the seconds that are left: of all jobs together on the cores, or of the longest one."""
        jobs = [sum(self._expected[cell.digest] for cell in job if cell.digest in self._waiting) for job in self._jobs]
        return self._took / self._should * max(sum(jobs) / self._cores, max(jobs, default=0.0))

    def finished(self, cell: Cell, seconds: float | None = None) -> None:
        """Note that a cell is in the store, and what it took, where that is known."""
        del self._waiting[cell.digest]
        if seconds is not None:
            self._took, self._should = self._took + seconds, self._should + self._expected[cell.digest]

    def look(self) -> None:
        """Look at the store, and show the cells that are done and the time left."""
        new = [cell for cell in self._waiting.values() if self._is_new(cell)]
        for cell in new:
            self.finished(cell, store.seconds(cell.path))
        # After the last cell only tables and figures are left: say so once.
        if new or 0 < len(self._waiting) < self._total:
            self.progress.update(self._total - len(self._waiting), self._total, self.left())

    def _is_new(self, cell: Cell) -> bool:
        with contextlib.suppress(OSError):
            return cell.path.stat().st_mtime >= self._start
        return False
