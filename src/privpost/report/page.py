"""The report, which is one HTML file with the published tables, figures and ledgers."""

import base64
import csv
import datetime
import gzip
import hashlib
import json
import os
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup, escape

from privpost.datasets import catalogue
from privpost.lab import ledgers, provenance, published, store, tables
from privpost.lab.study import Study
from privpost.progress import Progress
from privpost.report import audited, captions, describe, scorecard, templates

TEMPLATES = Path("docs/templates")
ROWS = 200


def write(studies: Iterable[Study], home: Path, path: Path) -> Path:
    """Write the report on some studies to a file, and return the path of the file."""
    before = path.with_name("before_and_after.html")
    store.write_text(path, render(studies, home, before.name if before.is_file() else ""))
    return path


def render(studies: Iterable[Study], home: Path, before: str = "") -> str:
    """Return the report on some studies as HTML. Raise FileNotFoundError without a scorecard.

    Results are read from the folder `home`. The report links to the page `before`, unless this name is empty.
    """
    studies = sorted(studies, key=lambda study: scorecard.paper_order(study.name))
    card = scorecard.read(home / "results/scorecard.csv")
    times = run_times(studies, home / "results/times.csv")
    packed = Packed()
    progress, shown = Progress(sys.stderr, "studies"), {}
    for study in studies:
        shown[study.name] = _study(study, card, packed)
        progress.update(len(shown), len(studies))
    progress.clear()
    css, js = ((TEMPLATES / f"report.{ending}").read_text(encoding="utf-8") for ending in ("css", "js"))
    return (
        environment()
        .get_template("report.html.in")
        .render(
            css=Markup(css),
            js=Markup(js),
            policy=policy(css, js),
            counts=scorecard.counts(scorecard.of_papers(card)),
            severity=[verdict for verdict in scorecard.SEVERITY if (card.verdict == verdict).any()],
            failing={
                v: rows
                for v in scorecard.SEVERITY[:4]
                if (rows := list(card[(card.verdict == v) | (card.seen == v)].itertuples()))
            },
            ours=scorecard.counts(card[card.whose == "ours"]),
            claims=list(card.itertuples()),
            papers=[
                {
                    "name": paper,
                    "short": scorecard.NAMES.get(paper, paper),
                    "title": scorecard.PAPERS.get(paper, ""),
                    "counts": scorecard.counts(scorecard.of_papers(card[card.paper == paper])),
                    "studies": [shown[study.name] for study in studies if study.paper == paper],
                }
                for paper in dict.fromkeys(study.paper for study in studies)
            ],
            overview={
                stem: packed.figure(home / f"figures/{stem}.svg", caption)
                for stem, caption in captions.overall().items()
            },
            audited=audited.by_study(studies),
            times=times.to_dict("records"),
            cells=int(times.cells.sum()),
            data=describe.data_notes(studies),
            neighbours=describe.neighbours(),
            versions=provenance.versions(),
            moment=_moment(),
            before=before,
            packed=packed.texts,
        )
    )


def run_times(studies: Iterable[Study], path: Path):
    """Return one row per study with wall times and peak memory, from a file with the times of cells."""
    import pandas as pd

    times = pd.DataFrame(published.read_times(path), columns=published.COLUMNS)
    times = times.astype({"wall_seconds": float, "peak_mib": float}).rename(columns={"wall_seconds": "seconds"})
    seconds, memory = times.groupby("study").seconds, times.groupby("study").peak_mib
    summed = {"cells": seconds.size(), "seconds": seconds.sum(), "longest_cell_seconds": seconds.max()}
    rows = pd.DataFrame({**summed, "peak_mib": memory.max()}).round(1)
    return rows.loc[[s.name for s in studies if s.name in rows.index]].rename_axis("study").reset_index()


def environment() -> jinja2.Environment:
    """Return the jinja2 environment of the report's template, which escapes every value."""
    jinja = templates.environment(
        loader=jinja2.FileSystemLoader(TEMPLATES), autoescape=True, trim_blocks=True, lstrip_blocks=True, finalize=None
    )
    jinja.filters |= {
        "slug": lambda verdict: verdict.replace(" ", "-"),
        "from_json": lambda text: json.loads(text or "[]"),
        "evidence": scorecard.evidence_rows,
        "span": _range,
        "inline": inline,
        "why": scorecard.explanation,
        "tally": scorecard.tally,
        "notion": describe.NOTIONS.get,
        "rank": scorecard.SEVERITY.index,
    }
    return jinja


