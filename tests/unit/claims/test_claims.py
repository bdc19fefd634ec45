"""Claims: verdicts from checks, and explanations that are bound to the checks that fail."""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from pathlib import Path

import pytest
from typed_numbers import bare_numbers

from privpost.evaluation.claims import Claim, Why, from_checks

ROOT = Path(__file__).resolve().parents[3]
SMALL = Why("Few records.", ("ahead at n = 10*",), "docs/a.md#small")
LARGE = Why("Stuck chains.", ("ahead at n = 1000", "*R-hat*"), "docs/a.md#large")


def claim(*failed, whys=(SMALL, LARGE)):
    checks = {name: name not in failed for name in ("ahead at n = 10", "ahead at n = 1000", "a small R-hat", "finite")}
    return from_checks("X1", "ours", "s", "t", checks, {}, whys=whys)


def test_a_claim_that_holds_has_no_explanation():
    assert (claim().verdict, claim().why, claim().see, claim().unexplained) == ("holds", "", "", ())
    with pytest.raises(ValueError, match="X1: why is 'so', but a claim that holds"):
        Claim("X1", "ours", "s", "t", "holds", why="so")


def test_only_what_fails_is_explained():
    found = claim("ahead at n = 1000", "a small R-hat")
    # `ahead at n = 10*` covers the larger n by its name too: whys are listed in their order.
    assert found.why == "Few records. Stuck chains."
    found = claim("a small R-hat")
    assert (found.why, found.see, found.unexplained) == ("Stuck chains.", "docs/a.md#large", ())


def test_another_failure_is_not_explained_by_it():
    found = claim("finite")
    assert (found.verdict, found.why, found.unexplained) == ("holds in part", "", ("finite",))
    found = claim("finite", "a small R-hat")
    assert (found.why, found.unexplained) == ("Stuck chains.", ("finite",))
    assert found.reason == "fails: a small R-hat; finite"


def test_a_cause_that_the_tables_do_not_show_is_left_out():
    found = claim("ahead at n = 10", whys=[replace(SMALL, when=False)])
    assert (found.why, found.unexplained) == ("", ("ahead at n = 10",))


def test_a_claim_without_a_check_is_not_testable_for_a_reason_or_refused():
    found = from_checks("X1", "ours", "s", "t", {}, {"n": 3}, whys=[SMALL], untestable="no rows")
    assert (found.verdict, found.reason, found.why, found.evidence) == ("not testable", "no rows", "", {"n": 3})
    with pytest.raises(ValueError, match="at least one check"):
        from_checks("X1", "ours", "s", "t", {}, {})


def _whys() -> list[tuple[str, ast.Call]]:
    """Return every call of `Why` in the claims, with the file it stands in."""
    found = []
    for path in sorted((ROOT / "src/privpost/claims").rglob("*.py")):
        calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
        found += [(path.name, call) for call in calls if getattr(call.func, "id", "") == "Why"]
    return found


# Settings of the tests, which nobody measured.
SETTINGS = ("5 % of the cells", "n = 100")


def test_no_explanation_types_a_measured_number():
    """What stands outside the braces of an explanation has no decimal and no number with a unit."""
    whys = _whys()
    assert len(whys) > 20
    for file, call in whys:
        parts = [node.value for node in ast.walk(call.args[0]) if isinstance(node, ast.Constant)]
        text = " ".join(part for part in parts if isinstance(part, str) and not re.fullmatch(r"[+.\d]*[a-z%]", part))
        assert bare_numbers(text, SETTINGS) == [], (file, text)
