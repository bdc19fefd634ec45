"""Computing one cell: the study's `simulate` on its own random streams and ledger, into the store."""

from __future__ import annotations

import resource
import sys
import time
from pathlib import Path

import numpy as np

from privpost.pipeline import grid, provenance, store
from privpost.pipeline.grid import Cell, Study
from privpost.pipeline.streams import Streams
from privpost.privacy.accounting import Ledger


def compute(study: Study, cell: Cell) -> Path:
    """Compute a cell and store it; returns its path.

    A result that another process stored meanwhile stays: a job that outlived its run cannot replace a newer result.
    Raises ValueError when the study returns something that is not a map from name to array.
    """
    started, start = time.time(), time.perf_counter()
    # Taken before the work: this is the code that runs, even if a file is edited meanwhile.
    origin = provenance.of_cell(study.config["target"], cell.dataset)
    ledger = Ledger()
    arrays = study.module().simulate(cell.config, Streams.of(cell), ledger)
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
        "asked_by": "grid" if cell.digest in _grid_digests(cell.study, study.config["scale"]) else "sweep",
        **origin,
        "started": started,
        "wall_seconds": time.perf_counter() - start,
        # ru_maxrss is in KiB on Linux and in bytes on macOS.
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10),
    }
    if not in_store(cell):
        store.write(cell.path, arrays, record)
    return cell.path


def _grid_digests(name: str, scale: str) -> set[str]:
    # Composed anew: `study` may carry the overrides of an ad hoc run.
    return {cell.digest for cell in grid.expand(grid.load_study(name, scale))}


def in_store(cell: Cell) -> bool:
    """Whether the store has the cell; a damaged file is set aside, which is said on stderr, and counts as none."""
    try:
        store.read(cell.path, cell.digest)
    except store.CorruptCell as error:
        if cell.path.exists():
            print(f"privpost: {error}; set aside as {store.set_aside(cell.path).name}", file=sys.stderr)
        return False
    return True


def read_or_recompute(study: Study, cell: Cell) -> store.Result:
    """Return a cell of the grid from the store; a damaged file is set aside, recomputed, and said so on stderr."""
    if not in_store(cell):
        print(f"privpost: {cell.path} is computed again", file=sys.stderr)
        compute(study, cell)
    return store.read(cell.path, cell.digest)
