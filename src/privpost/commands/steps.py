"""The single steps of a rebuild, as Snakemake's rules call them, and the same on what is published."""

import argparse
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from privpost import moved
from privpost.commands import options
from privpost.lab import grid, tables
from privpost.lab.project import PUBLISHED, built
from privpost.lab.schema import SettingError, suggest
from privpost.lab.study import Study
from privpost.progress import counted, some

# Where figures, documents and report of the published tables go.
OF_PUBLISHED = Path("build/published")


def _places(given: argparse.Namespace) -> tuple[Path, Path]:
    """Return where tables are read, and where what is made of them goes."""
    home = built(given.scale) if given.built or given.scale != "paper" else PUBLISHED
    return home, OF_PUBLISHED if home == PUBLISHED else home


def _tell(paths: list[Path]) -> int:
    for path in paths:
        print(path)
    return 0


def tell_outdated(studies: Iterable[Study]) -> None:
    """Say on stderr, a line for each reason, which studies' tables are not what today's settings and code give."""
    names: dict[str, list[str]] = {}
    for study in studies:
        if why := tables.outdated(study):
            published = study.home == PUBLISHED
            which, cure = ("published", "make reproduce, make publish") if published else ("built", "make reproduce")
            names.setdefault(f"{which} tables {why} ({cure})", []).append(study.name)
    for what, of_studies in names.items():
        print(f"privpost: {what}: {', '.join(of_studies)}", file=sys.stderr)


def build(argv: list[str]) -> int:
    """Compute a study's missing cells, then its tables."""
    from privpost.commands import run
    from privpost.lab import cells

    given = options.parser("build", "Compute a study's missing cells, then its tables.", study="one").parse_args(argv)
    study = grid.load_study(given.study, given.scale, built(given.scale))
    code = tables.code_of(study)
    if failed := cells.compute_each(study, grid.expand(study)):
        return run.name_failed(grid.expand(study), failed)
    return _tell(run.build(study, code, draw=False))


def draw(argv: list[str]) -> int:
    """Draw figures from the published tables, or from built ones."""
    from privpost.commands import drawing

    parser = options.parser("draw", "Draw the figures of studies from the published tables.", study="any", built=True)
    parser.add_argument("--printed", action="store_true", help="write PDF and PNG too")
    given = parser.parse_args(argv)
    home, out = _places(given)
    endings = ("svg", "pdf", "png") if given.printed else ("svg",)
    studies = grid.load_studies(given.study or None, given.scale, home)
    tell_outdated(studies)
    paths = [path for study in studies for path in drawing.draw(study, out, endings)]
    if not given.study:
        from privpost.report import figures

        paths += figures.draw(home, out, endings)
    return _tell(paths)


def _of_all(name: str, text: str, argv: list[str]) -> tuple[list[Study], Path, Path]:
    """Return all studies, their folder, and where what is made of them goes."""
    given = options.parser(name, text, built=True).parse_args(argv)
    home, out = _places(given)
    if home != PUBLISHED:
        tables.gather_times(home)
    studies = grid.load_studies(None, given.scale, home)
    tell_outdated(studies)
    return studies, home, out


def scorecard(argv: list[str]) -> int:
    """Score all claims."""
    from privpost.report import scorecard as scores

    studies, _, out = _of_all("scorecard", "Score all claims from the tables.", argv)
    return _tell([scores.write(scores.score(studies), out / "results/scorecard.csv")])


def documents(argv: list[str]) -> int:
    """Render README.md and the documents."""
    from privpost.report import documents as pages

    studies, home, out = _of_all("documents", "Render README.md and the documents.", argv)
    return _tell(pages.write(studies, home, out / "documents"))


def report(argv: list[str]) -> int:
    """Write the report as one HTML file."""
    from privpost.report import figures, page

    studies, home, out = _of_all("report", "Write the report as one HTML file.", argv)
    if home == out:
        figures.draw(out)
    return _tell([page.write(studies, home, out / "report.html")])


