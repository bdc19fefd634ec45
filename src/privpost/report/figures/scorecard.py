"""What the papers claim and what the rebuild finds: one row per claim, with its verdict on each data set."""

import textwrap
from typing import NamedTuple

from privpost.drawing import multiples, style

# Marker and colour per verdict: the shape repeats what the colour says.
MARKS = {
    "holds": {"marker": "o", "color": "#009E73"},
    "holds in part": {"marker": "o", "color": "#E69F00", "fillstyle": "left", "markerfacecoloralt": "white"},
    "does not hold": {"marker": "X", "color": "#D55E00"},
    "not testable": {"marker": "o", "color": "#777777", "fillstyle": "none"},
    "seen": {"marker": "s", "color": "#009E73", "fillstyle": "none"},
    "not seen": {"marker": "x", "color": "#D55E00"},
    "not scored": {"marker": "_", "color": "#777777"},
}
TITLES = {
    "foulds2016": "Foulds et al. 2016",
    "zhang2016": "Zhang et al. 2016",
    "geumlek2017": "Geumlek et al. 2017",
    "bernstein2018": "Bernstein and Sheldon 2018",
    "audit": "Privacy audit (ours)",
    "fair_axis": "Same (ε, δ) for all (ours)",
    "noise_aware": "Noise-aware inference (ours)",
}
# Data sets on which one claim is tested side by side, in the order of their columns, by the letter in the figure.
DATA = {
    "afghanistan": ("A", "Afghanistan"),
    "afghanistan_dense": ("E", "its East and South"),
    "iraq_sigact": ("I", "Iraq SIGACT"),
    "iraq_simulated": ("S", "simulated"),
}
FONT = 6
LINE = 0.1  # inches
GAP = 0.05
HEADING = 0.25
CHARACTERS = 46
# Places of id, first mark and text in inches from the left of a column, and the width of a mark with its letter.
ID, MARK, TEXT, STEP = 0.02, 0.38, 1.24, 0.21


class Row(NamedTuple):
    """One claim: its id, (verdict, letter) for each data set, and its statement in lines."""

    id: str
    marks: list[tuple[str, str]]
    lines: list[str]

    @property
    def height(self) -> float:
        return LINE * len(self.lines) + GAP


def draw(tables):
    """Return the figure: claims by paper in two columns, each with its id, verdicts and statement.

    Letters tell the data sets of a claim that is tested on several. The legend counts the verdicts; a dagger marks
    those on data that stand in for the paper's own.
    """
    card = tables["scorecard"]
    blocks = [(TITLES.get(paper, paper), rows(part)) for paper, part in card.groupby("paper", sort=False)]
    columns = _balanced(blocks)
    height = max(sum(_height(block) for block in column) for column in columns)
    figure, (panels,) = multiples.grid(1, 2, height + 0.45)
    for axes, column in zip(panels, columns, strict=True):
        axes.set(xlim=(0, style.TWO_COLUMNS / 2), ylim=(height, 0))
        axes.axis("off")
        top = 0.0
        for title, claims in column:
            axes.text(ID, top + HEADING - 0.1, title, fontsize=FONT + 2, weight="bold")
            top += HEADING
            for claim in claims:
                _draw_row(axes, top, claim)
                top += claim.height
    _legend(figure, card)
    return figure


def rows(card) -> list[Row]:
    """Return the claims of one paper; rows of the scorecard that differ only in their data set are one."""
    found: dict[str, Row] = {}
    for row in card.itertuples():
        parts = row.id.split("-")
        data = next((part for part in parts if part in DATA), None)
        key = "-".join(part for part in parts if part != data) or row.study
        # Behind an id with a data set the statement begins with its title.
        text = row.statement.split(": ", 1)[-1] if data else row.statement
        text = text[:1].upper() + text[1:] or f"{row.study}: its tables are not there"
        letter = (DATA[data][0] if data else "") + "†" * (row.seen != "")
        claim = found.setdefault(key, Row(parts[0], [], textwrap.wrap(text, CHARACTERS, max_lines=2, placeholder=" …")))
        claim.marks.append((row.verdict, letter))
    return list(found.values())


def _draw_row(axes, top: float, claim: Row) -> None:
    axes.text(ID, top, claim.id, fontsize=FONT, weight="bold", va="top")
    for place, (verdict, letter) in enumerate(claim.marks):
        left = MARK + place * STEP
        axes.plot(left, top + LINE / 2, markersize=4.5, markeredgewidth=0.7, linestyle="", **MARKS[verdict])
        axes.text(left + 0.065, top + LINE / 2, letter, fontsize=FONT - 1.2, va="center")
    axes.text(TEXT, top, "\n".join(claim.lines), fontsize=FONT, va="top", linespacing=1.1)


def _legend(figure, card) -> None:
    count = card[card.id != ""].verdict.value_counts()
    shown = [verdict for verdict in MARKS if verdict in set(card.verdict)]
    labels = [f"{verdict} ({count.get(verdict, 0)})" if verdict in count else verdict for verdict in shown]
    looks = ({"linestyle": "", "markersize": 5, **MARKS[verdict]} for verdict in shown)
    handles = [multiples.entry(label=label, **look) for look, label in zip(looks, labels, strict=True)]
    letters = ", ".join(f"{letter} {name}" for letter, name in DATA.values())
    title = f"War logs: {letters}; † on stand-in data"
    multiples.legend(figure, handles, handletextpad=0.2, columnspacing=1.2, title=title, title_fontsize=FONT)


def _height(block) -> float:
    return HEADING + sum(claim.height for claim in block[1])


def _balanced(blocks) -> tuple[list, list]:
    """Return the papers in two columns of similar height; a paper goes on in the second column if it must."""
    half = sum(map(_height, blocks)) / 2
    columns, used = ([], []), 0.0
    for title, claims in blocks:
        split = max((i for i in range(1, len(claims) + 1) if used + _height((title, claims[:i])) <= half), default=0)
        if split:
            columns[0].append((title, claims[:split]))
        if split < len(claims):
            columns[1].append((title, claims[split:]))
        used += _height((title, claims))
    return columns
