"""How long a run will still take: what is done, what is under way, and what the rest took when it was published."""

import contextlib
import heapq
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TextIO

from privpost.lab import published, store
from privpost.lab.study import Cell
from privpost.progress import Progress

# How often the store is looked at, in seconds.
PAUSE = 2.0
# A job's own start, in seconds: Python, imports, the configuration.
OF_A_JOB = 3.0
# Seconds of computing for which the published times weigh as much as this run's: the first cells tell little of others.
TRUSTED = 10.0
# How many records of new cells are read at a time; a sweep may have thousands in a second.
READ = 20


class Forecast:
    """The remaining seconds of a run, from a schedule of the remaining cells at the speed so far.

    Args:
        expected: seconds that each cell should take, by digest; their unit does not matter if `trusted` is 0.
        jobs: the digests that each job computes, one after another.
        late: the places in `jobs` of those that start after all others.
        trusted: for how many seconds the expected times are believed.
    """

    def __init__(
        self,
        expected: Mapping[str, float],
        jobs: Sequence[Sequence[str]],
        late: Sequence[int] = (),
        trusted: float = TRUSTED,
    ):
        self._expected, self._jobs, self._late, self._trusted = expected, jobs, set(late), trusted
        self._took: dict[str, float] = {}
        self.done: set[str] = set()

    def finished(self, digest: str, seconds: float | None = None) -> None:
        """Note that a cell is in the store, and what it took, where that is known."""
        self.done.add(digest)
        if seconds is not None:
            self._took[digest] = seconds

    def slowness(self, running: Mapping[str, float]) -> float:
        """Return the ratio of the cells' times to the expected ones; `running` has the seconds of unfinished cells."""
        took, expected = sum(self._took.values()), sum(self._expected[digest] for digest in self._took)
        slow = (took + self._trusted) / (expected + self._trusted) if took + self._trusted else 1.0
        # A cell that is not done after its time is slower than that.
        late = {d: s for d, s in running.items() if d in self._expected and s > slow * self._expected[d]}
        took, expected = took + sum(late.values()), expected + sum(self._expected[digest] for digest in late)
        return (took + self._trusted) / (expected + self._trusted) if expected + self._trusted else 1.0

    def left(self, running: Mapping[str, float], cores: int) -> float:
        """Return the seconds that are left on some cores."""
        slow = self.slowness(running)
        early, late = [], []
        for place, job in enumerate(self._jobs):
            rest = [digest for digest in job if digest not in self.done]
            seconds = sum(max(slow * self._expected[d] - running.get(d, 0.0), 0.0) for d in rest)
            started = len(rest) < len(job) or any(digest in running for digest in rest)
            if rest:
                waits = 0.0 if started else slow * OF_A_JOB * bool(self._trusted)
                (late if place in self._late else early).append((not started, -seconds - waits))
        end = 0.0
        for jobs in (early, late):
            free = [end] * max(1, cores)
            # What is under way goes on; of the rest the longest starts first.
            for _, seconds in sorted(jobs):
                heapq.heappush(free, heapq.heappop(free) - seconds)
            end = max(free)
        return end


class Watch:
    """Looks at the store and shows how far a run is.

    Args:
        cells: the cells that the store lacked when the run began.
        scale: at which the published times are known, or not.
        stream: where the progress goes.
        jobs: the cells of each job; by default each cell is one.
        late: as in `Forecast`.
        cores: how many cells are computed at a time; by default as many as are under way.
    """

    def __init__(
        self,
        cells: Sequence[Cell],
        scale: str,
        stream: TextIO,
        jobs: Sequence[Sequence[Cell]] | None = None,
        late: Sequence[int] = (),
        cores: int | None = None,
    ):
        self._cells = {cell.path.name: cell.digest for cell in cells}
        self._folders = sorted({cell.path.parent for cell in cells})
        digests = [[cell.digest for cell in job] for job in jobs or ([cell] for cell in cells)]
        # At another scale nothing is known: as if all cells took the same.
        self._known = scale == "paper"
        trusted = TRUSTED if self._known else 0.0
        self._forecast = Forecast(published.expected(cells, scale), digests, late, trusted)
        self._cores, self._start = cores, time.time()
        self._before = {path.name: path.stat().st_mtime_ns for path in self._files(".npz")}
        self.progress = Progress(stream, "cells")

    def left(self, running: Mapping[str, float] | None = None) -> float:
        """Return the seconds that are left; before the run, or with the seconds of the cells that are under way."""
        running = running or {}
        return self._forecast.left(running, self._cores or len(running))

    def _files(self, ending: str) -> Iterator[Path]:
        for folder in self._folders:
            with contextlib.suppress(OSError):
                yield from (path for path in folder.iterdir() if path.name.endswith(ending))

    def look(self, last: bool = False) -> None:
        """Look at the store, and show the cells that are done and the time left."""
        new = [
            path
            for path in self._files(".npz")
            if (digest := self._cells.get(path.name)) and digest not in self._forecast.done and self._is_new(path)
        ]
        for number, path in enumerate(new):
            self._forecast.finished(self._cells[path.name], store.seconds(path) if number < READ else None)
        # What a killed run left is older than this one.
        running = {}
        for mark in self._files(store.STARTED):
            with contextlib.suppress(FileNotFoundError):
                if (since := mark.stat().st_mtime) >= self._start - 1:
                    running[mark.name.split(".")[1]] = time.time() - since
        done = len(self._forecast.done)
        # After the last cell only tables and figures are left: say so once.
        if new or (done < len(self._cells) and (running or done) and not last):
            self.progress.update(done, len(self._cells), self.left(running) if self._known else None)

    def _is_new(self, path: Path) -> bool:
        with contextlib.suppress(FileNotFoundError):
            return path.stat().st_mtime_ns != self._before.get(path.name)
        return False


@contextlib.contextmanager
def shown(cells: Sequence[Cell], scale: str) -> Iterator[None]:
    """Show on stderr, from another thread, how far the computing of some cells is."""
    if not cells:
        yield
        return
    watch, ended = Watch(cells, scale, sys.stderr), threading.Event()

    def follow() -> None:
        while not ended.wait(PAUSE):
            watch.look()

    thread = threading.Thread(target=follow, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        watch.look(last=True)
        watch.progress.clear()
