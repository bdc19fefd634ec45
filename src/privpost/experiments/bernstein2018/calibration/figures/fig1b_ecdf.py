"""Empirical distribution functions of U (Bernstein and Sheldon 2018, figure 1b)."""

from privpost.drawing import multiples
from privpost.evaluation.rows import select
from privpost.experiments.bernstein2018.calibration.figures.fig1a_ks import (
    LINES,
    first_parameter,
    legend,
    line,
    of_line,
    panels,
    title,
)


def draw(tables):
    """Return the figure: Pr(U ≤ u), one panel per model, at one n and ε; the multinomial's first category.

    Grey: simultaneous 95 % band of a calibrated method, u ± 1.358/√M for M trials. Dotted,
    hollow: the naive method where it reads an unredacted sum, which is not private.
    """
    table, names = first_parameter(tables["ecdf"]), tables["calibration"]
    columns = panels(table)
    figure, grid = multiples.grid(1, len(columns), 2.4, sharex=True, sharey=True)
    for axes, (model, variant) in zip(grid[0], columns, strict=True):
        rows = select(table, model=model, variant=variant)
        for number, key in enumerate(LINES):
            found = of_line(rows, key).sort_values("u")
            if len(found):
                curve = found
                axes.plot(curve.u, curve.ecdf, markevery=(4 * number, 40), **line(names, model, variant, key))
        axes.fill_between(curve.u, curve.band_low, curve.band_high, color="#dddddd", linewidth=0, zorder=0)
        axes.set(xlim=(0, 1), ylim=(0, 1), xlabel="u", xticks=[0, 0.5, 1], yticks=[0, 0.5, 1])
        axes.set_xticklabels(["0", "0.5", "1"])
        axes.set_title(title(names, model, variant))
    rows = table[table.epsilon.notna()]
    grid[0, 0].set_ylabel(f"Pr(U ≤ u)\nn = {rows.n.iloc[0]:g}, ε = {rows.epsilon.iloc[0]:g}")
    legend(figure, grid.flat, "95 % band")
    return figure
