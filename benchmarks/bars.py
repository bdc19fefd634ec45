"""What a benchmark reports: a ratio measured in one run, held against a bar."""

from __future__ import annotations

import os
import resource
import subprocess
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple


def row(
    what: str,
    against: str,
    ratio: float,
    *,
    at_least: float | None = None,
    at_most: float | None = None,
    ours: float | None = None,
    theirs: float | None = None,
    unit: str = "",
    note: str = "",
) -> dict:
    """Return one row of the table: what was measured, against what, the ratio, its bar, whether it is met.

    Exactly one of `at_least` (a speed-up: larger is better) and `at_most` (a cost: smaller is better) is given.
    `ours` and `theirs` are the absolute values behind a ratio, in `unit`. Raises ValueError otherwise.
    """
    if (at_least is None) == (at_most is None):
        raise ValueError(f"{what}: give either at_least or at_most, not {at_least} and {at_most}")
    bar = f">= {at_least:g}" if at_most is None else f"<= {at_most:g}"
    met = ratio >= at_least if at_most is None else ratio <= at_most
    return {**reference(what, against, ratio, ours=ours, theirs=theirs, unit=unit, note=note), "bar": bar, "met": met}


def reference(what: str, against: str, ratio: float, *, ours=None, theirs=None, unit="", note="") -> dict:
    """Return a row that no bar belongs to; it stands beside one that has a bar, so that the reader sees both."""
    values = {"ratio": float(ratio), "bar": "", "met": "", "ours": ours, "theirs": theirs, "unit": unit, "note": note}
    return {"what": what, "against": against, **values}


def cpu_seconds(function: Callable, *arguments, calls: int = 1, repeats: int = 1, **keywords):
    """Return the least CPU time of a call in seconds, over `repeats` loops of `calls`, and the last result.

    CPU time of the process, and the least of several: what else runs on the machine can only make it longer.
    """
    times = []
    for _ in range(repeats):
        start = time.process_time()
        for _ in range(calls):
            result = function(*arguments, **keywords)
        times.append((time.process_time() - start) / calls)
    return min(times), result


def side_by_side(functions: Sequence[Callable], calls: Sequence[int], repeats: int) -> list[float]:
    """Return the least CPU time of a call of each function in seconds, the functions timed in turn.

    In turn, so that a spell in which the machine is slower, or its caches are shared, falls on all of them.
    """
    for function in functions:
        function()
    times = [[cpu_seconds(f, calls=n)[0] for f, n in zip(functions, calls, strict=True)] for _ in range(repeats)]
    return [min(column) for column in zip(*times, strict=True)]


class Command(NamedTuple):
    """What a command took, its children included (seconds), and what it printed on either stream."""

    wall_seconds: float
    cpu_seconds: float
    output: str


def run_command(words: Sequence[str], **variables: str) -> Command:
    """Run a command to its end, with some environment variables set, and measure it.

    Raises RuntimeError with its output when it fails.
    """
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(
        words,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        env={**os.environ, **variables},
    )
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)} ended with status {done.returncode}:\n{done.stdout[-2000:]}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Command(wall, cpu, done.stdout)
