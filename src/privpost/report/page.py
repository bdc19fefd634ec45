"""The report: one HTML file with everything inside, made from the tables, figures and records of a results folder."""

from __future__ import annotations

import base64
import csv
import datetime
import html
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from privpost.pipeline import ledgers, provenance, store
from privpost.pipeline.grid import Cell, Study
from privpost.pipeline.plan import Plan
from privpost.report import build, describe, numbers, scorecard, templates

TEMPLATES = Path("docs/templates")
ROWS = 500
ABSENT = "not in this checkout"


def write(plan: Plan) -> Path:
    """Write the report on a plan's studies; returns its path (`build.report_file`)."""
    path = build.report_file(plan.root)
    store.write_text(path, render(plan))
    return path


def render(plan: Plan) -> str:
    """Return the report on a plan's studies as one HTML text.

    What a checkout lacks (records, ledgers, figures, tables) is said where it would stand. Raises FileNotFoundError,
    naming the command, when there is no scorecard.
    """
    values = {**numbers.read(plan.root), **_blocks(plan, plan.root, plan.figure_root)}
    template = TEMPLATES / "report.html.in"
    return templates.render(template.read_text(encoding="utf-8"), values, str(template))


def _blocks(plan: Plan, root: Path, folder: Path) -> dict[str, str]:
    card = scorecard.read(root / "scorecard.csv")
    papers = list(dict.fromkeys(sorted((study.paper for study in plan.studies.values()), key=scorecard.paper_order)))
    tables = _Tables()
    blocks = {
        "page/css": (TEMPLATES / "report.css").read_text(encoding="utf-8"),
        "page/js": (TEMPLATES / "report.js").read_text(encoding="utf-8"),
        "page/navigation": _navigation(papers),
        "page/tiles": _tiles(card),
        "page/tally": _tally(papers, card),
        "page/failing": _failing(card),
        "page/scorecard": _scorecard(card) + _overview_figure("scorecard", folder),
        "page/papers": "\n".join(_paper(paper, plan, card, tables) for paper in papers),
        "page/times": _times(root, folder, tables),
        "page/data": _data(cell for cells in plan.cells.values() for cell in cells),
        "page/footer": _footer(),
        "page/neighbours": describe.all_neighbours(),
    }
    return {**blocks, "page/tables": tables.scripts()}


def _text(value: Any) -> str:
    return html.escape(str(value))


def _slug(verdict: str) -> str:
    return verdict.replace(" ", "-")


def _verdict(verdict: str) -> str:
    return f'<span class="verdict {_slug(verdict)}">{_text(verdict)}</span>'


def _list(items: Iterable[str], kind: str = "") -> str:
    return f'<ul class="{kind}">' + "".join(f"<li>{item}</li>" for item in items) + "</ul>"


def _table(
    columns: Sequence[str], rows: Iterable[Sequence[str]], kind: str = "", wide: Sequence[str] = (), box: str = "box"
) -> str:
    """Return an HTML table of cells that are HTML already, in a box; `wide` columns keep a minimal width."""
    head = "".join(f'<th scope="col">{_text(column)}</th>' for column in columns)
    marks = [' class="wide"' if column in wide else "" for column in columns]
    body = "".join(
        "<tr>" + "".join(f"<td{mark}>{cell}</td>" for mark, cell in zip(marks, row, strict=True)) + "</tr>"
        for row in rows
    )
    table = f'<table class="{kind}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
    return f'<div class="{box}" tabindex="0">{table}</div>'


class _Tables:
    """The data of all tables of the page, kept in one place each and shown when their box is opened."""

    def __init__(self):
        self._scripts: list[str] = []

    def box(self, path: Path) -> str:
        """Return the closed box of a CSV file; at most `ROWS` of its rows are kept."""
        if not path.is_file():
            return f"<p><code>{_text(path)}</code>: {ABSENT}.</p>"
        with path.open(newline="", encoding="utf-8") as handle:
            columns, *rows = csv.reader(handle)
        name = f"table-{len(self._scripts)}"
        data = {"columns": columns, "rows": [[_short(cell) for cell in row] for row in rows[:ROWS]]}
        # A closing tag inside a script would end it.
        text = json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("</", "<\\/")
        self._scripts.append(f'<script type="application/json" id="{name}">{text}</script>')
        size = f"{len(rows)} rows" if len(rows) <= ROWS else f"the first {ROWS} of {len(rows)} rows"
        return (
            f'<details class="data" data-source="{name}"><summary><code>{_text(path)}</code>, {size}</summary>'
            '<div class="box tall" tabindex="0"></div></details>'
        )

    def scripts(self) -> str:
        return "\n".join(self._scripts)


