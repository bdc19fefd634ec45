"""The leaderboard, whose rows summarise the scores of each method over all tasks, noises, n and ε."""

from collections.abc import Iterator

import numpy as np

from privpost.evaluation.calibration import LEVEL

# Exact draws come first, since no method can be better. Baselines come last.
TOP, FLOOR = ("exact",), ("naive", "prior")
POINT = ["task", "noise", "n", "epsilon"]
# Least accuracy of a classifier that tells two laws apart: 0.5 plus ten standard errors over 20 releases.
TOLD = 0.53


def rows(rivals, calibration, refused) -> Iterator[dict]:
    """Yield one row per method: exact draws, then others by the classifier's largest accuracy, then baselines."""
    if rivals.empty:
        return
    exact = rivals[rivals.method == "exact"].set_index(POINT).distance
    worst = rivals.groupby("method").c2st.max()
    order = sorted(worst.index, key=lambda name: (name in FLOOR, name not in TOP, worst[name]))
    known = pairs(rivals) | pairs(refused)
    for name in order:
        own = rivals[rivals.method == name].dropna(subset=["c2st"])
        if own.empty:
            yield {"method": name, "served": 0, "of": len(known)}
            continue
        at = own.loc[own.c2st.idxmax()]
        ratio = own.set_index(POINT).distance / exact
        yield {
            "method": name,
            "served": len(pairs(own)),
            "of": len(known),
            "c2st_median": own.c2st.median(),
            "c2st_worst": at.c2st,
            "c2st_worst_sem": at.c2st_sem,
            "worst_at": f"{at.task}, {at.noise}, n = {at.n}, epsilon = {at.epsilon:g}",
            "distance_ratio": ratio.median(),
            **_calibrated(calibration, name),
            "ess_per_second": own.ess_per_second.median(),
        }


def pairs(table) -> set[tuple]:
    """Return the pairs of task and noise in a table."""
    return set(table[["task", "noise"]].itertuples(index=False, name=None)) if len(table) else set()


def rejected(calibration):
    """For each row of the calibration, return whether the test of z² or the test of ranks rejects the method."""
    # The joint level is 5 % over both tests and all rows of a method.
    level = LEVEL / (2 * calibration.groupby("method").task.transform("size"))
    return np.minimum(calibration.z2_p, calibration.rank_p) < level


def _calibrated(calibration, name: str) -> dict:
    own = calibration[calibration.method == name] if len(calibration) else calibration
    if own.empty:
        return {"miscalibrated": 0, "calibrations": 0, "sd_seen_narrow": np.nan}
    seen = float(own.sd_seen_narrow.median())
    return {"miscalibrated": int(rejected(own).sum()), "calibrations": len(own), "sd_seen_narrow": seen}
