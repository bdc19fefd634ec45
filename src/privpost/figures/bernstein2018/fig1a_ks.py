"""Calibration as the Kolmogorov-Smirnov statistic against n (Bernstein and Sheldon 2018, figure 1a)."""

from __future__ import annotations

from privpost.figures import multiples, style

METHODS = ("naive", "ops", "non_private", "exact", "gibbs")


def panels(table) -> list[tuple[str, str]]:
    """Return the (model, variant) pairs of a table in the order of its models."""
    return list(dict.fromkeys(zip(table.model, table.variant, strict=True)))


def title(table, model, variant) -> str:
    """Return a panel's title: the model, and for redacted sums where their bounds come from."""
    rows = table[(table.model == model) & (table.variant == variant)]
    if variant == "corrected":
        return f"{model},\npublic bounds"
    return f"{model},\nbounds from the true θ" if rows.uses_private_metadata.any() else model


def first_parameter(table):
    """Return the rows of the parameter that the paper shows: the only one, or the first category's."""
    return table[table.parameter.isin(["theta", "theta_1"])]


def line(table, model, variant, method) -> dict:
    """Return how a method is drawn in a panel: the naive method is dotted and hollow where its input is not private."""
    found = style.look(method).line()
    rows = table[(table.model == model) & (table.variant == variant) & (table.method == method)]
    if method == "naive" and not rows.private.all():
        found |= {"linestyle": ":", "markerfacecolor": "white", "label": "Naive, unredacted sum: not private"}
    return found


def legend(figure, panels, band: str) -> None:
    """Draw one legend of all panels' curves and of the grey band under the figure."""
    import matplotlib.pyplot as plt

    entries = {}
    for axes in panels:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
    # Like methods side by side: the legend fills column by column.
    labels = sorted(entries, key=lambda label: not label.startswith("Naive"))
    handles = [*(entries[label] for label in labels), plt.Rectangle((0, 0), 1, 1, color="#dddddd")]
    figure.legend(handles, [*labels, band], loc="outside lower center", ncols=4, handlelength=2.6)


def draw(tables):
    """Return the figure: KS statistic of U, one column per model, one row per ε; the multinomial's first category.

    Grey: where 95 % of calibrated methods lie (limit 1.358/√M for M trials). Bounds from the true θ are private
    metadata. Dotted, hollow: the naive method of redacted sums, which reads the noisy sum of all records; no ε covers
    that.
    """
    table = first_parameter(tables["calibration"])
    columns, epsilons = panels(table), sorted(table.epsilon.dropna().unique())
    figure, grid = multiples.grid(len(epsilons), len(columns), 3.7, sharex=True, sharey=True)
    for column, (model, variant) in enumerate(columns):
        rows = table[(table.model == model) & (table.variant == variant)]
        for row, epsilon in enumerate(epsilons):
            axes = grid[row, column]
            limit = rows.ks_limit.iloc[0]
            axes.axhspan(0, limit, color="#dddddd", linewidth=0, zorder=0)
            for method in METHODS:
                curve = rows[(rows.method == method) & (rows.epsilon.isna() | (rows.epsilon == epsilon))]
                if len(curve):
                    curve = curve.sort_values("n")
                    axes.plot(curve.n, curve.ks, **line(rows, model, variant, method))
            axes.set(xscale="log", ylim=(0, 0.55))
        grid[0, column].set_title(title(table, model, variant))
        grid[-1, column].set_xlabel("records n")
    for row, epsilon in enumerate(epsilons):
        grid[row, 0].set_ylabel(f"KS statistic, {epsilon:g}-DP")
    legend(figure, grid.flat, "within the 95 % limit")
    return figure
