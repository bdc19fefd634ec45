"""The gate's share of a cell's time: the ledger's time without the mechanisms' draws and costs, over the cell's."""

from __future__ import annotations

import sys
import time
from contextlib import ExitStack
from dataclasses import replace
from tempfile import TemporaryDirectory
from unittest import mock

from bars import row

from privpost import discovery
from privpost.lab import cells, grid
from privpost.mechanisms.base import Mechanism
from privpost.privacy import ledger
from privpost.privacy.ledger import Ledger

NAME = "gate"
# Studies whose cells have many small releases; `python benchmarks/suite/gate.py` measures others too.
STUDIES = (
    "foulds2016/sampling_error",
    "geumlek2017/tradeoff",
    "zhang2016/linear_regression",
    "zhang2016/bounds",
)
BAR, RUNS = 0.01, 3


class Clock:
    """The seconds of every call of some functions, less the time of other functions that they call."""

    def __init__(self):
        self.calls: list[float] = []
        self._depth = 0
        self._excepted = 0.0

    def counted(self, function):
        """Wrap a function to note its time, unless another counted function calls it."""

        def timed(*arguments, **options):
            if self._depth:
                return function(*arguments, **options)
            self._depth, self._excepted, start = 1, 0.0, time.process_time()
            try:
                return function(*arguments, **options)
            finally:
                self.calls.append(time.process_time() - start - self._excepted)
                self._depth = 0

        return timed

    def except_for(self, function):
        """Wrap a function so that its time does not count."""

        def timed(*arguments, **options):
            if self._depth != 1:
                return function(*arguments, **options)
            self._depth, start = 2, time.process_time()
            try:
                return function(*arguments, **options)
            finally:
                self._excepted += time.process_time() - start
                self._depth = 1

        return timed


def once(study, cell, origin) -> tuple[list[float], float]:
    """Return the seconds of each call of the ledger in one run of a cell into the store, and of the whole run."""
    clock = Clock()
    kinds = {base for kind in discovery.kinds() for base in kind.mechanism.__mro__}
    with ExitStack() as patches:
        for name in ("open", "release_all", "release", "charge", "record", "mechanisms", "modules"):
            patches.enter_context(mock.patch.object(Ledger, name, clock.counted(getattr(Ledger, name))))
        for kind in filter(lambda kind: issubclass(kind, Mechanism), kinds):
            if "draw_all" in vars(kind):
                timed = classmethod(clock.except_for(vars(kind)["draw_all"].__func__))
                patches.enter_context(mock.patch.object(kind, "draw_all", timed))
        # What the mechanisms do themselves: their calibration, cost and preparation.
        patches.enter_context(mock.patch.object(ledger, "_asked", clock.except_for(ledger._asked)))
        start = time.process_time()
        cells.compute(study, cell, origin).unlink()
        return clock.calls, time.process_time() - start


def share(study, cell) -> tuple[float, float, int]:
    """Return the gate's seconds in a cell, the cell's seconds, and the number of calls.

    Each time is the quickest of `RUNS`, so that other programs, which take the processor now and then, do not count.
    """
    origin = cells.Origin(study)
    runs = [once(study, cell, origin) for _ in range(RUNS)]
    quickest = [min(times) for times in zip(*(calls for calls, _ in runs), strict=True)]
    return sum(quickest), min(total for _, total in runs), len(quickest)


def of_study(name: str, scale: str = "paper") -> list[tuple[float, float, int]]:
    """Return `share` of every cell of a study."""
    study = grid.load_study(name, scale)
    with TemporaryDirectory() as folder:
        return [share(study, replace(cell, folder=folder)) for cell in grid.expand(study)]


def run() -> list[dict]:
    """Measure each study at paper scale: the cell with the largest share."""
    rows = []
    for name in STUDIES:
        gate, total, calls = max(of_study(name), key=lambda cell: cell[0] / cell[1])
        settings = {
            "ours": gate,
            "theirs": total,
            "unit": "s",
            "note": f"{calls} calls, {1e6 * gate / calls:.0f} µs each",
        }
        rows.append(
            row(f"the gate's share of a cell, {name}", "the cell's time", gate / total, at_most=BAR, **settings)
        )
    return rows


if __name__ == "__main__":
    for listed in sys.argv[1:] or STUDIES:
        for gate, total, calls in of_study(listed):
            print(f"{listed:32} {gate:7.4f} of {total:7.3f} s = {gate / total:7.3%}, {calls} calls")
