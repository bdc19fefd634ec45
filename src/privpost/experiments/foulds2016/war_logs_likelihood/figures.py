"""The figures of the study."""

from privpost.drawing import panels, style
from privpost.drawing.figures import figure

NAMES = {"paper": "clipped counts (paper)", "corrected": "projected counts"}
# Data sets of the paper's figure 6 (SIGACT stands in for Iraq), and what tells its lines apart.
PAPER = ("afghanistan", "iraq_sigact")
LINES = ("method", "truncation")


def hollow():
    """Return the legend's entry for rows whose chains have not converged."""
    return panels.entry(marker="o", markerfacecolor="white", linestyle="", label="Not converged")


def paired(rows):
    """Return the ends of 95 % intervals of the difference to the non-private model, around the mean scores."""
    return panels.interval(rows.per_event_mean, rows.per_event_loss_sem)


@figure("fig6_loglikelihood")
def likelihood(war_logs_likelihood):
    """Held-out log-likelihood of naive Bayes and hidden Markov models (Foulds et al. 2016, figure 6).

    Log-likelihood per held-out event against ε of pure DP. The paper's three panels first: naive Bayes on one data set,
    the HMM on that, and on a stand-in for Iraq; then the HMM on further data. Full colours: the paper's
    chains of 200 sweeps with ten states. Pale: ours, which search for their start (two states on the simulated data,
    else ten; fewer ε and M where chains take long). Bars are 95 % intervals of the difference to the non-private model,
    paired over splits. Hollow markers: chains that have not converged; OPS on the HMM holds its ε only where they have.
    In real data, empty cells were left out and regions chosen by looking at the records.
    """
    table = war_logs_likelihood
    table = table[(table.variant != "corrected") & (table.method != "private_gibbs")]
    datasets = sorted(panels.ordered(table.dataset, "dataset"), key=lambda name: name not in PAPER)
    shown = [(datasets[0], "Naive Bayes"), *((name, "HMM") for name in datasets)]
    looks = panels.looks(table, LINES)
    pale = {line: {**look, "color": panels.pale(look["color"]), "label": None} for line, look in looks.items()}
    columns, rows = min(3, len(shown) + 1), -(-(len(shown) + 1) // 3)
    canvas, axes = panels.grid(rows, columns, 0.5 + 1.65 * rows, sharex=True)
    keywords = {"bars": True, "solid": "converged"}
    for panel, (dataset, model) in zip(axes.flat, shown, strict=False):
        here = table[table.dataset == dataset]
        for sampler, how in (("collapsed", pale), ("paper", looks), ("exact", looks)):
            part = here[here["sampler"].fillna("exact") == sampler]
            if (sampler == "exact") == (model == "Naive Bayes"):
                panels.curves(panel, part, "epsilon", "per_event_mean", paired, LINES, how, **keywords)
        panel.set(xscale="log")
        panel.set_title(f"{panels.named('dataset', dataset)}:\n{model}")
        panel.tick_params(labelbottom=True)
    for panel in list(axes.flat)[len(shown) :]:
        panel.set_axis_off()
    least = table[(table.epsilon == table.epsilon.min()) & (table["sampler"] != "collapsed")]
    best = least.groupby(["dataset", least["sampler"].isna(), "method"]).per_event_mean.max().unstack()
    if {"ops", "laplace"} <= set(best):
        ahead = (best.laplace > best.ops).groupby(level=1).mean()
        holds = ahead.get(True, 0) == 1 and 0 < ahead.get(False, 0) < 0.5
        panels.message(canvas, "At small ε Laplace leads in naive Bayes, OPS in most HMMs", holds)
    canvas.supylabel("Log-likelihood per held-out event [nats]", fontsize=8)
    canvas.supxlabel(style.AXES["epsilon"], fontsize=8)
    ours = panels.entry(linewidth=3, color=panels.pale(style.look("laplace").color), label="Pale: our chains")
    panels.legend(canvas, [ours, hollow()])
    return canvas


@figure("war_logs_loss")
def loss(war_logs_likelihood):
    """Log-likelihood that privacy costs hidden Markov models, by chains that search for their start (ours).

    Loss per held-out event against the non-private model, on ε of pure DP; linear below 0.01 nats, logarithmic above.
    Bars are 95 % intervals over splits of the paired difference. Hollow markers: chains that have not converged. Gibbs
    sampling that pays for every update needs no convergence.
    """
    table = war_logs_likelihood
    table = table[(table["sampler"] == "collapsed") | (table.method == "private_gibbs")]
    table = table[table.variant.notna() | table.truncation.notna()]
    plot = panels.panels(
        table, "epsilon", "per_event_loss_mean", "per_event_loss_sem", None, "dataset",
        ("method", "variant", "truncation"), names=NAMES, bars=True, solid="converged", share=(True, True),
        size=(style.WIDTH, 1.9), ylabel="Loss per event [nats]", xscale="log",
    )  # fmt: skip
    for axes, _, _ in plot:
        panels.decades(axes, 0.01, table.per_event_loss_mean)
        axes.axhline(0, color="black", linewidth=0.8)
    large = table[table.epsilon >= 1].assign(paid=table.method == "private_gibbs")
    ends = large.groupby(["dataset", "epsilon", "paid"]).per_event_loss_mean.agg(["min", "max"]).unstack()
    holds = {True, False} <= set(large.paid) and (ends["min", True] > ends["max", False]).all()
    panels.message(plot.figure, "From ε = 1 on, Gibbs that pays for every update loses most", bool(holds))
    panels.legend(plot.figure, [hollow()])
    return plot.figure
