"""What the figures on noise-aware inference for war logs share: a panel for each data set and model."""

import math

from privpost.drawing import multiples, style
from privpost.experiments.foulds2016 import war_log_style as logs
from privpost.experiments.foulds2016.chain_checks import LIMIT

COLUMNS = 3


def models(table) -> list[tuple[str, str, int]]:
    """Return (data set, model, number of states) in the order of panels: naive Bayes first, then by states."""
    order = {name: place for place, name in enumerate(logs.TITLES)}
    present = set(zip(table.dataset, table.model, table.n_states, strict=True))
    return sorted(present, key=lambda key: (key[2], order[key[0]]) if key[1] == "hmm" else (0, order[key[0]]))


def look(method: str) -> dict:
    """Return colour and marker of a method; noise-aware ones are circles, to be told from Laplace's squares."""
    found = style.look(method)
    return {"color": found.color, "marker": "o" if method == "gibbs" else found.marker}


def panels(table):
    """Return the figure and an iterator of (axes, data set, model, states), with titles and axes of ε set."""
    listed = models(table)
    n_rows = math.ceil(len(listed) / COLUMNS)
    figure, grid = multiples.grid(n_rows, COLUMNS, 1.7 * n_rows + 0.9, sharex=True)
    used = list(grid.flat)
    for axes in used[len(listed) :]:
        axes.set_visible(False)
    for place, (axes, (dataset, model, n_states)) in enumerate(zip(used, listed, strict=False)):
        kind = "naive Bayes" if model == "naive_bayes" else f"HMM, {n_states} states"
        axes.set_title(f"{logs.TITLES[dataset]}:\n{kind}")
        axes.set_xscale("log")
        axes.set_xticks([0.1, 1, 10], labels=["0.1", "1", "10"])
        if place + COLUMNS >= len(listed):
            axes.set_xlabel("Budget ε (pure DP)")
            axes.tick_params(labelbottom=True)
    return figure, [(axes, *key) for axes, key in zip(used, listed, strict=False)], grid


def note(table) -> str:
    """Return what a reader must know of data and chains, as lines for a title."""
    chains = table[(table.model == "hmm") & (table.score == "joint")]
    apart = len(chains) - int(chains.converged.astype(bool).sum())
    named = chains.method.replace("gibbs", "noise-aware")
    text = "Laplace noise, substitution of one event, ε unconditional; "
    text += f"crosses: chains that have not converged (R-hat ≥ {LIMIT:g}, or far off),\n"
    text += f"{apart} of {len(chains)} settings of the HMM; {logs.rhats(chains.assign(method=named))}."
    if table.uses_private_metadata.any():
        text += (
            "\nReal data: empty cells left out, and the busiest governorates of SIGACT chosen, by looking at the data; "
            "levels spelt as released."
        )
    return text
