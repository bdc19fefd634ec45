"""Reasons why checks of claims fail: paragraphs of prose in files.

`docs/templates/reasons/<paper>.md` has a heading for each claim. Below the heading are one or more reasons:

    ## F9

    See: docs/foulds2016_beta.md#heading

    Checks: `OPS is behind at *`; `the gap closes`

    Text, with {{ number["OPS minus Laplace at " ~ star] | digits(2) }} from the claim's own evidence.

A `*` stands for any text, in headings too (`## F7-*`). The text is rendered for each failed check that a pattern fits.
In the text, `number` is the claim's evidence, `check` is the failed check, `star` is the part of the check that the
first `*` fits, and `passed` says which checks pass. A reason does not apply if its rendered text is empty, or if
the text needs a number that the evidence does not have.
"""

import re
from collections import defaultdict
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple

from privpost.lab.claims import Claim
from privpost.lab.schema import SettingError

FOLDER = Path("docs/templates/reasons")
_CLAIM = re.compile(r"^## (\S+)$", re.MULTILINE)
_CHECKS = re.compile(r"^Checks: (.+)$", re.MULTILINE)
_SEE = re.compile(r"\s*(?:See: (\S+)\s*)?")


class Reason(NamedTuple):
    """A reason with patterns of the explained checks, a text, and a link to the derivation."""

    checks: tuple[str, ...]
    text: str
    see: str = ""

    def star(self, check: str) -> str | None:
        """Return the part of a check that the first `*` of a pattern fits, or None if no pattern fits."""
        for pattern in self.checks:
            if match := re.fullmatch("(.*)".join(map(re.escape, pattern.split("*"))), check):
                return (*match.groups(), "")[0]
        return None


def read(paper: str, folder: Path = FOLDER) -> dict[str, list[Reason]]:
    """Return the reasons in a paper's file by claim. Raise SettingError for text that is no reason."""
    path = folder / f"{paper}.md"
    if not path.is_file():
        return {}
    _, *parts = _CLAIM.split(path.read_text(encoding="utf-8"))
    return {id: _reasons(text, f"{path}: {id}") for id, text in zip(parts[::2], parts[1::2], strict=True)}


def _reasons(text: str, where: str) -> list[Reason]:
    before, *parts = _CHECKS.split(text)
    see = _SEE.fullmatch(before)
    if not (see and parts):
        raise SettingError(f"{where}: after 'See: docs/...', if any, a reason begins with 'Checks: `name`; `name`'")
    return [
        Reason(tuple(re.findall(r"`([^`]+)`", line)), body.strip(), see[1] or "")
        for line, body in zip(parts[::2], parts[1::2], strict=True)
    ]


def of(id: str, known: Mapping[str, list[Reason]]) -> list[Reason]:
    """Return the reasons under the headings that fit a claim's id."""
    return [reason for heading, reasons in known.items() if fnmatchcase(id, heading) for reason in reasons]


def explain(claim: Claim, reasons: list[Reason]) -> tuple[list[str], list[str], list[Reason]]:
    """Return the texts that explain a claim's failed checks, the unexplained checks, and the unused reasons."""
    texts: dict[str, None] = {}
    explained: set[str] = set()
    idle = []
    for reason in reasons:
        explanations = {check: text for check in claim.failed if (text := _told(reason, claim, check))}
        texts |= dict.fromkeys(explanations.values())
        explained |= set(explanations)
        if not explanations:
            idle.append(reason)
    return list(texts), [name for name in claim.failed if name not in explained], idle


def _told(reason: Reason, claim: Claim, check: str) -> str:
    """Return a reason's text for a failed check, or "" if the reason does not apply."""
    from jinja2 import UndefinedError

    star = reason.star(check)
    try:
        # A scorecard lists only failed checks, so every other check counts as passed.
        passed = defaultdict(lambda: True, dict.fromkeys(claim.failed, False))
        names = {"check": check, "star": star, "passed": passed}
        return "" if star is None else render(reason.text, claim.evidence, **names)
    except UndefinedError:
        return ""


def render(text: str, evidence: Mapping, **given: Any) -> str:
    """Return a reason's text on one line, with numbers of the evidence. Raise UndefinedError for an unknown number."""
    from privpost.report import templates

    return " ".join(templates.environment().from_string(text).render(number=evidence, **given).split())
