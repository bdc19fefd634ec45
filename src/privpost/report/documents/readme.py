"""What README.md shows beside quoted numbers: verdicts per paper, and how long the two commands take."""

import re
from collections.abc import Mapping
from typing import Any

from privpost.evaluation.rows import markdown
from privpost.lab.plan import Plan
from privpost.report import numbers, scorecard, templates

TIMES = {
    "reproduce": "`make reproduce` took {seconds} on {cores} cores, from nothing but the raw data",
    "test": "`make test` took {seconds} on {cores} cores",
}


def values(plan: Plan) -> Mapping[str, str]:
    """Return the texts by their placeholders."""
    card = scorecard.read(plan.root / "scorecard.csv")
    return {"readme/times": times(numbers.read(plan.root)), "readme/verdicts": verdicts(card)}


def times(measured: Mapping[str, Any]) -> str:
    """Return how long the two commands take: as last recorded, else as the cells' own times add up."""
    parts = [
        text.format(seconds=templates.duration(measured[f"{command}/seconds"]), cores=measured[f"{command}/cores"])
        for command, text in TIMES.items()
        if f"{command}/seconds" in measured
    ]
    if "reproduce/seconds" not in measured:
        seconds = templates.duration(measured["time/cells"])
        parts.insert(0, f"The cells of `make reproduce` take {seconds} of computing, shared between the cores")
    return f"{'; '.join(parts)} (measured on one machine)."


def verdicts(card) -> str:
    """Return how many claims of each paper have each verdict; behind a plus sign, those tested on stand-in data."""
    rows = []
    for paper, part in card.groupby("paper", sort=False):
        own, other = (scorecard.counts(part[part.stand_in == mark]) for mark in ("no", "yes"))
        shown = [f"{own[v] or ''}{f' + {other[v]} †' if other[v] else ''}" for v in own]
        title = scorecard.PAPERS.get(paper, paper)
        rows.append((re.sub(r"\), .*", ")", title), *shown))
    return markdown(("claims of", *scorecard.counts(card)), rows)
