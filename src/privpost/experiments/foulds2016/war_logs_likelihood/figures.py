"""The figures of the study."""

from privpost.drawing import panels, style
from privpost.drawing.figures import figure

NAMES = {"paper": "clipped counts (paper)", "corrected": "projected counts"}
# Rows of figure 6, by how the model is sampled.
ROWS = {"exact": "Naive Bayes", "paper": "HMM, as published", "collapsed": "HMM, our chains"}


def hollow():
    """Return the legend's entry for rows whose chains have not converged."""
    return panels.entry(marker="o", markerfacecolor="white", linestyle="", label="Not converged")


def paired(rows):
    """Return the ends of 95 % intervals of the difference to the non-private model, around the mean scores."""
    return panels.interval(rows.per_event_mean, rows.per_event_loss_sem)


@figure("fig6_loglikelihood")
def likelihood(war_logs_likelihood):
    """Held-out log-likelihood of naive Bayes and hidden Markov models (Foulds et al. 2016, figure 6).

    Log-likelihood per held-out event against ε of pure DP. Middle row: chains as published. Last row: ours, which
    search for their start (two states on the simulated data, else ten; fewer ε and M where chains take long). Bars are
    95 % intervals of the difference to the non-private model, paired over splits. Hollow markers: chains that have not
    converged; OPS on the HMM holds its ε only where they have. Of real data empty cells were left out, and regions
    chosen, by looking at the records.
    """
    table = war_logs_likelihood
    table = table[(table.variant != "corrected") & (table.method != "private_gibbs")]
    table = table.assign(shown=table["sampler"].fillna("exact").map(ROWS))
    made = panels.panels(
        table, "epsilon", "per_event_mean", paired, "shown", "dataset", ("method", "truncation"),
        names={words: words for words in ROWS.values()}, bars=True, solid="converged", share=(True, False),
        size=(style.WIDTH, 1.3), xscale="log", ylabel="Log-likelihood per held-out event [nats]",
    )  # fmt: skip
    for column in made.axes[1:].T:
        # One scale for the chains of both kinds.
        lows, highs = zip(*(axes.get_ylim() for axes in column), strict=True)
        for axes in column:
            axes.set_ylim(min(lows), max(highs))
    panels.legend(made.figure, [hollow()])
    return made.figure


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
    made = panels.panels(
        table, "epsilon", "per_event_loss_mean", "per_event_loss_sem", None, "dataset",
        ("method", "variant", "truncation"), names=NAMES, bars=True, solid="converged", share=(True, True),
        size=(style.WIDTH, 1.9), ylabel="Loss per event [nats]", xscale="log",
    )  # fmt: skip
    for axes, _, _ in made:
        panels.decades(axes, 0.01, table.per_event_loss_mean)
        axes.axhline(0, color="black", linewidth=0.8)
    panels.legend(made.figure, [hollow()])
    return made.figure
