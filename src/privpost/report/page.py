"""The report: one HTML file with everything inside, made from the tables, figures and records of a results folder.

The markup stands in docs/templates/report.html.in, which escapes whatever it is given.
"""

import base64
import csv
import datetime
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from privpost.lab import ledgers, provenance, store, times
from privpost.lab.plan import Plan
from privpost.lab.study import Cell, Study
from privpost.lab.tables import read_tables
from privpost.report import audited, build, describe, numbers, scorecard, templates

TEMPLATES = Path("docs/templates")
ROWS = 500
KINDS = {".svg": "svg+xml", ".png": "png"}


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
    card = scorecard.read(plan.root / "scorecard.csv")
    names = sorted({study.paper for study in plan.studies.values()}, key=scorecard.paper_order)
    tables = Tables()
    return (
        environment()
        .get_template("report.html.in")
        .render(
            css=Markup((TEMPLATES / "report.css").read_text(encoding="utf-8")),
            js=Markup((TEMPLATES / "report.js").read_text(encoding="utf-8")),
            number=numbers.read(plan.root),
            counts=scorecard.counts(card),
            severity=[verdict for verdict in scorecard.SEVERITY if (card.verdict == verdict).any()],
            failing={v: rows for v in scorecard.SEVERITY[:3] if (rows := list(card[card.verdict == v].itertuples()))},
            claims=list(card.itertuples()),
            papers=[_paper(name, plan, card, tables) for name in names],
            overview={name: _overview_figure(name, plan.figure_root) for name in build.FIGURES},
            audited=audited.by_study(plan),
            times=numbers.measured(plan.studies.values(), times.latest).to_dict("records"),
            workflow=tables.add(plan.root / "workflow.csv"),
            data=describe.data_notes(cell for cells in plan.cells.values() for cell in cells),
            neighbours=describe.all_neighbours(),
            versions=provenance.versions(),
            moment=_moment(),
            tables=tables.kept,
        )
    )


def environment() -> jinja2.Environment:
    """Return what renders the template: everything is escaped, and an unknown name is an error."""
    found = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters |= {
        "slug": lambda verdict: verdict.replace(" ", "-"),
        "duration": templates.duration,
        "from_json": lambda text: json.loads(text or "[]"),
        "script": _script,
        "evidence": numbers_of,
        "span": _range,
        "places": lambda see: [describe.section(place) for place in see.split()],
        "why": scorecard.explanation,
        "tally": scorecard.tally,
        "shortened": scorecard.shortened,
        "notion": describe.NOTIONS.get,
        "rank": scorecard.SEVERITY.index,
    }
    return found


class Tables:
    """The data of all tables of the page, kept in one place each and shown when their box is opened."""

    def __init__(self):
        self.kept: list[dict[str, Any]] = []

    def add(self, path: Path) -> dict[str, Any]:
        """Keep at most `ROWS` rows of a CSV file; returns its name on the page, path and size, no size without it."""
        if not path.is_file():
            return {"path": path, "rows": None}
        with path.open(newline="", encoding="utf-8") as handle:
            columns, *rows = csv.reader(handle)
        data = {"columns": columns, "rows": [[_short(cell) for cell in row] for row in rows[:ROWS]]}
        self.kept.append({"name": f"table-{len(self.kept)}", "path": path, "rows": len(rows), "data": data})
        return self.kept[-1]


