"""`privpost status` and `privpost prune`: what the store and the build hold, and the removal of what no grid names."""

from pathlib import Path
from typing import NamedTuple

from privpost.atomic import abandoned_in, is_abandoned
from privpost.commands import options, sweeps
from privpost.lab import cells, grid, published, store, tables
from privpost.lab.plan import lacking, table_files
from privpost.lab.project import built, remove
from privpost.lab.study import Study
from privpost.progress import counted, some


class State(NamedTuple):
    """What there is of one study: counts of cells, what changed since they were computed, and files to remove."""

    study: Study
    cells: int
    current: int
    behind: int
    missing: int
    changes: list[str]
    stale: list[Path]
    ad_hoc: list[Path]
    tables: str


def state_of(study: Study) -> State:
    """Return what there is of a study; every file of the store is read and its checksum compared."""
    grid_cells = grid.expand(study)
    stock = cells.look(study, grid_cells)
    known = {str(cell.path) for cell in grid_cells}
    stale, ad_hoc = [], []
    for path in sorted(study.cells_folder.glob("*")):
        if str(path) in known:
            continue
        if path.suffix != ".npz" or path.name.startswith("."):
            stale += [path] if path.suffix == store.CORRUPT or is_abandoned(path) else []
            continue
        try:
            asked = store.read(path).record["asked_by"]
        except store.CorruptCell:
            asked = "nobody"
        (ad_hoc if asked == "sweep" else stale).append(path)
    changes = sorted({change for changed in stock.behind.values() for change in changed})
    current = len(grid_cells) - len(stock.missing) - len(stock.behind)
    counts = (len(grid_cells), current, len(stock.behind), len(stock.missing))
    whole = all(Path(path).is_file() for path in table_files(study))
    built_tables = (tables.outdated(study) or "built") if whole else "not built"
    return State(study, *counts, changes, stale, ad_hoc, built_tables)


def status(argv: list[str]) -> int:
    """Print what the store and the build hold, a summary first."""
    text = "Print how many cells of each study are in the store, and which of them other code computed."
    parser = options.parser("status", text, study="any")
    parser.add_argument("--json", action="store_true", help="print JSON")
    given = parser.parse_args(argv)
    states = [state_of(study) for study in grid.load_studies(given.study or None, given.scale, built(given.scale))]
    if given.json:
        return options.as_json([_plain(state) for state in states])
    print("\n".join(report(states)))
    return 0


def _plain(state: State) -> dict:
    names = ("cells", "current", "behind", "missing", "tables")
    return {"study": state.study.name, **{name: getattr(state, name) for name in names}}


def report(states: list[State]) -> list[str]:
    """Return the lines of `privpost status`: a summary, then the studies of which there is something."""
    total = sum(state.cells for state in states)
    there = sum(state.current + state.behind for state in states)
    behind = sum(state.behind for state in states)
    done = sum(state.tables == "built" for state in states)
    lines = [
        f"{counted(len(states), 'study', 'studies')}: {there} of {counted(total, 'cell')} in the store, "
        f"{behind} of them by other code; tables of {done} built."
    ]
    if altered := [path for path in published.covered() if published.altered(path)]:
        lines.append(f"{counted(len(altered), 'published file')} altered by hand: {some([*map(str, altered)])}")
    # Whole tables need no cell: the store is a cache.
    if any(state.missing and state.tables != "built" for state in states):
        lines.append("make reproduce computes what is missing.")
    shown = [state for state in states if state.current + state.behind or state.stale or state.ad_hoc]
    if shown:
        lines.append(f"{'study':<34}{'cells':>6}{'current':>9}{'behind':>8}{'missing':>9}  tables")
    for state in shown:
        counts = f"{state.cells:>6}{state.current:>9}{state.behind:>8}{state.missing:>9}"
        lines.append(f"{state.study.name:<34}{counts}  {state.tables}")
        if state.changes:
            lines.append(f"    since they were computed: {some(state.changes)}")
        if state.stale or state.ad_hoc:
            stale = f"{counted(len(state.stale), 'stale file')} (privpost prune)"
            lines.append(f"    {stale}, {counted(len(state.ad_hoc), 'cell')} of sweeps")
    return lines + lacking(*(state.study for state in states))


def prune(argv: list[str]) -> int:
    """Remove results that no grid names."""
    text = "Remove cells that no grid names, damaged files that were set aside, and temporary files of killed jobs."
    parser = options.parser("prune", text, study="any")
    parser.add_argument("--sweeps", action="store_true", help="remove the results of runs and sweeps too")
    parser.add_argument("-n", "--dry-run", action="store_true", help="only list what would be removed")
    given = parser.parse_args(argv)
    paths: list[Path] = []
    for study in grid.load_studies(given.study or None, given.scale, built(given.scale)):
        state = state_of(study)
        paths += [*state.stale, *abandoned_in(study.results)]
        if given.sweeps:
            folders = sorted(sweeps.FOLDER.glob("*")) if sweeps.FOLDER.is_dir() else []
            paths += [*state.ad_hoc, *(path for path in folders if path.name.split("__")[0] == study.identifier)]
    paths = list(dict.fromkeys(paths))
    size = sum(_size(path) for path in paths) / 1e6
    for path in paths:
        print(path)
        if not given.dry_run:
            remove(path) if path.is_dir() else path.unlink(missing_ok=True)
    print(f"{len(paths)} files, {size:.1f} MB {'would be' if given.dry_run else 'were'} removed")
    return 0


def _size(path: Path) -> int:
    return sum(entry.stat().st_size for entry in path.rglob("*")) if path.is_dir() else path.lstat().st_size
