"""Calibration as the Kolmogorov-Smirnov statistic against n (Bernstein and Sheldon 2018, figure 1a)."""

from privpost.drawing import multiples, style
from privpost.evaluation.rows import select

# Method and what OPS tempers: the posterior without a chain last, as rings around Gibbs's markers.
LINES = (
    ("naive", None),
    ("ops", "joint"),
    ("ops", "likelihood"),
    ("non_private", None),
    ("gibbs", None),
    ("exact", None),
)


PAPER = ("binomial", "multinomial", "exponential")
NAMES = {
    "pareto": "Pareto",
    "poisson": "Poisson",
    "multinomial_free": "multinomial,\n2 of 3 counts",
    "bit_rows": "rows of 5 bits",
}


def panels(table) -> list[tuple[str, str]]:
    """Return the (model, variant) pairs of a table: the paper's models in its order, then others in the table's."""
    found = dict.fromkeys(zip(table.model, table.variant, strict=True))
    return sorted(found, key=lambda pair: PAPER.index(pair[0]) if pair[0] in PAPER else len(PAPER))


def title(table, model, variant) -> str:
    """Return a panel's title: the model, and for redacted sums where their bounds come from."""
    rows, name = select(table, model=model, variant=variant), NAMES.get(model, model)
    if variant == "corrected":
        return f"{name},\npublic bounds"
    return f"{name},\nbounds from the true θ" if rows.uses_private_metadata.any() else name


def first_parameter(table):
    """Return the rows of the parameter that the paper shows: the only one, or the first category's."""
    return table[table.parameter.isin(["theta", "theta_1"])]


def of_line(rows, key):
    """Return the rows of a method and of what it tempers; without OPS there is no such column."""
    method, tempered = key
    return select(rows, method=method, **({"tempered": tempered} if "tempered" in rows else {}))


def line(table, model, variant, key) -> dict:
    """Return how a line is drawn in a panel.

    Hollow and dotted: the naive method where its input is not private. Hollow: Gibbs where the bounds are private
    metadata, and OPS that leaves the prior as it is. Rings: the posterior without a chain.
    """
    method, tempered = key
    found = style.look(method).line()
    rows = select(table, model=model, variant=variant, method=method)
    if method == "naive" and not rows.private.all():
        found |= {"linestyle": ":", "markerfacecolor": "white", "label": "Naive, unredacted sum: not private"}
    if method == "gibbs" and rows.uses_private_metadata.any():
        found |= {"linestyle": ":", "markerfacecolor": "white", "label": "Gibbs, bounds from the true θ: not private"}
    if method == "ops":
        found["label"] = "OPS" if tempered == "joint" else "OPS, prior not tempered"
        found |= {} if tempered == "joint" else {"linestyle": ":", "markerfacecolor": "white"}
    if method == "exact":
        found |= {"linestyle": "", "marker": "o", "markersize": 6.5, "markerfacecolor": "none"}
        found["label"] = "Noise-aware, no chain"
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
    figure.legend(handles, [*labels, band], loc="outside lower center", ncols=3, handlelength=2.6)


def draw(tables):
    """Return the figure: KS statistic of U, one column per model, one row per ε; the multinomial's first category.

    Guarantee: ε-DP. Grey: where 95 % of calibrated methods lie (limit 1.358/√M for M trials). Dotted, hollow: what no
    ε covers, the naive method of redacted sums, which reads the noisy sum of all records, and Gibbs where the bounds
    are quantiles at the true θ. Rings: the same posterior as Gibbs's without a chain.
    """
    return ks_panels(first_parameter(tables["calibration"]))


def ks_panels(table):
    """Return panels of KS statistics against n: one column per model and variant, one row per ε."""
    columns, epsilons = panels(table), sorted(table.epsilon.dropna().unique())
    figure, grid = multiples.grid(len(epsilons), len(columns), 3.7, sharex=True, sharey=True)
    for axes, epsilon, (model, variant) in multiples.cells(grid, epsilons, columns):
        rows = select(table, model=model, variant=variant)
        axes.axhspan(0, rows.ks_limit.iloc[0], color="#dddddd", linewidth=0, zorder=0)
        here = rows[rows.epsilon.isna() | (rows.epsilon == epsilon)].sort_values("n")
        for key in LINES:
            curve = of_line(here, key)
            if len(curve):
                axes.plot(curve.n, curve.ks, **line(rows, model, variant, key))
        axes.set(xscale="log", ylim=(0, 0.6))
        axes.annotate(f"ε = {epsilon:g}", (0.95, 0.97), xycoords="axes fraction", ha="right", va="top", fontsize=8)
    multiples.label_outer(grid, "records n", "KS statistic of U", [title(table, *column) for column in columns])
    legend(figure, grid.flat, "within the 95 % limit")
    return figure
