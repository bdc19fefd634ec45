"""Computing one cell: the study's `simulate` on its own random streams and ledger, into the store."""

from __future__ import annotations

import resource
import sys
import time
from pathlib import Path

import numpy as np

from privpost.pipeline import provenance, store
from privpost.pipeline.grid import Cell, Study
from privpost.pipeline.streams import Streams
from privpost.privacy.accounting import Ledger


def compute(study: Study, cell: Cell) -> Path:
    """Compute a cell and store it; returns its path.

    Raises ValueError when the study returns something that is not a map from name to array.
    """
    start = time.perf_counter()
    ledger = Ledger()
    arrays = study.module().simulate(cell.config, Streams.of(cell), ledger)
    if not isinstance(arrays, dict) or not arrays:
        raise ValueError(f"{study.name}: simulate must return a dict of arrays, not {type(arrays).__name__}")
    arrays = {name: np.asarray(array) for name, array in arrays.items()}
    for name, array in arrays.items():
        if array.dtype.hasobject or name == store.RECORD:
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
        "source": provenance.source_digest(study.config["target"]),
        "versions": provenance.versions(),
        "wall_seconds": time.perf_counter() - start,
        # ru_maxrss is in KiB on Linux and in bytes on macOS.
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10),
    }
    store.write(cell.path, arrays, record)
    return cell.path


def read_or_recompute(study: Study, cell: Cell) -> store.Result:
    """Return a cell of the grid from the store; a damaged file is set aside, recomputed, and said so on stderr."""
    try:
        return store.read(cell.path, cell.digest)
    except store.CorruptCell as error:
        if cell.path.exists():
            aside = store.set_aside(cell.path)
            print(f"privpost: {error}; set aside as {aside.name} and computed again", file=sys.stderr)
        compute(study, cell)
        return store.read(cell.path, cell.digest)
