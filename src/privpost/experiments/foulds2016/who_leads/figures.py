"""The figure of the study."""

import numpy as np

from privpost.drawing import panels, style
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

    Nats per event by the joint score, on events per level and cell and ε, all maps on one scale: blue where the first
    method has the smaller loss, red where the second. Bold: beyond five standard errors over data sets. In brackets:
    the chains of one of the two have not converged (R-hat of 1.05 or more). On the line noise on cells and tempering
    blur a level's count equally, m = 4D²/(Δε) with M = 10; above and to the right of it counts are large.
    """
    table = who_leads_pairs[who_leads_pairs.truncation.isna() | (who_leads_pairs.truncation == 10)]
    laws = sorted(table.true_concentration.unique(), reverse=True)
    new = table[~table.method.isin(METHODS)].groupby(["method", "less"]).groups
    maps = MAPS | {pair: " less ".join(style.look(name).label for name in pair) for pair in new}
    canvas, axes = panels.grid(len(maps), len(laws), 0.3 + 1.75 * len(maps), sharex=True, sharey=True)
    for panel, (first, second), law in panels.Panels(canvas, axes, list(maps), laws):
        rows = select(table, method=first, less=second, true_concentration=law)
        wide = rows.pivot(index="epsilon", columns="events_per_level", values="difference_mean")
        panel.imshow(wide, cmap="RdBu_r", vmin=-1.5, vmax=1.5, origin="lower", aspect="auto")
        across, up = list(wide.columns), list(wide.index)
        for row in rows.itertuples():
            words = f"{row.difference_mean:.2f}".replace("-", "−")
            look = {"weight": "bold"} if abs(row.difference_mean) > 5 * row.difference_sem else {}
            look |= {"color": "white"} if abs(row.difference_mean) > 1 else {}
            place = across.index(row.events_per_level), up.index(row.epsilon)
            panel.text(*place, words if row.converged else f"({words})", ha="center", va="center", fontsize=7, **look)
        far = rows.pivot(index="epsilon", columns="events_per_level", values="crossings")
        if min(far.shape) > 1:
            panel.contour(np.log(far), levels=[0], colors=style.GREY, linestyles="--", linewidths=0.8, zorder=1)
        panel.set_xticks(range(len(across)), [f"{m:g}" for m in across])
        panel.set_yticks(range(len(up)), [f"{epsilon:g}" for epsilon in up])
        panel.set_title(f"{maps[first, second]}, {LAWS.get(law, f'concentration {law:g}')}", fontsize=8)
        panel.grid(visible=False)
    canvas.supxlabel("Events per level and cell m", fontsize=8)
    canvas.supylabel(style.AXES["epsilon"], fontsize=8)
    sure = who_leads_pairs[who_leads_pairs.difference_mean.abs() > 5 * who_leads_pairs.difference_sem]
    leads = select(sure, method="ops", less="laplace").difference_mean < 0, select(sure, less="ops").difference_mean > 0
    panels.message(canvas, "OPS leads nowhere beyond five standard errors", not any(lead.any() for lead in leads))
    return canvas
