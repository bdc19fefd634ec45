"""The figure of the study."""

import pandas as pd

from privpost.drawing import facets, style
from privpost.drawing.figures import figure
from privpost.evaluation.rows import select

# A row of maps for each pair of methods, of which the first one's loss comes first.
MAPS = {("ops", "laplace"): "OPS less clipped Laplace", ("gibbs", "ops"): "Noise-aware less OPS"}
# Methods of the study; paid updates have claims and no map.
METHODS = ("ops", "gibbs", "private_gibbs")
LAWS = {1.0: "all levels alike", 0.1: "most levels rare"}


@figure("who_leads")
def map_of_leaders(who_leads_pairs):
    """Who leads on events of a known hidden Markov model (ours): held-out losses, one method's less another's.

    Nats per event by the joint score, all maps on one scale: blue where the first method has the smaller loss, red
    where the second. Star: beyond five standard errors over data sets. In brackets: the chains of one of the two have
    not converged (R-hat of 1.05 or more). OPS with M = 10.
    """
    table = who_leads_pairs[who_leads_pairs.truncation.isna() | (who_leads_pairs.truncation == 10)]
    new = table[~table.method.isin(METHODS)].groupby(["method", "less"]).groups
    maps = MAPS | {pair: " less ".join(style.look(name).label for name in pair) for pair in new}
    table = table.assign(pair=pd.Series(zip(table.method, table.less, strict=True), table.index).map(maps))
    sure = table.difference_mean.abs() > 5 * table.difference_sem
    number = table.difference_mean.map("{:.2f}".format).str.replace("-", "−")
    number = number.where(table.converged, "(" + number + ")") + sure.map({True: " *", False: ""})
    law = table.true_concentration.map(lambda law: LAWS.get(law, f"concentration {law:g}"))
    grid = facets.tiles(
        table.assign(number=number, law=law).dropna(subset="pair"), "events_per_level", "epsilon", "difference_mean",
        "number", row="pair", col="law", names={name: name for name in maps.values()},
        cmap="RdBu_r", vmin=-1.5, vmax=1.5,
    )  # fmt: skip
    leads = (select(table[sure], method="ops", less="laplace").difference_mean < 0).any()
    beaten = (select(table[sure], less="ops").difference_mean > 0).any()
    words = "" if leads or beaten else "OPS leads nowhere beyond five standard errors"
    xlabel = (
        "Events per level and cell m\nBlue: the first is better. *: beyond five standard errors; ( ): not converged"
    )
    return facets.finish(grid, words, xlabel, style.AXES["epsilon"])
