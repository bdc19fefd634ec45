"""Why checks fail: reasons are bound to checks, filled from the claim's evidence, and each explains something."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typed_numbers import bare_numbers

from privpost.lab.claims import Claim
from privpost.report import reasons

ROOT = Path(__file__).resolve().parents[3]
TEXT = """\
# Why claims fail

## X1

See: docs/a.md#small

Checks: `ahead at n = 1*`; `*R-hat*`

{% if number["size " ~ star] < 5 %}Few records, {{ number["size " ~ star] | fixed(1) }}.{% endif %}

Checks: `a [small] R-hat`

Stuck chains: {{ number.share | percent }} of {{ check }}.

{% if passed["finite"] %}The rest is finite.{% endif %}
"""


@pytest.fixture
def known(tmp_path):
    (tmp_path / "a2016.md").write_text(TEXT, encoding="utf-8")
    return reasons.read("a2016", tmp_path)


def explained(known, *failed, **evidence):
    checks = {name: name not in failed for name in ("ahead at n = 10", "ahead at n = 12", "a [small] R-hat", "finite")}
    return reasons.explain(Claim("X1", "ours", "s", "t", "holds in part", checks, evidence), known["X1"])


def test_a_reason_explains_the_checks_that_fit_it_alone(known):
    first, second = known["X1"]
    assert first.see == second.see == "docs/a.md#small"
    assert explained(known) == ([], [], [first, second])
    assert explained(known, "finite") == ([], ["finite"], [first, second])
    texts, unexplained, idle = explained(known, "a [small] R-hat", share=0.25)
    assert (texts, unexplained, idle) == (
        ["Stuck chains: 25 % of a [small] R-hat. The rest is finite."],
        [],
        [first],
    )
    assert explained(known, "a [small] R-hat", "finite", share=0.25)[0] == ["Stuck chains: 25 % of a [small] R-hat."]


def test_a_text_is_told_for_each_check_with_its_own_numbers(known):
    small = {"size 0": 1.25, "size 2": 9.0}
    texts, unexplained, _ = explained(known, "ahead at n = 10", "ahead at n = 12", **small)
    assert (texts, unexplained) == (["Few records, 1.2."], ["ahead at n = 12"])
    # The tables do not give this number.
    assert explained(known, "ahead at n = 10")[1] == ["ahead at n = 10"]


@pytest.mark.parametrize("text", ["## X1\n\nWords.\n\nChecks: `a`\n\nText.\n", "## X1\n\nSee: docs/a.md\n"])
def test_a_reason_without_checks_is_refused(tmp_path, text):
    (tmp_path / "a2016.md").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=r"a2016\.md: X1: .*a reason begins with 'Checks:"):
        reasons.read("a2016", tmp_path)


PAPERS = [path.stem for path in sorted((ROOT / reasons.FOLDER).glob("*.md")) if "\n## " in path.read_text("utf-8")]
# Settings of the studies and levels of the tests, which nobody measured.
SETTINGS = (
    "5 % limit",
    "1 % of the cells",
    "5 % to",
    "n = 100",
    "epsilon = 6.81",
    "epsilon = 2.15",
    "epsilon = 0.1",
    "epsilon=0.01",
    "Beta(0.5, 0.5)",
)


@pytest.mark.parametrize("paper", PAPERS)
def test_no_reason_types_a_measured_number(paper):
    text = (ROOT / reasons.FOLDER / f"{paper}.md").read_text("utf-8")
    prose = re.sub(r"^(?:Checks|See): .*$", " ", text, flags=re.MULTILINE)
    assert bare_numbers(prose, SETTINGS) == []
