"""Why checks of claims fail: prose of a paper's document, bound to the checks that it explains.

`docs/templates/reasons/<paper>.md` has a heading for each claim and below it one or more reasons:

    ## F9

    Checks: `OPS is behind at *`; `the gap closes`

    Text, with {{ number["OPS minus Laplace at n = 10"] | digits(2) }} from the claim's own evidence.

A `*` stands for anything. A reason whose text is empty for the tables at hand (an `{% if %}`) explains nothing.
"""

import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from privpost.lab.claims import Claim

FOLDER = Path("docs/templates/reasons")
_CLAIM = re.compile(r"^## (\S+)$", re.MULTILINE)
_CHECKS = re.compile(r"^Checks: (.+)$", re.MULTILINE)


class Reason(NamedTuple):
    """A reason and the checks that it explains, as patterns."""

    checks: tuple[str, ...]
    text: str

    def explains(self, check: str) -> bool:
        """Whether it explains the failure of a check."""
        return any(fnmatchcase(check, pattern) for pattern in self.checks)


def read(paper: str, folder: Path = FOLDER) -> dict[str, list[Reason]]:
    """Return the reasons that a paper's file gives, by claim; none where it has no file."""
    path = folder / f"{paper}.md"
    if not path.is_file():
        return {}
    _, *parts = _CLAIM.split(path.read_text(encoding="utf-8"))
    return {id: _reasons(text, f"{path}: {id}") for id, text in zip(parts[::2], parts[1::2], strict=True)}


def _reasons(text: str, where: str) -> list[Reason]:
    before, *parts = _CHECKS.split(text)
    if before.strip() or not parts:
        raise ValueError(f"{where}: a reason begins with a line 'Checks: `name`; `name`'")
    patterns = (tuple(re.findall(r"`([^`]+)`", line)) for line in parts[::2])
    # fnmatch takes brackets for sets of letters; here only * is special.
    literal = (tuple(pattern.replace("[", "[[]") for pattern in group) for group in patterns)
    return [Reason(checks, body.strip()) for checks, body in zip(literal, parts[1::2], strict=True)]


def explain(claim: Claim, reasons: list[Reason]) -> tuple[list[str], list[str], list[Reason]]:
    """Return why the failed checks of a claim fail.

    Returns:
        the texts, rendered with the claim's evidence; the failed checks that none explains; the reasons that explain
        no failed check.
    """
    texts, explained, idle = [], set(), []
    for reason in reasons:
        failed = {name for name in claim.failed if reason.explains(name)}
        text = render(reason.text, claim.evidence) if failed else ""
        if text:
            texts.append(text)
            explained |= failed
        else:
            idle.append(reason)
    return texts, [name for name in claim.failed if name not in explained], idle


def render(text: str, evidence: Mapping) -> str:
    """Return a reason's text with the claim's own numbers, on one line; raises UndefinedError for an unknown one."""
    import jinja2

    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, autoescape=False)
    environment.filters["digits"] = lambda value, digits=3: f"{value:.{digits}g}"
    environment.filters["fixed"] = lambda value, digits=2: f"{value:.{digits}f}"
    environment.filters["percent"] = lambda value, digits=0: f"{100 * value:.{digits}f} %"
    return " ".join(environment.from_string(text).render(number=dict(evidence)).split())