def _short(cell: str) -> str:
    try:
        number = float(cell)
    except ValueError:
        return cell
    return cell if len(cell) < 9 else f"{number:.6g}"


# Scorecard


def _tiles(card) -> str:
    counts = scorecard.counts(card)
    return "".join(
        f"<li><b>{count}</b>{_verdict(verdict)}</li>"
        for verdict, count in counts.items()
        if count or verdict == "holds"
    )


def _tally(papers: Sequence[str], card) -> str:
    """Return how many claims of each paper have each verdict, as a table that leads to the papers' sections."""
    counts = {paper: scorecard.counts(card[card.paper == paper]) for paper in papers}
    verdicts = list(next(iter(counts.values())))
    head = "".join(f'<th scope="col" class="count">{_verdict(verdict)}</th>' for verdict in verdicts)
    titles = {paper: scorecard.PAPERS.get(paper, "").split(" (20")[0] for paper in papers}
    rows = "".join(
        f'<tr><td><a href="#{paper}">{paper}</a> <span class="quiet">{_text(titles[paper])}'
        "</span></td>" + "".join(f'<td class="count">{found[verdict] or ""}</td>' for verdict in verdicts) + "</tr>"
        for paper, found in counts.items()
    )
    head = f'<thead><tr><th scope="col">Claims of</th>{head}</tr></thead>'
    return f'<div class="box" tabindex="0"><table class="tally">{head}<tbody>{rows}</tbody></table></div>'


def _failing(card) -> str:
    """Return, by verdict, the claims that do not hold as stated, each with the reason; the worst are open."""
    parts = []
    for verdict in scorecard.SEVERITY[:3]:
        items = [
            f'<a href="#{row.id}">{row.id}</a> {_text(row.statement)}{" †" if row.stand_in == "yes" else ""} '
            f'<span class="quiet">{_text(scorecard.shortened(scorecard.explanation(row)))} {_sources(row.see)}</span>'
            for row in card[card.verdict == verdict].itertuples()
        ]
        if items:
            opened = " open" if not parts else ""
            parts.append(
                f'<details class="group"{opened}><summary>{_verdict(verdict)}: {len(items)}</summary>'
                f"{_list(items, 'failing')}</details>"
            )
    return "<h3>What does not reproduce, and why</h3>" + "".join(parts) if parts else ""


def _sources(see: str) -> str:
    """Return where an explanation is derived: file and heading of the documentation."""
    places = [describe.section(place) for place in see.split()]
    return "; ".join(f"<code>{_text(name)}</code>, “{_text(title)}”" for name, title in places)


