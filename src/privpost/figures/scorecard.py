"""What the papers claim and what the rebuild finds: every claim with its verdict."""

from __future__ import annotations

import textwrap

from privpost.figures import style

# Marker and colour per verdict: the shape repeats what the colour says.
MARKS = {
    "holds": {"marker": "o", "color": "#009E73"},
    "holds in part": {"marker": "o", "color": "#E69F00", "fillstyle": "left", "markerfacecoloralt": "white"},
    "does not hold": {"marker": "X", "color": "#D55E00"},
    "not testable": {"marker": "o", "color": "#777777", "fillstyle": "none"},
    "not scored": {"marker": "_", "color": "#777777"},
}
TITLES = {
    "foulds2016": "Foulds et al. 2016",
    "zhang2016": "Zhang et al. 2016",
    "geumlek2017": "Geumlek et al. 2017",
    "bernstein2018": "Bernstein and Sheldon 2018",
}
FONT = 6
LINE = 0.105  # inches
GAP = 0.07
HEADING = 0.26
CHARACTERS = 62
UNEVEN = 0.15


def draw(tables):
    """Return the figure: claims by paper in two columns, each with its verdict, id and statement.

    The legend counts the verdicts; a dagger marks claims that were tested on data that stand in for the paper's own.
    """
    import matplotlib.pyplot as plt
    from matplotlib.lines import Line2D

    card = tables["scorecard"]
    blocks = [(paper, _entries(rows)) for paper, rows in card.groupby("paper", sort=False)]
    columns = _balanced(blocks)
    height = max(sum(_height(entries) for _, entries in column) for column in columns)
    figure, panels = plt.subplots(1, 2, figsize=(style.TWO_COLUMNS, height + 0.4))
    for axes, column in zip(panels, columns, strict=True):
        axes.set(xlim=(0, style.TWO_COLUMNS / 2), ylim=(height, 0))
        axes.axis("off")
        top = 0.0
        for paper, entries in column:
            axes.text(0.02, top + HEADING - 0.1, TITLES.get(paper, paper), fontsize=FONT + 2, weight="bold")
            top += HEADING
            for id, verdict, lines in entries:
                axes.plot(0.1, top + LINE / 2, markersize=6, linestyle="", **MARKS[verdict])
                axes.text(0.2, top, id, fontsize=FONT, weight="bold", va="top")
                axes.text(0.48, top, "\n".join(lines), fontsize=FONT, va="top", linespacing=1.15)
                top += LINE * len(lines) + GAP
    count = card[card.id != ""].verdict.value_counts()
    handles = [Line2D([], [], linestyle="", markersize=6, **MARKS[v]) for v in MARKS if v in set(card.verdict)]
    labels = [f"{v} ({count.get(v, 0)})" if v in count else v for v in MARKS if v in set(card.verdict)]
    if (card.stand_in == "yes").any():
        handles.append(Line2D([], [], linestyle=""))
        labels.append("† on stand-in data")
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), handletextpad=0.3, columnspacing=1.2)
    return figure


def _entries(rows) -> list[tuple[str, str, list[str]]]:
    entries = []
    for row in rows.itertuples():
        text = row.statement or f"{row.study}: its tables are not there"
        text += " †" if row.stand_in == "yes" else ""
        # An id with a data set behind the dash: the statement names the data set.
        entries.append((row.id.split("-")[0], row.verdict, textwrap.wrap(text, CHARACTERS)))
    return entries


def _height(entries) -> float:
    return HEADING + sum(LINE * len(lines) + GAP for _, _, lines in entries)


def _balanced(blocks) -> tuple[list, list]:
    """Return the papers in two columns of similar height; a paper goes on in the second column only if it must."""
    heights = [_height(entries) for _, entries in blocks]
    half = sum(heights) / 2
    place = min(range(len(blocks) + 1), key=lambda i: abs(sum(heights[:i]) - half))
    if abs(sum(heights[:place]) - half) < UNEVEN * half:
        return list(blocks[:place]), list(blocks[place:])
    columns, used = ([], []), 0.0
    for paper, entries in blocks:
        fitting = [i for i in range(1, len(entries) + 1) if used + _height(entries[:i]) <= half + LINE]
        split = max(fitting, default=0)
        parts = (entries[:split], entries[split:])
        for column, part in zip(columns, parts, strict=True):
            if part:
                column.append((paper, part))
        used += _height(entries)
    return columns
