"""The figures that cover all studies: the hero, the strip of claims, the plate of methods, and what was measured."""

import sys
import textwrap
from pathlib import Path

import numpy as np

from privpost.datasets import catalogue
from privpost.drawing import calibration, figures, panels, style
from privpost.drawing.figures import figure
from privpost.evaluation.rows import select
from privpost.lab import store
from privpost.report import scorecard as scorecards

# The tables that the functions' parameters name, below the results.
TABLES = {
    "sampling_error": "foulds2016/sampling_error/sampling_error",
    "naive_bayes_pairs": "zhang2016/naive_bayes/naive_bayes_pairs",
    "logistic": "geumlek2017/logistic/logistic",
    "ecdf": "bernstein2018/calibration/ecdf",
    "calibrations": "bernstein2018/calibration/calibration",
}
# Verdict → colour of its tile and sign on it.
TILES = {
    "holds": ("#009E73", ""),
    "holds in part": ("#E69F00", "½"),
    "does not hold": ("#D55E00", "×"),
    "seen": ("#7fc9b5", ""),
    "not seen": ("#f0b48a", "×"),
    "not testable": ("#ffffff", ""),
    "not scored": ("#dddddd", "?"),
}
PER_LINE = 22
MET = "#0072B2"
MISSED = "#D55E00"


def draw(home: Path) -> list[Path]:
    """Draw the figures whose tables have rows, as SVG, below the folder of `results/`; returns their paths."""
    import pandas as pd

    drawn = []
    for name, function in figures.functions(sys.modules[__name__]).items():
        paths = {key: home / f"results/{TABLES.get(key, key)}.csv" for key in figures.parameters(function)}
        if not all(path.is_file() for path in paths.values()):
            continue
        frames = {key: pd.read_csv(path, low_memory=False) for key, path in paths.items()}
        if any(frame.empty for frame in frames.values()):
            continue
        drawn.append(home / f"figures/{name}.svg")
        with style.context(), store.replacing(drawn[-1]) as temporary:
            canvas = figures.draw(function, frames)
            style.save(canvas, temporary)
            style.close(canvas)
    return drawn


@figure("hero")
def hero(sampling_error, naive_bayes_pairs, logistic, ecdf, calibrations):
    """One finding per paper, from the tables of this rebuild.

    (a) L1 error of one posterior sample over that of the non-private posterior (Foulds et al. 2016). (b) Accuracy
    of the Fourier mechanism less Laplace's, for two increments t (Zhang et al. 2016). (c) Test error on MNIST under
    Rényi DP of order 10: OPS as the paper charges it, charged by theorem 17, where it coincides with the diffused
    sampler, and on its smallest ball, pure ε-DP (ours; Geumlek et al. 2017). (d) Distribution function of the
    quantile of the true parameter, less u, binomial data, with the simultaneous 95 % band of a calibrated method
    (Bernstein and Sheldon 2018). Bands are 95 % intervals. A title is a finding where the tables have it.
    """
    canvas, ((a, b), (c, d)) = panels.grid(2, 2, 4.0, width=4.6)
    titles = (
        _foulds(a, sampling_error),
        _zhang(b, naive_bayes_pairs),
        _geumlek(c, logistic),
        _bernstein(d, ecdf, calibrations),
    )
    for axes, letter, title in zip((a, b, c, d), "abcd", titles, strict=True):
        axes.set_title(f"{letter}  {title}", loc="left", weight="bold", fontsize=8)
    return canvas


def _name(axes, x: float, y: float, words: str, color: str, **keywords) -> None:
    axes.text(x, y, words, color=color, fontsize=8, **keywords)


def _foulds(axes, table) -> str:
    truth = select(table, method="non_private").set_index("n").l1_mean
    ratio = table.assign(ratio=table.l1_mean / table.n.map(truth), sem=table.over_true_sem / table.n.map(truth))
    rows = ratio[ratio.method.isin(["ops", "laplace"])]
    looks = {key: {**look, "marker": ""} for key, look in panels.looks(rows).items()}
    panels.curves(axes, rows, "n", "ratio", "sem", look=looks)
    axes.set(xscale="log", yscale="log", xlabel="Records n", ylabel="Error ÷ non-private")
    at_largest_n = rows[rows.n == rows.n.max()].set_index("method").ratio
    for method in at_largest_n.index:
        look, peak = style.look(method), rows[rows.method == method].sort_values("ratio").iloc[-1]
        # Above its peak, or to the right of it.
        at = (peak.n, 1.06 * peak.ratio) if method == "ops" else (120 * peak.n, 0.6 * peak.ratio)
        _name(axes, *at, look.label, look.color, ha="center")
    axes.set_ylim(top=1.35 * rows.ratio.max())
    holds = at_largest_n["ops"] > 2 and at_largest_n["laplace"] < 1.2
    return "OPS stays behind,\nLaplace catches up" if holds else "Error of one\nprivate sample"


