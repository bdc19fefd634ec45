"""The figures that cover all studies: three main results, calibration of all models, and a strip of claims."""

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from privpost.datasets import catalogue
from privpost.drawing import calibration as uniform
from privpost.drawing import facets, figures, style
from privpost.drawing.figures import figure
from privpost.evaluation.calibration import ks_limit
from privpost.evaluation.rows import select
from privpost.experiments.bernstein2018 import models
from privpost.experiments.zhang2016.statements import STATEMENTS
from privpost.lab import store
from privpost.report import scorecard as scorecards

# Study of each table that is a parameter of a figure's function.
STUDIES = {
    "war_logs_differences": "foulds2016/war_logs_likelihood",
    "bounds": "zhang2016/bounds",
    **dict.fromkeys(("ecdf", "calibration", "families"), "bernstein2018/calibration"),
    "event_calibration": "noise_aware/event_calibration",
    "naive_bayes_calibration": "noise_aware/naive_bayes",
    "regression_calibration": "noise_aware/regression_calibration",
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
HATCHED = dict.fromkeys(("seen", "not seen"), "/////")
PER_LINE = 22


def tables(home: Path, names: Iterable[str] = STUDIES) -> dict[str, Any]:
    """Return the named tables that exist in the folder `home/results` and have rows."""
    import pandas as pd

    paths = {name: home / "results" / STUDIES.get(name, "") / f"{name}.csv" for name in names}
    read = {name: pd.read_csv(path, low_memory=False) for name, path in paths.items() if path.is_file()}
    return {name: table for name, table in read.items() if len(table)}


def draw(home: Path, out: Path | None = None, endings: Sequence[str] = ("svg",)) -> list[Path]:
    """Draw all figures whose tables exist in `home`. Return their paths in `out`, which is `home` by default."""
    drawn = []
    for name, function in figures.functions(sys.modules[__name__]).items():
        needed = figures.parameters(function)
        if len(frames := tables(home, needed)) < len(needed):
            continue
        with style.context():
            canvas = figures.draw(function, frames)
            for ending in endings:
                drawn.append((out or home) / f"figures/{name}.{ending}")
                with store.replacing(drawn[-1]) as temporary:
                    style.save(canvas, temporary)
            style.close(canvas)
    return drawn


@figure("hero")
def hero(war_logs_differences, bounds, ecdf):
    """Three questions: one private draw or noise, do the printed bounds hold, and can an interval be trusted?

    (a) Loss of a hidden Markov model of ten states on held-out months of the Afghan war diary, less the loss without
    privacy. Three pure ε-DP methods: one posterior draw (OPS), at the setting that is best in hindsight for each ε;
    noisy counts clipped at 0; the same counts with their noise modelled (Foulds et al. 2016 have the first two). (b)
    Share of cases in which each statement of Zhang et al. (2016) holds: as our copy prints it (bars), and mended (◆).
    (c) How often 95 % intervals contain the true parameter; a point is a model (Bernstein and Sheldon 2018). OPS
    intervals come from many draws that share ε. Bars are 95 % intervals. A title is a finding if the tables show it.
    """
    canvas, (axes,) = facets.subplots(1, 3, 2.9, width=7.6, gridspec_kw={"width_ratios": (1.15, 1, 1.1)})
    drawn = (_draw_or_noise(axes[0], war_logs_differences), _bounds(axes[1], bounds), _intervals(axes[2], ecdf))
    for place, letter, title in zip(axes, "abc", drawn, strict=True):
        place.set_title(f"{letter}  {title}", loc="left", weight="bold", fontsize=8)
    return canvas


# Curves of the war logs: the rows of the curve, the method that determines the colour, and the label.
READINGS = (
    ({"second": "laplace", "variant": "paper", "start": "seeded"}, "naive", "noisy counts, clipped at 0"),
    ({"second": "ops", "start": "seeded"}, "ops", "one draw, best in hindsight"),
    ({"second": "gibbs"}, "gibbs", "noisy counts, noise modelled"),
)


def _draw_or_noise(axes, table) -> str:
    # A rebuild at toy size has other data and fewer states.
    data = "afghanistan" if "afghanistan" in set(table.dataset) else table.dataset.iloc[0]
    rows = select(table, first="non_private", dataset=data).dropna(subset="epsilon")
    rows, losses = rows[rows.n_states == rows.n_states.max()], {}
    for where, method, words in READINGS:
        # If there are several settings, the best setting at each ε is drawn.
        part = select(rows, **where).sort_values("joint_mean").drop_duplicates("epsilon").sort_values("epsilon")
        color, marker, *_ = style.look(method)
        axes.errorbar(part.epsilon, part.joint_mean, style.NORMAL_95 * part.joint_sem, color=color, marker=marker)
        losses[method] = part.joint_mean.to_numpy()
        # The upper right corner is free, since the lines fall.
        at = 0.99, 1.03 - 0.09 * len(losses)
        axes.text(*at, words, color=color, fontsize=8, ha="right", va="center", transform=axes.transAxes)
    axes.set(
        xscale="log", xlabel=f"{style.AXES['epsilon']}\nFoulds et al. 2016: {catalogue.title(data)}",
        ylabel="Held-out loss [nats per event]", ylim=(0, 1.5 * max(loss.max(initial=0) for loss in losses.values())),
    )  # fmt: skip
    worst = losses.pop("naive")
    holds = len(worst) > 0 and all(len(loss) == len(worst) and (loss < worst).all() for loss in losses.values())
    return "Noise or one private draw?\n" + ("Either, once noise is modelled" if holds else "It depends")


def _bounds(axes, table) -> str:
    share = 100 * table.groupby("statement").holds.mean()
    shown = sorted((name for name in STATEMENTS if name in share), key=lambda name: share[name])
    fails, holds, mended = style.look("ops").color, "#9fb8ad", style.look("gibbs").color
    for y, name in enumerate(shown):
        axes.barh(y, share[name], 0.55, color=fails if share[name] < 100 else holds)
        if not share[name]:
            axes.text(1, y, "0", color=fails, fontsize=6.5, va="center")
        if (other := STATEMENTS[name][1]) in share:
            axes.plot(share[other], y, "D", color=mended, markersize=3.5, clip_on=False)
    axes.set(xlim=(0, 104), ylim=(len(shown) - 0.5, -0.6))
    axes.set_xlabel("Cases in which it holds [%] (◆: mended)\nZhang et al. 2016")
    axes.set_yticks(range(len(shown)), [STATEMENTS[name][0].split(":")[0] for name in shown], fontsize=6.5)
    axes.grid(axis="y", visible=False)
    failing = sum(share[name] < 100 for name in shown)
    return "Do the printed bounds hold?\n" + (f"{failing} of {len(shown)} do not" if failing else "Yes")


INTERVALS = {
    "non_private": "no noise",
    "gibbs": "noise\nmodelled",
    "naive": "noise\nignored",
    "ops": "draws that\nshare ε\n(too wide)",
}


def _intervals(axes, table) -> str:
    rows = select(table, variant="paper")
    rows = rows[rows.method.isin(INTERVALS) & (rows.tempered != "likelihood")]
    keys = ["method", "model", "parameter"]
    at = {u: rows[np.isclose(rows.u, u)].set_index(keys) for u in (0.025, 0.975)}
    covered = (at[0.975].ecdf - at[0.025].ecdf).groupby(level=["method", "model"]).mean()
    # The band is the KS limit for the table's number of trials.
    middle = rows[np.isclose(rows.u, 0.5)].iloc[0]
    trials = round((ks_limit(1) / (middle.band_high - middle.u)) ** 2)
    places = dict(zip(names := sorted(set(rows.model)), np.linspace(-0.2, 0.2, len(names)), strict=True))
    for (method, model), share in covered.items():
        look, y = style.look(method), list(INTERVALS).index(method) + places[model]
        low, high = stats.binomtest(round(share * trials), trials).proportion_ci(method="wilson")
        axes.plot([100 * low, 100 * high], [y, y], color=look.color, linewidth=1)
        axes.plot(100 * share, y, look.marker, color=look.color, markersize=2.5)
    words = f"A point: a model\n{facets.fixed(rows, 'epsilon', 'n')}"
    axes.text(0.03, 0.02, words, color=style.GREY, fontsize=7, transform=axes.transAxes)
    axes.axvline(95, color=style.GREY, linewidth=0.8, linestyle="--")
    axes.set_yticks(range(len(INTERVALS)), list(INTERVALS.values()))
    axes.set(xlim=(0, 104), ylim=(len(INTERVALS), -0.5))
    axes.set_xlabel("Truth inside 95 % intervals [%]\nBernstein and Sheldon 2018")
    axes.grid(axis="y", visible=False)
    share = covered.groupby(level="method").mean()
    holds = share.get("gibbs", 0) > 0.93 and share.get("naive", 1) < 0.5
    return "Can you trust an interval?\n" + ("If the noise is modelled" if holds else "It depends")


EVENTS = {
    ("naive_bayes", "multinomial"): "Naive Bayes of events",
    ("hmm", "poisson"): "HMM, Poisson events",
    ("hmm", "multinomial"): "HMM, fixed events",
}


@figure("calibration")
def calibrated(calibration, families, event_calibration, naive_bayes_calibration, regression_calibration):
    """Calibration, in all models, of noise-aware posteriors and of posteriors that take a noisy release for data.

    U is the quantile of the true parameter in its posterior. Its KS distance from uniform is divided by the limit below
    which 95 % of calibrated methods lie (grey). A point is a number of records and, for naive posteriors, a way to mend
    counts. A column is a value of ε that several studies have. Bounds are public. Of several parameters, the first is
    drawn. Of the first four models, three are those of Bernstein and Sheldon (2018); all others are ours. With a wrong
    prior, the truth comes from Beta(½, ½) or Beta(3, 3), but posteriors have Beta(1, 1). The HMM's chain takes numbers
    of events for Poisson even if they are fixed. Hollow: for redacted sums, naive reads the sum of all records.
    """
    import pandas as pd

    sums = [models.shown(models.titled(rows[~rows.uses_private_metadata.astype(bool)]))
            for rows in (calibration, families.replace({"model": {"multinomial": "10 categories"}}))]  # fmt: skip
    names = [EVENTS.get(at, at[0]) for at in zip(event_calibration.model, event_calibration.law, strict=True)]
    events = event_calibration.replace({"method": {"laplace": "naive"}}).assign(panel=names)
    bits = naive_bayes_calibration[naive_bayes_calibration.parameter == "y"]
    prior = (bits.concentration == 1).map({True: "", False: ", wrong prior"})
    parts = [*sums, events, bits.assign(panel="Naive Bayes" + prior), regression_calibration.assign(panel="Regression")]
    table = pd.concat([part.assign(part=at) for at, part in enumerate(parts)], ignore_index=True)
    table["panel"] = table.panel.str.removesuffix("\npublic bounds")
    table = uniform.over_limit(table[table.method.isin(uniform.AWARE) | (table.method == "naive")])
    table = table[table.groupby("epsilon").part.transform("nunique") > 1]
    grid = facets.dots(
        facets.named(table.assign(solid=table.solid.fillna(True))), "over", "panel", col="epsilon", solid="solid",
        names={name: name for name in table.panel}, size=(style.WIDTH, 0.2), xscale="log", xlim=(0.15, None),
    )  # fmt: skip
    right = table[table.concentration.fillna(1) == 1]
    wrong = table.drop(right.index)
    words = uniform.answer(right, "noise-aware posteriors with the right prior")
    words = words if (wrong.over[wrong.method != "naive"] > 1.5).any() else ""
    note = (
        f"A point: one n from {table.n.min():g} to {table.n.max():,.0f}; 1 in 20 is beyond by chance\n"
        "A row without points was not run at that ε"
    )
    label, band = uniform.LABEL.replace("\n", " "), uniform.band(grid, across=False, hollow=True)
    return facets.finish(grid, words, label, "", band, note=note)


@figure("strip")
def strip(scorecard):
    """Every claim with its verdict, one tile a claim, in the order of the verdicts.

    Green: holds; orange with ½: holds in part; red with ×: does not hold; white: not testable with the data at hand.
    Hatched and pale: tested on data that stand in for the paper's own, on which it is seen (green) or not seen (red
    with ×). On the right: how many of the claims tested on the paper's own data hold; "in part" does not count.
    Claims of this project stand below the rule, apart from the papers'.
    """
    from matplotlib.patches import Rectangle

    card = scorecard[scorecard.id.notna() & (scorecard.id != "")]
    theirs, mine = scorecards.of_papers(card), card[card.whose == "ours"]
    papers = facets.ordered(theirs.paper, "", scorecards.NAMES)
    blocks = [(scorecards.NAMES.get(paper, paper), theirs[theirs.paper == paper]) for paper in papers]
    if len(mine):
        total = "All four papers" if len(papers) == 4 else "All papers"
        blocks += [(total, theirs), ("Beyond the papers: claims of this project", mine)]
    canvas, ((axes,),) = facets.subplots(1, 1, 1, width=0.2 * (PER_LINE + 0.2))
    axes.set_axis_off()
    order, edge, top = list(TILES), "#666666", 0.75
    for name, rows in blocks:
        testable = rows[rows.verdict.isin(order[:3])]
        words = f"{(testable.verdict == 'holds').sum()} of {len(testable)} hold"
        axes.text(0, top - 0.12, name, fontsize=8, va="bottom", weight="bold" if rows is theirs else "normal")
        axes.text(PER_LINE, top - 0.12, words, fontsize=8, ha="right", va="bottom", weight="bold")
        if rows is theirs:
            axes.plot([0, PER_LINE], [top, top], color=edge, linewidth=0.8)
            top += 1.1
            continue
        tiles = rows.assign(place=rows.verdict.map(order.index)).sort_values(["place", "stand_in"], kind="stable")
        for number, (verdict, color, sign) in enumerate((name, *TILES[name]) for name in tiles.verdict):
            x, y = number % PER_LINE, top + number // PER_LINE
            how = {"edgecolor": edge if verdict == "not testable" else "white", "linewidth": 0.6}
            axes.add_patch(Rectangle((x, y), 0.9, 0.88, facecolor=color, hatch=HATCHED.get(verdict), **how))
            axes.text(x + 0.45, y + 0.44, sign, fontsize=8, ha="center", va="center")
        top += -(-len(rows) // PER_LINE) + 0.85
    axes.set(xlim=(0, PER_LINE), ylim=(top - 0.85, 0))
    canvas.set_figheight(0.2 * top)
    shown = [(name, color) for name, (color, _) in TILES.items() if name in set(card.verdict)]
    words = {"seen": "seen on stand-in data *", "not seen": "× not seen on stand-in data *",
             "not testable": "not testable *", **{name: f"{TILES[name][1]} {name}" for name in order[1:3]}}  # fmt: skip
    handles = [Rectangle((0, 0), 1, 1, facecolor=color, edgecolor="white" if name in HATCHED else edge, linewidth=0.6,
                         hatch=HATCHED.get(name), label=words.get(name, name)) for name, color in shown]  # fmt: skip
    return facets.finish(canvas, "", "* not counted on the right", handles=handles, handlelength=1.2)
