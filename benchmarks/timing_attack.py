"""Try to tell two data sets apart by the time that one exactly rounded posterior draw takes.

    .venv/bin/python benchmarks/timing_attack.py          half a minute

A threshold is chosen on half of the timings and tested on the other half, with and without the waits that
`mechanisms.draws.rounded` adds. By chance, 50 % of guesses are right, with a standard deviation of 3.5 %.
"""

from __future__ import annotations

import functools
import secrets
import time

import numpy as np

from privpost.mechanisms.draws.posterior import PosteriorDraw
from privpost.models.conjugate.beta_bernoulli import BetaBernoulli

BITS, TIMINGS = 16, 200
PRIOR = BetaBernoulli(6, 12)
DIRECT = PosteriorDraw(PRIOR, 1000, 2.0, 1.0, weighting="direct")
HALF = PosteriorDraw(PRIOR, 1000, 2.0, 0.5, weighting="diffused")
MANY = PosteriorDraw(PRIOR, 1_000_000, 2.0, 1.0, weighting="direct")
ATTACKS = [(DIRECT, 50, 250), (HALF, 243, 244), (HALF, 0, 1000), (MANY, 1000, 500_000)]


def timings(draw, first: int, second: int, clock) -> np.ndarray:
    """Time posterior draws for two data sets, given their numbers of successes. Return the seconds (TIMINGS, 2)."""
    found = np.empty((TIMINGS, 2))
    for row in found:
        for place, count in enumerate((first, second)):
            start = clock()
            draw(count)
            row[place] = clock() - start
    return found


def told(times: np.ndarray) -> float:
    """Return how often the even rows' best threshold assigns a time in an odd row to the right data set."""
    tried, rest = times[::2], times[1::2]
    levels = np.unique(tried)
    right = ((tried[:, :1] <= levels).mean(axis=0) + (tried[:, 1:] > levels).mean(axis=0)) / 2
    best = np.abs(right - 0.5).argmax()
    share = float(((rest[:, 0] <= levels[best]).mean() + (rest[:, 1] > levels[best]).mean()) / 2)
    return share if right[best] > 0.5 else 1 - share


def main() -> None:
    """Print the result of each attack."""
    for mechanism, first, second in ATTACKS:
        for name in ("waiting", "no waiting"):
            for clock in (time.perf_counter, time.thread_time):

                def draw(count, mechanism=mechanism, waits=name == "waiting"):
                    make = (
                        mechanism.rounded if waits else functools.partial(mechanism._cells, randbits=secrets.randbits)
                    )
                    make([count, mechanism.n - count], bits=BITS)

                draw(first)
                times = timings(draw, first, second, clock)
                medians = "{:.2f} and {:.2f} ms".format(*1e3 * np.median(times, axis=0))
                print(
                    f"n {mechanism.n}, r {mechanism.r:g}, {first} against {second}, {name}, {clock.__name__}: "
                    f"{100 * told(times):.0f} % right, medians {medians}"
                )


if __name__ == "__main__":
    main()
