"""The figure of the study."""

from privpost.drawing import panels, style
from privpost.drawing.figures import figure

NAMES = {"exact": "exact composition", "renyi": "Rényi curves", "naive": "sum of budgets"}


@figure("composition")
def draws(composition):
    """What several posterior draws for bits cost together (ours).

    One row per ε of one draw, one column per number of records. ε of all k draws over √k times that of one, at one
    δ in all: by exact composition (solid), by summed Rényi curves (dashed; OPS has that of its pure ε), and by the sum
    of budgets at δ/k each (dotted). Computed, so there are no bands.
    """
    table = composition.assign(over=composition.spent / composition.epsilon / composition.draws**0.5)
    epsilons, sizes = panels.ordered(table.epsilon), panels.ordered(table.n)
    canvas, axes = panels.grid(len(epsilons), len(sizes), 3.6, sharex=True, sharey=True)
    looks, lines = panels.looks(table), {"exact": "-", "renyi": "--", "naive": ":"}
    all_panels = panels.Panels(canvas, axes, epsilons, sizes)
    for panel, epsilon, n in all_panels:
        for accounting, line in lines.items():
            rows = table[(table.epsilon == epsilon) & (table.n == n) & (table.accounting == accounting)]
            plain = {"linestyle": line} | ({} if accounting == "exact" else {"marker": "", "label": None})
            panels.curves(
                panel, rows, "draws", "over", None, ("method",), {k: {**v, **plain} for k, v in looks.items()}
            )
        panel.axhline(1, color=style.GREY, linewidth=0.8)
        panel.set(xscale="log", yscale="log")
        if epsilon == epsilons[0]:
            panel.set_title(panels.named("n", n))
        if n == sizes[0]:
            panel.set_ylabel(f"ε = {epsilon:g} each:\ntotal ε ÷ (√k ε)")
    panels.label_x(all_panels, "Draws k")
    exact = table[table.accounting == "exact"].over
    panels.message(canvas, "Composed exactly, k draws cost about √k times as much as one", exact.between(0.8, 2).all())
    panels.legend(
        canvas, [panels.entry(linestyle=line, label=NAMES[name]) for name, line in lines.items() if line != "-"]
    )
    return canvas
