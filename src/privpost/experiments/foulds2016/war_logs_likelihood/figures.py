"""The figures of the study."""

from privpost.drawing import panels, style
from privpost.drawing.figures import figure

# Data sets of the paper's figure 6 (SIGACT stands in for Iraq), and what tells its lines apart.
PAPER = (("afghanistan", "naive_bayes"), ("afghanistan", "hmm"), ("iraq_sigact", "hmm"))
MODELS = {"naive_bayes": "naive Bayes", "hmm": "HMM, {states:g} states"}
# What figures of our own draw instead.
OURS = {"dataset": ("afghanistan_dense", "iraq_simulated"), "method": ("gibbs", "private_gibbs")}
LINES = ("method", "variant", "truncation")
NAMES = {"paper": "clipped", "corrected": "projected", "sums": "sums clipped"}
ONE_STATE = {**style.look("consistent").line(), "label": "One state, Laplace"}
DENSE, SMALL, LARGE = "afghanistan_dense", 0.1, 1


def hollow():
    """Return the legend's entry for rows whose chains have not converged."""
    return panels.entry(marker="o", markerfacecolor="white", linestyle="", label="Not converged: R-hat ≥ 1.05")


@figure("fig6_loglikelihood")
def likelihood(war_logs_likelihood):
    """Held-out log-likelihood of naive Bayes and hidden Markov models (Foulds et al. 2016, figure 6).

    Log-likelihood per held-out event against ε of pure DP, the paper's three panels: naive Bayes on Afghanistan, the
    HMM of ten states on it, and on a stand-in for Iraq. Chains as published: a random start, 200 iterations, 100 of
    them burn-in; Laplace and the non-private model average over draws, OPS releases its chain's last one. Bars are 95 %
    intervals of the difference to the non-private model, paired over splits. Hollow markers: R-hat of four chains on
    the first split is 1.05 or more; OPS on the HMM holds its ε only if its chain has converged. Draws of naive Bayes
    are exact. Empty cells were left out and regions chosen by looking at the records.
    """
    table = war_logs_likelihood
    table = table[~table.method.isin(OURS["method"]) & (table.start != "seeded")]
    table = table[(table.variant.fillna("paper") == "paper") & (table.prior.fillna("tempered") == "tempered")]
    known = set(zip(table.dataset, table.model, strict=True))
    # At toy size other data stand for the paper's.
    new = [place for place in sorted(known) if place[0] not in {*OURS["dataset"], *(name for name, _ in PAPER)}]
    shown = [place for place in PAPER if place in known] + new or sorted(known, reverse=True)
    looks = panels.looks(table, ("method", "truncation"))
    canvas, ((*axes,),) = panels.grid(1, len(shown), 2.35, sharex=True)
    for panel, (dataset, model) in zip(axes, shown, strict=True):
        rows = table[(table.dataset == dataset) & (table.model == model)]
        ends = lambda part: panels.interval(part.per_event_mean, part.joint_loss_sem)  # noqa: E731
        panels.curves(
            panel, rows, "epsilon", "per_event_mean", ends, ("method", "truncation"), looks, True, "converged"
        )
        panel.set(xscale="log", title=f"{panels.named('dataset', dataset).replace(' (', chr(10) + '(')}:\n"
                  + MODELS[model].format(states=rows.n_states.max()))  # fmt: skip
    axes[0].set_ylabel("Log-likelihood per\nheld-out event [nats]")
    canvas.supxlabel(style.AXES["epsilon"], fontsize=8)
    chains = table[(table.model == "hmm") & table.dataset.isin([dataset for dataset, _ in shown])]
    failed = int((~chains.converged.astype(bool)).sum())
    text = f"Of {len(chains)} settings of the HMM, {failed} have chains that did not converge"
    panels.message(canvas, text, failed > len(chains) / 2)
    panels.legend(canvas, [hollow()])
    return canvas


def losses(war_logs_differences):
    """Return losses against the non-private model of most states, of seeded, exact and paid rows that are drawn."""
    table = war_logs_differences
    table = table[(table["first"] == "non_private") & (table.prior != "untempered") & (table.second != "non_private")]
    return table.assign(method=table.second)


