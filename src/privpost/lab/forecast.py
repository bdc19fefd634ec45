"""Estimates the time left of a rebuild from finished and running cells, and from the published times of all cells."""

import contextlib
import heapq
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TextIO

from privpost.lab import published, store
from privpost.lab.study import Cell
from privpost.progress import Progress

# Seconds between two looks at the store.
PAUSE = 2.0
# Seconds that a cell without a published time is assumed to take.
DEFAULT_SECONDS = 2.0
# Seconds that a job takes to start: Python, imports, the configuration.
OF_A_JOB = 3.0
# After this many seconds of computing, this run's times weigh as much as the published times.
TRUSTED = 10.0


class Forecast:
    """Estimates the remaining seconds of a run from a schedule of the remaining cells at the speed so far.

    Args:
        expected: seconds that each cell should take, by digest.
        jobs: for each job, the digests of the cells that the job computes, one after another.
        late: indices of the `jobs` that start after all others.
    """

    def __init__(self, expected: Mapping[str, float], jobs: Sequence[Sequence[str]], late: Iterable[int] = ()):
        self._expected, self._jobs, self._late = expected, jobs, set(late)
        self._took: dict[str, float] = {}
        self.done: set[str] = set()

    def finished(self, digest: str, seconds: float | None = None) -> None:
        """Note that a cell is in the store and, if known, how many seconds the cell took."""
        self.done.add(digest)
        if seconds is not None:
            self._took[digest] = seconds

    def slowness(self, running: Mapping[str, float]) -> float:
        """Return the ratio of cells' times to expected times. `running` has the seconds so far of running cells."""
        took, expected = TRUSTED + sum(self._took.values()), TRUSTED + sum(self._expected[d] for d in self._took)
        # A running cell counts as slow once it has taken longer than expected.
        late = {d: s for d, s in running.items() if s > took / expected * self._expected.get(d, s)}
        return (took + sum(late.values())) / (expected + sum(self._expected[d] for d in late))

    def left(self, running: Mapping[str, float], cores: int) -> float:
        """Return the remaining seconds of the run. `running` has the seconds so far of running cells, by digest."""
        slow, early, late = self.slowness(running), [], []
        for place, job in enumerate(self._jobs):
            rest = [digest for digest in job if digest not in self.done]
            seconds = sum(max(slow * self._expected[d] - running.get(d, 0.0), 0.0) for d in rest)
            started = len(rest) < len(job) or any(digest in running for digest in rest)
            if rest:
                jobs = late if place in self._late else early
                jobs.append((not started, -seconds - (0.0 if started else slow * OF_A_JOB)))
        end = 0.0
        for jobs in (early, late):
            free = [end] * cores
            # Running jobs continue. Of the waiting jobs, the longest starts first.
            for _, seconds in sorted(jobs):
                heapq.heappush(free, heapq.heappop(free) - seconds)
            end = max(free)
        return end


class Watch:
    """Watches the store, and shows a rebuild's progress and the time left.

    Args:
        jobs: for each job, the cells that the store lacked when the run began.
        stream: where the progress goes.
        cores: how many jobs run at a time.
        scale: the rebuild's scale. Published times are known only for the scale `paper`.
        late: indices of the `jobs` that start after all others.
    """

    def __init__(
        self, jobs: Sequence[Sequence[Cell]], stream: TextIO, cores: int, scale: str, late: Iterable[int] = ()
    ):
        cells = [cell for job in jobs for cell in job]
        self._waiting = {cell.digest: cell for cell in cells}
        self._folders = sorted({cell.path.parent for cell in cells})
        self._total, self._start, self._cores = len(self._waiting), time.time(), cores
        # No times are known at another scale: all cells count as equally long.
        known = published.expected_seconds() if scale == "paper" else {}
        took = {cell.digest: known.get(cell.study, {}).get(cell.slug, [DEFAULT_SECONDS]) for cell in cells}
        expected = {digest: sum(seconds) / len(seconds) for digest, seconds in took.items()}
        self._forecast = Forecast(expected, [[cell.digest for cell in job] for job in jobs], late)
        self.progress = Progress(stream, "cells")

    def left(self, running: Mapping[str, float] | None = None) -> float:
        """Return the remaining seconds of the rebuild. `running` has the seconds so far of running cells, by digest."""
        return self._forecast.left(running or {}, self._cores)

    def look(self) -> None:
        """Look at the store, and show how many cells are done, and the time left."""
        new = [cell for cell in self._waiting.values() if self._is_new(cell)]
        for cell in new:
            del self._waiting[cell.digest]
            self._forecast.finished(cell.digest, store.seconds(cell.path))
        done, running = self._total - len(self._waiting), self._running()
        # After the last cell only tables and figures are left: show this once.
        if new or (self._waiting and (done or running)):
            self.progress.update(done, self._total, self.left(running))

    def _running(self) -> dict[str, float]:
        """Return, by digest, the seconds so far of each running cell. Cells of killed runs are left out."""
        running = {}
        for mark in (path for folder in self._folders for path in folder.glob(f".*{store.STARTED}")):
            with contextlib.suppress(FileNotFoundError):
                if (since := mark.stat().st_mtime) >= self._start - 1:
                    running[mark.name.split(".")[1]] = time.time() - since
        return {digest: seconds for digest, seconds in running.items() if digest in self._waiting}

    def _is_new(self, cell: Cell) -> bool:
        with contextlib.suppress(OSError):
            return cell.path.stat().st_mtime >= self._start
        return False
