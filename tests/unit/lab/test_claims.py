"""Declared claims: verdicts from checks, words in texts, one claim for each case, and no typed counts."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from typed_numbers import bare_numbers

from privpost.lab import claims
from privpost.lab.claims import about, check, claim, number, untestable, word

EXPERIMENTS = Path(__file__).resolve().parents[3] / "src/privpost/experiments"


def scored(function, *tables, **declared):
    """Return the claims that a function makes under a declaration with short texts."""
    texts = {"id": "X1", "place": "ours", "statement": "s", "test": "t"} | declared
    module = ModuleType("made_up")
    function.__module__ = module.__name__
    module.made_up = claim(**texts)(function)
    return claims.score(module, {f"table_{i}": table for i, table in enumerate(tables)})


def passing(*passed):
    def function():
        for i, value in enumerate(passed):
            yield check(f"check {i}", value)

    return function


@pytest.mark.parametrize(
    ("passed", "verdict", "reason"),
    [
        ([True, np.True_], "holds", ""),
        ([True, False], "holds in part", "fails: check 1"),
        ([False, np.False_], "does not hold", "fails: check 0; check 1"),
    ],
)
def test_a_claim_holds_when_all_its_checks_pass(passed, verdict, reason):
    (found,) = scored(passing(*passed))
    assert (found.verdict, found.reason) == (verdict, reason)
    assert list(found.checks.values()) == [bool(value) for value in passed]


def test_a_claim_without_a_check_says_why_it_cannot_be_tested():
    def function():
        yield untestable("no rows")
        yield from number("n", np.int64(3))

    (found,) = scored(function)
    assert (found.verdict, found.reason, found.evidence) == ("not testable", "no rows", {"n": 3})
    with pytest.raises(ValueError, match="X1: a claim needs a check, or a reason"):
        scored(lambda: number("n", 3))
    assert scored(lambda: None) == []


def test_texts_are_filled_with_words_and_evidence_is_plain():
    def function(table_0):
        yield check("one", table_0 == 7)
        yield word("limit", 2.5)
        yield from number("mean", np.float64(1.5), error=np.float64(0.5), of="m")
        yield from about(variant="corrected", stand_in=True)

    (found,) = scored(function, 7, test="beyond {limit:.1f}", variant="paper")
    assert (found.test, found.variant, found.stand_in) == ("beyond 2.5", "corrected", True)
    assert found.evidence == {"mean": 1.5, "its standard error, m": 0.5}
    assert all(type(value) is float for value in found.evidence.values())


def test_each_case_is_a_claim():
    def function(level, name):
        yield check(name, level > 1)

    cases = [{"level": 1, "name": "a"}, {"level": 2, "name": "b"}]
    found = scored(function, id="X-{name}", statement="Level {level}.", cases=cases)
    assert [(each.id, each.statement, each.verdict) for each in found] == [
        ("X-a", "Level 1.", "does not hold"),
        ("X-b", "Level 2.", "holds"),
    ]


def test_a_name_has_one_value():
    def twice(*values):
        return lambda: (check("same", value) for value in values)

    assert scored(twice(True, True))[0].checks == {"same": True}
    with pytest.raises(ValueError, match="X1: the check 'same' is given twice, with two values"):
        scored(twice(True, False))


def test_a_claim_that_another_module_declares_is_not_scored_again():
    module = ModuleType("importing")
    module.borrowed = claim("X1", "ours", "s", "t")(passing(True))
    assert claims.declared(module) == []


# Of a test's own, which no constant of the code states.
THRESHOLDS = ("within 2 standard errors",)


def counted(text: str) -> list[str]:
    """Return what a test's text counts, or takes from a constant of the code; a threshold of its own it may state."""
    found = bare_numbers(text, THRESHOLDS)
    return [each for each in found if re.search("[a-z]", each)] + re.findall(r"\b\d[\d.]*e-?\d+", text)


def typed(source: str) -> list[str]:
    """Return what is typed, outside braces, for the test of each claim that a module declares."""
    calls = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call))
    declared = (call for call in calls if getattr(call.func, "id", "") == "claim")
    return [
        " ".join(node.value for node in ast.walk(call.args[3]) if isinstance(getattr(node, "value", None), str))
        for call in declared
    ]


def test_no_text_of_a_test_types_a_count_or_a_constant():
    texts = {path: typed(path.read_text(encoding="utf-8")) for path in EXPERIMENTS.rglob("claims.py")}
    assert sum(map(len, texts.values())) > 50
    assert {path: counted(text) for path, of in texts.items() for text in of if counted(text)} == {}
    faulty = '@claim("X1", "ours", "s", f"above {LIMIT:.2f} (one-sided 3e-5 over 16 comparisons)")\ndef f(): ...'
    assert counted(*typed(faulty)) == ["16 comparisons", "3e-5"]
