"""What docs/gallery.md shows: every figure, with the command that rebuilds it and the tables it is drawn from."""

from collections.abc import Mapping
from pathlib import Path

from privpost.evaluation.rows import markdown
from privpost.lab.grid import Study
from privpost.lab.plan import Plan
from privpost.report import describe, scorecard

PER_ROW = 3


def values(plan: Plan) -> Mapping[str, str]:
    """Return the texts by their placeholders."""
    studies = sorted(plan.studies.values(), key=lambda study: scorecard.paper_order(study.name))
    return {"gallery/figures": figures(studies, plan.figure_root), "gallery/commands": commands(studies)}


def figures(studies: list[Study], folder: Path) -> str:
    """Return the shipped figures by paper as tables of linked pictures, each with what it shows as its alternative."""
    lines = []
    for paper in dict.fromkeys(study.paper for study in studies):
        shown = [(study, stem) for study in studies if study.paper == paper for stem in study.figures]
        shown = [(study, stem, path) for study, stem in shown if (path := folder / paper / f"{stem}.svg").is_file()]
        if not shown:
            continue
        lines += [f"## {scorecard.PAPERS.get(paper, paper)}", "", "<table>"]
        for start in range(0, len(shown), PER_ROW):
            cells = (
                f'<td width="33%"><a href="../{path}"><img src="../{path}" '
                f'alt="{describe.figure_caption(study, stem).title}"></a><br><sub>{stem}</sub></td>'
                for study, stem, path in shown[start : start + PER_ROW]
            )
            lines.append("<tr>" + "".join(cells) + "</tr>")
        lines += ["</table>", ""]
    return "\n".join(lines).rstrip()


def commands(studies: list[Study]) -> str:
    """Return which command makes which figures, and from which tables they are drawn."""
    rows = []
    for study in studies:
        drawn = [_link(stem, study.figure_root / study.paper / f"{stem}.svg") for stem in study.figures]
        tables = [_link(f"{table}.csv", study.table_path(table)) for table in study.tables]
        rows.append(
            (", ".join(drawn) or f"a table: {tables[0]}", f"`make reproduce STUDY={study.name}`", ", ".join(tables))
        )
    return markdown(("figures", "rebuilt by", "drawn from"), rows)


def _link(name: str, path: Path) -> str:
    return f"[{name}](../{path})" if path.is_file() else f"{name} (not in this checkout)"
