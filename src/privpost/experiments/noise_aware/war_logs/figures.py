"""The figure of the study."""

from privpost.drawing import panels
from privpost.drawing.figures import figure

NAMES = {"paper": "over clipped counts", "corrected": "over projected counts", "joint": "joint score",
         "predictive": "predictive score"}  # fmt: skip


@figure("war_logs_gain")
def gains(war_logs_pairs):
    """What counting the noise in gains on war logs, by two scores (ours).

    Noise-aware less noise-naive score per event on ε of pure DP, a panel per data set and model; above 0 the
    noise-aware model is ahead. Linear within 0.01 nats, logarithmic beyond. Bars are 95 % intervals of the difference,
    paired over splits; hollow markers: chains of one side have not converged. Joint: the likelihood of all held-out
    cells at once; predictive: each field of each event by itself. What has one ε only is in the legend. In real data,
    empty cells were left out and regions chosen by looking at the records.
    """
    table = war_logs_pairs.sort_values(["n_states"], kind="stable")
    models = table.n_states.map(lambda states: "naive Bayes" if states == 1 else f"HMM, {states} states")
    table = table.assign(panel=table.dataset.map(lambda name: panels.named("dataset", name)) + ":\n" + models)
    single = table.groupby("panel").epsilon.transform("nunique") == 1
    few, table = table[single], table[~single]
    titles = list(dict.fromkeys(table.panel))
    columns = min(4, len(titles)) or 1
    figure, axes = panels.grid(-(-len(titles) // columns) or 1, columns, 3.9, sharex=True, sharey=True)
    lines = ("variant", "score")
    looks = panels.looks(table, lines, names=NAMES)
    for axis, title in zip(axes.flat, titles, strict=False):
        rows = table[table.panel == title]
        panels.curves(axis, rows, "epsilon", "gain_mean", "gain_sem", lines, looks, True, "converged")
        axis.set(xscale="log")
        axis.set_title(title.replace(" (", "\n("), fontsize=7)
        axis.axhline(0, color="black", linewidth=0.8)
        panels.decades(axis, 0.01, table.gain_mean)
    for axis in axes.flat[len(titles) :]:
        axis.set_axis_off()
    for axis in axes.flat[max(0, len(titles) - columns) : len(titles)]:
        axis.set_xlabel("ε (pure DP)")
        axis.tick_params(labelbottom=True)
    figure.supylabel("Gain of noise-aware per event [nats]", fontsize=8)
    least = table[(table.n_states > 1) & (table.epsilon == table.epsilon.min())]
    sure = len(least) and (panels.interval(least.gain_mean, least.gain_sem)[0] > 0).all()
    panels.message(figure, "Counting the noise helps hidden Markov models at small ε", bool(sure))
    words = [f"{row.panel.replace(chr(10), ' ')}, ε = {row.epsilon:g}: gain {row.gain_mean:.2f} ({NAMES[row.score]})"
             for row in few[few.variant == "paper"].itertuples()]  # fmt: skip
    keywords = {"title": "\n".join(words), "title_fontsize": 7} if words else {}
    hollow = panels.entry(marker="o", markerfacecolor="white", linestyle="", label="Not converged")
    panels.legend(figure, [hollow], **keywords)
    return figure
