"""What figures of calibration share: words for models, and panels of KS distances."""

from privpost.drawing import calibration, panels

# The paper's models first.
MODELS = {
    "binomial": "Binomial", "multinomial": "Multinomial", "exponential": "Exponential",
    "multinomial_free": "2 of 3 counts", "bit_rows": "Rows of 5 bits",
    "normal_unknown_variance": "Normal, both\nunknown",
}  # fmt: skip


def titled(table):
    """Return a table with `panel`, a panel's title: the model, and for redacted sums the source of their bounds."""
    known = {name: place for place, name in enumerate(MODELS)}
    table = table.sort_values("model", key=lambda models: models.map(known).fillna(len(known)), kind="stable")
    words = table.model.map(lambda model: MODELS.get(model, str(model).replace("_", " ").capitalize()))
    private = table.groupby(["model", "variant"]).uses_private_metadata.transform("any").astype(bool)
    public = (table.variant == "corrected") & table.model.isin(["exponential", "normal"])
    bounds = private.map({True: "\nbounds from θ", False: ""}).where(~public, "\npublic bounds")
    return table.assign(panel=words + bounds)


def shown(table):
    """Return the rows of the first parameter, with OPS as the paper tempers it; `solid` marks private rows."""
    table = table[table.parameter.isin(["theta", "theta_1"])]
    if "tempered" in table:
        table = table[table.tempered.isna() | (table.tempered == "joint")]
    covered = table.private.astype(bool) & ~table.uses_private_metadata.astype(bool)
    return table.assign(solid=covered | (table.method == "non_private"))


# The two noise-aware posteriors coincide: the one without a chain is drawn around Gibbs's.
RING = {"exact": {"linestyle": "", "marker": "o", "markersize": 6, "markerfacecolor": "none"}}


def legend(figure) -> None:
    """Draw the legend of all curves, of hollow markers and of the grey band."""
    from matplotlib.patches import Patch

    hollow = panels.entry(marker="s", markerfacecolor="white", linestyle="", label="Hollow: no ε covers it")
    panels.legend(figure, [hollow, Patch(color="#dddddd", label="Calibrated (95 %)")])


def ks_panels(table, x: str = "n", **keywords):
    """Return panels of KS distances over their limit: one column per panel of `titled`, one row per ε."""
    plot = panels.panels(
        calibration.over_limit(table), x, "over", calibration.ends, "epsilon", "panel", look=RING, bars=True,
        solid="solid", share=(True, True), ylabel=calibration.LABEL, xscale="log", **keywords,
    )  # fmt: skip
    for axes, _, _ in plot:
        calibration.calibrated(axes)
    return plot
