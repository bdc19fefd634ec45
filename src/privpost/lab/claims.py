"""Claims, which are statements of papers. Each claim has a function that reads tables and yields checks and numbers.

A module of claims declares them one after another:

    @claim("P1", "section 3.2", "One OPS sample is ahead only at small n.", "difference beyond {z:.2f} standard errors")
    def crossing(sampling_error):
        yield word("z", 4.07)
        yield check("OPS is ahead at some n <= 10", ...)
        yield number("OPS minus Laplace at n = 1", -0.021, error=0.001)

The function's parameters name the tables that it reads.
"""

import inspect
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, NamedTuple

from privpost.lab.schema import SettingError

VERDICTS = ("holds", "holds in part", "does not hold", "not testable")
# The outcomes of checks on stand-ins, which are data that replace the paper's own. Stand-ins decide no verdict.
SEEN = ("seen", "not seen")
# Marks of claims, by whether all, some or no checks pass. A dagger marks data that stand in for the paper's own.
MARKS = ("●", "◐", "✖")


class Part(NamedTuple):
    """One thing that a claim's function yields: a check, a number, a word for the claim's text, or a field."""

    kind: str
    name: str
    value: Any
    of: str = ""


def check(name: str, passed: Any, stand_in: Any = False, of: str = "") -> Part:
    """State whether one check passes. A claim holds if all checks on the paper's own data pass.

    `of` is the data set, model or network that the check is about. The scorecard shows an outcome for each `of`.
    """
    return Part("stand-in" if stand_in else "check", name, bool(passed), of)


def number(name: str, value: Any, error: Any = None, of: str = "") -> Iterator[Part]:
    """Give a value as evidence and, if the value is an estimate, its standard error (`yield from number(...)`)."""
    yield Part("number", name, value)
    if error is not None:
        yield Part("number", f"its standard error, {of or name}", error)


def numbers(values: Mapping[str, Any]) -> Iterator[Part]:
    """Give several values as evidence, by their names (`yield from numbers(...)`)."""
    return (Part("number", name, value) for name, value in values.items())


def word(name: str, value: Any) -> Part:
    """Give a value that fills `{name}` in the claim's statement, place or test."""
    return Part("word", name, value)


def untestable(reason: str) -> Part:
    """State why the claim cannot be tested. A function that yields this yields no checks."""
    return Part("field", "untestable", reason)


def about(**fields: Any) -> Iterator[Part]:
    """Set the fields `variant` and `stand_in` of a claim if they depend on tables (`yield from about(...)`)."""
    return (Part("field", name, value) for name, value in fields.items())


@dataclass(frozen=True)
class Claim:
    """One claim with its verdict, computed from tables.

    Attributes:
        id: the claim's key in the project's list of claims, e.g. `G1`.
        place: where the paper makes the claim (section, theorem, figure), or `ours`.
        statement: the claim in our words.
        test: the statistic, its threshold, and how multiple tests are accounted for.
        verdict: one of `VERDICTS`; or one of `SEEN`, if all checks are on data that stand in for the paper's own.
        checks: each check's name and whether it passed; empty for a claim that cannot be tested.
        evidence: the numbers that decided the checks, by name.
        variant: the variant of the study that was tested.
        stand_in: whether all data of the claim stand in for the paper's own.
        seen: `seen` if all checks on stand-ins pass, `not seen` if a check on stand-ins fails, "" without stand-ins.
        by: one of `MARKS` for each data set or model that `check(…, of=…)` names.
        reason: which checks fail, or why the claim cannot be tested; empty if the claim holds.
    """

    id: str
    place: str
    statement: str
    test: str
    verdict: str
    checks: Mapping[str, bool] = field(default_factory=dict)
    evidence: Mapping[str, Any] = field(default_factory=dict)
    variant: str = "paper"
    stand_in: bool = False
    seen: str = ""
    by: Mapping[str, str] = field(default_factory=dict)
    reason: str = ""

    @property
    def failed(self) -> tuple[str, ...]:
        """The names of the checks that fail."""
        return tuple(name for name, passed in self.checks.items() if not passed)


