"""The report in a real browser: loads from disk, filters, sorts, enlarges, fits a phone, and reads well aloud."""

from __future__ import annotations

import html
import re
from pathlib import Path

import browser
import pytest

from privpost.lab import grid
from privpost.lab.plan import Plan
from privpost.report import audited, build, page, scorecard

ROOT = Path(__file__).resolve().parents[2]
ESCAPE = "\ue00c"
WIDTHS = {"desktop": (1280, 1000, False), "phone": (390, 844, True)}
SIZE_LIMIT = 25_000_000

pytestmark = pytest.mark.skipif(bool(browser.missing()), reason=f"no browser: {browser.missing()}")


@pytest.fixture(scope="module")
def report(tmp_path_factory) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        path = tmp_path_factory.mktemp("report") / "report.html"
        path.write_text(page.render(Plan()))
    return path


@pytest.fixture(scope="module")
def card():
    return scorecard.read(ROOT / "results/scorecard.csv")


@pytest.fixture(scope="module", params=WIDTHS)
def window(request, report, tmp_path_factory):
    """The report, open in a window of the desktop's or a phone's size."""
    with browser.Browser(tmp_path_factory.mktemp("profile"), *WIDTHS[request.param]) as opened:
        opened.open(report.as_uri())
        yield opened


def studies():
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        return grid.load_studies()


def shown(window) -> list[str]:
    return window.run(
        "return [...document.querySelectorAll('#claims > tbody > tr:not([hidden])')].map((row) => row.id)"
    )


def choose(window, field: str, value: str) -> None:
    script = "const field = document.getElementById(arguments[0]); field.value = arguments[1];"
    window.run(script + "field.dispatchEvent(new Event('input', {bubbles: true}))", field, value)


def test_it_is_one_file(report):
    text = report.read_text()
    assert report.stat().st_size < SIZE_LIMIT
    # Nothing is loaded: every source is inline.
    sources = re.findall(r'<(?:img|script|link|iframe|source)\b[^>]*?(?:src|href)="([^"]{1,60})', text)
    assert sources
    assert [source for source in sources if not source.startswith("data:")] == []
    assert "@import" not in text


def test_each_study_that_releases_shows_its_mechanisms_with_their_audit_rows(report, monkeypatch):
    monkeypatch.chdir(ROOT)
    text, found = report.read_text(), audited.by_study(Plan())
    boxes = text.split("<h4>Mechanisms behind the figures, audited</h4>")[1:]
    assert len(boxes) == sum(map(bool, found.values())) > 10
    for rows in filter(None, found.values()):
        cells = [f"<tr><td>{html.escape(row['mechanism'])}</td><td>{row['settings']}</td>" for row in rows]
        assert any(all(cell in box for cell in cells) for box in boxes)


def test_it_loads_without_network_or_error(window):
    assert window.run("return document.readyState") == "complete"
    entries = "return performance.getEntriesByType('resource').map((e) => e.name).filter((n) => !n.startsWith('data:'))"
    assert window.run(entries) == []
    assert window.console() == []
    broken = "return [...document.images].filter((i) => i.closest('figure') && !i.naturalWidth).map((i) => i.alt)"
    window.wait("return [...document.images].every((image) => image.complete)")
    assert window.run(broken) == []


def test_filters_leave_the_rows_that_fit(window, card):
    everything = shown(window)
    assert len(everything) == len(card)
    paper = card.paper.iloc[-1]
    choose(window, "filter-paper", paper)
    assert shown(window) == [row.id or f"{row.study}-unscored" for row in card.itertuples() if row.paper == paper]
    choose(window, "filter-paper", "")
    verdict = card.verdict.iloc[0]
    window.click(f"#filter-verdict input[value='{verdict.replace(' ', '-')}']")
    assert len(shown(window)) == int((card.verdict != verdict).sum())
    assert window.run("return document.getElementById('filter-count').textContent").startswith(str(len(shown(window))))
    window.click(f"#filter-verdict input[value='{verdict.replace(' ', '-')}']")
    window.type("#filter-text", "no claim says this")
    assert shown(window) == []
    choose(window, "filter-text", "")
    choose(window, "filter-data", "yes")
    assert len(shown(window)) == int((card.stand_in == "yes").sum())
    choose(window, "filter-data", "")
    assert shown(window) == everything


def test_tables_sort_by_number_and_back(window):
    read = """
        const box = document.querySelector("#time details.data");
        box.open = true;
        const rows = () => [...box.querySelectorAll("tbody tr")].map((row) => Number(row.cells[3].textContent));
        return new Promise((done) => setTimeout(() => done(rows()), 200));
    """
    before = window.run(read)
    for order in (sorted(before), sorted(before, reverse=True)):
        window.click("#time details.data th:nth-child(4) button")
        assert window.run(read) == order


def test_a_figure_enlarges_and_closes_with_the_keyboard(window):
    closed = "return !document.getElementById('viewer').open"
    assert window.run(closed)
    window.click("#scorecard figure button")
    assert not window.run(closed)
    wide = "return document.querySelector('#viewer img').getBoundingClientRect().width > 0.8 * innerWidth"
    window.wait(wide)
    alternative = window.run("return document.querySelector('#viewer img').alt")
    assert "claim" in alternative
    window.press(ESCAPE)
    window.wait(closed)
    # Focus returns to the figure, so a keyboard user goes on from there.
    assert window.run("return document.activeElement === document.querySelector('#scorecard figure button')")


def test_every_figure_has_alternative_text_and_every_field_a_name(window):
    alternatives = window.run("return [...document.querySelectorAll('figure img')].map((image) => image.alt)")
    stems = [ROOT / "figures" / study.paper / stem for study in studies() for stem in study.figures]
    figures = sum(stem.with_name(f"{stem.name}.svg").is_file() for stem in stems)
    assert len(alternatives) == figures + len(build.FIGURES)
    assert all(len(text) > 30 for text in alternatives)
    assert len(set(alternatives)) == len(alternatives)
    nameless = """
        const fields = [...document.querySelectorAll("input, select, button")];
        return fields.filter((f) => !(f.labels?.length || f.ariaLabel || f.textContent.trim())).length;
    """
    assert window.run(nameless) == 0
    ids = window.run("return [...document.querySelectorAll('[id]')].map((element) => element.id)")
    assert len(ids) == len(set(ids))


def test_links_inside_the_page_lead_somewhere(window):
    dangling = (
        "return [...document.querySelectorAll('a[href^=\"#\"]')].map((a) => a.getAttribute('href').slice(1))"
        ".filter((id) => !document.getElementById(id))"
    )
    assert window.run(dangling) == []


def test_it_does_not_scroll_sideways(window):
    # After the others: a page with all tables open is slow.
    # Not innerWidth: a phone's browser widens that until everything fits.
    fits = "return document.documentElement.scrollWidth <= arguments[0]"
    assert window.run(fits, window.width)
    window.run("document.querySelectorAll('details').forEach((details) => { details.open = true; })")
    window.wait("return [...document.querySelectorAll('details.data .box')].every((box) => box.firstChild)", 90)
    assert window.run(fits, window.width)


def test_nothing_was_logged(window):
    # The last of the module: whatever the tests above did, the console stayed silent.
    assert window.console() == []
