"""Functions that measure computing times and make the rows of benchmarks."""

from __future__ import annotations

import os
import resource
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple


def row(what: str, against: str, ratio: float, *, ours=None, theirs=None, unit="", note="") -> dict:
    """Return one row of the table of benchmarks, where `ratio` compares `what` with `against`."""
    values = {"ratio": float(ratio), "ours": ours, "theirs": theirs, "unit": unit, "note": note}
    return {"what": what, "against": against, **values}


def cpu_seconds(function: Callable, *arguments, calls: int = 1, repeats: int = 1, **keywords):
    """Return the least CPU seconds per call over `repeats` loops of `calls` calls, and the last result."""
    # Other work on the machine can only lengthen a time.
    times = []
    for _ in range(repeats):
        start = time.process_time()
        for _ in range(calls):
            result = function(*arguments, **keywords)
        times.append((time.process_time() - start) / calls)
    return min(times), result


def side_by_side(functions: Sequence[Callable], calls: Sequence[int], repeats: int) -> list[float]:
    """Return the least CPU seconds of a call of each function. Functions are timed in turn."""
    # A period in which the machine is slower then affects all functions.
    for function in functions:
        function()
    times = [[cpu_seconds(f, calls=n)[0] for f, n in zip(functions, calls, strict=True)] for _ in range(repeats)]
    return [min(column) for column in zip(*times, strict=True)]


class Command(NamedTuple):
    """Wall seconds and CPU seconds of a command with its child processes, and the output on both streams."""

    wall_seconds: float
    cpu_seconds: float
    output: str


def run_command(words: Sequence[str], folder: Path | None = None, **variables: str) -> Command:
    """Run a command in a folder with some environment variables. Raise RuntimeError if the command fails."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(
        words,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        cwd=folder,
        # Compiled modules are kept, as in any other run, whatever the shell's variables say.
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "", **variables},
    )
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)} ended with status {done.returncode}:\n{done.stdout[-2000:]}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Command(wall, cpu, done.stdout)