class Declared(NamedTuple):
    """A claim as a module declares it, for one of the claim's cases."""

    id: str
    place: str
    statement: str
    test: str
    fields: Mapping[str, Any]
    case: Mapping[str, Any]
    function: Callable[..., Iterable[Part] | None]

    @property
    def reads(self) -> set[str]:
        """The names of the tables that the claim's function reads."""
        return {*inspect.signature(self.function).parameters} - {*self.case}

    def score(self, tables: Mapping[str, Any]) -> Claim | None:
        """Return the claim with its verdict, or None if the claim's function yields nothing.

        Raises KeyError for a table that the study does not have, and ValueError if two values have the same name.
        """
        parts = list(self.function(**{name: tables[name] for name in self.reads}, **self.case) or ())
        if not parts:
            return None
        named: dict[str, dict[str, Any]] = {kind: {} for kind in ("word", "field", "check", "stand-in", "number")}
        for part in parts:
            known, value = named[part.kind], plain(part.value)
            if part.name in known and known[part.name] != value:
                raise ValueError(f"{self.id}: the {part.kind} {part.name!r} is given twice, with two values")
            known[part.name] = value
        words, fields = {**self.case, **named["word"]}, {**self.fields, **named["field"]}
        judged, seen = named["check"], named["stand-in"]
        place, statement, test = (text.format(**words) for text in (self.place, self.statement, self.test))
        if fields.get("stand_in"):
            judged, seen = {}, {**judged, **seen}
        outcome = _outcome(judged, seen, fields.pop("untestable", ""))
        if not outcome["verdict"]:
            raise ValueError(f"{self.id}: a claim needs a check, or a reason why it cannot be tested")
        fields["stand_in"] = fields.get("stand_in", False) or bool(seen and not judged)
        fields["by"] = _by(parts, fields["stand_in"])
        return Claim(
            self.id, place, statement, test, checks={**judged, **seen}, evidence=named["number"], **outcome, **fields
        )


def _by(parts: Sequence[Part], stand_in: bool) -> dict[str, str]:
    """Return, by name, one of `MARKS` for each data set, model or network that checks are about."""
    marks = {}
    for of in dict.fromkeys(part.of for part in parts if part.of):
        checks = [part for part in parts if part.of == of and part.kind in ("check", "stand-in")]
        passed = sum(part.value for part in checks)
        mark = MARKS[0] if passed == len(checks) else MARKS[1] if passed else MARKS[2]
        marks[of] = mark + "†" * (stand_in or all(part.kind == "stand-in" for part in checks))
    return marks


def claim(id: str, place: str, statement: str, test: str, *, cases: Any = ({},), **fields: Any):
    """Declare the decorated function as a claim, or as one claim for each of `cases`.

    A case gives values to the function's parameters other than tables. The texts `id`, `place`, `statement` and `test`
    may name these parameters in braces. All texts but `id` may also name a `word` that the function yields. `fields`
    are `variant` and `stand_in`.
    """

    def declare(function: Callable) -> Callable:
        made = [Declared(id.format(**case), place, statement, test, fields, case, function) for case in cases]
        function.claims = [*getattr(function, "claims", ()), *made]  # type: ignore[attr-defined]
        return function

    return declare


def declared(module: ModuleType) -> list[Declared]:
    """Return the claims that a module declares, in the order of the module."""
    functions = [value for value in vars(module).values() if getattr(value, "__module__", "") == module.__name__]
    return [declaration for function in functions for declaration in getattr(function, "claims", ())]


def score(
    module: ModuleType,
    tables: Mapping[str, Any],
    study: str = "",
    *,
    partly: bool = False,
    unscored: dict[str, str] | None = None,
) -> list[Claim]:
    """Return a module's claims with their verdicts. With `partly`, claims whose tables are missing are left out.

    A claim that cannot be scored raises SettingError, which names study, claim and line. If the map `unscored` is
    given, the reason is stored there under the claim's id instead.
    """
    scored = []
    for declaration in declared(module):
        if partly and not declaration.reads <= {*tables}:
            continue
        try:
            scored.append(declaration.score(tables))
        except Exception as error:
            what = " ".join(f"{type(error).__name__}: {error}".split())
            if unscored is not None:
                unscored[declaration.id] = what
                continue
            trace = traceback.extract_tb(error.__traceback__)
            # Name the last line in the claims' own module, if any, since a line in a library tells the user little.
            place = next(
                (frame for frame in reversed(trace) if frame.filename == getattr(module, "__file__", "")), trace[-1]
            )
            raise SettingError(
                f"{study or module.__name__}: the claim {declaration.id} cannot be scored: {what} "
                f"({place.filename}:{place.lineno})"
            ) from error
    return [found for found in scored if found is not None]


def _outcome(judged: Mapping[str, bool], seen: Mapping[str, bool], untestable: str) -> dict[str, str]:
    """Return `verdict`, `seen` and `reason` from the checks on the paper's data and the checks on stand-ins."""
    wrong, unseen = ([name for name, passed in checks.items() if not passed] for checks in (judged, seen))
    named = {"fails": wrong, "not seen on stand-ins": unseen}
    reasons = [f"{what}: {'; '.join(names)}" for what, names in named.items() if names]
    on_stand_ins = "" if not seen else "not seen" if unseen else "seen"
    of_judged = "holds" if not wrong else "does not hold" if len(wrong) == len(judged) else "holds in part"
    verdict = of_judged if judged else on_stand_ins or "not testable" * bool(untestable)
    return {"verdict": verdict, "seen": on_stand_ins, "reason": ". ".join(reasons) if judged or seen else untestable}


def plain(value: Any) -> Any:
    """Return a value or nested maps and lists, with Python numbers instead of those of numpy and pandas."""
    if isinstance(value, Mapping):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value.tolist() if hasattr(value, "tolist") else value
