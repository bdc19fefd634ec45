"""The single steps of a rebuild, as Snakemake's rules call them, and the same on what is published."""

import argparse
import sys
from pathlib import Path

from privpost.commands import options
from privpost.lab import grid, tables
from privpost.lab.plan import Plan
from privpost.lab.project import built
from privpost.progress import counted

# Where figures, documents and report of the published tables go.
OF_PUBLISHED = Path("build/published")


def _places(given: argparse.Namespace) -> tuple[Path | None, Path]:
    """Return where tables are read, and where what is made of them goes."""
    if given.built or given.scale != "paper":
        return built(given.scale), built(given.scale)
    return None, OF_PUBLISHED


def _tell(paths: list[Path]) -> int:
    for path in paths:
        print(path)
    return 0


def build(argv: list[str]) -> int:
    """Compute a study's missing cells, then its tables."""
    from privpost.commands import run
    from privpost.lab import cells

    given = options.parser("build", "Compute a study's missing cells, then its tables.", study="one").parse_args(argv)
    study = grid.without_missing(grid.load_study(given.study, given.scale, built(given.scale)))
    if failed := cells.compute_each(study, grid.expand(study)):
        return run.name_failed(grid.expand(study), failed)
    return _tell(run.build(study, draw=False))


def draw(argv: list[str]) -> int:
    """Draw figures from the published tables, or from built ones."""
    from privpost.commands import drawing

    parser = options.parser("draw", "Draw the figures of studies from the published tables.", study="any", built=True)
    parser.add_argument("--printed", action="store_true", help="write PDF and PNG too")
    given = parser.parse_args(argv)
    home, out = _places(given)
    endings = ("svg", "pdf", "png") if given.printed else ("svg",)
    studies = grid.load_studies(given.study or None, given.scale, home)
    return _tell([path for study in studies for path in drawing.draw(study, out, endings)])


def _of_all(name: str, text: str, argv: list[str]) -> tuple[Plan, Path]:
    given = options.parser(name, text, built=True).parse_args(argv)
    home, out = _places(given)
    if home:
        tables.gather_times(home)
    return Plan(given.scale, home), out


def scorecard(argv: list[str]) -> int:
    """Score all claims."""
    from privpost.report import build as overall

    plan, out = _of_all("scorecard", "Score all claims from the tables.", argv)
    return _tell([overall.score(plan.studies.values(), plan.root, out / "results")])


def documents(argv: list[str]) -> int:
    """Render README.md and the documents."""
    from privpost.report import documents as pages

    plan, out = _of_all("documents", "Render README.md and the documents.", argv)
    return _tell(pages.write(plan.studies.values(), plan.root, plan.figure_root, out / "documents"))


def report(argv: list[str]) -> int:
    """Write the report as one HTML file."""
    from privpost.commands import drawing
    from privpost.report import figures, page

    plan, out = _of_all("report", "Write the report as one HTML file.", argv)
    folder = plan.figure_root
    if not folder.is_dir():
        for study in plan.studies.values():
            drawing.draw(study, out)
        folder = out / "figures"
    if folder == out / "figures":
        figures.draw(plan.root, folder)
    return _tell([page.write(plan.studies.values(), plan.root, folder, out / "report.html")])


def claims(argv: list[str]) -> int:
    """Print the verdict on every claim that a study tests, as a table."""
    import shutil
    import textwrap
    from collections import Counter

    from privpost.report.scorecard import claims_of, evidence_rows, in_words

    parser = options.parser("claims", "Score the claims of studies from the published tables.", study="any", built=True)
    parser.add_argument("--evidence", action="store_true", help="print the numbers behind each verdict too")
    parser.add_argument("--json", action="store_true", help="print JSON")
    given = parser.parse_args(argv)
    home = _places(given)[0]
    studies = grid.load_studies(given.study or None, given.scale, home)
    for study in studies if home else ():
        if outdated := tables.outdated(study):
            print(f"privpost: {study.name}: its built tables are {outdated} (make reproduce)", file=sys.stderr)
    scored = [claim for study in studies for claim in claims_of(study, tables.read_tables(study))]
    if given.json:
        return options.as_json([vars(claim) for claim in scored])
    first, second = (max((len(getattr(claim, name)) for claim in scored), default=0) for name in ("id", "verdict"))
    indent = " " * (first + second + 4)
    width = max(60, shutil.get_terminal_size((120, 24)).columns)
    for claim in scored:
        text = f"{claim.id:<{first}}  {claim.verdict:<{second}}  {claim.statement}"
        print(textwrap.fill(text, width, subsequent_indent=indent))
        if given.evidence:
            print(textwrap.fill(f"asked: {claim.test}", width, initial_indent=indent, subsequent_indent=indent))
            for name, value in evidence_rows(claim.evidence):
                print(f"{indent}{value:>24}  {name}")
    print(f"{counted(len(scored), 'claim')}: {in_words(Counter(claim.verdict for claim in scored))}")
    return 0
