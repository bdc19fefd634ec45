"""README.md: a template's prose, with the gallery, the scorecard and every measured number filled in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from privpost.pipeline import store
from privpost.pipeline.grid import Study
from privpost.pipeline.plan import Plan
from privpost.report import describe, numbers, scorecard, templates
from privpost.report.page import PAPERS, SEVERITY, shortened

TEMPLATE = Path("docs/templates/README.md.in")
README = Path("README.md")
MARKS = {"holds": "●", "holds in part": "◐", "does not hold": "✖", "not testable": "○", "not scored": "–"}
PER_ROW = 3


def write(plan: Plan) -> Path:
    """Write README.md from its template; returns its path."""
    store.write_text(README, render(plan))
    return README


def render(plan: Plan) -> str:
    """Return README.md's text from the template, the numbers, the scorecard and the studies.

    Raises ValueError for a placeholder that names no number.
    """
    card = scorecard.read(plan.root / "scorecard.csv")
    studies = sorted(plan.studies.values(), key=lambda study: scorecard.paper_order(study.name))
    measured = numbers.read(plan.root)
    values = {
        **measured,
        "readme/times": _times(measured),
        "readme/gallery": _gallery(studies, plan.figure_root),
        "readme/verdicts": _verdicts(card),
        "readme/failing": _failing(card),
        "readme/studies": _studies(studies),
        "readme/stand_ins": _stand_ins(plan),
        "readme/neighbours": describe.all_neighbours(),
    }
    return templates.render(TEMPLATE.read_text(encoding="utf-8"), values, str(TEMPLATE))


def _times(measured: Mapping[str, Any]) -> str:
    """Return how long the two commands take: as last recorded, else as the cells' own times add up."""
    recorded = {
        "reproduce": "`make reproduce` took {seconds} on {cores} cores, from nothing but the raw data",
        "test": "`make test` took {seconds} on {cores} cores",
    }
    parts = []
    for command, text in recorded.items():
        if f"{command}/seconds" in measured:
            seconds = templates.duration(measured[f"{command}/seconds"])
            parts.append(text.format(seconds=seconds, cores=measured[f"{command}/cores"]))
    if "reproduce/seconds" not in measured:
        seconds = templates.duration(measured["time/cells"])
        parts.insert(0, f"the cells of `make reproduce` take {seconds} of computing, shared between the cores")
    text = "; ".join(parts)
    return f"{text if text[0] == '`' else text[0].upper() + text[1:]} (measured on one machine)."


def _gallery(studies: Iterable[Study], folder: Path) -> str:
    """Return the figures by paper as tables of linked thumbnails, each with what it shows as alternative text."""
    lines = []
    by_paper: dict[str, list[tuple[Study, str]]] = {}
    for study in studies:
        drawn = [stem for stem in study.figures if (folder / study.paper / f"{stem}.png").is_file()]
        if drawn:
            by_paper.setdefault(study.paper, []).extend((study, stem) for stem in drawn)
    for paper, figures in by_paper.items():
        lines += [f"**{PAPERS.get(paper, paper)}**", "", "<table>"]
        for start in range(0, len(figures), PER_ROW):
            cells = (
                f'<td width="33%"><a href="{folder / paper / stem}.png"><img src="{folder / paper / stem}.png" '
                f'alt="{describe.figure_caption(study, stem).title}"></a><br><sub>{stem}</sub></td>'
                for study, stem in figures[start : start + PER_ROW]
            )
            lines.append("<tr>" + "".join(cells) + "</tr>")
        lines += ["</table>", ""]
    return "\n".join(lines).rstrip()


def _verdicts(card) -> str:
    lines = ["| claim | study | what it says | verdict |", "|---|---|---|---|"]
    for row in card.itertuples():
        dagger = " †" if row.stand_in == "yes" else ""
        text = row.statement or shortened(row.reason)
        lines.append(f"| {row.id} | {row.study} | {_cell(text)}{dagger} | {MARKS[row.verdict]} {row.verdict} |")
    return "\n".join(lines)


def _failing(card) -> str:
    """Return, by verdict, the claims that do not hold as stated: what fails of each, why, and where that is derived."""
    parts = []
    for verdict in SEVERITY[:3]:
        rows = list(card[card.verdict == verdict].itertuples())
        if rows:
            parts += [f"**{verdict.capitalize()}**", "", *(_failure(row) for row in rows), ""]
    return "\n".join(parts).rstrip() or "Every claim that is scored holds."


def _failure(row) -> str:
    tally = scorecard.tally(row)
    links = ", ".join(f"[{describe.section(place)[1]}]({place})" for place in row.see.split())
    dagger = " †" if row.stand_in == "yes" else ""
    return (
        f"- **{row.id}**{dagger} {row.statement}{f' ({tally})' if tally else ''}<br>"
        f"{_cell(shortened(scorecard.explanation(row)))}{f' More: {links}.' if links else ''}"
    )


def _studies(studies: Iterable[Study]) -> str:
    lines = ["| figures | rebuilt by | drawn from |", "|---|---|---|"]
    for study in studies:
        figures = [
            _link(stem, Path(study.config["figure_root"]) / study.paper / f"{stem}.{formats[-1]}")
            for stem, formats in study.figures.items()
        ]
        tables = [_link(f"{table}.csv", study.table_path(table)) for table in study.tables]
        lines.append(
            f"| {', '.join(figures) or f'a table: {tables[0]}'} | `make reproduce STUDY={study.name}` "
            f"| {', '.join(tables)} |"
        )
    return "\n".join(lines)


def _link(name: str, path: Path) -> str:
    return f"[{name}]({path})" if path.is_file() else f"{name} (not in this checkout)"


def _stand_ins(plan: Plan) -> str:
    notes = describe.data_notes(cell for cells in plan.cells.values() for cell in cells)
    lines = ["| data set | role | access | licence |", "|---|---|---|---|"]
    lines += [f"| {note['title']} | {note['kind']} | {note['access']} | {_cell(note['licence'])} |" for note in notes]
    return "\n".join(lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
