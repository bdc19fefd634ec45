"""What figures of calibration share: KS distances over their limit, their band, and the finding."""

import pandas as pd

from privpost.drawing import facets, style
from privpost.evaluation.calibration import ks_limit, simultaneous_band

LABEL = "Miscalibration: KS\ndistance ÷ 95 % limit"
AWARE = ("gibbs", "exact", "gibbs_normal")


def over_limit(table):
    """Return a table with `over`: KS distance over the limit below which 95 % of calibrated methods lie."""
    limit = table.n_trials.map(ks_limit)
    return table.assign(over=table.ks / (table.ks_limit.fillna(limit) if "ks_limit" in table else limit))


def answer(table, aware: str = "noise-aware posteriors") -> str:
    """Return that `aware` are calibrated and naive posteriors not, where both hold; else nothing.

    KS distances and, where the table has them, sums of z² reject no noise-aware row at 5 % over all of them, by
    Bonferroni, as methods share their releases and all ε their data. Where KS alone rejects none, the figure says how
    many z² does: it sees widths that KS does not. At the smallest ε nine tenths of the naive rows lie beyond the limit.
    """
    rows, least = table[table.method.isin(AWARE)], table.epsilon.min()
    naive = table[(table.method == "naive") & (table.epsilon == least)]
    level = 0.05 / max(1, len(rows))
    holds = len(rows) > 0 and (rows.over <= ks_limit(1, level) / ks_limit(1)).all() and (naive.over > 1).mean() > 0.9
    narrow = int((rows.z2_p < level).sum()) if "z2_p" in rows else 0
    words = f"{aware} are calibrated, naive ones are not at ε = {least:g}"
    if narrow:
        words = f"KS passes {aware}, not naive posteriors at ε = {least:g}; z² rejects {narrow} of {len(rows)}"
    return words[0].upper() + words[1:] if holds else ""


def band(grid, *, across: bool = True, hollow: bool = False) -> list:
    """Shade where calibrated methods lie in each panel of a grid, if there is one; returns entries of the legend."""
    from matplotlib.patches import Patch

    for axes, _ in facets.each(grid) if grid else ():
        facets.band(axes, 1e-6, 1, across)
    empty = facets.entry(marker="s", markerfacecolor="white", linestyle="", label="Hollow: no ε covers it")
    return [empty] * hollow + [Patch(color=style.BAND, label="Calibrated (95 %)")]


def bounds(table):
    """Return the ends, by u, of the simultaneous 95 % band of distribution functions of calibrated methods."""
    at = tuple(sorted(table.u[(table.u > 0) & (table.u < 1)].unique()))
    low, high = simultaneous_band(at, int(table.n_trials.max()))
    return pd.Series(low, at), pd.Series(high, at)