def _script(data: Any) -> Markup:
    """Return data as JSON that may stand inside a script: a closing tag or a comment there would end it or go on."""
    return Markup(json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c"))


def _short(cell: str) -> str:
    try:
        number = float(cell)
    except ValueError:
        return cell
    return cell if len(cell) < 9 else f"{number:.6g}"


def numbers_of(evidence: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    """Return evidence as (name, value) pairs; nested names are joined by a colon, lists by commas."""
    pairs = []
    for name, value in evidence.items():
        label = f"{prefix}: {name}" if prefix else str(name)
        if isinstance(value, Mapping):
            pairs += numbers_of(value, label)
        else:
            items = value if isinstance(value, list) else [value]
            pairs.append((label, ", ".join(f"{v:.4g}" if isinstance(v, float) else str(v) for v in items)))
    return pairs


def _paper(name: str, plan: Plan, card, tables: Tables) -> dict[str, Any]:
    studies = [study for study in plan.studies.values() if study.paper == name]
    return {
        "name": name,
        "title": scorecard.PAPERS.get(name, ""),
        "counts": scorecard.counts(card[card.paper == name]),
        "studies": [_study(study, plan.cells[study.name], card, tables) for study in studies],
    }


def _study(study: Study, cells: Sequence[Cell], card, tables: Tables) -> dict[str, Any]:
    """Return all that the page says about a study, by the names that the template uses."""
    data = describe.data_notes(cells)
    folder = Path(study.config["figure_root"]) / study.paper
    measured = numbers.measured([study], times.latest).to_dict("records")
    return {
        "name": study.name,
        "title": study.config["title"],
        "claim": study.config["claim"],
        "file": study.file,
        "command": Path(study.file).read_text(encoding="utf-8").splitlines()[1].lstrip("# "),
        "scored": list(card[(card.study == study.name) & (card.id != "")].itertuples()),
        "figures": [figure(folder / stem, describe.figure_caption(study, stem)) for stem in study.figures],
        "notes": _validity(study, data),
        "tables": [tables.add(study.table_path(table)) for table in study.tables],
        "ledger": ledgers.read(study),
        "ledger_file": ledgers.path_of(study),
        "neighbours": describe.neighbours(study),
        "settings": describe.settings(study),
        "time": measured[0] if measured else None,
        "provenance": _provenance(study, cells, data),
    }


def _validity(study: Study, data: list[dict[str, str]]) -> list[str]:
    try:
        return describe.validity_notes(study, read_tables(study), data)
    except FileNotFoundError as error:
        return [str(error)]


def _overview_figure(name: str, folder: Path) -> dict[str, Any]:
    stem = times.latest(folder / f"{build.FIGURES[name][1]}.svg").with_suffix("")
    return figure(stem, describe.caption(f"privpost.report.figures.{name}"))


def figure(stem: Path, caption: describe.Caption) -> dict[str, Any]:
    """Return a figure as its caption and its SVG, or its PNG where there is no SVG, as an address of its content."""
    files = [stem.with_name(f"{stem.name}{ending}") for ending in KINDS]
    path = next(filter(Path.is_file, files), None)
    if path is None:
        return {"path": files[0], "source": None}
    content = base64.b64encode(path.read_bytes()).decode()
    return {"path": path, "source": f"data:image/{KINDS[path.suffix]};base64,{content}", "caption": caption}


def _range(pair: list | None) -> str:
    if pair is None:
        return ""
    low, high = ("∞" if value == "inf" else f"{value:.4g}" for value in pair)
    return low if low == high else f"{low} to {high}"


def _provenance(study: Study, cells: Sequence[Cell], data: list[dict[str, str]]) -> dict[str, Any]:
    records, damaged = _records(cells)
    kept = sorted({json.dumps(record["versions"], sort_keys=True) for record in records})
    return {
        "module": study.target,
        "code": provenance.source_digest(study.target),
        "sizes": cells[0].sizes,
        "versions": "; ".join(", ".join(f"{name} {v}" for name, v in json.loads(text).items()) for text in kept),
        "stored": len(records),
        "damaged": damaged,
        "digests": [cell.digest for cell in cells],
        "data": {
            note["name"]: next(cell.data for cell in cells if cell.dataset == note["name"])["sha256"] for note in data
        },
    }


def _records(cells: Iterable[Cell]) -> tuple[list[dict[str, Any]], int]:
    """Return the records of the cells that are in the store, and the number of damaged ones."""
    records, damaged = [], 0
    for cell in cells:
        if cell.path.is_file():
            try:
                records.append(store.read(cell.path, cell.digest).record)
            except store.CorruptCell:
                damaged += 1
    return records, damaged


def _moment() -> datetime.datetime:
    """Return when the page is made; a build with a fixed date gives the same bytes."""
    now = os.environ.get("SOURCE_DATE_EPOCH") or datetime.datetime.now().timestamp()
    return datetime.datetime.fromtimestamp(int(now), datetime.UTC)
