"""The figure of the study."""

import pandas as pd

from privpost.drawing import panels
from privpost.drawing.figures import figure

NAMES = {"naive_bayes": "Naive Bayes", "hmm": "HMM", "paper": "clipped counts (paper)", "corrected": "projected counts"}


@figure("fig6_loglikelihood")
def loss(war_logs_likelihood):
    """Held-out log-likelihood that privacy costs naive Bayes and hidden Markov models (Foulds et al. 2016, figure 6).

    Loss in log-likelihood per held-out event against the non-private model, on ε of pure DP; linear below 0.01 nats,
    logarithmic above. Bars are 95 % intervals over splits of the paired difference. Hollow markers: chains that have
    not converged; OPS on the HMM holds its ε only where they have. All other releases hold it unconditionally. Of real
    data empty cells were left out, and regions chosen, by looking at the records. Data sets whose chains take long have
    fewer ε and M.
    """
    table = war_logs_likelihood
    # Of the paper's own sampler nothing is drawn but the chain that pays for its updates.
    table = table[(table["sampler"] != "paper") | (table.method == "private_gibbs")]
    table = table[(table.method != "non_private") & (table.variant.notna() | table.truncation.notna())]
    table = pd.concat([part for _, part in table.groupby("model", sort=False)][::-1]).sort_values("n_states")
    lines = ("method", "variant", "truncation")
    made = panels.panels(
        table, "epsilon", "per_event_loss_mean", "per_event_loss_sem", "model", "dataset", lines, names=NAMES,
        bars=True, solid="converged", share=(True, True), ylabel="Loss per event [nats]", xscale="log",
    )  # fmt: skip
    for axes, _, _ in made:
        panels.decades(axes, 0.01, table.per_event_loss_mean)
        axes.axhline(0, color="black", linewidth=0.8)
    panels.legend(made.figure, [panels.entry(marker="o", markerfacecolor="white", linestyle="", label="Not converged")])
    return made.figure
