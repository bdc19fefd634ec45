"""Documents are what their templates and the published tables give, and quote every measured number from there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from typed_numbers import bare_numbers

from privpost.lab import grid
from privpost.release import models
from privpost.report import documents, scorecard
from privpost.report.documents import audit
from privpost.report.quotes import Quotes

ROOT = Path(__file__).resolve().parents[2]
NAMES = sorted(path.name.removesuffix(documents.ENDING) for path in (ROOT / documents.TEMPLATES).glob("*.md.in"))
PAPERS = ("foulds2016", "zhang2016", "geumlek2017", "bernstein2018")
# Printed from tables, settings and code, whatever their length.
PRINTED = {"README", "dictionary", "gallery", "moved", "one_study", "scorecard", "why"}


@pytest.fixture(scope="module")
def published() -> documents.Published:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        studies = {study.name: study for study in grid.load_studies()}
        yield documents.Published(studies, Path("."))


@pytest.fixture(scope="module")
def texts(published) -> dict[str, str]:
    return documents.render(published)


@pytest.mark.parametrize("name", NAMES)
def test_a_document_is_its_rendering(texts, name):
    assert (ROOT / documents.file(name)).read_text() == texts[name], "render it anew: make publish"


@pytest.mark.parametrize(
    "path",
    [*(ROOT / "docs/templates").glob("*.in"), *(ROOT / "docs/templates/reasons").glob("*.md")],
    ids=lambda path: path.name,
)
def test_no_measured_number_is_typed(path):
    assert bare_numbers(path.read_text()) == []


def test_no_document_is_without_a_template():
    listed = subprocess.run(["git", "ls-files", "docs/*.md"], cwd=ROOT, capture_output=True, text=True, check=False)
    tracked = {Path(name).stem for name in listed.stdout.split() if Path(name).parent == Path("docs")}
    assert tracked - set(NAMES) <= {"threats"}


def test_links_lead_to_files_and_headings(texts):
    anchors = {name: set(map(documents.anchor, documents._HEADING.findall(text))) for name, text in texts.items()}
    broken = []
    for name, text in texts.items():
        folder = (ROOT / documents.file(name)).parent
        links = {*re.findall(r"\]\(([^)\s]+)\)", text), *re.findall(r'(?:src|href)="([^"]+)"', text)}
        for link in links:
            target, _, heading = link.partition("#")
            if target.startswith("http"):
                continue
            other = Path(target).stem if target else name
            found = not target or (folder / target).exists() or other in texts
            if not found or (heading and heading not in anchors.get(other, {heading})):
                broken.append(f"{name}: {link}")
    assert sorted(broken) == []


def test_every_derivation_that_a_reason_names_is_there(texts, published):
    """`See:` of the reasons leads to a heading, and every claim that fails has one."""
    anchors = {name: set(map(documents.anchor, documents._HEADING.findall(text))) for name, text in texts.items()}
    sees = {see for path in (ROOT / "docs/templates/reasons").glob("*.md") for see in _sees(path)}
    assert len(sees) > 5
    assert [see for see in sorted(sees) if see.split("#")[1] not in anchors.get(Path(see.split("#")[0]).stem, ())] == []
    card = scorecard.read(published.results / "scorecard.csv")
    headings = "\n".join(texts.values())
    assert [row.id for row in documents.claims.failed(card).itertuples() if f"\n### {row.id}: " not in headings] == []


def _sees(path: Path) -> list[str]:
    return re.findall(r"^See: (\S+)$", path.read_text(), re.MULTILINE)


@pytest.mark.parametrize("name", NAMES)
def test_a_column_that_changes_changes_each_document_that_quotes_it(published, name, monkeypatch):
    """Each quoted column is altered by itself; each quoted number of the scorecard too."""
    quotes = Quotes(published.results)
    quotes.number("G1/verdict")
    # What no quotation changes is made once.
    own = documents.names(published, quotes, "" if name == "README" else "../")
    made = {"_template": documents._template(name), "_extra_names": documents._extra_names(published, name)}
    for function, value in made.items():
        monkeypatch.setattr(documents, function, lambda *_, value=value: value)
    monkeypatch.setattr(documents, "names", lambda _, quotes, __: {**own, **quotes.names()})
    quotes.asked.clear()
    before = documents.text(published, name, quotes, place=lambda id: "")
    for source, column in list(quotes.asked):
        altered = Quotes(published.results)
        altered.tables, altered._numbers = dict(quotes.tables), dict(quotes._numbers)
        if source == "scorecard":
            value = altered._numbers[column]
            # So far off that it rounds to another number.
            altered._numbers[column] = 2.5 * value + 11 if isinstance(value, int | float) else f"{value}, altered"
        else:
            table = quotes.tables[source]
            kept = ~table[column] if table[column].dtype == bool else None
            numbers = pd.to_numeric(table[column], errors="coerce") * 1.37 + 1 if kept is None else kept
            altered.tables[source] = table.assign(**{column: numbers})
        try:
            assert documents.text(published, name, altered, place=lambda id: "") != before, (source, column)
        except ValueError:
            # A row that is chosen by the column is not there any more.
            continue


@pytest.mark.parametrize("paper", PAPERS)
def test_a_papers_page_is_a_page_with_its_figures(texts, paper):
    text = texts[paper]
    captions = re.findall(r"^\*[A-Z][^*\n]*\*.*$", text, re.MULTILINE)
    assert len(text.split()) - sum(len(caption.split()) for caption in captions) <= 500
    assert text.count("](../figures/") >= 2
    assert text.index("## What we find") < 1200


def test_the_documents_are_short(texts):
    assert len(texts["running"].encode()) <= 8 * 1024
    assert len(texts["README"].encode()) <= 8 * 1024
    sizes = {name: len(text.encode()) for name, text in texts.items() if name not in PRINTED}
    assert sum(sizes.values()) <= 126 * 1000, sizes
    assert max(sizes[paper] for paper in PAPERS) <= 6 * 1000
    details = {name: size for name, size in sizes.items() if name.startswith(PAPERS) and name not in PAPERS}
    assert max(details.values()) <= 12 * 1000, details


def test_no_heading_has_a_formula(texts):
    headings = [
        heading
        for name, text in texts.items()
        if name not in PRINTED
        for heading in documents._HEADING.findall(re.sub(r"```.*?```", "", text, flags=re.DOTALL))
    ]
    assert [heading for heading in headings if re.search(r"[=≤≥√εδλσ∝`_^]", heading)] == []


def test_no_table_stands_in_two_documents(texts):
    rows: dict[str, set[str]] = {}
    for name in set(texts) - {"gallery", "dictionary"}:
        for table in re.findall(r"(?:^\|.*\|\n){4,}", texts[name], re.MULTILINE):
            rows.setdefault(table, set()).add(name)
    assert [names for names in rows.values() if len(names) > 1] == []


@pytest.mark.parametrize("name", ["README", "library"])
def test_the_python_that_is_shown_runs(texts, name, tmp_path):
    code = "".join(re.findall(r"```python\n(.*?)```", texts[name], re.DOTALL))
    assert name != "README" or len([line for line in code.splitlines() if line]) <= 9
    command = [sys.executable, "-c", code + "assert draws.shape == (5000,)\n"]
    subprocess.run(command, cwd=tmp_path, env={"PYTHONPATH": str(ROOT / "src")}, check=True)


def test_the_decision_table_follows_the_paired_differences(published):
    """Falsified differences change who is near the best; smaller is better, and only what is certain counts."""
    own = published.tables(audit.LOGISTIC)
    pairs = own["logistic_pairs"]
    signs = (pairs["second"] == "diffused") * 1.0 - (pairs["first"] == "diffused")
    falsified = audit.logistic_table({**own, "logistic_pairs": pairs.assign(difference_mean=signs * 1e6)})
    assert falsified != audit.logistic_table(own)
    assert {line.split("|")[3].strip() for line in falsified.splitlines()[2:]} == {"Diffused"}
    same = pairs.assign(difference_mean=0.0, difference_sem=0.0)
    for lie, others in ((same, True), (same.assign(difference_sem=0.006), False)):
        table = audit.logistic_table({**own, "logistic_pairs": lie})
        assert {"Diffused" in line and "OPS" in line for line in table.splitlines()[2:]} == {others}


def test_the_document_names_every_model_and_setting(texts):
    for kind in models.KINDS.values():
        for key in (kind.name, *kind.column.fields, *kind.prior.fields):
            assert f"`{key}`" in texts["release"]
