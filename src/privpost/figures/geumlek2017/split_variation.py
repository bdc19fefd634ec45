"""How much one random split adds to the standard error, on Abalone (ours)."""

from __future__ import annotations

from privpost.figures import style


def draw(tables):
    """Return test error against ln epsilon with one split for all chains, and with a split for each.

    Bands are one standard error of the mean: over the draws alone (solid), over draws and splits (dashed).
    """
    import matplotlib.pyplot as plt
    from matplotlib.lines import Line2D

    table = tables["logistic_splits"]
    table = table[table.metric == "test_error"]
    orders = sorted(table.order.dropna().unique())
    width = style.TWO_COLUMNS if len(orders) > 1 else style.ONE_COLUMN
    figure, panels = plt.subplots(1, len(orders), figsize=(width, 2.4), sharey=True, squeeze=False)
    most = int(table.n_splits.max())
    for axes, order in zip(panels[0], orders, strict=True):
        for method in ("concentrated", "diffused", "ops"):
            look = style.look(method)
            for n_splits, line in ((1, "-"), (most, "--")):
                rows = table[(table.method == method) & (table.order == order) & (table.n_splits == n_splits)]
                rows = rows.sort_values("log_epsilon")
                axes.plot(rows.log_epsilon, rows["mean"], line, color=look.color)
                low, high = rows["mean"] - rows["sem"], rows["mean"] + rows["sem"]
                axes.fill_between(rows.log_epsilon, low, high, color=look.color, alpha=0.25, linewidth=0)
        axes.set(title=f"Abalone, λ = {order:g}", xlabel="Privacy cost ln ε, (λ, ε)-RDP")
    panels[0, 0].set_ylabel("Test error")
    handles = [
        Line2D([], [], color=style.look(method).color, label=style.look(method).label)
        for method in ("concentrated", "diffused", "ops")
    ]
    handles += [
        Line2D([], [], color="#444444", label="one split"),
        Line2D([], [], color="#444444", linestyle="--", label=f"{most} splits"),
    ]
    note = "Bands: ± one standard error over 50 chains (one split), over 50 splits with one chain each (dashed)"
    note = note.replace("50", str(most))
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), title=note, title_fontsize=7)
    return figure
