"""Parts that figures of calibration share: relative KS distances, the shaded band, and the finding."""

import pandas as pd

from privpost.drawing import facets, style
from privpost.evaluation.calibration import ks_limit, simultaneous_band

LABEL = "Miscalibration: KS\ndistance ÷ 95 % limit"
AWARE = ("gibbs", "exact", "gibbs_normal")


def over_limit(table):
    """Return the table with a column `over`: KS distance ÷ the limit below which 95 % of calibrated methods stay."""
    limit = table.n_trials.map(ks_limit)
    return table.assign(over=table.ks / (table.ks_limit.fillna(limit) if "ks_limit" in table else limit))


def answer(table, aware: str = "noise-aware posteriors") -> str:
    """Return the finding "only naive posteriors are rejected" in numbers, or "" if the table does not show it."""
    rows, naive = table[table.method.isin(AWARE)], table[table.method == "naive"]
    smallest = naive[naive.epsilon == table.epsilon.min()]
    level = 0.05 / max(1, len(rows))
    # KS rejects no noise-aware row at a joint 5 %. At the smallest ε, over nine tenths of naive rows exceed the limit.
    holds = len(rows) > 0 and (rows.over <= ks_limit(1, level) / ks_limit(1)).all() and (smallest.over > 1).mean() > 0.9
    counts = [f"{(part.over > 1).sum()} of {len(part)}" for part in (rows, naive)]
    return f"Beyond the 95 % limit lie {counts[0]} points of {aware}, {counts[1]} naive ones" if holds else ""


def band(grid, *, across: bool = True, hollow: bool = False) -> list:
    """Shade the range of calibrated methods in all panels of a grid, and return the legend's entries."""
    from matplotlib.patches import Patch

    for axes, _ in facets.each(grid) if grid else ():
        facets.band(axes, 1e-6, 1, across)
    return [facets.hollow("not private")] * hollow + [Patch(color=style.BAND, label="95 % of calibrated ones")]


def bounds(table):
    """Return, for each u, the lower and upper end of the simultaneous 95 % band for calibrated methods."""
    at = tuple(sorted(table.u[(table.u > 0) & (table.u < 1)].unique()))
    low, high = simultaneous_band(at, int(table.n_trials.max()))
    return pd.Series(low, at), pd.Series(high, at)
