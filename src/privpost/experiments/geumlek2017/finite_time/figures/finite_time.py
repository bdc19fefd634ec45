"""Test error of Langevin steps against their number and against their charge, beside exact draws (ours)."""

from privpost.drawing import multiples, style
from privpost.evaluation.rows import select
from privpost.experiments.geumlek2017.panels import TITLES


def draw(tables):
    """Return test error by steps (above) and by share of the budget (below); bars are two standard errors."""
    table = tables["finite_time"]
    table = table[table.metric == "test_error"]
    cells = list(table.groupby(["dataset", "log_epsilon"], sort=True))
    width = style.TWO_COLUMNS if len(cells) > 1 else style.ONE_COLUMN
    figure, panels = multiples.grid(2, len(cells), 4.2, width=width, sharey="col")
    for column, ((dataset, log_epsilon), rows) in zip(panels.T, cells, strict=True):
        steps = select(rows, method="langevin").sort_values("steps")
        for axes, x in zip(column, ("steps", "share_of_budget"), strict=True):
            axes.errorbar(steps[x], steps["mean"], 2 * steps["sem"], **style.look("langevin").line())
            for method in ("diffused", "output_noise"):
                row = select(rows, method=method).iloc[0]
                multiples.horizontal(axes, row["mean"], method)
                low, high = row["mean"] - 2 * row["sem"], row["mean"] + 2 * row["sem"]
                axes.axhspan(low, high, color=style.look(method).color, alpha=0.2, linewidth=0)
        title = f"{TITLES[dataset]}\nln ε = {log_epsilon:g}".replace("-", "−")
        column[0].set(xscale="log", xlabel="Steps", title=title)
    multiples.label_outer(panels, "Share of budget", "Test error")
    order = table.order.iloc[0]
    note = f"Bars and bands: ± two standard errors of the draws, one split; budget: (λ = {order:g}, ε)-RDP"
    multiples.legend(figure, axes=panels[0, 0], ncols=3, title=note, title_fontsize=7)
    return figure
