"""The dispatcher in front of Hydra: help, lists, single steps of the pipeline, and runs of cells."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable

from privpost.pipeline import project
from privpost.pipeline.schema import SettingError, suggest

USAGE = """\
privpost: studies of Bayesian inference under differential privacy, rebuilt

  privpost study=<paper>/<study> [key=value ...]     compute the study's base point, with some settings changed
  privpost -m study=<paper>/<study>                  compute the study's whole grid
  privpost -m study=<paper>/<study> key=a,b ...      compute a sweep; the other keys stay at their base value

A key is a setting, an axis (a within axis is pinned to the values given), trials, block or seed. scale=smoke runs at
toy size, under build/smoke; hydra/launcher=joblib runs a sweep on all cores; -n only says what would be computed;
shard=3/40 computes that part of a sweep in one process, as large sweeps and clusters need it. Results land in the store
that Snakemake uses; a sweep ends with a table and a figure under build/sweeps.

{commands}

Whole rebuilds: make reproduce (or snakemake); redraw from the shipped tables: snakemake figures.
`privpost COMMAND --help` explains a command."""

COMMANDS: dict[str, tuple[Callable[[list[str]], int], str]] = {}
# Commands about a user's own files: they run where they are called, not at the project's root.
ANYWHERE = {"release"}


def command(name: str, summary: str):
    """Register a function of the remaining arguments as a command."""

    def register(function):
        COMMANDS[name] = (function, summary)
        return function

    return register


def main(argv: list[str]) -> int:
    """Run one command; returns its exit status (2 for a mistake in the arguments or settings)."""
    if not argv or argv[0] == "help" or (argv[0] not in COMMANDS and {"-h", "--help"} & set(argv)):
        lines = [f"  privpost {name:<41} {summary}" for name, (_, summary) in COMMANDS.items()]
        print(USAGE.format(commands="\n".join(lines)))
        return 0
    try:
        if argv[0] in COMMANDS:
            if argv[0] not in ANYWHERE:
                project.enter()
            return COMMANDS[argv[0]][0](argv[1:])
        if argv[0].startswith("-") or "=" in argv[0]:
            from privpost.pipeline import run

            project.enter()
            return run.main(argv)
        raise SettingError(
            f"there is no command {argv[0]!r}.{suggest(argv[0], COMMANDS)} Commands: {', '.join(COMMANDS)}; "
            "a run starts with study=<paper>/<study>."
        )
    except (SettingError, FileNotFoundError) as error:
        print(f"privpost: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        # The reader (head, a pager) has seen enough; what Python flushes at its end goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (OSError, MemoryError) as error:
        print(f"privpost: {project.plainly(error)}", file=sys.stderr)
        return 1


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
    from privpost.pipeline import grid

    overrides = [] if options.root is None else [f"root={options.root}", f"figure_root={options.root}/figures"]
    study = grid.load_study(options.study, options.scale, overrides)
    return grid.without_missing(study) if options.partial else study


@command("list", "the studies, their titles and sizes")
def list_studies(argv: list[str]) -> int:
    """Print every study with its number of cells."""
    from privpost.pipeline import grid

    argparse.ArgumentParser(prog="privpost list", description="List the studies.").parse_args(argv)
    for study in grid.load_studies():
        print(f"{study.name:<36} {len(grid.expand(study)):>4} cells   {study.config['title']}")
    return 0


@command("status", "what the store holds of each study, and what a rebuild would do about it")
def status(argv: list[str]) -> int:
    """Print the states of cells, tables and figures."""
    from privpost.pipeline import grid
    from privpost.pipeline import status as states

    parser = argparse.ArgumentParser(
        prog="privpost status",
        description="Print, per study, how many cells of its grid are current, behind (the code or a library changed "
        "since; privpost reproduce --behind computes them again) or missing (the next rebuild computes them), and how "
        "many stale results, of settings that no grid names any more, privpost prune can remove.",
    )
    parser.add_argument("study", nargs="*", help="<paper>/<study>; all studies when none is named")
    parser.add_argument("--scale", default="paper", help="paper (default) or smoke")
    options = parser.parse_args(argv)
    print(states.report(grid.load_studies(options.study or None, options.scale)))
    return 0


@command("prune", "list and remove results that no grid names any more")
def prune(argv: list[str]) -> int:
    """Remove stale results from the store."""
    from privpost.pipeline import grid
    from privpost.pipeline import status as states

    parser = argparse.ArgumentParser(
        prog="privpost prune",
        description="Remove stale results, damaged files that were set aside, and temporary files of killed jobs. "
        "Results of runs and sweeps from the command line stay, unless --sweeps is given.",
    )
    parser.add_argument("study", nargs="*", help="<paper>/<study>; all studies when none is named")
    parser.add_argument("--scale", default="paper", help="paper (default) or smoke")
    parser.add_argument("--sweeps", action="store_true", help="remove results of ad hoc runs and sweeps too")
    parser.add_argument("-n", "--dry-run", action="store_true", help="only list what would be removed")
    options = parser.parse_args(argv)
    paths = states.removable(grid.load_studies(options.study or None, options.scale), options.sweeps, behind=False)
    for path in paths:
        print(path)
    megabytes = sum(map(states.size, paths)) / 1e6
    if not options.dry_run:
        states.remove(paths)
    print(f"{len(paths)} files, {megabytes:.1f} MB {'would be' if options.dry_run else 'were'} removed")
    return 0


@command("mechanisms", "the mechanisms, with their guarantees")
def mechanisms(argv: list[str]) -> int:
    """Print what each mechanism of the package declares about itself."""
    from privpost import discovery
    from privpost.mechanisms.base import Mechanism

    argparse.ArgumentParser(prog="privpost mechanisms", description="List the mechanisms.").parse_args(argv)
    columns = ("method", "class", "neighbours", "notion", "RDP curve", "norm", "releases", "exact", "public")
    inherited = {"pure": "from its pure ε", "rdp": "none", "approximate": "none"}
    rows = [
        (
            kind.method,
            kind.__name__,
            kind.neighbours,
            kind.notion,
            inherited[kind.notion] if kind.rdp is Mechanism.rdp else "its own",
            kind.norm,
            kind.releases,
            "exact" if kind.exact else "mcmc",
            ", ".join(kind.public_inputs),
        )
        for kinds in discovery.mechanisms().values()
        for kind in kinds
    ]
    widths = [max(len(row[place]) for row in [columns, *rows]) for place in range(len(columns))]
    for row in [columns, *rows]:
        print("  ".join(word.ljust(width) for word, width in zip(row, widths, strict=True)).rstrip())
    return 0


@command("fetch", "download (or copy from a mirror) and verify data sets")
def fetch(argv: list[str]) -> int:
    """Fetch raw data files."""
    from privpost.datasets import catalogue
    from privpost.datasets import fetch as fetching

    parser = argparse.ArgumentParser(prog="privpost fetch", description="Fetch and verify raw data files.")
    parser.add_argument("dataset", nargs="+", help=f"one or more of {', '.join(catalogue.names())}")
    return fetching.main(parser.parse_args(argv).dataset)


@command("prepare", "parse a fetched data set into data/prepared")
def prepare(argv: list[str]) -> int:
    """Parse raw files into arrays."""
    from privpost.datasets import catalogue, prepared
    from privpost.datasets import fetch as fetching

    parser = argparse.ArgumentParser(prog="privpost prepare", description="Parse a fetched data set into arrays.")
    parser.add_argument("dataset", help=f"one of {', '.join(catalogue.names())}")
    name = parser.parse_args(argv).dataset
    if name not in catalogue.names():
        raise SettingError(f"there is no data set {name!r}.{suggest(name, catalogue.names())}")
    # Verifies the raw files: one that changed since it was fetched is set aside, and fetched again.
    if status := fetching.main([name]):
        return status
    print(prepared.prepare(catalogue.load(name)))
    return 0


@command("tabulate", "write a study's tables from its cells")
def tabulate(argv: list[str]) -> int:
    """Write a study's tables."""
    from privpost.pipeline import tables

    for path in tables.tabulate(_load(_study_parser("tabulate", "Write a study's tables.").parse_args(argv))):
        print(path)
    return 0


