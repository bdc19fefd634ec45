"""The figure of the study."""

import numpy as np

from privpost.drawing import panels, style
from privpost.drawing.figures import figure
from privpost.evaluation.rows import select

# Above and below: whose loss, and whose is subtracted; M of the maps.
MAPS = {("ops", "laplace"): "OPS less\nclipped Laplace", ("gibbs", "ops"): "Noise-aware\nless OPS"}
TRUNCATION = 10
LAWS = {1.0: "Levels equally common", 0.1: "Most levels rare"}


@figure("who_leads")
def map_of_leaders(who_leads_pairs):
    """Who leads on events of a known hidden Markov model (ours): differences of held-out losses.

    Nats per event by the joint score on events per level and cell and ε, all panels on one scale: blue where the first
    method of a row leads, red where the second. Bold where the difference is beyond five standard errors over data
    sets; in brackets where the chains of one of the two have not converged. On the line noise on cells and tempering
    blur a level's count equally, m = 4D²/(Δε) with M = 10.
    """
    laws = sorted(who_leads_pairs.true_concentration.unique(), reverse=True)
    canvas, axes = panels.grid(2, len(laws), 3.6, sharex=True, sharey=True)
    leads = {}
    for panel, pair, law in panels.Panels(canvas, axes, list(MAPS), laws):
        key = {"method": pair[0], "less": pair[1], "truncation": TRUNCATION, "true_concentration": law}
        rows = select(who_leads_pairs, **key)
        wide = rows.pivot(index="epsilon", columns="events_per_level", values="difference_mean")
        mesh = panel.imshow(wide, cmap="RdBu_r", vmin=-1, vmax=1, origin="lower", aspect="auto")
        across, up = ({value: place for place, value in enumerate(axis)} for axis in (wide.columns, wide.index))
        for row in rows.itertuples():
            sure = abs(row.difference_mean) > 5 * row.difference_sem
            words = f"{row.difference_mean:.2f}".replace("-", "−")
            panel.text(across[row.events_per_level], up[row.epsilon], words if row.converged else f"({words})",
                       ha="center", va="center", fontsize=7, weight="bold" if sure else "normal",
                       color="white" if abs(row.difference_mean) > 0.7 else "black")  # fmt: skip
        panel.set_xticks(list(across.values()), [f"{m:g}" for m in across])
        panel.set_yticks(list(up.values()), [f"{epsilon:g}" for epsilon in up])
        panel.grid(visible=False)
        leads[pair, law] = rows
