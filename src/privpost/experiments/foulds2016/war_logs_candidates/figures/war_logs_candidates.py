"""Held-out likelihood against the number of public candidates (ours, beside figure 6 of Foulds et al. 2016)."""

from privpost.drawing import multiples
from privpost.evaluation.rows import select
from privpost.experiments.foulds2016.war_logs import title

DASHES = {"laplace": (0, (4, 3)), "ops": (0, (1, 1.5))}


def draw(tables):
    """Return the figure: a row per number of states, a column per data set; bars are 2 standard errors."""
    table = tables["war_logs_candidates"]
    states, datasets = sorted(table.n_states.unique()), list(table.dataset.unique())
    size = len(states), len(datasets), 1.2 + 1.6 * len(states)
    figure, panels = multiples.grid(*size, sharex=True, sharey="col")
    epsilons = sorted(table.epsilon.dropna().unique())
    shades = multiples.shades(epsilons, 0.1, 0.8 - 0.7 / len(epsilons))
    for axes, k, dataset in multiples.cells(panels, states, datasets):
        for epsilon, shade in shades.items():
            here = select(table, n_states=k, dataset=dataset, epsilon=epsilon)
            rows = select(here, method="candidates")
            axes.errorbar(rows.candidates, rows.loss_mean, 2 * rows.loss_sem, fmt="o-", color=shade, markersize=2.5)
            for method, dashes in DASHES.items():
                loss = select(here, method=method).loss_mean.iloc[0]
                axes.axhline(loss, color=shade, linestyle=dashes, linewidth=0.8)
        axes.set_xscale("log")
        axes.set_yscale("symlog", linthresh=0.1)
    labels = [f"K = {k}\nloss, nats per event" for k in states]
    multiples.label_outer(panels, "Number J of candidates", labels)
    for axes, dataset in zip(panels[0], datasets, strict=True):
        axes.set_title(title(dataset), fontsize=7)
    handles = [multiples.entry(color=shade, label=f"ε = {epsilon:g}") for epsilon, shade in shades.items()]
    names = {"laplace": "naive Bayes, Laplace", "ops": "naive Bayes, OPS"}
    handles += [
        multiples.entry(color="#444444", marker="o", markersize=2.5, label="HMM, candidates"),
        *(multiples.entry(color="#444444", linestyle=DASHES[name], label=label) for name, label in names.items()),
    ]
    multiples.legend(figure, handles, ncols=6, fontsize=6)
    return figure
