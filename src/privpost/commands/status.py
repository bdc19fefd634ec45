"""`privpost status` and `privpost prune`: the states of cells, tables and figures, and the removal of stale ones."""

from pathlib import Path

from privpost.atomic import abandoned, abandoned_in
from privpost.commands import options, sweeps
from privpost.lab import grid, inventory, planned
from privpost.lab.study import Study
from privpost.progress import counted
from privpost.report import build, documents

SHOWN = 4


def status(argv: list[str]) -> int:
    """Print the states of cells, tables and figures."""
    parser = options.parser(
        "status",
        "Print, per study, how many cells of its grid are current, behind (the code or a library changed "
        "since; privpost reproduce --behind computes them again) or missing (the next rebuild computes them), and how "
        "many stale results, of settings that no grid names any more, privpost prune can remove.",
        study="any",
    )
    given = parser.parse_args(argv)
    print(report(planned.load_studies(given.study or None, given.scale)))
    return 0


def prune(argv: list[str]) -> int:
    """Remove stale results from the store."""
    parser = options.parser(
        "prune",
        "Remove stale results, damaged files that were set aside, and temporary files of killed jobs. "
        "Results of runs and sweeps from the command line stay, unless --sweeps is given.",
        study="any",
    )
    parser.add_argument("--sweeps", action="store_true", help="remove results of ad hoc runs and sweeps too")
    parser.add_argument("-n", "--dry-run", action="store_true", help="only list what would be removed")
    given = parser.parse_args(argv)
    paths = removable(planned.load_studies(given.study or None, given.scale), given.sweeps)
    for path in paths:
        print(path)
    megabytes = sum(map(inventory.size, paths)) / 1e6
    if not given.dry_run:
        inventory.remove(paths)
    print(f"{len(paths)} files, {megabytes:.1f} MB {'would be' if given.dry_run else 'were'} removed")
    return 0


def report(studies: list[Study]) -> str:
    """Return the table of `privpost status`, with the reasons under each study."""
    header = f"{'study':<36}{'cells':>7}{'current':>9}{'behind':>8}{'missing':>9}{'stale':>7}  tables    figures"
    lines = [header]
    for study in studies:
        cells = grid.expand(study)
        found = inventory.take(study, cells)
        tables, table_reasons = inventory.tables_state(study, cells)
        figures, figure_reasons = inventory.figures_state(study)
        lines.append(
            f"{study.name:<36}{len(cells):>7}{len(found.current):>9}{len(found.behind):>8}"
            f"{len(found.missing) + len(found.damaged):>9}{len(found.stale):>7}  {tables:<9} {figures}"
        )
        reasons = [*found.reasons, *table_reasons, *figure_reasons]
        if found.ad_hoc:
            reasons.append(f"ad hoc: {counted(len(found.ad_hoc), 'cell')} of runs and sweeps from the command line")
        if found.leftovers:
            reasons.append(f"leftovers: {len(found.leftovers)} set-aside or temporary files (privpost prune)")
        if len(found.missing) == len(cells) and tables == "current":
            reasons.append("no cell is in the store, as on a fresh clone: snakemake computes them")
        lines += [f"    {reason}" for reason in reasons[:SHOWN]]
        if len(reasons) > SHOWN:
            lines.append(f"    and {len(reasons) - SHOWN} more")
    places = {(study.config["root"], study.figure_root): study for study in studies}
    if others := {path for study in places.values() for path in overview_leftovers(study)}:
        lines.append(f"leftovers outside the studies' folders: {len(others)} temporary files (privpost prune)")
    return "\n".join(lines)


def removable(studies: list[Study], with_sweeps: bool) -> list[Path]:
    """Return the files and folders that prune removes: stale cells and leftovers, on request also others."""
    paths: list[Path] = []
    for study in studies:
        found = inventory.take(study, grid.expand(study))
        paths += [*found.stale, *found.leftovers]
        if with_sweeps:
            folders = sorted(sweeps.FOLDER.glob("*")) if sweeps.FOLDER.is_dir() else []
            paths += [*found.ad_hoc, *(path for path in folders if path.name.split("__")[0] == study.identifier)]
        paths += overview_leftovers(study)
    return list(dict.fromkeys(paths))


def overview_leftovers(study: Study) -> list[Path]:
    """Return abandoned temporary files of what covers all studies of a study's scale: scores, figures, documents."""
    root = Path(study.config["root"])
    written = [*build.score_files(root), *build.figure_files(study.figure_root), build.report_file(root)]
    found = []
    for folder in sorted({path.parent for path in written}):
        found += abandoned_in(folder)
    if root == Path("results"):
        # These folders hold users' own files too.
        for path in {Path("README.md"), *documents.files()}:
            found += abandoned(path)
    return found
