"""Data that stand in for the paper's: their results count apart from the verdict, in both directions."""

from __future__ import annotations

from types import ModuleType

import pytest

from privpost.lab import claims
from privpost.lab.claims import about, check, untestable


def scored(*parts):
    module = ModuleType("made_up")

    def function():
        return iter(parts)

    function.__module__ = module.__name__
    module.function = claims.claim("X1", "section 1", "s", "t")(function)
    (found,) = claims.score(module, {})
    return found


def test_a_claim_on_stand_ins_alone_is_seen_or_not():
    for passed, expected in (((True, True), "seen"), ((True, False), "not seen"), ((False, False), "not seen")):
        found = scored(*about(stand_in=True), *(check(f"check {i}", value) for i, value in enumerate(passed)))
        assert (found.verdict, found.seen, found.stand_in) == (expected, expected, True)
        assert len(found.checks) == 2 and bool(found.reason) == (expected == "not seen")


@pytest.mark.parametrize("there", [True, False])
@pytest.mark.parametrize(("here", "verdict"), [(True, "holds"), (False, "does not hold")])
def test_a_stand_in_moves_no_verdict(here, verdict, there):
    found = scored(check("the paper's data", here), check("a stand-in", there, stand_in=True))
    assert (found.verdict, found.seen, found.stand_in) == (verdict, "seen" if there else "not seen", False)
    assert ("a stand-in" in found.reason) == (not there)
    assert ("a stand-in" in found.failed) == (not there)


def test_a_stand_in_without_checks_is_not_testable():
    found = scored(*about(stand_in=True), untestable("no chain has converged"))
    assert (found.verdict, found.seen, found.reason) == ("not testable", "", "no chain has converged")
