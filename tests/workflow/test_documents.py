"""The documents that have a template are what it and the shipped tables give."""

from __future__ import annotations

import re

import pytest

from conftest import ROOT
from privpost.pipeline import tables
from privpost.pipeline.plan import Plan
from privpost.release import models
from privpost.report import documents, templates
from privpost.report.documents import release

NAMES = [path.name.removesuffix(documents.ENDING) for path in (ROOT / documents.TEMPLATES).glob("*.md.in")]
NAMES.remove("README")
# Parameters of a prior and words of a list are not measured.
NOT_MEASURED = ("Beta(6, 12)",)


@pytest.fixture
def plan(monkeypatch) -> Plan:
    monkeypatch.chdir(ROOT)
    return Plan()


@pytest.mark.parametrize("name", NAMES)
def test_a_document_is_its_rendering(plan, name):
    assert (ROOT / f"docs/{name}.md").read_text() == documents.render(plan, name), "render it anew: privpost readme"


@pytest.mark.parametrize("name", NAMES)
def test_no_measured_number_is_typed(name):
    text = (ROOT / documents.TEMPLATES / f"{name}{documents.ENDING}").read_text()
    assert templates.bare_numbers(text, NOT_MEASURED) == []


@pytest.mark.parametrize("name", NAMES)
def test_links_lead_somewhere(name):
    links = re.findall(r"\]\(([^)#]+)\)", (ROOT / f"docs/{name}.md").read_text())
    assert [link for link in links if not link.startswith("http") and not (ROOT / "docs" / link).exists()] == []


def test_the_decision_table_follows_the_paired_differences(plan):
    """Falsified differences change who is unbeaten; smaller is better, and only beyond the critical value."""
    bits = tables.read_tables(plan.studies[release.BITS])
    shipped = release.bits_table(bits)
    pairs = bits["beta_bernoulli_pairs"]
    signs = (pairs["second"] == "gaussian") * 1.0 - (pairs["first"] == "gaussian")
    ahead = pairs.assign(difference_mean=signs * 1e6)
    falsified = release.bits_table({**bits, "beta_bernoulli_pairs": ahead})
    assert falsified != shipped
    assert {line.split("|")[3].strip() for line in falsified.splitlines()[2:]} == {"**Gaussian**"}
    undecided = release.bits_table({**bits, "beta_bernoulli_pairs": pairs.assign(difference_mean=0.0)})
    assert all("Laplace" in line and "OPS" in line for line in undecided.splitlines()[2:])


def test_the_document_names_every_model_and_setting():
    text = (ROOT / "docs/release.md").read_text()
    for kind in models.KINDS.values():
        assert f"`{kind.name}`" in text
        for key in (*kind.column.fields, *kind.prior.fields):
            assert f"`{key}`" in text
