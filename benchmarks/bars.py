"""What a benchmark reports: a ratio measured in one run, held against a bar."""

from __future__ import annotations

import time
from collections.abc import Callable


def row(what: str, against: str, ratio: float, *, at_least: float | None = None, at_most: float | None = None, note=""):
    """Return one row of the table: what was measured, against what, the ratio, its bar, whether it is met.

    Exactly one of `at_least` (a speed-up: larger is better) and `at_most` (a cost: smaller is better) is given.
    Raises ValueError otherwise.
    """
    if (at_least is None) == (at_most is None):
        raise ValueError(f"{what}: give either at_least or at_most, not {at_least} and {at_most}")
    bar = f">= {at_least:g}" if at_most is None else f"<= {at_most:g}"
    met = ratio >= at_least if at_most is None else ratio <= at_most
    return {"what": what, "against": against, "ratio": float(ratio), "bar": bar, "met": bool(met), "note": note}


def cpu_seconds(function: Callable, *arguments, repeats: int = 1, **keywords):
    """Return the median CPU time of some calls in seconds, and the last result.

    CPU time of the process, which other jobs on the machine disturb less than they do wall time.
    """
    times = []
    for _ in range(repeats):
        start = time.process_time()
        result = function(*arguments, **keywords)
        times.append(time.process_time() - start)
    return sorted(times)[len(times) // 2], result
