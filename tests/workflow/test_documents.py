"""Documents are what their templates and the shipped tables give, and quote every measured number from there."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest
from typed_numbers import bare_numbers

from privpost.lab import tables
from privpost.lab.plan import Plan
from privpost.release import models
from privpost.report import documents, quotes, templates
from privpost.report.documents import release

ROOT = Path(__file__).resolve().parents[2]

NAMES = sorted(path.name.removesuffix(documents.ENDING) for path in (ROOT / documents.TEMPLATES).glob("*.md.in"))
WRITTEN = sorted(path for path in (ROOT / "docs").glob("*.md") if path.stem not in NAMES)


@pytest.fixture
def plan(monkeypatch) -> Plan:
    monkeypatch.chdir(ROOT)
    return Plan()


@pytest.fixture(scope="module")
def shipped() -> Plan:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        yield Plan()


@pytest.mark.parametrize("name", NAMES)
def test_a_document_is_its_rendering(shipped, name):
    text = documents.render(shipped, name)
    assert (ROOT / documents.file(name)).read_text() == text, "render it anew: privpost readme"


@pytest.mark.parametrize(
    "name", [f"templates/{name}{documents.ENDING}" for name in NAMES] + ["templates/report.html.in"]
)
def test_no_measured_number_is_typed(name):
    assert bare_numbers((ROOT / "docs" / name).read_text()) == []


@pytest.mark.parametrize("path", WRITTEN, ids=lambda path: path.name)
def test_a_document_without_a_template_quotes_no_number(path):
    assert bare_numbers(path.read_text()) == []


@pytest.mark.parametrize("name", [*NAMES, *(path.stem for path in WRITTEN)])
def test_links_lead_somewhere(name):
    path = ROOT / documents.file(name)
    text = path.read_text()
    links = {*re.findall(r"\]\(([^)#]+)\)", text), *re.findall(r'(?:src|href)="([^"#]+)"', text)}
    assert [link for link in sorted(links) if not link.startswith("http") and not (path.parent / link).exists()] == []


@pytest.mark.parametrize("name", NAMES)
def test_a_number_that_changes_changes_each_document_that_quotes_it(shipped, name):
    """Each quoted number, and each quoted column of a table, is altered by itself."""
    quoted = documents.quotes(shipped, name)
    document = (ROOT / documents.file(name)).read_text()
    for match in templates.PLACEHOLDER.finditer((ROOT / documents.sources()[name]).read_text()):
        if match[1].startswith(templates.CONSTANT):
            continue
        before = templates.render(match[0], quoted)
        assert before in document
        for altered in _altered(quoted, match[1]):
            assert templates.render(match[0], altered) != before, match[1]


def _altered(quoted: quotes.Quotes, name: str):
    """Yield what may be quoted, each time with another number that a quotation depends on altered."""
    if isinstance(quoted.get(name), int | float):
        # So far off that it rounds to another number of minutes.
        yield {name: 2.5 * quoted[name] + 11}
    cell, table = quotes.CELL.fullmatch(name), quotes.TABLE.fullmatch(name)
    source = quotes.SOURCE.search(name)
    for column in filter(None, cell.groups()[3:] if cell else table.groups()[6:] if table else ()):
        shipped = quoted.tables[source[1]]
        if shipped[column].dtype == bool:
            altered = ~shipped[column]
        else:
            # Some columns hold words too, such as `exact`.
            altered = pd.to_numeric(shipped[column], errors="coerce") * 1.37 + 1
        quoted.tables[source[1]] = shipped.assign(**{column: altered})
        yield quoted
        quoted.tables[source[1]] = shipped


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
