"""The report: one HTML file with everything inside, made from published tables, figures and ledgers.

The markup is in docs/templates/report.html.in, which escapes all values. Figures and tables are compressed; the page's
script unpacks both.
"""

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
    """Write the report on some studies to `path`, and return this path."""
    before = path.with_name("before_and_after.html")
    store.write_text(path, render(studies, home, before.name if before.is_file() else ""))
    return path


def render(studies: Iterable[Study], home: Path, before: str = "") -> str:
    """Return, as one HTML text, the report on some studies, whose results and figures are in the folder `home`.

    The page says which figures, tables and ledgers are missing. It links to `before`, the page that
    tools/before_and_after.py makes, unless `before` is empty. Raises FileNotFoundError, naming the command to run, if
    there is no scorecard.
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
    """Return run times and memory, one row per study, from a file of times of cells; no rows if the file is missing.

    Columns: `study`, `cells`, `seconds` (wall time, summed over the cells), `longest_cell_seconds`, `peak_mib`.
    """
    import pandas as pd

    times = pd.DataFrame(published.read_times(path), columns=published.COLUMNS)
    times = times.astype({"wall_seconds": float, "peak_mib": float}).rename(columns={"wall_seconds": "seconds"})
    seconds, memory = times.groupby("study").seconds, times.groupby("study").peak_mib
    summed = {"cells": seconds.size(), "seconds": seconds.sum(), "longest_cell_seconds": seconds.max()}
    rows = pd.DataFrame({**summed, "peak_mib": memory.max()}).round(1)
    return rows.loc[[s.name for s in studies if s.name in rows.index]].rename_axis("study").reset_index()


def environment() -> jinja2.Environment:
    """Return the environment of the report's template: every value is escaped, and an unknown name is an error."""
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
    """Return the Content-Security-Policy that allows the page's own style, script and pictures, and nothing else."""
    style, script = (
        f"'sha256-{base64.b64encode(hashlib.sha256(f'{chr(10)}{text}{chr(10)}'.encode()).digest()).decode()}'"
        for text in (css, js)
    )
    return f"default-src 'none'; img-src data: blob:; style-src {style}; script-src {script}; base-uri 'none'"


def inline(text: str) -> Markup:
    """Return a text as HTML: text in `backticks` is marked as code, and everything is escaped."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))


class Packed:
    """Compressed figures and tables of a page, each stored once; `texts` has them by the id of the HTML element."""

    def __init__(self):
        self.texts: dict[str, str] = {}

    def _add(self, kind: str, content: bytes) -> str:
        name = f"{kind}-{len(self.texts)}"
        self.texts[name] = base64.b64encode(gzip.compress(content, mtime=0)).decode()
        return name

    def table(self, path: Path) -> dict[str, Any]:
        """Store at most `ROWS` rows of a CSV file; returns a map with name on the page, path and numbers of rows."""
        if not path.is_file():
            return {"path": path, "rows": None}
        with path.open(newline="", encoding="utf-8") as handle:
            columns, *rows = csv.reader(handle)
        data = {"columns": columns, "rows": [[_short(cell) for cell in row] for row in rows[:ROWS]]}
        content = json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode()
        return {"name": self._add("table", content), "path": path, "rows": len(rows), "shown": len(data["rows"])}

    def figure(self, path: Path, caption: captions.Caption) -> dict[str, Any]:
        """Store an SVG; returns a map with path, name on the page (None if the file is missing) and caption.

        Raises SettingError if the SVG is published and was altered.
        """
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
    """Return, by the names that the template uses, everything that the page says about a study."""
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
    """Return the time at which the page is made, or the fixed date of a build that gives the same bytes."""
    now = os.environ.get("SOURCE_DATE_EPOCH") or datetime.datetime.now().timestamp()
    return datetime.datetime.fromtimestamp(int(now), datetime.UTC)
