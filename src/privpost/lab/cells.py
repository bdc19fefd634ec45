"""Computes and stores cells of a point, a sweep, a study or a shard, which is a part of a sweep."""

import contextlib
import functools
import os
import resource
import sys
import time
import traceback
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from privpost.distributions import noise
from privpost.lab import grid, ledgers, provenance, store
from privpost.lab.project import PREPARED, CannotWrite, plainly
from privpost.lab.schema import SettingError
from privpost.lab.streams import Streams
from privpost.lab.study import Cell, Study
from privpost.privacy.ledger.gate import Ledger
from privpost.progress import Progress, counted, some


class Origin:
    """The provenance of a study's cells: code, versions and ledgers at the time when this object is made."""

    def __init__(self, study: Study):
        self._study, self._since = study, time.time()
        self._of_cell = functools.cache(functools.partial(provenance.of_cell, f"{study.package}.study"))

    def of(self, dataset: str | None, used: Iterable[str] = ()) -> dict[str, dict[str, str]]:
        """Return source digests and versions for a cell on a data set. `used` are the modules in the cell's ledger."""
        known = self._of_cell(dataset, tuple(used))
        # A file that was edited meanwhile gets no digest, since nobody knows which version of the file ran.
        source = {
            name: "edited meanwhile" if (provenance.PACKAGE / name).stat().st_mtime > self._since else digest
            for name, digest in known["source"].items()
        }
        return {**known, "source": source | ledgers.digests(grid.read_by(self._study))}


def compute(
    study: Study, cell: Cell, origin: Origin | None = None, *, fresh: bool = False, asked: str = "grid"
) -> Path:
    """Compute a cell, store it and return its path.

    A result that another process stored meanwhile is kept unless `fresh` is set. `asked` says what requested the cell:
    the study's own grid, or a sweep. Raises SettingError if a mechanism, the ledger, a model or a data set refuses a
    setting, and ValueError if the study does not return a map from names to arrays.
    """
    start = time.perf_counter()
    origin = origin or Origin(study)
    ledger = Ledger(cell.dataset, cell.sizes["trials"])
    config = cell.config
    if cell.reads:
        config.ledgers = ledgers.contents(grid.read_by(study))
    try:
        with noise.simulation(), store.under_way(cell.path, cell.digest):
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
        "asked_by": asked,
        **origin.of(cell.dataset, ledger.modules()),
        "wall_seconds": time.perf_counter() - start,
        # ru_maxrss is in KiB on Linux and in bytes on macOS.
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10),
    }
    if fresh or stored(cell) is None:
        store.write(cell.path, arrays, record)
    return cell.path


