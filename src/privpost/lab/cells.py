"""Computing one cell: the study's `simulate` on its own random streams and ledger, into the store."""

import os
import resource
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from privpost.lab import grid, ledgers, provenance, store
from privpost.lab.project import CannotWrite, plainly
from privpost.lab.schema import SettingError
from privpost.lab.streams import Streams
from privpost.lab.study import Cell, Study
from privpost.privacy.ledger import Ledger
from privpost.progress import Progress, say


class Known(NamedTuple):
    """What the cells of one process share: digests of the study's own grid, and where results come from by data set.

    `since` is when their code was looked at, in seconds of the epoch.
    """

    planned: set[str]
    origins: dict[str | None, dict[str, dict[str, str]]]
    since: float

    @classmethod
    def of(cls, study: Study, cells: Sequence[Cell]) -> "Known":
        since = time.time()
        origins = {name: origin_of(study, name) for name in {cell.dataset for cell in cells}}
        return cls(_planned(study.name, study.config["scale"]), origins, since)

    def origin(self, cell: Cell, used: list[str]) -> dict[str, dict[str, str]]:
        """Return where a cell's result comes from, given the modules that its ledger recorded."""
        found = self.origins[cell.dataset]
        return {**found, "source": provenance.source(*used, since=self.since) | found["source"]}


def origin_of(study: Study, dataset: str | None, used: Sequence[str] = ()) -> dict[str, dict[str, str]]:
    """Return where a cell of a study comes from, as `provenance.of_cell` has it, with the ledgers that it reads."""
    found = provenance.of_cell(study.target, dataset, used)
    return {**found, "source": found["source"] | ledgers.digests(grid.read_by(study))}


def compute(study: Study, cell: Cell, known: Known | None = None) -> Path:
    """Compute a cell and store it; returns its path. `known` spares finding out again what many cells share.

    A result that another process stored meanwhile stays: a job that outlived its run cannot replace a newer result.
    Raises SettingError when a mechanism, the ledger or a data set refuses, and ValueError when the study returns
    something that is not a map from name to array.
    """
    started, start = time.time(), time.perf_counter()
    # Taken before the work: this is the code that runs, even if a file is edited meanwhile.
    known = known or Known.of(study, [cell])
    ledger = Ledger(cell.dataset, cell.sizes["trials"])
    config = cell.config
    if cell.reads:
        config.ledgers = ledgers.contents(grid.read_by(study))
    try:
        arrays = study.module().simulate(config, Streams.of(cell), ledger)
    except ValueError as error:
        if _is_refusal(error):
            raise SettingError(f"{study.name}: {error}") from error
        raise
    if not isinstance(arrays, dict) or not arrays:
        raise ValueError(f"{study.name}: simulate must return a dict of arrays, not {type(arrays).__name__}")
    arrays = {name: np.asarray(array) for name, array in arrays.items()}
    for name, array in arrays.items():
        if array.dtype.hasobject or name in store.RESERVED:
            raise ValueError(f"{study.name}: the array {name!r} cannot be stored (type {array.dtype})")
    record = {
        "study": cell.study,
        "digest": cell.digest,
        "config": vars(cell.config),
        "point": cell.point,
        "sizes": cell.sizes,
        "data": cell.data,
        "command": cell.command(),
        "ledger": ledger.record(),
        "mechanisms": ledger.mechanisms(),
        "modules": ledger.modules(),
        "asked_by": "grid" if cell.digest in known.planned else "sweep",
        **known.origin(cell, ledger.modules()),
        "started": started,
        "wall_seconds": time.perf_counter() - start,
        # ru_maxrss is in KiB on Linux and in bytes on macOS.
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10),
    }
    if not in_store(cell):
        store.write(cell.path, arrays, record)
    return cell.path


def _is_refusal(error: ValueError) -> bool:
    """Whether a mechanism, the ledger, a model or a data set refused a setting; other errors are told whole."""
    trace = error.__traceback__
    while trace.tb_next is not None:
        trace = trace.tb_next
    return trace.tb_frame.f_globals.get("__name__", "").startswith(
        ("privpost.mechanisms", "privpost.privacy", "privpost.models", "privpost.datasets")
    )


def compute_each(study: Study, cells: Sequence[Cell]) -> dict[str, str]:
    """Compute those of some cells of a study that the store lacks, one after another in this process.

    Returns the reasons of those that failed, by digest; the others are computed all the same, except that where one
    cannot be written the rest fails unattempted. Paths go to stdout as cells are stored; progress goes to stderr, and
    so does the traceback of the first of equal errors that are no refusal. (The peak memory in a cell's record is that
    of the process so far.)
    """
    known = Known.of(study, cells)
    failed: dict[str, str] = {}
    progress = Progress(sys.stderr, "points")
    traced = set()
    for place, cell in enumerate(cells):
        path = None
        try:
            if not in_store(cell):
                path = compute(study, cell, known)
        except CannotWrite as error:
            progress.clear()
            rest = {other.digest: "not attempted" for other in cells[place:] if not other.path.exists()}
            return failed | rest | {cell.digest: str(error)}
        except (SettingError, OSError, MemoryError) as error:
            failed[cell.digest] = str(error) if isinstance(error, SettingError) else plainly(error)
        except Exception as error:
            failed[cell.digest] = f"{type(error).__name__}: {error}"
            frame = traceback.extract_tb(error.__traceback__)[-1]
            if (frame.filename, frame.lineno) not in traced:
                traced.add((frame.filename, frame.lineno))
                progress.clear()
                traceback.print_exc()
        # A terminal has the line of progress for it, unless the paths go elsewhere.
        if path is not None and not (progress.terminal and sys.stdout.isatty()):
            say(path)
        progress.update(place + 1, len(cells))
    progress.clear()
    return failed


def _planned(name: str, scale: str) -> set[str]:
    # Composed anew: `study` may carry the overrides of an ad hoc run.
    study = grid.load_study(name, scale)
    return {cell.digest for cell in grid.expand(grid.without_missing(study) if study.config.get("reads") else study)}


def in_store(cell: Cell) -> bool:
    """Whether the store has the cell; a damaged file is set aside, which is said on stderr, and counts as none."""
    return stored(cell) is not None


def stored(cell: Cell) -> store.Result | None:
    """Return a cell as the store has it, or None where `in_store` is false."""
    try:
        return store.read(cell.path, cell.digest)
    except store.CorruptCell as error:
        if os.path.lexists(cell.path):
            print(f"privpost: {error}; set aside as {store.set_aside(cell.path).name}", file=sys.stderr)
    return None


def read_or_recompute(study: Study, cell: Cell) -> store.Result:
    """Return a cell of the grid from the store; a damaged file is set aside, recomputed, and said so on stderr."""
    if not in_store(cell):
        print(f"privpost: {cell.path} is computed again", file=sys.stderr)
        compute(study, cell)
    return store.read(cell.path, cell.digest)
