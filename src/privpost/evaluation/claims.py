"""What a paper claims and what its tables say: the record that a study's `claims(tables)` returns."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

VERDICTS = ("holds", "holds in part", "does not hold", "not testable")


@dataclass(frozen=True)
class Why:
    """Why some checks of a claim fail, bound to those checks: no other failure is explained by it.

    Attributes:
        text: one or two sentences; measured numbers are formatted into it from the tables.
        explains: names of checks, `*` standing for anything (as in `fnmatch`).
        see: where it is derived, `docs/<file>.md#<heading>`.
        when: whether the tables show this cause; a failure of another kind has another one.
    """

    text: str
    explains: tuple[str, ...]
    see: str = ""
    when: bool = True

    def covers(self, check: str) -> bool:
        """Whether it explains the failure of a check."""
        return bool(self.when) and any(fnmatchcase(check, pattern) for pattern in self.explains)


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
        reason: which checks fail, or why a claim cannot be tested; empty when it holds.
        checks: each check's description and whether it passed; empty for a claim that is not scored by checks.
        why: why checks fail, in words; empty when the claim holds or no cause is known.
        unexplained: failed checks that `why` does not explain.
        see: where the why is derived, `docs/<file>.md#<heading>`, separated by spaces.

    Raises:
        ValueError: an unknown verdict, one other than `holds` without a reason, or a why of a claim that holds.
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
    checks: Mapping[str, bool] = field(default_factory=dict)
    why: str = ""
    unexplained: tuple[str, ...] = ()
    see: str = ""

    def __post_init__(self):
        if self.verdict not in VERDICTS:
            raise ValueError(f"{self.id}: verdict is {self.verdict!r}, but must be one of {', '.join(VERDICTS)}")
        if self.verdict != "holds" and not self.reason:
            raise ValueError(f"{self.id}: the verdict {self.verdict!r} needs a reason")
        if self.verdict == "holds" and self.why:
            raise ValueError(f"{self.id}: why is {self.why!r}, but a claim that holds needs no explanation")

    @property
    def failed(self) -> tuple[str, ...]:
        """The checks that failed."""
        return tuple(name for name, passed in self.checks.items() if not passed)


def verdict_of(share: float) -> str:
    """Return the verdict for the share of cases in which a claim is true: all, some, or none of them."""
    return "holds" if share == 1 else "does not hold" if share == 0 else "holds in part"


def from_checks(
    id: str,
    place: str,
    statement: str,
    test: str,
    checks: dict[str, bool],
    evidence: dict[str, Any],
    *,
    whys: Iterable[Why] = (),
    untestable: str = "",
    **fields: Any,
) -> Claim:
    """Return the claim that holds when all of its checks pass; the ones that fail become its reason.

    `checks` maps each check's description to whether it passed. Of `whys` those are kept that explain a failed check.
    Numbers of numpy and pandas in `evidence` become Python's. Without a check the claim is not testable, for the reason
    `untestable`; raises ValueError where there is none.
    """
    if not checks:
        if not untestable:
            raise ValueError(f"{id}: a claim needs at least one check")
        return Claim(id, place, statement, test, "not testable", plain(evidence), reason=untestable, **fields)
    checks = {name: bool(passed) for name, passed in checks.items()}
    failed = [name for name, passed in checks.items() if not passed]
    shown = [why for why in whys if any(map(why.covers, failed))]
    return Claim(
        id,
        place,
        statement,
        test,
        verdict_of(1 - len(failed) / len(checks)),
        plain(evidence),
        reason="fails: " + "; ".join(failed) if failed else "",
        checks=checks,
        why=" ".join(why.text for why in shown),
        unexplained=tuple(name for name in failed if not any(why.covers(name) for why in shown)),
        see=" ".join(dict.fromkeys(why.see for why in shown if why.see)),
        **fields,
    )


def plain(value: Any) -> Any:
    """Return a value, or maps and lists of them, with Python's numbers in place of those of numpy and pandas."""
    if isinstance(value, Mapping):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value.item() if hasattr(value, "item") else value
