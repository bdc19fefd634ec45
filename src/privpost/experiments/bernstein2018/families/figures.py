"""The figure of the study."""

from privpost.drawing import calibration, panels, style
from privpost.drawing.figures import figure
from privpost.experiments.bernstein2018 import models


@figure("families")
def families(families):
    """Calibration of noise-aware posteriors of further families (ours).

    KS distance of U over the limit below which 95 % of calibrated methods lie (grey), one row per family, one column
    per ε of pure DP, a marker for each number of records (small n above); public bounds, and of categories the first.
    Lines are 95 % intervals. Hollow: the naive method of redacted sums, which reads the sum of all records, covered by
    no ε.
    """
    table = families.replace({"model": {"multinomial": "10 categories"}})
    table = calibration.over_limit(models.shown(models.titled(table)))
    names, epsilons = list(dict.fromkeys(table.model)), panels.ordered(table.epsilon)
    figure, axes = panels.grid(1, len(epsilons), 0.5 + 0.4 * len(names), sharex=True, sharey=True)
    methods, sizes = panels.ordered(table.method, "method"), panels.ordered(table.n)
    for panel, epsilon in zip(axes[0], epsilons, strict=True):
        rows = panels.rows_of(table, "epsilon", epsilon)
        panel.axvspan(1e-6, 1, color=style.BAND, linewidth=0, zorder=0)
        for i, method in enumerate(methods):
            part, look = rows[rows.method == method], style.look(method)
            shift = 0.36 - 0.6 * i / len(methods) - 0.6 / len(methods) * part.n.map(sizes.index) / len(sizes)
            y = part.model.map(names.index) - shift
            low, high = calibration.ends(part)
            panel.hlines(y, low, high, color=look.color, linewidth=0.8)
            for solid, face in ((True, look.color), (False, "white")):
                shown = part.solid == solid
                mark = {"color": look.color, "markerfacecolor": face, "label": look.label if solid else None}
                panel.plot(part.over[shown], y[shown], look.marker, **mark)
        panel.set(
            xscale="log", xlim=(0.15, None), xlabel=calibration.LABEL.replace("\n", " "), title=f"ε = {epsilon:g}"
        )
        panel.set_yticks(range(len(names)), [models.MODELS.get(name, name.capitalize()) for name in names])
        panel.grid(axis="y", visible=False)
    axes[0, 0].set_ylim(len(names) - 0.5, -0.5)
    calibration.message(figure, table)
    models.legend(figure)
    return figure
