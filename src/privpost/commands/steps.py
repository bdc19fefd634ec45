"""The single steps of a rebuild, as Snakemake's rules call them: tables, figures, scores, pages."""

from __future__ import annotations

import argparse

from privpost.pipeline.progress import counted


def _study_parser(name: str, help_text: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=f"privpost {name}", description=help_text)
    parser.add_argument("study", help="<paper>/<study>")
    parser.add_argument("--scale", default="paper", help="paper (default) or smoke")
    parser.add_argument("--root", help="where results are, when not the scale's own folder")
    parser.add_argument(
        "--partial", action="store_true", help="without the data sets that cannot be had, under build/partial"
    )
    return parser


def _load(options: argparse.Namespace):
    from privpost.pipeline import compose, grid

    study = grid.load_study(options.study, options.scale, compose.rooted(options.root))
    return grid.without_missing(study) if options.partial else study


def tabulate(argv: list[str]) -> int:
    """Write a study's tables."""
    from privpost.pipeline import tables

    for path in tables.tabulate(_load(_study_parser("tabulate", "Write a study's tables.").parse_args(argv))):
        print(path)
    return 0


def draw(argv: list[str]) -> int:
    """Draw a study's figures."""
    from privpost.commands import drawing

    for path in drawing.draw(_load(_study_parser("draw", "Draw a study's figures.").parse_args(argv))):
        print(path)
    return 0


def claims(argv: list[str]) -> int:
    """Print the verdict on every claim that a study tests, as a table."""
    import shutil
    import textwrap
    from collections import Counter

    from privpost.pipeline import tables
    from privpost.report.scorecard import claims_of

    parser = _study_parser("claims", "Score a study's claims.")
    parser.add_argument("--evidence", action="store_true", help="with the numbers that each verdict rests on")
    options = parser.parse_args(argv)
    study = _load(options)
    found = claims_of(study, tables.read_tables(study))
    first, second = (max(map(len, words), default=0) for words in zip(*((c.id, c.verdict) for c in found), strict=True))
    indent = " " * (first + second + 4)
    width = max(60, shutil.get_terminal_size((120, 24)).columns)
    for claim in found:
        text = f"{claim.id:<{first}}  {claim.verdict:<{second}}  {claim.statement}"
        print(textwrap.fill(text, width, subsequent_indent=indent))
        if options.evidence:
            print(textwrap.fill(str(claim.evidence), width, initial_indent=indent, subsequent_indent=indent))
    verdicts = Counter(claim.verdict for claim in found)
    print(f"{counted(len(found), 'claim')}: {', '.join(f'{count} {word}' for word, count in verdicts.items())}")
    return 0


def _whole(name: str, help_text: str, argv: list[str]):
    """Return the plan of all studies that a command of the report works on."""
    from privpost.pipeline.plan import Plan

    parser = argparse.ArgumentParser(prog=f"privpost {name}", description=help_text)
    parser.add_argument("--scale", default="paper", help="paper (default) or smoke")
    parser.add_argument("--root", help="where results are, when not the scale's own folder")
    options = parser.parse_args(argv)
    return Plan(options.scale, options.root)


def scorecard(argv: list[str]) -> int:
    """Write the scorecard and the quoted numbers."""
    from privpost.report import build

    for path in build.write_scores(_whole("scorecard", "Score all claims from the tables.", argv)):
        print(path)
    return 0


def overview(argv: list[str]) -> int:
    """Draw the figures that cover all studies."""
    from privpost.report import build

    for path in build.draw(_whole("overview", "Draw the figures that cover all studies.", argv)):
        print(path)
    return 0


def readme(argv: list[str]) -> int:
    """Render README.md and the documents that have a template."""
    from privpost.report import documents

    plan = _whole("readme", "Render README.md, and docs/*.md, from the templates in docs/templates.", argv)
    for path in documents.write(plan):
        print(path)
    return 0


def report(argv: list[str]) -> int:
    """Write the report."""
    from privpost.report import page

    print(page.write(_whole("report", "Write the report as one HTML file.", argv)))
    return 0
