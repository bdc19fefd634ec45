"""The figure of the study."""

import numpy as np

from privpost.drawing import panels, style
from privpost.drawing.figures import figure
from privpost.evaluation.rows import select
from privpost.experiments.foulds2016.war_logs_ablation.study import critical_count

# M of the map.
TRUNCATION = 10
# Events, cells and levels of each field of the prepared data.
REAL = {
    "Afghanistan": (75_907, 355, (13, 151, 2, 2, 2)),
    "Its dense part": (59_824, 84, (13, 151, 2, 2, 2)),
    "SIGACT": (189_919, 488, (6,)),
}


@figure("who_leads")
def map_of_leaders(who_leads_pairs, who_leads_exponents):
    """Who leads on events of a known hidden Markov model (ours), and how losses fall.

    Left: held-out loss of OPS (M = 10) less that of Laplace with clipped counts, in nats per event, on events per level
    and cell and ε; dots where it is beyond five standard errors and beyond what second chains move it by. The line is
    where Laplace noise on cells and OPS's tempering blur a level's count equally, m = 4D²/(Δε). Above the map's edge:
    the real data, placed by the ratio of their events to their own m for a field with the mean number of levels; lines
    reach from the field with most levels to that with fewest. Right: exponents of losses below 0.1 nats in ε and in
    events per level, with 95 % intervals over data sets; dotted: those of the variances.
    """
    rows = select(who_leads_pairs, model="hmm", first="paper", method="ops", truncation=TRUNCATION)
    common = {
        name: rows[name].mode()[0] for name in ("levels", "n_fields", "n_states", "persistence", "true_concentration")
    }
    rows = select(rows, **common)
    canvas, (row,) = panels.grid(1, 2, 2.6, gridspec_kw={"width_ratios": [1.35, 1]})
    grid = rows.pivot(index="epsilon", columns="events_per_level", values="difference_mean")
    signs = rows.difference_mean.abs() > np.maximum(5 * rows.difference_sem, rows.chain_gap)
    scale = {"cmap": "PuOr", "vmin": -0.8, "vmax": 0.8, "shading": "nearest"}
    mesh = row[0].pcolormesh(grid.columns, grid.index, grid, **scale)
    row[0].plot(rows.events_per_level[signs], rows.epsilon[signs], "o", color="black", markersize=2, linestyle="")
    across = np.array(grid.index, float)
    critical = critical_count((common["levels"],) * common["n_fields"], TRUNCATION)
    row[0].plot(critical / across, across, color="black", label="m = 4D²/(Δε)")
    _place_real_data(row[0], across.max(), critical)
    row[0].set(xscale="log", yscale="log", xlabel="Events per level and cell m", ylabel=style.AXES["epsilon"])
    row[0].set(ylim=(across.min() / 2, across.max() * 14))
    row[0].axhline(across.max() * 1.55, color="black", linewidth=0.8)
    # Above the map there is no ε.
    row[0].set_yticks(across, [f"{value:g}" for value in across])
    row[0].minorticks_off()
    row[0].set(xlim=(grid.columns.min() / 4, grid.columns.max() * 2))
    row[0].set_title("Loss, OPS less Laplace\n[nats per event]")
    bar = canvas.colorbar(mesh, ax=row[0], ticks=[-0.8, -0.4, 0, 0.4, 0.8])
    bar.ax.set_title("Laplace\nleads", fontsize=7)
    bar.ax.set_xlabel("OPS\nleads", fontsize=7)
    fitted = select(who_leads_exponents, model="hmm", **common)
    fitted = fitted[fitted.method != "private_gibbs"]
    names = {}
    for line in fitted.itertuples():
        kind = f" M = {line.truncation:g}" if line.method == "ops" else " clipped" if line.variant == "paper" else ""
        label = style.look(line.method).label.split(",")[0] + (" projected" if line.variant == "corrected" else kind)
        place = names.setdefault(label, len(names)) + (0.15 if line.axis == "epsilon" else -0.15)
        look = style.look(line.method)
        row[1].errorbar(line.exponent, place, xerr=style.NORMAL_95 * line.exponent_sem, color=look.color,
                        marker=look.marker, alpha=1 if line.axis == "epsilon" else 0.4)  # fmt: skip
    for power in (-2, -1):
        row[1].axvline(power, color="black", linewidth=0.8, linestyle=":")
    row[1].set_yticks(list(names.values()), list(names))
    row[1].set(xlabel="Exponent of the loss", title="Dark: in ε, pale: in m")
    falls = fitted.groupby("method").exponent
    holds = falls.max().get("laplace", 0) < -1.5 and falls.min().get("ops", -2) > -1.1
    panels.message(canvas, "Laplace's loss falls nearly as 1/ε², that of OPS as 1/ε at best", holds)
    panels.legend(canvas)
    return canvas


def _place_real_data(axes, above: float, critical: float) -> None:
    """Draw the real data above a height, each at the m that is as far from the line as the data are from their own."""
    for place, (name, (events, cells, sizes)) in enumerate(REAL.items()):
        levels = np.array([max(sizes), np.mean(sizes), min(sizes)])
        m = events / cells / levels * critical / critical_count(sizes, TRUNCATION)
        height = above * 1.7 ** (place + 1.3)
        axes.plot(m, [height] * 3, color=style.GREY, linewidth=0.8)
        axes.plot(m[1:2], [height], color="black", marker=style.MARKERS[place], linestyle="")
        beside = {"xytext": (-5, 0), "textcoords": "offset points", "ha": "right", "va": "center"}
        axes.annotate(name, (m.min(), height), fontsize=7, **beside)
