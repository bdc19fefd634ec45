"""The figure of the study."""

from privpost.drawing import panels, style
from privpost.drawing.figures import figure
from privpost.evaluation.rows import one, select


@figure("ops_radius")
def radius(ops_radius):
    """Test error of OPS against the radius of its ball, at one pure ε (ours; Geumlek et al. 2017, section 5.2).

    Pure ε-DP, ln ε = 2; the smallest balls spend less. A larger ball R leaves a smaller power ε/(2cR) of the
    likelihood. Vertical lines: the smallest ball that is sure to hold the mode (left), and the paper's c/β (right).
    Dots: always guessing the larger class. Bands are 95 % intervals over the draws of one split.
    """
    table = select(ops_radius, metric="test_error").assign(method="ops")
    plot = panels.panels(
        table, "radius", "mean", "sem", columns="dataset", size=(style.WIDTH, 1.5), share=(True, True), xscale="log",
        xlabel="Radius R of the ball", ylabel=f"Test error at ln ε = {table.log_epsilon.iloc[0]:g}\n(pure DP)",
    )  # fmt: skip
    better = []
    for axes, _, dataset in plot:
        here = select(table, dataset=dataset)
        axes.axhline(here.majority_error.iloc[0], color=style.GREY, linestyle=":", linewidth=0.8)
        # Each name where no curve passes.
        for times, words, height in ((1, "smallest", 0.6), (None, "paper's", 0.02)):
            place, error = one(here, times_smallest=times)[["radius", "mean"]]
            axes.axvline(place, color=style.GREY, linewidth=0.8, zorder=1)
            axes.annotate(
                words, (place, height), xycoords=("data", "axes fraction"), xytext=(-2, 0), textcoords="offset points",
                rotation=90, ha="right", va="bottom", fontsize=7, color=style.GREY,
            )  # fmt: skip
        better.append(here["mean"].min() < 0.9 * error)
    panels.message(plot.figure, "OPS is better on a smaller ball than the paper's", all(better))
    return plot.figure
