"""The time that is left: what a run of the published cells is told, minute by minute, and what it then takes."""

from __future__ import annotations

import heapq
import io
from typing import NamedTuple

import numpy as np
import pytest

from privpost.lab import cells, forecast, grid, plan, published

CORES = 2
# A job's own start, in seconds: Python, imports, the configuration.
OF_A_JOB = 3.0


class Published(NamedTuple):
    study: str
    slug: str

    @property
    def digest(self) -> str:
        return f"{self.study} {self.slug}"


def whole_run(share: float):
    """Return the jobs of a rebuild, those that start after all others, and the order in which jobs start."""
    jobs, late, ranks = [], [], []
    for study in grid.load_studies():
        of_study = [Published(study.name, slug) for slug in published.expected_seconds().get(study.name, ())]
        of_study = of_study[: max(1, round(share * len(of_study)))]
        for part in range(study.shards):
            late += [len(jobs)] * bool(study.text.get("reads"))
            jobs.append(of_study[part :: study.shards])
            ranks.append(-plan.priority(study.name))
    return jobs, late, ranks


def told(slower: float, share: float, seed: int) -> list[tuple[float, float]]:
    """Return the seconds since the start and the seconds then left as told, of a run whose cells take so much longer.

    Each cell takes its published seconds, times `slower`, times a fifth more or less.
    """
    jobs, late, ranks = whole_run(share)
    of_run = [cell for job in jobs for cell in job]
    known, rng = published.expected_seconds(), np.random.default_rng(seed)
    takes = {cell: known[cell.study][cell.slug][0] * slower * rng.lognormal(0, 0.2) for cell in of_run}
    ends, end = [], 0.0
    for places in ([p for p in range(len(jobs)) if p not in late], late):
        free = [end] * CORES
        for place in sorted(places, key=lambda p: ranks[p]):
            now = heapq.heappop(free) + OF_A_JOB * slower
            for cell in jobs[place]:
                now += takes[cell]
                ends.append((now, cell))
            heapq.heappush(free, now)
        end = max(free)
    estimates, watch = [], forecast.Watch(jobs, io.StringIO(), CORES, "paper")
    ends.sort(reverse=True)
    for now in np.arange(forecast.PAUSE, end, end / 200):
        while ends and ends[-1][0] <= now:
            _, cell = ends.pop()
            watch.finished(cell, takes[cell])
        estimates.append((float(now), watch.left()))
    return [*estimates, (end, 0.0)]


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize(("slower", "share"), [(1.0, 1.0), (1 / 3, 1.0), (3.0, 1.0), (1.0, 0.5), (3.0, 0.5)])
def test_after_the_first_minute_the_end_is_told_within_two_fifths(checkout, slower, share, seed):
    """Also on a machine that is three times as fast or slow, and with half of the cells in the store."""
    *estimates, (end, _) = told(slower, share, seed)
    wrong = {round(now): (now + left) / end - 1 for now, left in estimates if now > 60}
    assert wrong and max(map(abs, wrong.values())) < 0.4, wrong


def test_the_longest_job_and_slower_cells_lengthen_the_forecast(monkeypatch):
    monkeypatch.setattr(published, "expected_seconds", lambda: {"a": {"1": [10.0]}, "b": {"1": [80.0, 120.0]}})
    first, second = [Published("a", "1"), Published("b", "1")]
    watch = forecast.Watch([[first], [second]], io.StringIO(), CORES, "paper")
    assert watch.left() == pytest.approx(100)
    watch.finished(first, 50.0)
    # Ten seconds count as they were expected.
    assert watch.left() == pytest.approx(300)


def test_the_store_is_watched_while_cells_are_computed(toy, monkeypatch):
    study = toy.study()
    simulate = study.module().simulate
    stream = io.StringIO()
    stream.isatty = lambda: True
    watch = forecast.Watch([toy.cells()], stream, CORES, "smoke")

    def looking(config, streams, ledger):
        watch.look()
        return simulate(config, streams, ledger)

    monkeypatch.setattr(study.module(), "simulate", looking)
    assert cells.compute_each(study, toy.cells()) == {}
    watch.look()
    watch.look()
    shown = [line.strip() for line in stream.getvalue().split("\r") if line.strip()]
    assert [line.split(" done")[0] for line in shown] == [f"{number} of 4 cells" for number in (1, 2, 3, 4)]
    # What an earlier run stored is no part of this one.
    other = forecast.Watch([toy.cells()], stream, CORES, "smoke")
    other.look()
    assert stream.getvalue().count("\r") == len(shown)
