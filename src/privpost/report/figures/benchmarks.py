"""Measured speed against its bars, from results/benchmarks.csv."""

import textwrap

from privpost.drawing import multiples

MET, MISSED, NO_BAR = "#0072B2", "#D55E00", "#777777"
# Ratios that are 0 (no job, no difference) have no place on a logarithmic axis: they stand here.
SMALLEST = 1e-2


def draw(tables):
    """Return the figure: one line per ratio over its bar, to the right of 1 where the bar is met with room to spare.

    Speed-ups are drawn as ratio / bar and costs as bar / ratio, so that 1 is the bar of every row; the ratios
    themselves and their bars are printed beside. Rows without a bar have their text only, those that were not
    measured are left out.
    """
    table = tables["benchmarks"].dropna(subset="ratio").iloc[::-1].reset_index(drop=True)
    words = [textwrap.wrap(f"{row.what}: {row.against}", 64) for row in table.itertuples()]
    figure, ((axes,),) = multiples.grid(1, 1, 1.1 + 0.235 * len(table))
    margins = [_margin(row) for row in table.itertuples()]
    known = [margin for margin in margins if margin is not None]
    axes.set_xscale("log")
    axes.axvline(1, color="#444444", linewidth=1)
    for i, (row, margin) in enumerate(zip(table.itertuples(), margins, strict=True)):
        if margin is not None:
            colour = MET if margin >= 1 else MISSED
            axes.plot([1, margin], [i, i], color=colour, linewidth=2.5, alpha=0.4, solid_capstyle="butt")
            axes.plot(margin, i, marker="o" if margin >= 1 else "X", color=colour, markersize=5)
        sign = f"   (bar: {row.bar.replace('>=', '≥').replace('<=', '≤')})" if margin is not None else "   (no bar)"
        axes.annotate(
            f"{row.ratio:.3g}{sign}", (1.02, i), xycoords=("axes fraction", "data"), va="center", fontsize=6,
            color="black" if margin is not None else NO_BAR, annotation_clip=False,
        )  # fmt: skip
    axes.set_yticks(range(len(table)), ["\n".join(lines) for lines in words], fontsize=5.5, linespacing=1.0)
    axes.set(xlim=(min(0.6, min(known, default=1) / 1.5), max(known, default=1) * 1.5), ylim=(-0.7, len(table) - 0.3))
    axes.set_xlabel("how far beyond its bar  (1: at the bar)")
    axes.grid(axis="y", visible=False)
    machines = "; ".join(table.machine.unique())
    figure.suptitle(f"Measured, not reproducible to the digit: {machines}", fontsize=7)
    handles = [
        multiples.entry(linestyle="", color=MET, marker="o", label="met"),
        multiples.entry(linestyle="", color=MISSED, marker="X", label="missed"),
    ]
    multiples.legend(figure, handles)
    return figure


def _margin(row) -> float | None:
    """Return by which factor a row is better than its bar, at most 10⁴; None for a row without a bar."""
    if not isinstance(row.bar, str) or not row.bar:
        return None
    sense, limit = row.bar.split()
    if sense == ">=":
        return min(row.ratio / float(limit), 1e4)
    if float(limit) == 0 or row.ratio <= 0:
        return 1.0 if row.ratio <= float(limit) else SMALLEST
    return min(float(limit) / row.ratio, 1e4)
