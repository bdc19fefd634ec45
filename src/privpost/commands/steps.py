"""Commands for single steps of a rebuild, from built or published tables."""

import re
import sys
from argparse import Namespace
from collections.abc import Iterable, Iterator
from pathlib import Path

from privpost import moved
from privpost.lab import grid, tables
from privpost.lab.claims import SEEN, VERDICTS, Claim
from privpost.lab.project import PUBLISHED, built
from privpost.lab.schema import SettingError, suggest
from privpost.lab.study import Study
from privpost.progress import counted, some

# The folder for figures, documents and the report that these commands make from the published tables.
OF_PUBLISHED = Path("build/published")


def _places(given: Namespace) -> tuple[Path, Path]:
    """Return the folder of the tables, and the folder for the files that are made from the tables."""
    home = built(given.scale) if given.built or given.scale != "paper" else PUBLISHED
    return home, OF_PUBLISHED if home == PUBLISHED else home


def _tell(paths: list[Path]) -> int:
    for path in paths:
        print(path)
    return 0


def tell_outdated(studies: Iterable[Study]) -> None:
    """Print on stderr the studies whose tables are out of date, with a line for each reason."""
    names: dict[str, list[str]] = {}
    for study in studies:
        if why := tables.outdated(study):
            published = study.home == PUBLISHED
            made = "make reproduce" if study.scale == "paper" else f"privpost reproduce --scale {study.scale}"
            which, cure = ("published", f"{made}, then make publish") if published else ("built", made)
            read = f" (it reads {some(others)})" if (others := tables.read_outdated(study)) else ""
            names.setdefault(f"the {which} tables of {{}} were {why}; to renew them: {cure}", []).append(
                study.name + read
            )
    for what, of_studies in names.items():
        print(f"privpost: {what.format(', '.join(of_studies))}", file=sys.stderr)


def build(given: Namespace) -> int:
    """Compute a study's missing cells, write the study's tables, and return the exit status."""
    from privpost.commands import run
    from privpost.lab import cells

    study = grid.load_study(given.study, given.scale, built(given.scale))
    code = tables.code_of(study)
    if failed := cells.compute_each(study, grid.expand(study)):
        return run.name_failed(grid.expand(study), failed)
    return _tell(run.build(study, code, draw=False))


def draw(given: Namespace) -> int:
    """Draw figures from the published tables or from built tables, and return the exit status."""
    from privpost.commands import drawing

    home, out = _places(given)
    endings = ("svg", "pdf", "png") if given.printed else ("svg",)
    studies = grid.load_studies(given.study or None, given.scale, home)
    tell_outdated(studies)
    paths = [path for study in studies for path in drawing.draw(study, out, endings)]
    if not given.study:
        from privpost.report import figures

        paths += figures.draw(home, out, endings)
    return _tell(paths)


def _of_all(given: Namespace) -> tuple[list[Study], Path, Path]:
    """Return all studies, the folder of their tables, and the folder for the files that are made from the tables."""
    home, out = _places(given)
    if home != PUBLISHED:
        tables.gather_times(home)
    studies = grid.load_studies(None, given.scale, home)
    tell_outdated(studies)
    return studies, home, out


def scorecard(given: Namespace) -> int:
    """Score all claims, write the scorecard, and return the exit status."""
    from privpost.report import scorecard as scores

    studies, _, out = _of_all(given)
    return _tell([scores.write(scores.score(studies), out / "results/scorecard.csv")])


def documents(given: Namespace) -> int:
    """Render README.md and the documents, and return the exit status."""
    from privpost.report import documents as pages

    studies, home, out = _of_all(given)
    return _tell(pages.write(studies, home, out / "documents"))


def report(given: Namespace) -> int:
    """Write the report as one HTML file, and return the exit status."""
    from privpost.report import figures, page

    studies, home, out = _of_all(given)
    if home == out:
        figures.draw(out)
    return _tell([page.write(studies, home, out / "report.html")])


def _claims_among(names: list[str]) -> dict[str, str]:
    """Map each claim in `names` to its study or paper. The map is empty if `names` are studies."""
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


