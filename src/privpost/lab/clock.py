"""Files from the future: after a clock has jumped back, Snakemake would fail or repeat every job that reads one."""

import contextlib
import os
import time
from collections.abc import Iterable
from pathlib import Path

# Between the new times of two files, in nanoseconds: Snakemake compares times as floats, good to half a microsecond.
STEP = 10_000


def bring_back(paths: Iterable[str | Path]) -> list[str]:
    """Give files whose time lies in the future the present one, the earlier ones first; returns their paths.

    Their order stays, as it tells what is newer than what. A file that may not be touched keeps its time.
    """
    now = time.time_ns()
    times = {}
    for path in dict.fromkeys(map(str, paths)):
        with contextlib.suppress(OSError):
            times[path] = os.stat(path).st_mtime_ns
    ahead = {path: moment for path, moment in times.items() if moment > now}
    ranks = {moment: rank for rank, moment in enumerate(sorted(set(ahead.values()), reverse=True))}
    for path, moment in ahead.items():
        with contextlib.suppress(OSError):
            os.utime(path, ns=(now, now - ranks[moment] * STEP))
    return list(ahead)
