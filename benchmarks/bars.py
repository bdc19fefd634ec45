"""What a benchmark reports: a ratio measured in one run, compared with a bar; and the list of all bars."""

from __future__ import annotations

import os
import resource
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple


class Bar(NamedTuple):
    """A bar that a table of all benchmarks has to show: the row's words, and what it needs that may be missing."""

    benchmark: str
    what: str
    against: str
    bar: str
    needs: str = ""


_SWEEP, _VARIATES = "noise-aware Gibbs", "numpy's variates of a sweep alone"
_LOGISTIC = "50 independent draws, logistic posterior (n = 7988, d = 784)"
# The commit whose commands are timed beside ours, and the largest share of their time that ours may take.
BASELINE = os.environ.get("BASELINE") or "ac17c5d"
COMMANDS = {
    "privpost status": 0.6,
    "snakemake -n": 0.6,
    "a cell by itself": 1,
    "a sweep of 18 cells": 1,
    (DRAWN := "all figures from the shipped tables"): 0.45,
}
# The bars are apart from the modules that measure them, so that a bar that is no longer measured is noticed.
BARS = (
    *(Bar("baseline", w, f"commit {BASELINE}", f"<= {limit:g}") for w, limit in COMMANDS.items() if w != DRAWN),
    Bar("baseline", DRAWN, f"commit {BASELINE}", "<= 0.45", needs="a quiet machine"),
    Bar("baseline", "figures of one study", "all figures", "<= 0.05", needs="a quiet machine"),
    Bar("baseline", "privpost --help", "python -c pass", "<= 3"),
    Bar("growth", "exponent of time in trials: noise-aware Gibbs, binomial, a sweep", "1 is linear (4000 to 64000)",
        "<= 1.15"),
    Bar("growth", "exponent of time in n: noise-aware Gibbs, binomial, a sweep of 1000 trials",
        "1 is linear (100 to 1e+08)", "<= 0.1"),
    Bar("growth", "exponent of time in grid (points within a cell): Rényi curve of beta-Bernoulli sampling",
        "1 is linear (1000 to 30000)", "<= 1.15"),
    Bar("growth", "exponent of time in grid (cells): planning a study: validate, serialise, hash",
        "1 is linear (100 to 3000)", "<= 1.15"),
    Bar("hidden_markov", "HMM site update, 10 states", "numpy loop over sites", ">= 100"),
    Bar("logistic", _LOGISTIC, "Pólya-gamma Gibbs (polyagamma)", ">= 20"),
    Bar("logistic", _LOGISTIC, "NUTS (NumPyro)", ">= 45", needs="NumPyro"),
    Bar("logistic", _LOGISTIC, "univariate slice sampling, 1000 burn-in sweeps, as in the paper", ">= 1000"),
    Bar("logistic", "likelihood calls per effectively independent draw of elliptical slice sampling (n = 7988, "
        "d = 784)", "the limit of one", "<= 1.5"),
    Bar("mmd", "MMD², 5000 draws", "double sum over all pairs", ">= 20"),
    Bar("mmd", "error of MMD², 5000 draws", "double sum over all pairs", "<= 1e-09"),
    Bar("noise_aware_gibbs", f"{_SWEEP}, binomial", "scalar loop with scipy.stats", ">= 600"),
    Bar("noise_aware_gibbs", f"{_SWEEP}, binomial", _VARIATES, "<= 3"),
    Bar("noise_aware_gibbs", f"{_SWEEP}, multinomial", "scalar loop with scipy.stats", ">= 500"),
    Bar("noise_aware_gibbs", f"{_SWEEP}, multinomial", _VARIATES, "<= 3"),
    Bar("noise_aware_gibbs", f"{_SWEEP}, exponential, paper variant", "scalar loop with scipy.stats and autograd",
        ">= 5000"),
    Bar("noise_aware_gibbs", f"{_SWEEP}, exponential, paper variant", _VARIATES, "<= 3"),
    Bar("noise_aware_gibbs", f"{_SWEEP}, exponential, corrected variant", _VARIATES, "<= 3"),
    Bar("noise_aware_gibbs", f"{_SWEEP}, normal, corrected variant", _VARIATES, "<= 3"),
    Bar("rebuild", "whole rebuild at paper scale", "wall time of its cells / cores", "<= 1.1"),
    Bar("rebuild", "largest peak memory of a cell", "1 GiB", "<= 1"),
    Bar("rebuild", "jobs of a rebuild with nothing to do, two studies", "none", "<= 0"),
)  # fmt: skip


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
    """Return a row without a bar, for a comparison beside a row with one."""
    values = {"ratio": float(ratio), "bar": "", "met": "", "ours": ours, "theirs": theirs, "unit": unit, "note": note}
    return {"what": what, "against": against, **values}


def cpu_seconds(function: Callable, *arguments, calls: int = 1, repeats: int = 1, **keywords):
    """Return the least CPU time of a call in seconds, over `repeats` loops of `calls`, and the last result.

    It is the least CPU time of the process, as other work on the machine can only lengthen it.
    """
    times = []
    for _ in range(repeats):
        start = time.process_time()
        for _ in range(calls):
            result = function(*arguments, **keywords)
        times.append((time.process_time() - start) / calls)
    return min(times), result


def side_by_side(functions: Sequence[Callable], calls: Sequence[int], repeats: int) -> list[float]:
    """Return the least CPU time of a call of each function in seconds.

    Functions are timed in turn, so that a spell in which the machine is slower, or its caches are shared, affects all.
    """
    for function in functions:
        function()
    times = [[cpu_seconds(f, calls=n)[0] for f, n in zip(functions, calls, strict=True)] for _ in range(repeats)]
    return [min(column) for column in zip(*times, strict=True)]


class Command(NamedTuple):
    """The seconds that a command took, its children included, and what it printed on either stream."""

    wall_seconds: float
    cpu_seconds: float
    output: str


def run_command(words: Sequence[str], folder: Path | None = None, **variables: str) -> Command:
    """Run a command to its end, in a folder, with some environment variables set, and measure it.

    Raises RuntimeError with its output when it fails.
    """
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(
        words,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        cwd=folder,
        # Compiled modules are kept, as everyone's are, whatever the shell of the measurement says.
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "", **variables},
    )
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)} ended with status {done.returncode}:\n{done.stdout[-2000:]}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Command(wall, cpu, done.stdout)