def _is_refusal(error: ValueError) -> bool:
    """Whether the error means that a mechanism, the ledger, a model or a data set has refused a setting."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and trace.tb_frame.f_globals.get("__name__", "").startswith(
        ("privpost.mechanisms", "privpost.privacy", "privpost.models", "privpost.datasets")
    )


def stored(cell: Cell) -> store.Result | None:
    """Return the stored result of a cell, or None if there is none. A damaged file is renamed, with a message."""
    try:
        return store.read(cell.path, cell.digest)
    except store.CorruptCell as error:
        if os.path.lexists(cell.path):
            print(f"privpost: {error}; set aside as {store.set_aside(cell.path).name}", file=sys.stderr)
    return None


class Stock(NamedTuple):
    """The cells that the store lacks, and for each stored cell the changes of code since it was computed."""

    missing: list[Cell]
    behind: dict[str, list[str]]


def look(study: Study, cells: Sequence[Cell], *, fresh: bool = False) -> Stock:
    """Return which cells the store lacks, and how the code of the others changed. `fresh` ignores the store."""
    origin, missing, behind = Origin(study), [], {}
    for cell in cells:
        try:
            result = None if fresh else stored(cell)
        except OSError:
            # An unreadable cell counts as missing. It then fails when it is computed, and stops no other cell.
            result = None
        if result is None:
            missing.append(cell)
            continue
        now = origin.of(cell.dataset, result.record.get("modules", ()))
        if changed := provenance.changes(result.record, now):
            behind[cell.digest] = changed
    return Stock(missing, behind)


def tell_behind(study: str, stock: Stock, total: int) -> None:
    """Print on stderr how many stored cells of a study were computed by code that has changed since then."""
    if not stock.behind:
        return
    changes = sorted({change for changed in stock.behind.values() for change in changed})
    were = "was" if total == 1 else "were"
    print(
        f"privpost: {study}: {len(stock.behind)} of {counted(total, 'cell')} {were} computed by other code "
        f"({some(changes)}); they are computed again by fresh=true (privpost study=...), --fresh (privpost reproduce) "
        "or FRESH=1 (make reproduce)",
        file=sys.stderr,
    )


def ready(study: Study, cells: Sequence[Cell], *, fresh: bool = False) -> tuple[list[Cell], dict[str, str]]:
    """Prepare data. Return the cells to compute, and by digest the reasons why other cells cannot be computed."""
    stock = look(study, cells, fresh=fresh)
    tell_behind(study.name, stock, len(cells))
    failed = _prepare(stock.missing)
    return [cell for cell in stock.missing if cell.digest not in failed], failed


def compute_each(study: Study, cells: Sequence[Cell], *, fresh: bool = False, asked: str = "grid") -> dict[str, str]:
    """Prepare data and compute the cells that the store lacks. Return the reason of each failure, by cell digest."""
    waiting, failed = ready(study, cells, fresh=fresh)
    return failed | compute_ready(study, waiting, fresh=fresh, asked=asked)


def compute_ready(study: Study, waiting: Sequence[Cell], *, fresh: bool = False, asked: str = "grid") -> dict[str, str]:
    """Compute cells whose data are prepared, and return the reason of each failure, by cell digest.

    After a failure the other cells are computed, unless a result could not be written. Stderr shows the progress and
    the tracebacks of unexpected errors. `fresh` and `asked` are as in `compute`.
    """
    failed: dict[str, str] = {}
    origin, told, progress = Origin(study), set(), Progress(sys.stderr, "cells")
    for place, cell in enumerate(waiting):
        if place:
            # The run continues if the program that reads stderr has ended.
            with contextlib.suppress(OSError):
                progress.update(place, len(waiting))
        try:
            compute(study, cell, origin, fresh=fresh, asked=asked)
        except CannotWrite as error:
            failed |= {cell.digest: str(error), **{other.digest: "not attempted" for other in waiting[place + 1 :]}}
            break
        except SettingError as error:
            failed[cell.digest] = str(error)
        except (OSError, MemoryError) as error:
            failed[cell.digest] = plainly(error)
        except Exception as error:
            failed[cell.digest] = f"{type(error).__name__}: {error}"
            if (trace := traceback.format_exc()) not in told:
                told.add(trace)
                print(trace, file=sys.stderr, end="")
    progress.clear()
    return failed


def _prepare(missing: Iterable[Cell]) -> dict[str, str]:
    """Prepare the data sets that cells read, and return by cell digest the reasons why data are not available."""
    missing, reasons = list(missing), {}
    for name in sorted({cell.dataset for cell in missing if cell.dataset}):
        from privpost.datasets import catalogue, fetch, prepared

        code = provenance.loader_digest(name)
        with contextlib.suppress(ValueError, FileNotFoundError):
            prepared.read(name, catalogue.load(name), prepared=PREPARED)
            if prepared.code_of(name, PREPARED) in ("", code):
                continue
        text = f"its data set {name} is not available (privpost fetch {name} says what is missing)"
        if fetch.main([name]) == 0:
            try:
                prepared.prepare(catalogue.load(name), code=code)
                continue
            except ValueError as error:
                text = str(error)
        reasons |= {cell.digest: text for cell in missing if cell.dataset == name}
    return reasons
