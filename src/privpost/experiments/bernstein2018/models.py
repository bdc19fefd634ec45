"""For figures of calibration: display names of models, and the rows that are drawn."""

# The paper's models first.
MODELS = {
    "binomial": "Binomial", "multinomial": "Multinomial", "exponential": "Exponential",
    "multinomial_free": "2 of 3 counts", "bit_rows": "Rows of 5 bits",
    "normal_unknown_variance": "Normal, both unknown",
}  # fmt: skip
FROM_THETA = "Bounds from θ: quantiles at the true parameter, not private"


def titled(table):
    """Return the sorted table with a column `panel`: a model's display name and the source of its bounds."""
    known = {name: place for place, name in enumerate(MODELS)}
    table = table.sort_values("model", key=lambda models: models.map(known).fillna(len(known)), kind="stable")
    words = table.model.map(lambda model: MODELS.get(model, str(model).replace("_", " ").capitalize()))
    private = table.groupby(["model", "variant"]).uses_private_metadata.transform("any").astype(bool)
    public = (table.variant == "corrected") & table.model.isin(["exponential", "normal"])
    bounds = private.map({True: "\nbounds from θ", False: ""}).where(~public, "\npublic bounds")
    return table.assign(panel=words + bounds)


def shown(table):
    """Return the rows that figures show, on the first parameter, with a column `solid` for filled markers."""
    table = table[table.parameter.isin(["theta", "theta_1"])]
    if "tempered" in table:
        table = table[table.tempered.isna() | (table.tempered == "joint")]
    covered = table.private.astype(bool) & ~table.uses_private_metadata.astype(bool)
    return table.assign(solid=covered | (table.method == "non_private"))