def _zhang(axes, table) -> str:
    rows = select(table, method="fourier", other="laplace", runs="all").dropna(subset="epsilon").sort_values("epsilon")
    means = {}
    for variant, words, color in (("paper", "small t", style.look("fourier").color), ("bound", "large t", "#2f9e63")):
        part = rows[rows.variant == variant]
        ends = panels.interval(100 * part.difference_mean, 100 * part.difference_sem)
        panels.draw_band(axes, part.epsilon, 100 * part.difference_mean, ends, color=color)
        means[variant] = part.set_index("epsilon").difference_mean
        extreme = part.loc[part.difference_mean.idxmax() if variant == "bound" else part.difference_mean.idxmin()]
        up = variant == "bound"
        _name(axes, extreme.epsilon, 100 * extreme.difference_mean + (0.5 if up else -0.95), words, color, ha="center")
    axes.axhline(0, color=style.look("laplace").color, linewidth=1)
    axes.set(xscale="log", xlabel="ε (pure DP)", ylabel="Accuracy less Laplace's [%]", ylim=(-3.9, 1.9))
    holds = (means["bound"] > means["paper"]).mean() > 0.7
    return "Larger increments\nmostly help Fourier" if holds else "Fourier less Laplace,\ntwo increments"


def _geumlek(axes, table) -> str:
    # At toy size, or without all data sets, another one has the curves, or none has all of them.
    compared = table[table.variant == "own_bound"]
    data = "mnist" if "mnist" in set(compared.dataset) else (compared if len(compared) else table).dataset.iloc[0]
    table = table[(table.dataset == data) & (table.order == 10) & (table.metric == "test_error")]
    table = table.assign(epsilon=np.exp(table.log_epsilon))
    renyi = style.look("ops_renyi").color
    shown = (
        ("paper", "ops", style.look("ops").color, "-"),
        ("paper", "diffused", style.look("diffused").color, "-"),
        ("own_bound", "ops", renyi, (0, (3, 3))),
        ("smallest_ball", "ops", style.SMALLEST_BALL, "-"),
    )
    curves = {}
    for variant, method, color, line in shown:
        rows = select(table, variant=variant, method=method).sort_values("epsilon")
        curves[variant, method] = rows["mean"].to_numpy()
        band = panels.interval(rows["mean"], rows["sem"])
        panels.draw_band(axes, rows.epsilon, rows["mean"], band, color=color, linestyle=line)
    axes.set(xscale="log", xlabel="ε, (10, ε)-RDP", ylabel=f"Test error, {catalogue.title(data)}", ylim=(0, 0.6))
    left, right = np.exp(table.log_epsilon.quantile([0.3, 0.76]))
    _name(axes, right, 0.52, "OPS", style.look("ops").color, ha="center")
    _name(axes, left, 0.22, "Rényi charge", renyi, ha="center")
    _name(axes, left, 0.16, "= diffused", style.look("diffused").color, ha="center")
    _name(axes, right, 0.25, "smallest ball", style.SMALLEST_BALL, ha="center")
    ops, diffused, own_bound, ball = curves.values()
    holds = len({len(curve) for curve in curves.values()}) == 1 and np.allclose(own_bound, diffused)
    holds = holds and (ops > 2 * own_bound).all() and ball[-1] < ops[-1] / 2
    return "OPS pays for its\naccounting and radius" if holds else "OPS and\nits accounting"


def _bernstein(axes, table, calibrations) -> str:
    binomial = {"variant": "paper", "model": "binomial"}
    rows = select(table, **binomial)
    rows = rows[rows.method.isin(["naive", "ops", "gibbs"]) & (rows.tempered != "likelihood")]
    size = int(select(calibrations, **binomial).n_trials.max())
    calibration.less_u(axes, rows, size)
    # In the space between the other curves.
    axes.plot([0.45, 0.45], [-0.27, -0.01], color=style.look("gibbs").color, linewidth=0.6)
    for method, x, y in (("naive", 0.08, 0.38), ("ops", 0.72, 0.24), ("gibbs", 0.45, -0.34)):
        look = style.look(method)
        words = {"gibbs": "noise-aware", "naive": "noise-naive"}.get(method, look.label)
        _name(axes, x, y, words, look.color, ha="left" if x < 0.1 else "center")
    axes.set(ylabel="Pr(U ≤ u) − u", ylim=(-0.47, 0.47))
    apart = (rows.ecdf - rows.u).abs().groupby(rows.method).max() / (1.358 / size**0.5)
    holds = apart["gibbs"] < 1 and min(apart["naive"], apart["ops"]) > 3
    return "Only noise-aware\nis calibrated" if holds else "Which posteriors\nare calibrated?"


