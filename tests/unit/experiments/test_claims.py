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


CONSTRUCTORS = {"Why": ["text"], "from_checks": ["id", "place", "statement", "test"]}
CONSTRUCTORS["Claim"] = CONSTRUCTORS["from_checks"]


def typed(source: str, parameter: str) -> list[str]:
    """Return what is typed, outside braces, for a parameter of `Why`, a claim, or a function of the same file."""
    tree = ast.parse(source)
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    known = CONSTRUCTORS | {function.name: [arg.arg for arg in function.args.args] for function in functions}
    found = []
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        names = known.get(getattr(call.func, "id", ""), [])
        given = dict(zip(names, call.args, strict=False)) | {keyword.arg: keyword.value for keyword in call.keywords}
        if parameter in names and parameter in given:
            parts = [node.value for node in ast.walk(given[parameter]) if isinstance(node, ast.Constant)]
            # Not the formats of what stands in braces.
            texts = [part for part in parts if isinstance(part, str) and not re.fullmatch(r"[+,.\d]*[a-z%]", part)]
            found.append(" ".join(texts))
    return found


def sources() -> dict[str, str]:
    """Return the text of every module of claims, by its name."""
    root = ROOT / "src/privpost/claims"
    return {str(path.relative_to(root)): path.read_text(encoding="utf-8") for path in sorted(root.rglob("*.py"))}


# Settings of the tests, which nobody measured.
SETTINGS = ("5 % of the cells", "n = 100")


def test_no_explanation_types_a_measured_number():
    """What stands outside the braces of an explanation has no decimal and no number with a unit."""
    texts = [(file, text) for file, source in sources().items() for text in typed(source, "text")]
    assert len(texts) > 20
    for file, text in texts:
        assert bare_numbers(text, SETTINGS) == [], (file, text)


def counted(text: str) -> list[str]:
    """Return what a test's text counts, or takes from a constant of the code; a threshold of its own it may state."""
    return [each for each in bare_numbers(text) if re.search("[a-z]", each)] + re.findall(r"\b\d[\d.]*e-?\d+", text)


def test_no_text_of_a_test_types_a_count_or_a_constant():
    texts = [(file, text) for file, source in sources().items() for text in typed(source, "test")]
    assert len(texts) > 50
    for file, text in texts:
        assert counted(text) == [], (file, text)


def test_a_typed_count_is_found():
    source = """
def score(id, test): return from_checks(id, "ours", "s", test, {}, {})
score("X1", f"above {LIMIT:.2f} standard errors (one-sided 3e-5 over 16 comparisons)")
"""
    assert counted(" ".join(typed(source, "test"))) == ["16 comparisons", "3e-5"]
