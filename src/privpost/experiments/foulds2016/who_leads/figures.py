"""The figure of the study."""

import pandas as pd

from privpost.drawing import facets, style
from privpost.drawing.figures import figure

# Each pair of methods has a row of maps. All maps show OPS's loss less the other method's loss.
MAPS = {("ops", "laplace"): "OPS less\nclipped Laplace", ("gibbs", "ops"): "OPS less\nnoise-aware"}
# First methods of the study's pairs. Paid updates have claims but no map.
METHODS = ("ops", "gibbs", "private_gibbs")
LAWS = {1.0: "all levels about as frequent", 0.1: "most levels rare"}


@figure("who_leads")
def map_of_leaders(who_leads_pairs):
    """Who leads on events of a known hidden Markov model (ours): held-out loss of OPS less that of another method.

    Nats per event by the joint score, on one scale for all maps. Blue: OPS has the smaller loss. Red: the other method
    has. Stars: differences beyond five standard errors over data sets. Brackets: the chains of one of the two methods
    have not converged (R-hat of 1.05 or more). OPS has M = 10.
    """
    table = who_leads_pairs[who_leads_pairs.truncation.isna() | (who_leads_pairs.truncation == 10)]
    new = table[~table.method.isin(METHODS)].groupby(["method", "less"]).groups
    maps = MAPS | {pair: " less ".join(style.look(name).label for name in pair) for pair in new}
    table = table.assign(pair=pd.Series(zip(table.method, table.less, strict=True), table.index).map(maps))
    table = table.assign(difference_mean=table.difference_mean.mask(table.method == "gibbs", -table.difference_mean))
    sure = table.difference_mean.abs() > 5 * table.difference_sem
    number = table.difference_mean.map("{:.2f}".format).str.replace("-", "−")
    number = number.where(table.converged, "(" + number + ")") + sure.map({True: " *", False: ""})
    law = table.true_concentration.map(lambda law: LAWS.get(law, f"concentration {law:g}"))
    grid = facets.tiles(
        table.assign(number=number, law=law).dropna(subset="pair"), "events_per_level", "epsilon", "difference_mean",
        "number", row="pair", col="law", names={name: name for name in maps.values()},
        cmap="RdBu_r", vmin=-1.5, vmax=1.5,
    )  # fmt: skip
    leads = (table[sure & table.pair.isin(list(MAPS.values()))].difference_mean < 0).any()
    words = "" if leads else "OPS never leads beyond 5 standard errors: no blue number has a star"
    note = "Numbers: held-out loss of OPS less the other's [nats per event]; red: OPS is worse\n"
    note += "*: beyond five standard errors; ( ): not converged"
    return facets.finish(grid, words, "Events per level and cell", "epsilon", note=note)