def _scorecard(card) -> str:
    papers = "".join(f'<option value="{paper}">{paper}</option>' for paper in card.paper.unique())
    boxes = "".join(
        f'<label><input type="checkbox" value="{_slug(verdict)}" checked> {_text(verdict)}</label>'
        for verdict in scorecard.SEVERITY
        if (card.verdict == verdict).any()
    )
    filters = f"""<form class="filters" onsubmit="return false">
<label><span class="name">Paper</span><select id="filter-paper"><option value="">all</option>{papers}</select></label>
<fieldset id="filter-verdict"><legend>Verdict</legend>{boxes}</fieldset>
<label><span class="name">Data</span><select id="filter-data"><option value="">all</option>
<option value="no">not a stand-in</option><option value="yes">stand-in</option></select></label>
<label><span class="name">Words</span><input type="search" id="filter-text" size="14"></label>
<output id="filter-count" aria-live="polite"></output></form>"""
    rows = "".join(_claim(row) for row in card.itertuples())
    head = "".join(f'<th scope="col">{name}</th>' for name in ("Claim", "What it says", "Verdict", "Tested on"))
    return (
        f'{filters}<div class="box"><table id="claims" class="sortable"><thead><tr>{head}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )


def _claim(row) -> str:
    dagger = " †" if row.stand_in == "yes" else ""
    study = _text(row.study)
    link = f'<a href="#{study}">{study}</a>' if not row.study.endswith("/claims") else f"all studies of {row.paper}"
    if not row.id:
        cells = ["", f"{link}: {_text(row.reason)}", _verdict(row.verdict), ""]
    else:
        reason = ""
        if row.reason:
            see = f" Derived in {_sources(row.see)}." if row.see else ""
            reason = f"<p><b>Why:</b> {_text(scorecard.explanation(row))}{see}</p>"
        if failed := json.loads(row.failed or "[]"):
            reason += f"<p><b>{_text(scorecard.tally(row))}:</b></p>{_list(map(_text, failed), 'failed')}"
        numbers_table = _evidence(json.loads(row.evidence))
        cells = [
            f'<b>{_text(row.id)}</b><br><span class="quiet">{_text(row.paper)}<br>{_text(row.place)}</span>',
            f"{_text(row.statement)}{dagger}<details><summary>How it was tested, and the numbers that decided</summary>"
            f"{reason}<p><b>Test:</b> {_text(row.test)}.</p><p>Study: {link}; variant: {_text(row.variant)}.</p>"
            f"{numbers_table}</details>",
            _verdict(row.verdict),
            f"{'stand-in data †' if dagger else 'as in the paper'}<br>"
            f'<span class="quiet">variant {_text(row.variant)}</span>',
        ]
    place = scorecard.SEVERITY.index(row.verdict)
    order = ["", "", f' data-sort="{place}"', ""]
    kinds = ["", ' class="wide"', "", ""]
    body = "".join(f"<td{k}{o}>{cell}</td>" for k, o, cell in zip(kinds, order, cells, strict=True))
    return (
        f'<tr id="{_text(row.id or row.study + "-unscored")}" data-paper="{row.paper}" '
        f'data-verdict="{_slug(row.verdict)}" data-stand-in="{row.stand_in or "no"}">{body}</tr>'
    )


def _evidence(evidence: Mapping[str, Any]) -> str:
    rows = [(_text(name), _text(_number(value))) for name, value in numbers_of(evidence)]
    return _table(("Evidence", "Value"), rows, "evidence", wide=("Evidence",), box="box tall") if rows else ""


def numbers_of(evidence: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    """Return evidence as (name, value) pairs; nested names are joined by a colon, lists by commas."""
    pairs = []
    for name, value in evidence.items():
        label = f"{prefix}: {name}" if prefix else str(name)
        if isinstance(value, Mapping):
            pairs += numbers_of(value, label)
        elif isinstance(value, list):
            pairs.append((label, ", ".join(str(_number(item)) for item in value)))
        else:
            pairs.append((label, value))
    return pairs


def _number(value: Any) -> Any:
    return f"{value:.4g}" if isinstance(value, float) else value


# Studies


def _navigation(papers: Sequence[str]) -> str:
    sections = [("summary", "Summary"), ("scorecard", "Scorecard"), *((paper, paper) for paper in papers)]
    sections += [("time", "Time"), ("data", "Data")]
    return "".join(f'<li><a href="#{anchor}">{_text(name)}</a></li>' for anchor, name in sections)


def _paper(paper: str, plan: Plan, card, tables: _Tables) -> str:
    studies = [study for study in plan.studies.values() if study.paper == paper]
    parts = "\n".join(_study(study, plan.cells[study.name], card, tables) for study in studies)
    counts = scorecard.counts(card[card.paper == paper])
    verdicts = ", ".join(f"{count} {_verdict(verdict)}" for verdict, count in counts.items() if count)
    title = f"<p>{_text(scorecard.PAPERS[paper])}.</p>" if paper in scorecard.PAPERS else ""
    return (
        f'<section id="{paper}"><h2>{paper}</h2>{title}<p>Claims: {verdicts or "none scored"}.</p>\n{parts}</section>'
    )


def _study(study: Study, cells: Sequence[Cell], card, tables: _Tables) -> str:
    name = _text(study.name)
    data = describe.data_notes(cells)
    claims = card[(card.study == study.name) & (card.id != "")]
    scored = ", ".join(
        f'<span class="scored"><a href="#{row.id}">{row.id}</a> {_verdict(row.verdict)}</span>'
        for row in claims.itertuples()
    )
    figures = "".join(_figure(study, stem) for stem in study.figures)
    boxes = "".join(tables.box(study.table_path(table)) for table in study.tables)
    return f"""<article id="{name}"><h3>{_text(study.config["title"])} <span class="quiet">({name})</span></h3>
<p><b>Is it so?</b> “{_text(study.config["claim"])}” {f"Scored: {scored}." if scored else ""}</p>
{figures}
<h4>Validity</h4>{_validity(study, data)}
<h4>Data behind the figures</h4>{boxes}
<h4>Privacy: notion and ledger</h4>{_ledger(study)}
<details><summary>Settings and where they come from</summary>{_settings(study)}</details>
<h4>Rebuild, time, provenance</h4>
<pre tabindex="0">{_text(_command(study))}
make reproduce STUDY={name}</pre>
<p>{_time(study)}</p>
<details><summary>Provenance</summary>{_provenance(study, cells, data)}</details>
</article>"""


def _command(study: Study) -> str:
    return Path(study.file).read_text(encoding="utf-8").splitlines()[1].lstrip("# ")


def _validity(study: Study, data: list[dict[str, str]]) -> str:
    from privpost.pipeline.tables import read_tables

    try:
        notes = describe.validity_notes(study, read_tables(study), data)
    except FileNotFoundError as error:
        notes = [str(error)]
    return _list(map(_text, notes), "notes")


def _figure(study: Study, stem: str) -> str:
    folder = Path(study.config["figure_root"]) / study.paper
    return image(folder / stem, describe.figure_caption(study, stem))


def _overview_figure(name: str, folder: Path) -> str:
    return image(folder / build.FIGURES[name][1], describe.caption(f"privpost.figures.{name}"))


def image(stem: Path, caption: describe.Caption) -> str:
    """Return a figure that enlarges on a click: its SVG inline, or its PNG where there is no SVG."""
    svg, png = (stem.with_name(f"{stem.name}.{ending}") for ending in ("svg", "png"))
    if svg.is_file():
        path, kind = svg, "svg+xml"
    elif png.is_file():
        path, kind = png, "png"
    else:
        return f"<p><code>{_text(svg)}</code>: {ABSENT}.</p>"
    source = base64.b64encode(path.read_bytes()).decode()
    return (
        f'<figure><button type="button" aria-label="Enlarge: {_text(caption.title)}">'
        f'<img decoding="async" src="data:image/{kind};base64,{source}" alt="{_text(caption.alternative)}" '
        f'data-title="{_text(caption.title)}"></button>'
        f"<figcaption><b>{_text(caption.title)}</b> {_text(caption.text)} <code>{_text(path)}</code></figcaption>"
        "</figure>"
    )


def _ledger(study: Study) -> str:
    accounts = ledgers.read(study)
    if accounts is None:
        return f"<p>Ledger: {ABSENT} (<code>{_text(ledgers.path_of(study))}</code>).</p>"
    if not accounts:
        return "<p>Nothing is released: the study evaluates formulas or public quantities, so no account is opened.</p>"
    notions = sorted({describe.NOTIONS[row["notion"]] for row in accounts})
    rows = [
        (
            _text(row["kind"]),
            _text(describe.NOTIONS[row["notion"]]),
            _text("" if row["order"] is None else f"{row['order']:g}" if row["order"] != "inf" else "∞"),
            str(row["accounts"]),
            _range(row["releases"]),
            _range(row["epsilon"]) + (f", δ {_range(row['delta'])}" if row["delta"] else ""),
            _range(row["budget_epsilon"]) + (f", δ {_range(row['budget_delta'])}" if row["budget_delta"] else ""),
            f"{100 * row['largest_share_spent']:.4g} %",
        )
        for row in accounts
    ]
    columns = ("Account", "Notion", "Order λ", "Accounts", "Releases", "ε per release", "Budget ε", "Most spent")
    return (
        f"<p>Notion: {_text('; '.join(notions))}. Neighbours: {_text(describe.neighbours(study))}. Every release of "
        "one run of the experiment is entered; a charge above the budget stops the job.</p>" + _table(columns, rows)
    )


def _range(pair: list | None) -> str:
    if pair is None:
        return ""
    low, high = ("∞" if value == "inf" else f"{value:.4g}" for value in pair)
    return low if low == high else f"{low} to {high}"


def _settings(study: Study) -> str:
    rows = [
        (
            _text(s.section),
            f"<code>{_text(s.name)}</code>",
            f"<code>{_text(s.value)}</code>",
            _text(s.source),
            _text(s.note),
        )
        for s in describe.settings(study)
    ]
    columns = ("Part", "Setting", "Value", "Source", "Note")
    return _table(columns, rows, wide=("Value", "Note")) + f"<p>From <code>{_text(study.file)}</code>.</p>"


def _time(study: Study) -> str:
    times = numbers.measured([study])
    if not len(times):
        return f"Run times: {ABSENT}."
    row = times.iloc[0]
    return (
        f"Took {templates.duration(row.seconds)} in {row.cells} cells (one after another; the longest "
        f"{templates.duration(row.longest_cell_seconds)}), at most {row.peak_mib:.0f} MiB each."
    )


def _records(cells: Sequence[Cell]) -> tuple[list[dict[str, Any]], int]:
    """Return the records of the cells that are in the store, and the number of damaged ones."""
    records, damaged = [], 0
    for cell in cells:
        if cell.path.is_file():
            try:
                records.append(store.read(cell.path, cell.digest).record)
            except store.CorruptCell:
                damaged += 1
    return records, damaged


def _provenance(study: Study, cells: Sequence[Cell], data: list[dict[str, str]]) -> str:
    records, damaged = _records(cells)
    kept = sorted({json.dumps(record["versions"], sort_keys=True) for record in records})
    versions = "; ".join(", ".join(f"{name} {v}" for name, v in json.loads(text).items()) for text in kept)
    digests = " ".join(cell.digest for cell in cells)
    rows = [
        ("Module", f"<code>{_text(study.config['target'])}</code>"),
        ("Code now", f"<code>{provenance.source_digest(study.config['target'])}</code>"),
        ("Seed, revision", f"{cells[0].sizes['seed']}, {cells[0].sizes['rev']}"),
        ("Versions at computing", _text(versions) if versions else f"{ABSENT} (no cells; see requirements.lock)"),
        ("Cells in the store", f"{len(records)} of {len(cells)}" + (f", {damaged} damaged" if damaged else "")),
        ("Cells (digests of their settings)", f"<code>{digests}</code>"),
    ]
    for note in data:
        hashes = next(cell.data for cell in cells if cell.dataset == note["name"])["sha256"]
        text = ", ".join(f"{file} {digest[:16]}…" for file, digest in hashes.items())
        rows.append((f"Raw data {_text(note['name'])} (sha256)", f"<code>{_text(text)}</code>"))
    return _table(("What", "Which"), rows, wide=("Which",))


# Time and data


def _times(root: Path, folder: Path, tables: _Tables) -> str:
    import pandas as pd

    times = pd.read_csv(root / "timing/studies.csv")
    rows = [
        (
            f'<a href="#{_text(row.study)}">{_text(row.study)}</a>',
            str(row.cells),
            f"{row.seconds:.1f}",
            f"{row.longest_cell_seconds:.1f}",
            f"{row.peak_mib:.0f}",
        )
        for row in times.itertuples()
    ]
    columns = ("Study", "Cells", "Seconds in all", "Longest cell, seconds", "Peak memory, MiB")
    figures = "".join(_overview_figure(name, folder) for name in ("run_times", "timeline", "workflow"))
    return figures + _table(columns, rows, "sortable") + tables.box(root / "workflow.csv")


def _data(cells: Iterable[Cell]) -> str:
    rows = [
        (
            f"<b>{_text(note['title'])}</b>",
            _text(note["kind"]),
            _text(note["access"]),
            _text(note["licence"]),
            f"{_text(note['citation'])}<br><code>{_text(note['origin'])}</code>",
        )
        for note in describe.data_notes(cells)
    ]
    return _table(("Data set", "Role", "Access", "Licence", "Source"), rows, wide=("Source",))


def _footer() -> str:
    # A build with a fixed date gives the same bytes.
    moment = datetime.datetime.fromtimestamp(
        int(os.environ.get("SOURCE_DATE_EPOCH") or datetime.datetime.now().timestamp()), datetime.UTC
    )
    versions = ", ".join(f"{name} {version}" for name, version in provenance.versions().items())
    return f"Made on {moment:%d %B %Y} with {_text(versions)}. Rebuild this page: <code>make report</code>."