@figure("war_logs_readings")
def readings(war_logs_differences):
    """Held-out loss by how a release is read (ours).

    Loss of log-likelihood per held-out event against the non-private HMM of ten states, by the paper's joint score, on
    ε of pure DP; linear below 0.01 nats. One Laplace release is read in four ways by an HMM of ten states from seeded
    starts: noisy counts clipped (the paper's), states' sums clipped, counts projected, and with the noise counted in.
    OPS is one draw; its prior is tempered. One state: clipped Laplace noise on the totals. Bars are 95 % intervals over
    splits of the paired difference (ten, of the whole diary three). Hollow markers: R-hat is 1.05 or more; OPS then has
    no ε.
    """
    table = losses(war_logs_differences)
    one = (table.n_states == 1) & (table.second == "laplace") & (table.variant == "paper")
    most = table.n_states == table.groupby("dataset").n_states.transform("max")
    table = table.assign(method=table.method.mask(one, "one_state"), variant=table.variant.mask(one))
    table = table[(one | most) & (table.method != "private_gibbs")]
    real = table[table.dataset != "iraq_simulated"]
    table = real if len(real) else table
    drawn = table[table.n_states > 1][["dataset", "epsilon"]].drop_duplicates()
    table = table.merge(drawn, on=["dataset", "epsilon"])
    plot = panels.panels(
        table, "epsilon", "joint_mean", "joint_sem", None, "dataset", LINES, look={"one_state": ONE_STATE}, names=NAMES,
        bars=True, solid="converged", share=(True, True), size=(style.WIDTH, 2.3), ylabel="Loss per event [nats]",
        xscale="log",
    )  # fmt: skip
    for axes, _, _ in plot:
        panels.decades(axes, 0.01, table.joint_mean)
        axes.axhline(0, color="black", linewidth=0.8)
    best = table[table.epsilon == SMALL].groupby(["dataset", table.method == "one_state"]).joint_mean.min().unstack()
    ahead = set(best.index[best[True] < best[False]]) if {True, False} <= set(best) else set()
    text = "On Afghan data, at ε = 0.1, one state beats ten however a release is read"
    panels.message(plot.figure, text, ahead >= {"afghanistan", DENSE})
    panels.legend(plot.figure, [hollow()])
    return plot.figure


@figure("war_logs_by_states")
def by_states(war_logs_differences):
    """Held-out loss by number of states (ours).

    Loss of log-likelihood per held-out event against the non-private HMM of ten states, by the paper's joint score, on
    the dense Afghan data; seeded starts, one state by exact draws. Bars are 95 % intervals over splits of the paired
    difference (ten; of two and three states five). Hollow markers: R-hat is 1.05 or more; OPS then has no ε.
    """
    table = losses(war_logs_differences)
    table = table[(table.method != "private_gibbs") & table.epsilon.isin([SMALL, LARGE])]
    table = table[table.dataset == DENSE] if (table.dataset == DENSE).any() else table
    looks = panels.looks(table, LINES, names=NAMES)
    epsilons, states = panels.ordered(table.epsilon), panels.ordered(table.n_states)
    canvas, ((*axes,),) = panels.grid(1, len(epsilons), 2.5, sharex=True)
    for panel, epsilon in zip(axes, epsilons, strict=True):
        rows = table[table.epsilon == epsilon]
        panels.curves(panel, rows, "n_states", "joint_mean", "joint_sem", LINES, looks, True, "converged")
        panel.set(xscale="log", xlabel="States", title=f"ε = {epsilon:g}")
        panel.set_xticks(states, [f"{number:g}" for number in states])
        panel.minorticks_off()
        panel.set_ylim(bottom=min(0, panel.get_ylim()[0]))
    axes[0].set_ylabel("Loss per event [nats]")
    least = table[table.epsilon == SMALL]
    laplace = least[(least.n_states == 1) & (least.variant == "paper")].joint_mean
    best = len(laplace) and len(states) > 2 and laplace.max() < least[least.n_states > 1].joint_mean.min()
    panels.message(canvas, "At ε = 0.1 the fewest states lose least", bool(best))
    panels.legend(canvas, [hollow()])
    return canvas
