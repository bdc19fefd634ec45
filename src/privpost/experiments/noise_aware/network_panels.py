"""Panels that the figures of noise-aware inference for Bayesian networks share."""

import numpy as np

from privpost.drawing import multiples, style

# Method and variant: label, line style, and whether markers are filled.
LINES = {
    ("non_private", "paper"): ("True posterior", "--", True),
    ("naive", "paper"): ("Naive, counts truncated", "-", True),
    ("naive", "consistent"): ("Naive, least-squares counts", ":", False),
    ("exact", "paper"): ("Noise-aware, exact", "-", True),
    ("exact", "families"): ("Noise-aware, family by family", ":", False),
    ("gibbs", "paper"): ("Noise-aware, chain", "-", True),
}


def look(key) -> dict:
    """Return the keyword arguments of a line for a (method, variant) pair."""
    color, marker, *_ = style.look(key[0])
    _, line, filled = LINES[key]
    return {"color": color, "marker": marker, "linestyle": line, "markerfacecolor": color if filled else "white"}


def scores(panels, table, metrics: dict[str, str]) -> None:
    """Draw metrics of a table side by side, given with their labels."""
    for axes, (metric, label) in zip(panels, metrics.items(), strict=True):
        transform = root if metric == "mmd2" else lambda values: values
        curves(axes, table[table.metric == metric], "mean", "sem", transform)
        axes.set_ylabel(label)


def curves(axes, table, value: str, error: str | None = None, transform=lambda x: x) -> None:
    """Draw a column of a table on ε, one line per method and variant, two standard errors either side.

    The true posterior, which has no ε, is a horizontal line. `transform` acts on the ends of the bars too.
    """
    for key, rows in _by_line(table.sort_values("epsilon")):
        if key[0] == "non_private":
            axes.axhline(transform(rows[value].mean()), color=style.look(key[0]).color, linestyle="--", linewidth=1)
            continue
        middle = transform(rows[value])
        bars = None
        if error is not None:
            ends = [transform(rows[value] + sign * 2 * rows[error]) for sign in (-1, 1)]
            bars = np.abs(np.stack([middle - ends[0], ends[1] - middle]))
        axes.errorbar(rows.epsilon, middle, bars, **look(key))
    axes.set_xscale("log")


def ecdf_differences(axes, table, size: int) -> None:
    """Draw F(u) − u, F the empirical distribution function of quantiles, and the band of size uniform ones (5 %)."""
    from privpost.evaluation.calibration import ks_limit

    for key, rows in _by_line(table.sort_values("u")):
        axes.plot(rows.u, rows.ecdf - rows.u, **{**look(key), "marker": ""})
    axes.axhspan(-ks_limit(size), ks_limit(size), color="#cccccc", alpha=0.5, linewidth=0)


def _by_line(table):
    """Return the rows of each method and variant that the table has, in the order of `LINES`: hollow markers on top."""
    parts = dict(list(table.groupby(["method", "variant"])))
    return [(key, parts[key]) for key in LINES if key in parts]


def legend(figure, table, ncols: int) -> None:
    """Put one legend of a table's methods and variants below all panels."""
    handles = []
    for key, _ in _by_line(table):
        marker = {"marker": ""} if key[0] == "non_private" else {}
        handles.append(multiples.entry(label=LINES[key][0], **{**look(key), **marker}))
    multiples.legend(figure, handles, ncols=ncols)


def root(values):
    """Return the square root of squared distances, 0 below 0."""
    return np.sqrt(np.maximum(values, 0))
