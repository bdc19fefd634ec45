"""Held-out likelihood against the number of public candidates (ours, beside figure 6 of Foulds et al. 2016)."""

from __future__ import annotations

from privpost.figures import multiples, style
from privpost.studies.foulds2016.war_logs import title

DASHES = {"laplace": (0, (4, 3)), "ops": (0, (1, 1.5))}


def draw(tables):
    """Return the figure: a row per number of states, a column per data set; bars are 2 standard errors."""
    import matplotlib.pyplot as plt

    table = tables["war_logs_candidates"]
    states, datasets = sorted(table.n_states.unique()), list(table.dataset.unique())
    figure, panels = plt.subplots(
        len(states),
        len(datasets),
        figsize=(style.TWO_COLUMNS, 1.2 + 1.6 * len(states)),
        sharex=True,
        sharey="col",
        squeeze=False,
    )
    epsilons = sorted(table.epsilon.dropna().unique())
    shades = dict(
        zip(
            epsilons,
            plt.get_cmap("viridis")([0.1 + 0.7 * i / len(epsilons) for i in range(len(epsilons))]),
            strict=True,
        )
    )
    for i, k in enumerate(states):
        for j, dataset in enumerate(datasets):
            axes, part = panels[i, j], table[(table.n_states == k) & (table.dataset == dataset)]
            for epsilon, shade in shades.items():
                of_epsilon = part[part.epsilon == epsilon]
                rows = of_epsilon[of_epsilon.method == "candidates"]
                axes.errorbar(rows.candidates, rows.loss_mean, 2 * rows.loss_sem, fmt="o-", color=shade, markersize=2.5)
                for method, dashes in DASHES.items():
                    loss = of_epsilon[of_epsilon.method == method].loss_mean.iloc[0]
                    axes.axhline(loss, color=shade, linestyle=dashes, linewidth=0.8)
            axes.set(xscale="log", yscale="symlog")
            axes.set_yscale("symlog", linthresh=0.1)
            if i == 0:
                axes.set_title(title(dataset), fontsize=7)
        panels[i, 0].set_ylabel(f"K = {k}\nloss, nats per event")
    for axes in panels[-1]:
        axes.set_xlabel("Number J of candidates")
    handles = [multiples.entry(color=shade, label=f"ε = {epsilon:g}") for epsilon, shade in shades.items()]
    names = {"laplace": "naive Bayes, Laplace", "ops": "naive Bayes, OPS"}
    handles += [
        multiples.entry(color="#444444", marker="o", markersize=2.5, label="HMM, candidates"),
        *(multiples.entry(color="#444444", linestyle=DASHES[name], label=label) for name, label in names.items()),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncol=6, fontsize=6)
    return figure