def _claims_among(names: list[str]) -> dict[str, str]:
    """Return the studies, or papers, of the claims that are named; empty where studies are."""
    from privpost.report.scorecard import read

    path = PUBLISHED / "results/scorecard.csv"
    card = read(path) if path.is_file() and any("/" not in name for name in names) else None
    known = {} if card is None else dict(zip(card.id, card.study.str.removesuffix("/claims"), strict=True))
    ids = {name: known[name] for name in names if name and name in known}
    for name in names:
        if re.fullmatch(r"[A-Z]\d+(-[\w-]+)?", name) and known and name not in known:
            hint = moved.told("claim", name) or suggest(name, known)
            raise SettingError(f"there is no claim {name}.{hint} docs/scorecard.md lists all.")
    if ids and (others := [name for name in names if name not in ids]):
        raise SettingError(f"{', '.join(ids)} and {', '.join(others)}: name claims or studies, not both.")
    return ids


def _failing(checks: Sequence[str], every: bool) -> str:
    """Return the checks that fail in words, all or the first three."""
    return f"; fails: {'; '.join(checks) if every else some(checks)}" if checks else ""


def _failing_first(rows: list[tuple[str, str]], failed: Sequence[str]) -> list[tuple[str, str]]:
    """Return rows of evidence with those first whose name has most words of a failed check."""
    checks = [set(re.findall(r"[\w.]+", check)) for check in failed]
    return sorted(
        rows,
        key=lambda row: (
            not any(len(check.intersection(re.findall(r"[\w.]+", row[0]))) > 0.75 * len(check) for check in checks)
        ),
    )


def claims(argv: list[str]) -> int:
    """Print the verdict on every claim that a study tests, as a table."""
    import shutil
    import textwrap
    from collections import Counter

    from privpost.lab.claims import SEEN, VERDICTS
    from privpost.report.scorecard import evidence_rows, in_words, outcome, score

    parser = options.parser("claims", "Score the claims of studies from the published tables.", study="any", built=True)
    parser.epilog = "In place of studies claims may be named, as the scorecard has them: privpost claims Z2 --evidence"
    parser.add_argument("--evidence", action="store_true", help="print the numbers behind each verdict too")
    parser.add_argument("--json", action="store_true", help="print JSON")
    given = parser.parse_args(argv)
    home, ids = _places(given)[0], _claims_among(given.study)
    studies = grid.load_studies(ids.values() or given.study or None, given.scale, home)
    tell_outdated(studies)
    of_studies = score(studies)
    lacking = [found for found in of_studies if found.claims is None]
    if lacking and (given.study or len(lacking) == len(of_studies)):
        raise FileNotFoundError(lacking[0].lacking)
    scored = [claim for found in of_studies for claim in found.claims or () if not ids or claim.id in ids]
    if given.json:
        return options.as_json([vars(claim) for claim in scored])
    first = max((len(claim.id) for claim in scored), default=0)
    second = max((len(outcome(claim)) for claim in scored), default=0)
    indent = " " * (first + second + 4)
    width = max(60, shutil.get_terminal_size((120, 24)).columns)

    def say(text: str) -> None:
        print(textwrap.fill(text, width, initial_indent=indent, subsequent_indent=indent + "  "))

    where = {claim.id: found.study for found in of_studies for claim in found.claims or ()}
    for claim in scored:
        text = f"{claim.id:<{first}}  {outcome(claim):<{second}}  {claim.statement}"
        print(textwrap.fill(text, width, subsequent_indent=indent))
        passed = len(claim.checks) - len(claim.failed)
        say(f"{passed} of {counted(len(claim.checks), 'check')} pass" + _failing(claim.failed, given.evidence))
        if claim.by:
            say(", ".join(f"{of} {mark}" for of, mark in claim.by.items()))
        if ids or given.evidence:
            folder = where[claim.id].removesuffix("/claims")
            say(f"scored by {where[claim.id]}: src/privpost/experiments/{folder}/claims.py")
        if given.evidence:
            say(f"test: {claim.test}")
            if not claim.checks:
                say(f"why: {claim.reason}")
            rows = _failing_first(evidence_rows(claim.evidence), claim.failed)
            wide = max((len(name) for name, _ in rows), default=0)
            for name, value in rows:
                print(f"{indent}{name:<{wide}}  {value}")
    outcomes = Counter(word for claim in scored for word in {claim.verdict, claim.seen})
    of_claims, on_stand_ins = ({word: outcomes[word] for word in words} for words in (VERDICTS, SEEN))
    there = f"; on stand-in data {in_words(on_stand_ins)}" if any(on_stand_ins.values()) else ""
    print(f"{counted(len(scored), 'claim')}: {in_words(of_claims)}{there}")
    if lacking:
        print(f"left out, as their tables are missing: {some([found.study for found in lacking])}", file=sys.stderr)
    return 0
