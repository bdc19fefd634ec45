"""The single steps of a rebuild, as Snakemake's rules call them: tables, figures, scores, pages."""

import argparse
import functools
import pkgutil
from pathlib import Path

from privpost.commands import options
from privpost.progress import counted


def _study_parser(name: str, text: str) -> argparse.ArgumentParser:
    parser = options.parser(name, text, study="one", root=True)
    parser.add_argument(
        "--partial", action="store_true", help="without the data sets that cannot be had, under build/partial"
    )
    return parser


def _load(given: argparse.Namespace):
    from privpost.lab import compose, grid

    study = grid.load_study(given.study, given.scale, compose.rooted(given.root))
    return grid.without_missing(study) if given.partial else study


def _of_study(name: str, text: str, function: str, argv: list[str]) -> int:
    """Call a function of the package with the named study, and print the paths of the files that it made."""
    study = _load(_study_parser(name, text).parse_args(argv))
    return _tell(pkgutil.resolve_name(f"privpost.{function}")(study))


def _of_all(name: str, text: str, function: str, argv: list[str]) -> int:
    """Call a function of the package with the plan of all studies, and print the paths of the files that it made."""
    from privpost.lab.plan import Plan

    given = options.parser(name, text, root=True).parse_args(argv)
    return _tell(pkgutil.resolve_name(f"privpost.{function}")(Plan(given.scale, given.root)))


def _tell(made: list[Path] | Path) -> int:
    for path in [made] if isinstance(made, Path) else made:
        print(path)
    return 0


tabulate = functools.partial(_of_study, "tabulate", "Write a study's tables.", "lab.tables:tabulate")
scorecard = functools.partial(_of_all, "scorecard", "Score all claims from the tables.", "report.build:write_scores")
overview = functools.partial(_of_all, "overview", "Draw the figures that cover all studies.", "report.build:draw")
readme = functools.partial(_of_all, "readme", "Render README.md and the other documents.", "report.documents:write")
report = functools.partial(_of_all, "report", "Write the report as one HTML file.", "report.page:write")


def draw(argv: list[str]) -> int:
    """Draw a study's figures."""
    from privpost.commands import drawing

    parser = _study_parser("draw", "Draw a study's figures.")
    parser.add_argument("--svg", action="store_true", help="as SVG only; without it also as PDF and PNG")
    given = parser.parse_args(argv)
    return _tell(drawing.draw(_load(given), printed=not given.svg))


def claims(argv: list[str]) -> int:
    """Print the verdict on every claim that a study tests, as a table."""
    import shutil
    import textwrap
    from collections import Counter

    from privpost.lab import tables
    from privpost.report.scorecard import claims_of, in_words

    parser = _study_parser("claims", "Score a study's claims.")
    parser.add_argument("--evidence", action="store_true", help="with the numbers that each verdict rests on")
    given = parser.parse_args(argv)
    study = _load(given)
    found = claims_of(study, tables.read_tables(study))
    first, second = (max((len(getattr(claim, name)) for claim in found), default=0) for name in ("id", "verdict"))
    indent = " " * (first + second + 4)
    width = max(60, shutil.get_terminal_size((120, 24)).columns)
    for claim in found:
        text = f"{claim.id:<{first}}  {claim.verdict:<{second}}  {claim.statement}"
        print(textwrap.fill(text, width, subsequent_indent=indent))
        if given.evidence:
            print(textwrap.fill(str(claim.evidence), width, initial_indent=indent, subsequent_indent=indent))
    print(f"{counted(len(found), 'claim')}: {in_words(Counter(claim.verdict for claim in found))}")
    return 0
