"""What documents say about claims: verdicts, numbers of claims, and reasons why checks fail."""

import json
import re
from collections.abc import Callable
from fnmatch import fnmatchcase
from html import escape
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from privpost.datasets import catalogue
from privpost.progress import some
from privpost.report import reasons, scorecard

MARKS = {"holds": "●", "holds in part": "◐", "does not hold": "✖", "not testable": "○", "not scored": "–"}
MARKS |= {"seen": "□", "not seen": "×"}
# Failed checks without a known cause, in lines "- <claim>: `check`; `check`", where `*` stands for any text.
UNEXPLAINED = reasons.FOLDER / "unexplained.md"


def names(card) -> dict[str, Callable]:
    """Return the functions that templates call, by name. Some take patterns of studies such as `zhang2016/*`."""

    def of(patterns: tuple[str, ...]):
        return card[card.study.map(lambda study: any(fnmatchcase(study, pattern) for pattern in patterns))]

    return {
        "claims": lambda *studies: list(of(studies).itertuples()),
        "failing": lambda *studies: failing(of(studies)),
        "tally": lambda *papers: tally(scorecard.of_papers(card[card.paper.isin(papers)] if papers else card)),
        "tally_ours": lambda *papers: tally(card[(card.whose == "ours") & card.paper.isin(papers or set(card.paper))]),
        "of_paper": lambda paper: list(scorecard.of_papers(card[card.paper == paper]).itertuples()),
        "ours": lambda: list(card[card.whose == "ours"].itertuples()),
        "mark": mark,
        "by": by,
        "statement": statement,
    }


def mark(row) -> str:
    """Return a sign and the verdict on a claim, and the outcome on data that stand in for the paper's own."""
    beside = f", {row.seen} †" if row.seen and row.seen != row.verdict else ""
    return f"{MARKS[row.verdict]} {row.verdict}{beside}"


def by(row) -> str:
    """Return the data sets or models of a claim as text, each with its mark."""
    marks = json.loads(row.by or "{}")
    named = {
        catalogue.title(of) if of in catalogue.names() else of.replace("_", " "): mark for of, mark in marks.items()
    }
    return ", ".join(f"{name} {mark}" for name, mark in named.items())


def statement(row) -> str:
    """Return the statement of a claim, with a dagger if data stand in for the paper's own."""
    text = escape(row.statement or row.reason, quote=False).replace("|", "\\|")
    return text + " †" * (row.stand_in in ("yes", "in part"))


def tally(card) -> str:
    """Return words on how many claims hold, hold in part, do not hold, or cannot be tested."""
    holds, in_part, fails, untestable, seen, unseen = scorecard.counts(card).values()
    parts = [f"{holds} of {holds + in_part + fails} hold"] if holds + in_part + fails else []
    parts += [f"{in_part} in part"] * bool(in_part) + [f"{fails} not"] * bool(fails)
    said = ", ".join(parts) or "none testable"
    more = f"; {seen + unseen} more tried on stand-in data only, {seen or 'none'} seen there"
    return said + more * bool(seen + unseen) + f"; {untestable} cannot be tested" * bool(untestable)


def failed(card):
    """Return the rows of claims that do not hold in full, or are not seen on data that stand in for the paper's own."""
    return card[card.verdict.isin(("does not hold", "holds in part")) | (card.seen == "not seen")]


def failing(card) -> str:
    """Return Markdown on claims that fail: for each, a heading, the statement, failed checks, reasons and links."""
    # A statement that is claimed of several data sets is printed once.
    parts: list[str] = []
    first: dict[str, str] = {}
    for row in failed(card).itertuples():
        said, (data, _, what) = statement(row), row.statement.partition(": ")
        if what and what in first:
            said = f"{data}: as {first[what]}." + " †" * said.endswith("†")
        first.setdefault(what, row.id)
        parts += [f"### {row.id}: {mark(row)[2:]}", "", said, ""]
        checks = scorecard.tally(row)
        share = f"{checks}: {some(json.loads(row.failed), 2)}. ".replace("|", "\\|") if checks else ""
        places = " ".join(f"[Details]({see.removeprefix('docs/')})." for see in row.see.split())
        parts += [f"{share}{scorecard.explanation(row)} {places}".replace("\n", " ").rstrip(), ""]
    return "\n".join(parts).rstrip()


def problems(card, folder: Path = reasons.FOLDER, unexplained: Path = UNEXPLAINED) -> list[str]:
    """Return a line for each failed check that lacks a reason, and for each reason that explains no failed check.

    A check needs no reason if the file `unexplained` lists it, or if the paper has no file of reasons. Entries of
    `unexplained` that fit no check get a line too.
    """
    allowed = _listed(unexplained)
    used: set[tuple[str, str]] = set()
    lines = []
    explained = card.study.map(lambda study: (folder / f"{study.split('/')[0]}.md").is_file())
    for row in card[(card.id != "") & explained].itertuples():
        for check in json.loads(row.unexplained or "[]"):
            fits = {(id, pattern) for id, pattern in allowed if fnmatchcase(row.id, id) and fnmatchcase(check, pattern)}
            used |= fits
            if not fits:
                lines.append(f"{row.id}: no reason says why {check!r} fails")
    lines += [
        f"{id}: {unexplained} lists {pattern!r}, but no such check lacks a reason" for id, pattern in allowed - used
    ]
    rows = [(row.id, _claim(row)) for row in card[card.id != ""].itertuples()]
    for paper in sorted({study.split("/")[0] for study in card.study}):
        for heading, explanations in reasons.read(paper, folder).items():
            idle = [set(reasons.explain(claim, explanations)[2]) for id, claim in rows if fnmatchcase(id, heading)]
            idle = set(explanations).intersection(*idle)
            lines += [f"{heading}: the reason for {', '.join(r.checks)} explains no failed check" for r in idle]
    return sorted(lines)


def _claim(row) -> Any:
    return SimpleNamespace(failed=json.loads(row.failed or "[]"), evidence=json.loads(row.evidence))


def _listed(path: Path) -> set[tuple[str, str]]:
    """Return the pairs of a claim and a check that a file lists. Both are patterns."""
    lines = re.findall(r"^- (\S+): (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE) if path.is_file() else []
    return {(id, check.replace("[", "[[]")) for id, checks in lines for check in re.findall(r"`([^`]+)`", checks)}
