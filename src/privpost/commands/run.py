"""`privpost [-m] study=...`: one point, a sweep, a study's whole grid or a shard of it."""

import re
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path

from privpost.lab import cells, grid, request, store, tables
from privpost.lab.request import Request
from privpost.lab.schema import SettingError
from privpost.lab.study import Cell, Study
from privpost.progress import counted, say


def main(argv: list[str]) -> int:
    """Run `privpost [-m] study=... [key=value ...]`; returns the exit status.

    Raises SettingError for a key or a value that is not allowed, before anything runs.
    """
    if show := {"--cfg", "-c"} & set(argv):
        # Hydra's `--cfg job`: the settings of what would run.
        place = argv.index(show.pop())
        return _show(request.understand(argv[:place] + argv[place + 2 :]))
    asked = request.understand(argv)
    for line in asked.notes:
        say(line)
    if request.DRY_RUN & set(argv):
        return _announce(asked)
    try:
        return _run(asked)
    except KeyboardInterrupt:
        done = sum(cell.path.exists() for cell in asked.cells)
        print(
            f"\nprivpost: stopped; {done} of {counted(len(asked.cells), 'cell')} are in the store, and the same "
            "command goes on from there.",
            file=sys.stderr,
        )
        return 130


def _show(asked: Request) -> int:
    """Print the settings of the first cell as YAML; returns the exit status."""
    import yaml

    print(yaml.safe_dump({**vars(asked.cells[0].config), **asked.cells[0].sizes}, sort_keys=False), end="")
    return 0


def _announce(asked: Request) -> int:
    """Say what would be computed, after every setting of every cell has been checked; returns the exit status."""
    missing = [cell for cell in asked.cells if asked.fresh or not cell.path.exists()]
    print(f"{counted(len(asked.cells), 'cell')}, {len(asked.cells) - len(missing)} of them in the store already.")
    if missing:
        print(f"The first missing one: privpost {command_of(missing[0])}")
    return 0


def _run(asked: Request) -> int:
    there = sum(cell.path.exists() for cell in asked.cells)
    if there and not asked.fresh:
        say(f"{there} of {counted(len(asked.cells), 'cell')} in the store already")
    code = tables.code_of(asked.study)
    how = {"processes": asked.processes, "fresh": asked.fresh, "asked": "grid" if asked.whole else "sweep"}
    failed = cells.compute_each(asked.study, asked.cells, **how)
    if asked.shard:
        number, count = asked.shard
        there = len(asked.cells) - len(failed)
        say(f"shard {number} of {count}: {there} of {counted(len(asked.cells), 'cell')} in the store")
        return name_failed(asked.cells, failed)
    if asked.whole and asked.folder is None:
        if failed:
            return name_failed(asked.cells, failed)
        for path in build(asked.study, code):
            say(path)
        return 0
    return _finish(asked, failed)


def build(study: Study, code: str, *, draw: bool = True) -> list[Path]:
    """Return the tables and figures of a study, all of whose cells are in the store, after writing them.

    `code` is that of `tables.write`. Raises SettingError for a cell that is not there.
    """
    results = []
    for cell in grid.expand(study):
        if (result := cells.stored(cell)) is None:
            raise SettingError(f"{study.name}: the cell {cell.slug} is not in the store: privpost {command_of(cell)}")
        results.append(result)
    paths = tables.write(study, results, code)
    if draw:
        from privpost.commands import drawing

        paths += drawing.draw(study, study.home)
    return paths


def _finish(asked: Request, failed: dict[str, str]) -> int:
    """Write the tables and the figure of a sweep's cells, without those that failed; returns the exit status."""
    from privpost.commands import sweeps

    there = [cell for cell in asked.cells if cell.digest not in failed and cell.path.exists()]
    if there:
        print("writing tables and drawing the figure", file=sys.stderr, flush=True)
        # Results are read one after another: a large sweep's would not fit into memory together.
        written = sweeps.write(asked, there, _results(there))
        failed |= written.failed
        say(f"{counted(len(there) - len(written.failed), 'cell')}; tables, figure and record:")
        for line in (*(f"  {path}" for path in written.paths), *written.notes):
            say(line)
    return name_failed(asked.cells, failed)


def _results(there: list[Cell]):
    return (store.read(cell.path, cell.digest) for cell in there)


def command_of(cell: Cell) -> str:
    """Return the words after `privpost` that compute a cell, as users write them and as a shell reads them."""
    return shlex.join(re.sub(r"^\+\+(\w+=)\[?([^][,]*)\]?$|^\+\+", r"\1\2", word) for word in cell.command())


def name_failed(asked: list[Cell], failed: Mapping[str, str]) -> int:
    """Name each cell that failed on one line, with the reason and the command that asks for it; returns the status."""
    for cell in asked:
        if cell.digest in failed:
            reason = " ".join(failed[cell.digest].split())
            words = shlex.split(command_of(cell))
            named = ", ".join(word for word in words if "=" in word and not word.startswith(("study=", "scale=")))
            print(
                f"privpost: {named or cell.slug}: {reason} [privpost {' '.join(map(shlex.quote, words))}]",
                file=sys.stderr,
            )
    if failed:
        print(f"privpost: {len(failed)} of {counted(len(asked), 'cell')} could not be computed", file=sys.stderr)
    return int(bool(failed))
