"""`privpost status` and `privpost prune`: show the store and the build, and remove files that no grid names."""

from argparse import Namespace
from pathlib import Path

from privpost.atomic import abandoned_in, is_abandoned
from privpost.commands import sweeps
from privpost.lab import cells, grid, published, store, tables
from privpost.lab.plan import lacking, table_files
from privpost.lab.project import built, remove
from privpost.lab.study import Study
from privpost.progress import counted, some


def status(given: Namespace) -> int:
    """Print a summary of the store and the build, and a line for each study with content."""
    studies = grid.load_studies(given.study or None, given.scale, built(given.scale))
    lines, total, stored, behind, tabulated, incomplete = [], 0, 0, 0, 0, False
    for study in studies:
        # Every file is read, and its checksum compared.
        number, stock = len(grid.expand(study)), cells.look(study, grid.expand(study))
        there = number - len(stock.missing)
        whole = all(Path(path).is_file() for path in table_files(study))
        state = (tables.outdated(study) or "built") if whole else "not built"
        total, stored, behind = total + number, stored + there, behind + len(stock.behind)
        tabulated += state == "built"
        # A study with complete tables needs no cells, since the store is a cache.
        incomplete |= bool(stock.missing) and state != "built"
        if there or state != "not built":
            counts = f"{number:>6}{there - len(stock.behind):>9}{len(stock.behind):>8}{len(stock.missing):>9}"
            lines.append(f"{study.name:<34}{counts}  {state}")
        if stock.behind:
            lines.append(f"    since they were computed: {some(sorted(set().union(*stock.behind.values())))}")
    print(
        f"{counted(len(studies), 'study', 'studies')} at {given.scale} scale: {stored} of "
        f"{counted(total, 'cell')} in the store, {behind} of them by other code; tables of {tabulated} built."
    )
    if altered := [str(path) for path in published.covered() if published.altered(path)]:
        print(f"{counted(len(altered), 'published file')} altered by hand: {some(altered)}")
    if incomplete:
        made = "make reproduce" if given.scale == "paper" else f"privpost reproduce --scale {given.scale}"
        print(f"{made} computes what is missing.")
    if lines:
        print(f"{'study':<34}{'cells':>6}{'current':>9}{'behind':>8}{'missing':>9}  tables", *lines, sep="\n")
    for line in lacking(*studies):
        print(line)
    return 0


def _unnamed(study: Study) -> tuple[list[Path], list[Path]]:
    """Return two lists of files in a study's store that its grid does not name: useless files, and cells of sweeps."""
    stale, of_sweeps = [], []
    for path in sorted({*study.cells_folder.glob("*")}.difference(cell.path for cell in grid.expand(study))):
        if path.suffix != ".npz" or path.name.startswith("."):
            stale += [path] if path.suffix == store.CORRUPT or is_abandoned(path) else []
            continue
        try:
            asked = store.read(path).record["asked_by"]
        except store.CorruptCell:
            asked = "nobody"
        (of_sweeps if asked == "sweep" else stale).append(path)
    return stale, of_sweeps


def prune(given: Namespace) -> int:
    """Remove cells that no grid names, damaged files that were renamed, and temporary files of killed jobs."""
    paths: list[Path] = []
    for study in grid.load_studies(given.study or None, given.scale, built(given.scale)):
        stale, of_sweeps = _unnamed(study)
        paths += [*stale, *abandoned_in(study.results)]
        if given.sweeps:
            folders = sorted(sweeps.FOLDER.glob(f"{study.identifier}*"))
            paths += [*of_sweeps, *(path for path in folders if path.name.split("__")[0] == study.identifier)]
    for path in paths:
        print(path)
        if not given.dry_run:
            remove(path) if path.is_dir() else path.unlink(missing_ok=True)
    print(f"{counted(len(paths), 'file')} {'would be ' * given.dry_run}removed")
    return 0
