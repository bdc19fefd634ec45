"""Panels of calibration: KS distances over their limit, and empirical distribution functions less u."""

import numpy as np

from privpost.drawing import panels, style
from privpost.evaluation.calibration import ks_limit, simultaneous_band

LABEL = "KS distance of U\n÷ 95 % limit"
AWARE = ("gibbs", "exact", "gibbs_normal")


def over_limit(table):
    """Return a table with `over`: KS distance over the limit below which 95 % of calibrated methods lie."""
    limit = table.ks_limit if "ks_limit" in table else table.n_trials.map(ks_limit)
    return table.assign(over=table.ks / limit)


def ends(rows):
    """Return the ends of 95 % intervals of `over`, 1 either side: the inequality of Dvoretzky, Kiefer, Wolfowitz."""
    return np.maximum(rows.over - 1, 1e-3), rows.over + 1


def answer(table, aware: str = "noise-aware posteriors") -> str:
    """Return that `aware` are calibrated and naive posteriors not, where both hold; else nothing.

    KS distances and, where the table has them, sums of z² reject no noise-aware row at 5 % over all of them, by
    Bonferroni, as methods share their releases and all ε their data. Where KS alone rejects none, the figure says how
    many z² does: it sees widths that KS does not. At the smallest ε nine tenths of the naive rows lie beyond the limit.
    """
    rows = table[table.method.isin(AWARE)]
    naive = table[(table.method == "naive") & (table.epsilon == table.epsilon.min())]
    level = 0.05 / max(1, len(rows))
    holds = len(rows) > 0 and (rows.over <= ks_limit(1, level) / ks_limit(1)).all() and (naive.over > 1).mean() > 0.9
    narrow = int((rows.z2_p < level).sum()) if "z2_p" in rows else 0
    words = f"{aware} are calibrated, naive ones are not"
    if narrow:
        words = f"KS passes {aware}, not naive posteriors; z² rejects {narrow} of {len(rows)}"
    return words[0].upper() + words[1:] if holds else ""


def message(figure, table, aware: str = "noise-aware posteriors") -> None:
    """Print `answer` above a figure."""
    panels.message(figure, answer(table, aware))


def calibrated(axes, low: float = 0.15) -> None:
    """Shade where a calibrated method lies, and scale the vertical axis logarithmically from `low` on."""
    axes.axhspan(1e-6, 1, color=style.BAND, linewidth=0, zorder=0)
    axes.set_yscale("log")
    axes.set_ylim(bottom=low)


def share_outside(table) -> float:
    """Return the share of the points of one curve outside the simultaneous 95 % band of a calibrated method."""
    table = table[(table.u > 0) & (table.u < 1)].sort_values("u")
    low, high = simultaneous_band(tuple(table.u), int(table.n_trials.max()))
    return float(((table.ecdf < low) | (table.ecdf > high)).mean())


def less_u(axes, table, size: int, lines=("method",), looks=None, height: float | None = None) -> None:
    """Draw ECDF − u of one panel and the simultaneous 95 % band of M uniform values; `height` cuts the axis."""
    table = table[(table.u > 0) & (table.u < 1)]
    at = tuple(sorted(table.u.unique()))
    low, high = simultaneous_band(at, size)
    axes.fill_between(at, low - at, high - at, color=style.BAND, linewidth=0, zorder=0)
    looks = panels.looks(table, lines) if looks is None else looks
    thin = {key: {**look, "marker": "", "linewidth": 1} for key, look in looks.items()}
    panels.curves(axes, table.assign(apart=table.ecdf - table.u), "u", "apart", None, lines, thin)
    axes.axhline(0, color="black", linewidth=0.5)
    axes.set(xlim=(0, 1), xticks=[0, 0.5, 1], xlabel="u")
    if height:
        axes.set_ylim(-height, height)
