"""The report in a real browser: loads from disk, filters, sorts, enlarges, fits a phone, and suits screen readers."""

from __future__ import annotations

import html
import re
from pathlib import Path

import browser
import pytest

from privpost.drawing import figures as marked
from privpost.lab import grid
from privpost.report import audited, page, scorecard
from privpost.report import figures as overall

ROOT = Path(__file__).resolve().parents[2]
ESCAPE = "\ue00c"
WIDTHS = {"desktop": (1280, 1000, False), "phone": (390, 844, True)}
SIZE_LIMIT = 4_000_000

pytestmark = pytest.mark.skipif(bool(browser.missing()), reason=f"no browser: {browser.missing()}")


@pytest.fixture(scope="module")
def report(tmp_path_factory) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        path = tmp_path_factory.mktemp("report") / "report.html"
        page.write(grid.load_studies(), Path("."), path)
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


def shown(window) -> list[str]:
    return window.run(
        "return [...document.querySelectorAll('#claims > tbody > tr:not([hidden])')].map((row) => row.id)"
    )


def choose(window, field: str, value: str) -> None:
    script = "const field = document.getElementById(arguments[0]); field.value = arguments[1];"
    window.run(script + "field.dispatchEvent(new Event('input', {bubbles: true}))", field, value)


def test_it_is_one_file_that_asks_for_nothing(report):
    text = report.read_text()
    assert report.stat().st_size < SIZE_LIMIT
    sources = re.findall(r'<(?:img|script|link|iframe|source)\b[^>]*?(?:src|href)="([^"]{1,60})', text)
    assert sources
    assert [source for source in sources if not source.startswith("data:")] == []
    assert "@import" not in text
    assert "`" not in re.sub(r"<script>.*?</script>", "", text, flags=re.DOTALL)


def test_each_study_that_releases_shows_its_mechanisms_with_their_audit_rows(report, monkeypatch):
    monkeypatch.chdir(ROOT)
    text, found = report.read_text(), audited.by_study(grid.load_studies())
    boxes = text.split("<h4>Mechanisms behind the figures, audited</h4>")[1:]
    assert len(boxes) == sum(map(bool, found.values())) > 10
    for rows in filter(None, found.values()):
        cells = [f"<tr><td>{html.escape(row['mechanism'])}</td><td>{row['settings']}</td>" for row in rows]
        assert any(all(cell in box for cell in cells) for box in boxes)


def test_it_loads_without_network_or_error(window):
    window.wait("return document.readyState === 'complete'")
    inside = "(name) => !/^(data|blob):/.test(name)"
    entries = f"return performance.getEntriesByType('resource').map((e) => e.name).filter({inside})"
    assert window.run(entries) == []
    assert window.console() == []
    # Figures are unpacked one after another.
    images = "[...document.querySelectorAll('figure img')]"
    window.wait(f"return {images}.every((image) => image.src.startsWith('blob:') && image.complete)", 60)
    assert window.run(f"return {images}.filter((image) => !image.naturalWidth).map((image) => image.alt)") == []


def test_a_script_that_is_not_the_pages_own_does_not_run(window):
    window.run("""
        const script = document.createElement("script");
        script.textContent = "window.foreign = true";
        document.body.append(script);
    """)
    assert window.run("return window.foreign") is None
    assert any("Content Security Policy" in line for line in window.console())


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
    box = "details.data"
    window.run(f"document.querySelector('{box}').open = true")
    window.wait(f"return document.querySelectorAll('{box} tbody tr').length > 3", 20)
    column = window.run(f"""
        const cells = [...document.querySelector('{box} tbody tr').cells];
        return cells.findIndex((cell) => cell.textContent && !Number.isNaN(Number(cell.textContent))) + 1;
    """)
    read = (
        f"return [...document.querySelectorAll('{box} tbody td:nth-child({column})')].map((c) => Number(c.textContent))"
    )
    before = window.run(read)
    for order in (sorted(before), sorted(before, reverse=True)):
        window.click(f"{box} th:nth-child({column}) button")
        assert window.run(read) == order


def test_a_link_opens_what_it_leads_to_and_nothing_else(window, card):
    open_ones = "return [...document.querySelectorAll('details[open]')].filter((d) => !d.dataset.before).length"
    window.run("document.querySelectorAll('details').forEach((d) => { d.open = false; })")
    study = card.study[~card.study.str.endswith("/claims")].iloc[0]
    for target, opened in (("scorecard", 0), (study, 1), (card.id.iloc[0], 1)):
        window.run("document.querySelectorAll('details').forEach((d) => { d.open = false; }); location.hash = ''")
        window.run("location.hash = arguments[0]", target)
        window.wait("return document.readyState === 'complete'")
        window.wait(f"return ({open_ones.removeprefix('return ')}) === {opened}")
    window.run("location.hash = ''; document.querySelectorAll('details.study').forEach((d) => { d.open = true; })")


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
    shown = [ROOT / study.figure_path(stem) for study in grid.load_studies() for stem in study.figures]
    assert len(alternatives) == sum(map(Path.is_file, shown)) + len(marked.functions(overall))
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
    # A few at a time: the page is busy while it fills a table.
    window.run("document.querySelectorAll('details:not(.data)').forEach((details) => { details.open = true; })")
    for first in range(0, window.run("return document.querySelectorAll('details.data').length"), 6):
        few = f"[...document.querySelectorAll('details.data')].slice({first}, {first + 6})"
        window.run(f"{few}.forEach((details) => {{ details.open = true; }})")
        window.wait(f"return {few}.every((details) => details.querySelector('td'))", 60)
    assert window.run(fits, window.width)


def test_nothing_was_logged(window):
    # The last of the module: whatever the tests above did, the console stayed silent.
    assert window.console() == []
