"""The figures of the study."""

from privpost.datasets import catalogue
from privpost.drawing import facets, style
from privpost.drawing.figures import figure

# Data sets of the paper's figure 6 (SIGACT stands in for Iraq).
PAPER = (("afghanistan", "naive_bayes"), ("afghanistan", "hmm"), ("iraq_sigact", "hmm"))
MODELS = {"naive_bayes": "naive Bayes", "hmm": "HMM, {states:g} states"}
# Data sets and methods that our own figures show instead.
OURS = {"dataset": ("afghanistan_dense", "iraq_simulated"), "method": ("gibbs", "private_gibbs")}
NAMES = {"paper": "counts clipped at 0", "corrected": "counts projected", "sums": "sums clipped at 0"}
SMALL, LARGE = 0.1, 1
NOT_CONVERGED = "not converged, R-hat ≥ 1.05"


@figure("fig6_loglikelihood")
def likelihood(war_logs_likelihood):
    """Held-out log-likelihood of naive Bayes and hidden Markov models (Foulds et al. 2016, figure 6).

    The panels are those of the paper: naive Bayes on Afghanistan, and the HMM of ten states on Afghanistan and on a
    stand-in for Iraq. Chains run as published, from a random start for 200 iterations, 100 of them burn-in. Laplace and
    the non-private model average over draws. OPS releases its chain's last draw, and on the HMM its ε holds only if the
    chain has converged. Bars are 95 % intervals of the difference to the non-private model, paired over splits. Hollow
    markers: R-hat of four chains on the first split is 1.05 or more. Empty cells were left out, and regions chosen, by
    looking at the records.
    """
    table = war_logs_likelihood
    table = table[~table.method.isin(OURS["method"]) & (table.start != "seeded")]
    table = table[(table.variant.fillna("paper") == "paper") & (table.prior.fillna("tempered") == "tempered")]
    known = set(zip(table.dataset, table.model, strict=True))
    # At toy size, other data replace the paper's.
    new = [place for place in sorted(known) if place[0] not in {*OURS["dataset"], *(name for name, _ in PAPER)}]
    shown = [place for place in PAPER if place in known] + new or sorted(known, reverse=True)
    states = table.groupby(["dataset", "model"]).n_states.transform("max")
    places = list(zip(table.dataset, table.model, strict=True))
    failed = (~table.converged.astype(bool)).groupby([table.dataset, table.model]).agg(["sum", "size"])
    titles = [f"{catalogue.title(data)}:\n{MODELS[model].format(states=number)}\n"
              "{} of {} not converged".format(*failed.loc[data, model])
              for (data, model), number in zip(places, states, strict=True)]  # fmt: skip
    order = {title: shown.index(place) for title, place in zip(titles, places, strict=True) if place in shown}
    table = table.assign(panel=titles)[[place in shown for place in places]]
    grid = facets.lines(
        facets.named(table, "truncation"), "epsilon", "per_event_mean", "joint_loss_sem", col="panel",
        solid="converged", names={title: title for title in sorted(order, key=order.get)}, size=(style.WIDTH, 2.0),
        share=(True, False), xscale="log",
    )  # fmt: skip
    smallest = table[table.epsilon == table.epsilon.min()]
    best = smallest.pivot_table("per_event_mean", ["dataset", "model"], "method", "max")
    holds = {"ops", "laplace"} <= set(best) and list(best.index[best.ops > best.laplace]) == [("afghanistan", "hmm")]
    words = "At small ε OPS predicts better than Laplace in the Afghan HMM only" if holds else ""
    ylabel = "Log-likelihood per\nheld-out event [nats]"
    return facets.finish(grid, words, "epsilon", ylabel, [facets.hollow(NOT_CONVERGED)], note=style.TRUNCATION)


@figure("war_logs_readings")
def readings(war_logs_differences):
    """Held-out loss for four readings of a Laplace release and for OPS, by the number of states (ours).

    The loss is the log-likelihood per held-out event of the non-private HMM of ten states minus that of a method, by
    the paper's joint score. HMMs from seeded starts read one Laplace release in four ways: they clip the noisy counts
    (as in the paper), clip the sums over a state, project the counts, or model the noise. OPS releases one draw. Bars
    are 95 % intervals of the paired difference over splits. Hollow markers: R-hat is 1.05 or more, and the ε of OPS
    does not hold.
    """
    table = war_logs_differences
    table = table[(table["first"] == "non_private") & (table.prior != "untempered")]
    table = table[~table.second.isin(["non_private", "private_gibbs"]) & table.epsilon.isin([SMALL, LARGE])]
    real = table[table.dataset != "iraq_simulated"]
    table = (real if len(real) else table).assign(method=lambda rows: rows.second)
    states = facets.ordered(table.n_states)
    grid = facets.lines(
        facets.named(table, "variant", "truncation", names=NAMES), "n_states", "joint_mean", "joint_sem", row="epsilon",
        col="dataset", solid="converged", share=(True, False), xscale="log",
    )  # fmt: skip
    for axes, _ in facets.each(grid):
        axes.set_ylim(min(0, axes.get_ylim()[0]))
        axes.axhline(0, color="black", linewidth=0.8)
        axes.set_xticks(states, [f"{number:g}" for number in states])
        axes.minorticks_off()
    best = table[table.epsilon == SMALL].groupby(["dataset", table.n_states == 1]).joint_mean.min().unstack()
    ahead = set(best.index[best[True] < best[False]]) if {True, False} <= set(best) else set()
    holds = ahead >= {"afghanistan", "afghanistan_dense"}
    words = "On Afghan data at ε = 0.1 the least loss is that of one state" if holds else ""
    handles, ylabel = [facets.hollow(NOT_CONVERGED)], "Loss per held-out event [nats]"
    return facets.finish(grid, words, "States of the model", ylabel, handles, note=style.TRUNCATION)