def claims(given: Namespace) -> int:
    """Print the verdicts on the claims of the named studies or sweeps, and return the exit status."""
    from privpost.commands import sweeps
    from privpost.report.scorecard import score

    if folders := [Path(name) for name in given.study if (Path(name) / sweeps.RECORD).is_file()]:
        return _claims_of_sweeps(folders, given.evidence)
    home, ids = _places(given)[0], _claims_among(given.study)
    studies = grid.load_studies(ids.values() or given.study or None, given.scale, home)
    tell_outdated(studies)
    of_studies = score(studies)
    lacking = [found for found in of_studies if found.claims is None]
    if lacking and (given.study or len(lacking) == len(of_studies)):
        raise FileNotFoundError(lacking[0].lacking)
    scored = [(c, found.study) for found in of_studies for c in found.claims or () if not ids or c.id in ids]
    _print_claims(scored, given.evidence, named=bool(ids))
    if lacking:
        print(f"left out, as their tables are missing: {some([found.study for found in lacking])}", file=sys.stderr)
    return 0


def _claims_of_sweeps(folders: list[Path], evidence: bool) -> int:
    """Print verdicts on claims, scored on the tables of sweeps, beside the published verdicts."""
    from privpost.commands import sweeps
    from privpost.report.scorecard import outcome, read

    card = PUBLISHED / "results/scorecard.csv"
    published = {row.id: outcome(row) for row in read(card).itertuples()} if card.is_file() else {}
    for folder in folders:
        for study, point in sweeps.points(folder):
            full = study.scale == "paper"
            scale = "" if full else f", {study.scale} scale: too few trials to compare with published verdicts"
            without = f"; without the published rows of {point.lacking}" if point.lacking else ""
            print(f"{study.name} {point.settings}".strip() + scale + without)
            _print_claims(
                [(claim, study.name) for claim in point.claims], evidence, published=published if full else None
            )
            if point.unscored:
                print(f"not scored, since they need rows that the sweep lacks: {', '.join(sorted(point.unscored))}")
            for id, why in point.unscored.items() if evidence else ():
                print(f"  {id}: {why}")
    return 0


def _print_claims(scored: list[tuple[Claim, str]], evidence: bool, *, named: bool = False, published=None) -> None:
    """Print claims with their verdicts, and a count of the verdicts."""
    import shutil
    import textwrap
    from collections import Counter

    from privpost.report.scorecard import evidence_rows, in_words, outcome

    before = {claim.id: (published or {}).get(claim.id, outcome(claim)) for claim, _ in scored}
    shown = {claim.id: " → ".join(dict.fromkeys([before[claim.id], outcome(claim)])) for claim, _ in scored}
    first, second = (max(map(len, words), default=0) for words in (shown, shown.values()))
    indent = " " * (first + second + 4)
    width = max(60, shutil.get_terminal_size((120, 24)).columns)
    for claim, study in scored:
        head = f"{claim.id:<{first}}  {shown[claim.id]:<{second}}  {claim.statement}"
        print(textwrap.fill(head, width, subsequent_indent=indent))
        for text in _about(claim, study, evidence, named):
            print(textwrap.fill(text, width, initial_indent=indent, subsequent_indent=indent + "  "))
        rows = sorted(evidence_rows(claim.evidence) if evidence else [], key=lambda row: not _failed(row[0], claim))
        for name, value in rows:
            print(f"{indent}{name:<{max(len(name) for name, _ in rows)}}  {value}")
    outcomes = Counter(word for claim, _ in scored for word in {claim.verdict, claim.seen})
    of_claims, on_stand_ins = ({word: outcomes[word] for word in words} for words in (VERDICTS, SEEN))
    there = f"; on stand-in data {in_words(on_stand_ins)}" if any(on_stand_ins.values()) else ""
    other = f"; {sum(before[claim.id] != outcome(claim) for claim, _ in scored)} turned" if published else ""
    print(f"{counted(len(scored), 'claim')}: {in_words(of_claims)}{there}{other}")


def _failed(name: str, claim: Claim) -> bool:
    """Return whether a name in the evidence contains over three quarters of the words of a failed check."""
    words = {*re.findall(r"[\w.]+", name)}
    checks = [{*re.findall(r"[\w.]+", check)} for check in claim.failed]
    return any(len(words & check) > 0.75 * len(check) for check in checks)


def _about(claim: Claim, study: str, evidence: bool, named: bool) -> Iterator[str]:
    """Yield lines of detail about a claim."""
    failed = "; ".join(claim.failed) if evidence else some(claim.failed)
    passed = f"{len(claim.checks) - len(claim.failed)} of {counted(len(claim.checks), 'check')} pass"
    yield passed + (f"; fails: {failed}" if failed else "")
    if claim.by:
        yield ", ".join(f"{of} {mark}" for of, mark in claim.by.items())
    if named or evidence:
        yield f"scored by {study}: src/privpost/experiments/{study.removesuffix('/claims')}/claims.py"
    if evidence:
        yield f"test: {claim.test}"
        if not claim.checks:
            yield f"why: {claim.reason}"
