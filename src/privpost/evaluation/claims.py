"""What a paper claims and what its tables say: the record that a study's `claims(tables)` returns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

VERDICTS = ("holds", "holds in part", "does not hold", "not testable")


@dataclass(frozen=True)
class Claim:
    """One claim with its verdict, computed from tables.

    Attributes:
        id: as in the project's list of claims, e.g. `G1`.
        place: where the paper makes it (section, theorem, figure), or `ours`.
        statement: the claim in our words.
        test: how it is tested: statistic, threshold, and how multiplicity is accounted for.
        verdict: one of `VERDICTS`.
        evidence: the numbers that decided, JSON-able.
        variant: the variant of the study that was tested.
        stand_in: whether the data stand in for the paper's own.
        reason: why a claim does not hold, holds only in part, or cannot be tested; empty when it holds.

    Raises:
        ValueError: an unknown verdict, or one other than `holds` without a reason.
    """

    id: str
    place: str
    statement: str
    test: str
    verdict: str
    evidence: dict[str, Any] = field(default_factory=dict)
    variant: str = "paper"
    stand_in: bool = False
    reason: str = ""

    def __post_init__(self):
        if self.verdict not in VERDICTS:
            raise ValueError(f"{self.id}: verdict is {self.verdict!r}, but must be one of {', '.join(VERDICTS)}")
        if self.verdict != "holds" and not self.reason:
            raise ValueError(f"{self.id}: the verdict {self.verdict!r} needs a reason")


def verdict_of(share: float) -> str:
    """Return the verdict for the share of cases in which a claim is true: all, some, or none of them."""
    return "holds" if share == 1 else "does not hold" if share == 0 else "holds in part"


def from_checks(
    id: str, place: str, statement: str, test: str, checks: dict[str, bool], evidence: dict[str, Any], **fields: Any
) -> Claim:
    """Return the claim that holds when all of its checks pass; the ones that fail become its reason.

    `checks` maps each check's description to whether it passed. Raises ValueError when there is none.
    """
    if not checks:
        raise ValueError(f"{id}: a claim needs at least one check")
    failed = [name for name, passed in checks.items() if not passed]
    verdict = verdict_of(1 - len(failed) / len(checks))
    reason = "fails: " + "; ".join(failed) if failed else ""
    return Claim(id, place, statement, test, verdict, evidence, reason=reason, **fields)
