"""Figure of the leaderboard."""

import matplotlib.pyplot as plt

from privpost.drawing import facets, style
from privpost.drawing.figures import figure
from privpost.inference_benchmark.leaderboard import TOLD
from privpost.inference_benchmark.tasks import DELTA

# Display names of tasks in column heads.
NAMES = {
    "binomial": "bits", "multinomial": "categories", "normal_unknown_variance": "normal, both",
    "log_linear": "log-linear", "private_n_binomial": "bits, n private",
    "private_n_multinomial": "categories, n private", "naive_bayes": "naive Bayes",
}  # fmt: skip
NOISES = {"gaussian": "Gaussian", "geometric": "geometric", "discrete_gaussian": "discrete Gaussian"}


@figure("leaderboard")
def board(leaderboard, rivals):
    """How well a classifier tells a method's draws from exact draws (ours).

    Shown is the classifier's largest accuracy over n and ε, in per cent. An accuracy of 50 is guessing, and 95 %
    intervals are about ±1. Privacy is pure DP, or (ε, 10⁻⁶)-DP for Gaussian noise. If n is private, neighbours differ
    by adding or removing a record. Empty cells are tasks that a method does not serve. Methods above the line stay
    below 53 everywhere. Exact draws come first, and the baselines (Prior and Noise-naive) last. Other rows are sorted
    by their largest number.
    """
    import seaborn as sns

    rows = rivals.assign(column=[_column(*pair) for pair in zip(rivals.task, rivals.noise, strict=True)])
    worst = rows.pivot_table("c2st", "method", "column", "max", sort=False)
    worst = 100 * worst.reindex(leaderboard.method.tolist()).rename(index=lambda name: style.look(name).label)
    canvas, axes = plt.subplots(figsize=(style.WIDTH, 1.8 + 0.19 * len(worst)))
    sns.heatmap(
        worst, ax=axes, vmin=50, vmax=100, cmap="YlOrBr", annot=True, fmt=".0f", annot_kws={"size": 6}, linewidths=0.5,
        cbar_kws={"label": "Accuracy of the classifier [%]; 50: cannot tell", "pad": 0.01, "ticks": [50, 75, 100]},
    )  # fmt: skip
    over = f"n and ε = {', '.join(map(style.power, facets.ordered(rivals.epsilon)))}"
    words = f"Told from exact draws: {100 * TOLD:g} or more; empty: not served; baselines last"
    axes.set(xlabel=f"The largest over {over} (pure DP; Gaussian: δ = {style.power(DELTA)})\n{words}", ylabel="")
    axes.grid(False)
    axes.tick_params(length=0)
    axes.set_xticks(axes.get_xticks(), worst.columns, rotation=45, ha="right", rotation_mode="anchor")
    never = [name for name in leaderboard.method if rivals[rivals.method == name].c2st.max() < TOLD]
    if "exact" in never and never == leaderboard.method.tolist()[: len(never)]:
        axes.axhline(len(never), color="#000000", linewidth=1)
        text = "The classifier cannot tell the methods above the line from exact draws"
        canvas.suptitle(text, fontsize=9, weight="bold")
    return canvas


def _column(task: str, noise: str) -> str:
    name = NAMES.get(task, task.replace("_", " "))
    return f"{name}, {NOISES[noise]}" if noise in NOISES else name