@command("draw", "draw a study's figures from its tables")
def draw(argv: list[str]) -> int:
    """Draw a study's figures."""
    from privpost.pipeline import tables

    for path in tables.draw(_load(_study_parser("draw", "Draw a study's figures.").parse_args(argv))):
        print(path)
    return 0


@command("claims", "score a study's claims from its tables")
def claims(argv: list[str]) -> int:
    """Print the verdict on every claim that a study tests."""
    from privpost.pipeline import tables
    from privpost.report.scorecard import claims_of

    study = _load(_study_parser("claims", "Score a study's claims.").parse_args(argv))
    for claim in claims_of(study, tables.read_tables(study)):
        print(f"{claim.id}  {claim.verdict:<16} {claim.statement}")
        print(f"    {claim.evidence}")
    return 0


def _whole(name: str, help_text: str, argv: list[str]):
    """Return the plan of all studies that a command of the report works on."""
    from privpost.pipeline.plan import Plan

    parser = argparse.ArgumentParser(prog=f"privpost {name}", description=help_text)
    parser.add_argument("--scale", default="paper", help="paper (default) or smoke")
    parser.add_argument("--root", help="where results are, when not the scale's own folder")
    options = parser.parse_args(argv)
    return Plan(options.scale, options.root)


@command("scorecard", "score all claims from the tables, and collect the numbers that are quoted")
def scorecard(argv: list[str]) -> int:
    """Write the scorecard and the quoted numbers."""
    from privpost.report import build

    for path in build.write_scores(_whole("scorecard", "Score all claims from the tables.", argv)):
        print(path)
    return 0


@command("overview", "draw the scorecard, the graph of the rebuild and the run times")
def overview(argv: list[str]) -> int:
    """Draw the figures that cover all studies."""
    from privpost.report import build

    for path in build.draw(_whole("overview", "Draw the figures that cover all studies.", argv)):
        print(path)
    return 0


@command("readme", "render README.md and docs/*.md from their templates and the numbers")
def readme(argv: list[str]) -> int:
    """Render README.md and the documents that have a template."""
    from privpost.report import documents
    from privpost.report import readme as rendering

    plan = _whole("readme", "Render README.md, and docs/*.md, from the templates in docs/templates.", argv)
    for path in (rendering.write(plan), *documents.write(plan)):
        print(path)
    return 0


@command("report", "write the report: one HTML file with everything inside")
def report(argv: list[str]) -> int:
    """Write the report."""
    from privpost.report import page

    print(page.write(_whole("report", "Write the report as one HTML file.", argv)))
    return 0


@command("reproduce", "rebuild everything, or the named studies, with Snakemake")
def reproduce(argv: list[str]) -> int:
    """Rebuild studies from raw data to figures."""
    from privpost.pipeline import rebuild

    return rebuild.main(argv)


@command("verify", "rebuild from an empty store and compare with the shipped tables and figures")
def verify(argv: list[str]) -> int:
    """Rebuild into build/verify and compare."""
    from privpost.pipeline import verify

    return verify.main(argv)


@command("release", "privatise a CSV file of your own: released statistics as JSON, with a privacy statement")
def release(argv: list[str]) -> int:
    """Release statistics of a user's own data."""
    from privpost.release import command as releasing

    return releasing.main(argv)