@figure("strip")
def strip(scorecard):
    """Every claim with its verdict, one tile a claim, in the order of the verdicts.

    Green: holds; orange with ½: holds in part; red with ×: does not hold; white: not testable with the data at hand.
    Hatched and pale: tested on data that stand in for the paper's own, on which it is seen (green) or not seen (red
    with ×). On the right how many of the claims that were tested on the paper's own data hold.
    """
    import matplotlib.pyplot as plt

    card = scorecard[scorecard.id.notna() & (scorecard.id != "")]
    papers = panels.ordered(card.paper, "", scorecards.NAMES)
    order = {verdict: place for place, verdict in enumerate(TILES)}
    lines = {paper: -(-int((card.paper == paper).sum()) // PER_LINE) for paper in papers}
    height, width = sum(lines.values()) + 0.85 * len(papers) + 0.2, PER_LINE + 0.2
    canvas, ((axes,),) = panels.grid(1, 1, 0.2 * height, width=0.2 * width)
    axes.set_axis_off()
    top = 0.0
    for paper in papers:
        rows = card[card.paper == paper]
        rows = rows.assign(place=rows.verdict.map(order)).sort_values(["place", "stand_in"], kind="stable")
        counts, top = rows.verdict.value_counts(), top + 0.75
        testable = sum(int(counts.get(verdict, 0)) for verdict in list(TILES)[:3])
        axes.text(
            0, top - 0.12, scorecards.NAMES.get(paper, paper.replace("_", " ").capitalize()), fontsize=8, va="bottom"
        )
        words = f"{counts.get('holds', 0)} of {testable} testable hold"
        axes.text(PER_LINE, top - 0.12, words, fontsize=8, ha="right", va="bottom", weight="bold")
        for place, row in enumerate(rows.itertuples()):
            x, y = place % PER_LINE, top + place // PER_LINE
            color, sign = TILES[row.verdict]
            outline = "#666666" if row.verdict == "not testable" else "white"
            hatch = "/////" if row.verdict in ("seen", "not seen") else None
            axes.add_patch(
                plt.Rectangle((x, y), 0.9, 0.88, facecolor=color, edgecolor=outline, hatch=hatch, linewidth=0.6)
            )
            axes.text(x + 0.45, y + 0.44, sign, fontsize=8, ha="center", va="center")
        top += lines[paper] + 0.1
    axes.set(xlim=(0, PER_LINE), ylim=(top, 0))
    named = [plt.Rectangle((0, 0), 1, 1, facecolor=color, edgecolor="#666666", linewidth=0.6, label=_words(verdict))
             for verdict, (color, _) in TILES.items() if verdict in set(card.verdict)]  # fmt: skip
    panels.legend(canvas, named, handlelength=1.2)
    return canvas


def _words(verdict: str) -> str:
    return f"{verdict} on stand-in data" if verdict in ("seen", "not seen") else verdict


@figure("methods")
def methods():
    """How each method is drawn in all figures: its colour, marker, line and name.

    Generated from the style; methods of one table differ in lightness and for the three kinds of colour blindness.
    """
    columns, looks = 2, list(style.LOOKS.values())
    depth = -(-len(looks) // columns)
    canvas, ((axes,),) = panels.grid(1, 1, 0.2 * depth + 0.1, width=4.2)
    axes.set_axis_off()
    for place, look in enumerate(looks):
        x, y = place // depth, place % depth
        how = {**look.line(), "label": None, "markersize": 5}
        axes.plot([x, x + 0.09, x + 0.18], [y, y, y], markevery=[1], **how)
        axes.text(x + 0.23, y, look.label, fontsize=8, va="center")
    axes.set(xlim=(-0.02, columns), ylim=(depth - 0.4, -0.6))
    return canvas


@figure("measured/run_times")
def run_times(times):
    """Where the time goes: computing time and peak memory of each study, as its cells recorded them.

    Seconds summed over a study's cells, its longest cell, and the largest memory of a cell; studies of the four papers
    stand above those beyond them. Measured on one machine, one thread per cell, once: times differ elsewhere.
    """
    of_study = times.groupby("study").agg(
        seconds=("wall_seconds", "sum"), longest=("wall_seconds", "max"), memory=("peak_mib", "max")
    )
    beyond = [not name.split("/")[0][-4:].isdigit() for name in of_study.index]
    of_study = of_study.assign(beyond=beyond).sort_values(["beyond", "seconds"], ascending=[False, True])
    canvas, ((left, right),) = panels.grid(1, 2, 0.9 + 0.135 * len(of_study), sharey=True, width_ratios=(3, 2))
    y = np.arange(len(of_study))
    left.hlines(y, of_study.longest, of_study.seconds, color="#bbbbbb", linewidth=1)
    left.plot(of_study.longest, y, "o", color="#56B4E9", markersize=3, label="longest cell")
    left.plot(of_study.seconds, y, "o", color="#0072B2", label="all cells")
    right.plot(of_study.memory, y, "o", color="#0072B2")
    left.set(xscale="log", xlabel="Wall time [s]", ylim=(-0.7, len(y) - 0.3))
    left.set_yticks(y, of_study.index, fontsize=6.5)
    right.set(xscale="log", xlabel="Peak memory [MiB]")
    hours, most = of_study.seconds.sum() / 3600, of_study.seconds.max() / of_study.seconds.sum()
    words = f"{hours:.1f} h of computing, at most {100 * most:.0f} % of it for one study"
    panels.message(canvas, words, bool(hours > 0))
    if 0 < (number := int(of_study.beyond.sum())) < len(y):
        for axes in (left, right):
            axes.axhline(number - 0.5, color=style.GREY, linewidth=0.8, linestyle=":")
    panels.legend(canvas)
    return canvas


@figure("benchmarks")
def benchmarks(benchmarks):
    """Measured speed against its bars, those missed first.

    Each ratio over its bar: right of 1 it is met with room to spare. Speed-ups are drawn as ratio over bar and costs as
    bar over ratio; the ratio and its bar are printed beside. What has no bar is in the table. Measured on one
    machine, not reproducible to the digit.
    """
    table = benchmarks.dropna(subset=["ratio", "bar"])
    table = table[table.bar != ""]
    table = table.assign(margin=[_margin(row) for row in table.itertuples()])
    table = table.sort_values("margin", ascending=False, kind="stable").reset_index(drop=True)
    labels = [textwrap.wrap(f"{row.what}: {row.against}", 58) for row in table.itertuples()]
    heights = np.array([0.17 + 0.1 * (len(lines) - 1) for lines in labels]) if labels else np.array([0.2])
    y = np.cumsum(heights) - heights / 2
    canvas, ((axes,),) = panels.grid(1, 1, 0.7 + heights.sum())
    for at, row in zip(y, table.itertuples(), strict=False):
        color, marker = (MET, "o") if row.margin >= 1 else (MISSED, "X")
        axes.plot([1, row.margin], [at, at], color=color, linewidth=2, alpha=0.4, solid_capstyle="butt")
        axes.plot(row.margin, at, marker, color=color, markersize=4.5)
        sense, limit = row.bar.replace(">=", "≥").replace("<=", "≤").split()
        words = f"{style.power(float(f'{row.ratio:.3g}'))} (bar: {sense} {style.power(float(limit))})"
        at_edge = {"xycoords": ("axes fraction", "data"), "annotation_clip": False}
        axes.annotate(words, (1.03, at), va="center", fontsize=7, **at_edge)
    axes.axvline(1, color=style.GREY, linewidth=1)
    axes.set(xscale="log", ylim=(0, heights.sum()), xlabel="How far beyond its bar")
    axes.set_xlim(min(0.6, table.margin.min() / 1.5), max(1, table.margin.max()) * 1.5)
    axes.set_yticks(y[: len(labels)], ["\n".join(lines) for lines in labels], fontsize=6.5, linespacing=1.0)
    axes.grid(axis="y", visible=False)
    met = int((table.margin >= 1).sum())
    panels.message(canvas, f"{met} of {len(table)} bars are met", len(table) > 0)
    marks = (("met", MET, "o"), ("missed", MISSED, "X"))
    panels.legend(canvas, [panels.entry(linestyle="", color=color, marker=m, label=words) for words, color, m in marks])
    return canvas


def _margin(row) -> float:
    """Return by which factor a row is better than its bar, between 0.01 and 10⁴: a ratio of 0 has no logarithm."""
    sense, limit = row.bar.split()
    if sense == ">=":
        return float(np.clip(row.ratio / float(limit), 1e-2, 1e4))
    if float(limit) == 0 or row.ratio <= 0:
        return 1.0 if row.ratio <= float(limit) else 1e-2
    return float(np.clip(float(limit) / row.ratio, 1e-2, 1e4))