def policy(css: str, js: str) -> str:
    """Return the Content-Security-Policy that allows only the page's own style, script and pictures."""
    style, script = (
        f"'sha256-{base64.b64encode(hashlib.sha256(f'{chr(10)}{text}{chr(10)}'.encode()).digest()).decode()}'"
        for text in (css, js)
    )
    return f"default-src 'none'; img-src data: blob:; style-src {style}; script-src {script}; base-uri 'none'"


def inline(text: str) -> Markup:
    """Return a text as escaped HTML, where words in `backticks` are marked as code."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))


class Packed:
    """Compressed figures and tables of a page, stored in the map `texts` by the id of the HTML element."""

    def __init__(self):
        self.texts: dict[str, str] = {}

    def _add(self, kind: str, content: bytes) -> str:
        name = f"{kind}-{len(self.texts)}"
        self.texts[name] = base64.b64encode(gzip.compress(content, mtime=0)).decode()
        return name

    def table(self, path: Path) -> dict[str, Any]:
        """Store the first `ROWS` rows of a CSV file, and return the table's entry for the template."""
        if not path.is_file():
            return {"path": path, "rows": None}
        with path.open(newline="", encoding="utf-8") as handle:
            columns, *rows = csv.reader(handle)
        data = {"columns": columns, "rows": [[_short(cell) for cell in row] for row in rows[:ROWS]]}
        content = json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode()
        return {"name": self._add("table", content), "path": path, "rows": len(rows), "shown": len(data["rows"])}

    def figure(self, path: Path, caption: captions.Caption) -> dict[str, Any]:
        """Store an SVG file, and return its entry for the template. Raise SettingError if the file was altered."""
        name = None
        if path.is_file():
            published.check(path)
            name = self._add("figure", path.read_bytes())
        return {"path": path, "name": name, "caption": caption}


def _short(cell: str) -> str:
    try:
        number = float(cell)
    except ValueError:
        return cell
    return cell if len(cell) < 9 else f"{number:.6g}"


def _study(study: Study, card, packed: Packed) -> dict[str, Any]:
    """Return everything that the page says about a study, by the names that the template uses."""
    data = describe.data_notes([study])
    return {
        "name": study.name,
        "title": study.text["title"],
        "claim": study.text["claim"],
        "file": study.file,
        "command": Path(study.file).read_text(encoding="utf-8").splitlines()[1].lstrip("# "),
        "scored": list(card[(card.study == study.name) & (card.id != "")].itertuples()),
        "figures": [packed.figure(study.figure_path(stem), shown) for stem, shown in captions.of_study(study).items()],
        "notes": _validity(study, data),
        "tables": [packed.table(study.table_path(name)) for name in study.tables],
        "ledger": ledgers.read(study),
        "settings": describe.settings(study),
        "module": f"{study.package}.study",
        "rev": study.text["rev"],
        "data": {note["name"]: catalogue.load(note["name"]).identity()["sha256"] for note in data},
    }


def _validity(study: Study, data: list[dict[str, str]]) -> list[str]:
    outdated = tables.outdated(study)
    notes = [f"Its tables were {outdated}: `make reproduce`."] if outdated else []
    try:
        return notes + describe.validity_notes(study, tables.read_tables(study), data)
    except FileNotFoundError as error:
        return [str(error)]


def _range(pair: list | None) -> str:
    if pair is None:
        return ""
    low, high = ("∞" if value == "inf" else f"{value:.4g}" for value in pair)
    return low if low == high else f"{low} to {high}"


def _moment() -> datetime.datetime:
    """Return the current time, or the fixed time that SOURCE_DATE_EPOCH gives for a reproducible build."""
    now = os.environ.get("SOURCE_DATE_EPOCH") or datetime.datetime.now().timestamp()
    return datetime.datetime.fromtimestamp(int(now), datetime.UTC)
