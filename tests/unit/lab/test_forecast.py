"""The time that is left: what a run of the published cells is told, minute by minute, and what it then takes."""

from __future__ import annotations

import heapq
import io
import os
import time

import numpy as np
import pytest

from privpost.lab import cells, forecast, grid, plan, published, store

CORES = 2


def whole_run(share: float = 1.0):
    """Return the cells' published seconds, the jobs of a rebuild, the late ones, and the order in which jobs start."""
    known = published.expected_seconds()
    jobs, late, ranks = [], [], []
    for study in grid.load_studies():
        names = [(study.name, cell) for cell in known.get(study.name, ())]
        names = names[: max(1, round(share * len(names)))]
        for part in range(study.shards):
            late += [len(jobs)] * bool(study.text.get("reads"))
            jobs.append(names[part :: study.shards])
            ranks.append(-plan.priority(study.name))
    return {cell: known[cell[0]][cell[1]][0] for job in jobs for cell in job}, jobs, late, ranks


def told(slower: float, share: float = 1.0, seed: int = 1) -> list[tuple[float, float]]:
    """Return the seconds since the start and the seconds then left as told, of a run whose cells take so much longer.

    Each cell takes its published seconds, times `slower`, times a fifth more or less.
    """
    expected, jobs, late, ranks = whole_run(share)
    rng = np.random.default_rng(seed)
    takes = {cell: seconds * slower * rng.lognormal(0, 0.2) for cell, seconds in expected.items()}
    events, end = [], 0.0
    for places in ([p for p in range(len(jobs)) if p not in late], late):
        free = [end] * CORES
        for place in sorted(places, key=lambda p: ranks[p]):
            now = heapq.heappop(free) + forecast.OF_A_JOB * slower
            for cell in jobs[place]:
                events.append((now, now + takes[cell], cell))
                now += takes[cell]
            heapq.heappush(free, now)
        end = max(free)
    estimates, watch = [], forecast.Forecast(expected, jobs, late)
    for now in np.arange(forecast.PAUSE, end, end / 200):
        for start, stop, cell in events:
            if stop <= now and cell not in watch.done:
                watch.finished(cell, stop - start)
        running = {cell: now - start for start, stop, cell in events if start <= now < stop}
        estimates.append((float(now), watch.left(running, CORES)))
    return [*estimates, (end, 0.0)]


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize(("slower", "share"), [(1.0, 1.0), (1 / 3, 1.0), (3.0, 1.0), (1.0, 0.5), (3.0, 0.5)])
def test_after_the_first_minute_the_end_is_told_within_a_third(checkout, slower, share, seed):
    """Also on a machine that is three times as fast or slow, and with half of the cells in the store."""
    *estimates, (end, _) = told(slower, share, seed)
    wrong = {round(now): (now + left) / end - 1 for now, left in estimates if now > 60}
    assert wrong and max(map(abs, wrong.values())) < 0.3, wrong


def test_cells_under_way_count():
    """The longest are started first: without them an hour is told for what takes minutes."""
    expected = {"a": 240.0, "b": 240.0, "c": 10.0}
    left = forecast.Forecast(expected, [["a"], ["b"], ["c"]]).left({"a": 120.0, "b": 120.0}, CORES)
    assert left == pytest.approx(133, abs=2)
    assert forecast.Forecast(expected, [["a"], ["b"], ["c"]]).left({}, CORES) == pytest.approx(256, abs=3)


def test_a_cell_that_takes_longer_than_expected_slows_the_forecast():
    watch = forecast.Forecast({"a": 10.0, "b": 100.0}, [["a"], ["b"]])
    assert watch.slowness({}) == 1.0
    assert watch.slowness({"a": 50.0}) == pytest.approx(3.0)
    watch.finished("a", 50.0)
    assert watch.slowness({}) == pytest.approx(3.0)


def test_the_store_is_watched_while_cells_are_computed(toy, monkeypatch):
    study, seen = toy.study(), []
    simulate = study.module().simulate
    stream = io.StringIO()
    stream.isatty = lambda: True
    watch = forecast.Watch([toy.cells()], stream, CORES, "smoke")

    def looking(config, streams, ledger):
        watch.look()
        seen.append(sorted(path.name for path in study.cells_folder.glob(f".*{store.STARTED}")))
        return simulate(config, streams, ledger)

    monkeypatch.setattr(study.module(), "simulate", looking)
    assert cells.compute_each(study, toy.cells()) == {}
    watch.look()
    watch.look()
    assert [len(names) for names in seen] == [1] * 4
    assert seen[0][0].split(".")[1] == toy.cells()[0].digest
    assert not list(study.cells_folder.glob(f".*{store.STARTED}"))
    shown = [line.strip() for line in stream.getvalue().split("\r") if line.strip()]
    assert [line.split(" done")[0] for line in shown] == [f"{number} of 4 cells" for number in (0, 1, 2, 3, 4)]
    # What an earlier run stored, or a killed one left, is no part of this one.
    mark = study.cells_folder / f".{toy.cells()[0].digest}.00000000{store.STARTED}"
    mark.touch()
    os.utime(mark, (time.time() - 100,) * 2)
    other = forecast.Watch([toy.cells()], stream, CORES, "smoke")
    other.look()
    assert stream.getvalue().count("\r") == len(shown)
