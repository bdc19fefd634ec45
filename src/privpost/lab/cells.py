"""The one loop that computes cells: of a point, a sweep, a study or a shard, in one process or several."""

import contextlib
import functools
import multiprocessing
import os
import resource
import signal
import sys
import threading
import time
import traceback
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import NamedTuple

import numpy as np

from privpost.distributions import noise
from privpost.lab import grid, ledgers, provenance, published, store
from privpost.lab.project import PREPARED, CannotWrite, plainly
from privpost.lab.schema import SettingError
from privpost.lab.streams import Streams
from privpost.lab.study import Cell, Study
from privpost.privacy.ledger import Ledger
from privpost.progress import Progress, counted, some

# How often a process of the loop looks whether the loop's own process lives, in seconds.
WATCHED = 0.5


class Origin:
    """Where the cells of one study come from: code, versions and ledgers, as they are when it is made."""

    def __init__(self, study: Study):
        self._study, self._since = study, time.time()
        self._known: dict[tuple, dict[str, dict[str, str]]] = {}

    def of(self, dataset: str | None, used: Iterable[str] = ()) -> dict[str, dict[str, str]]:
        """Return the source and versions of a cell on a data set; `used` are the modules that its ledger recorded."""
        key = (dataset, *used)
        if key not in self._known:
            self._known[key] = provenance.of_cell(f"{self._study.package}.study", dataset, key[1:])
        # A file that was edited meanwhile has no digest: nobody knows which state of it ran.
        source = {
            name: "edited meanwhile" if (provenance.PACKAGE / name).stat().st_mtime > self._since else digest
            for name, digest in self._known[key]["source"].items()
        }
        return {**self._known[key], "source": source | ledgers.digests(grid.read_by(self._study))}


def compute(
    study: Study, cell: Cell, origin: Origin | None = None, *, fresh: bool = False, asked: str = "grid"
) -> Path:
    """Compute a cell and store it; returns its path.

    A result that another process stored meanwhile stays, unless `fresh`: a job that outlived its run cannot replace a
    newer result. `asked` says who asked for it: the study's own grid, or a sweep. Raises SettingError when a mechanism,
    the ledger or a data set refuses, and ValueError when the study returns something that is not a map from name to
    array.
    """
    start = time.perf_counter()
    origin = origin or Origin(study)
    ledger = Ledger(cell.dataset, cell.sizes["trials"])
    config = cell.config
    if cell.reads:
        config.ledgers = ledgers.contents(grid.read_by(study))
        config.results = functools.partial(_results, grid.read_by(study))
    try:
        with noise.simulation():
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


def _results(studies: Iterable[Study]) -> list[store.Result]:
    """Return the results of some studies that the store has."""
    return [result for study in studies for cell in grid.expand(study) if (result := stored(cell))]


def _is_refusal(error: ValueError) -> bool:
    """Whether a mechanism, the ledger, a model or a data set refused a setting; other errors are shown whole."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and trace.tb_frame.f_globals.get("__name__", "").startswith(
        ("privpost.mechanisms", "privpost.privacy", "privpost.models", "privpost.datasets")
    )


def stored(cell: Cell) -> store.Result | None:
    """Return a cell as the store has it, or None; a damaged file is set aside, which is said on stderr."""
    try:
        return store.read(cell.path, cell.digest)
    except store.CorruptCell as error:
        if os.path.lexists(cell.path):
            print(f"privpost: {error}; set aside as {store.set_aside(cell.path).name}", file=sys.stderr)
    return None


class Stock(NamedTuple):
    """Which of some cells the store lacks, and what changed in the code since the others were computed."""

    missing: list[Cell]
    behind: dict[str, list[str]]


def look(study: Study, cells: Sequence[Cell], *, fresh: bool = False) -> Stock:
    """Look for cells in the store; with `fresh` all of them count as missing.

    `behind` has, by digest, the files and versions that changed since a cell was computed.
    """
    origin, missing, behind = Origin(study), [], {}
    for cell in cells:
        try:
            result = None if fresh else stored(cell)
        except OSError:
            # An unreadable cell counts as missing: it fails when it is computed, and stops no other cell.
            result = None
        if result is None:
            missing.append(cell)
            continue
        now = origin.of(cell.dataset, result.record.get("modules", ()))
        if changed := provenance.changes(result.record, now):
            behind[cell.digest] = changed
    return Stock(missing, behind)


def tell_behind(study: str, stock: Stock, total: int) -> None:
    """Say on stderr which of a study's stored cells were computed by other code than today's."""
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


def compute_each(
    study: Study, cells: Sequence[Cell], *, processes: int = 1, fresh: bool = False, asked: str = "grid"
) -> dict[str, str]:
    """Compute the cells that the store lacks; returns why cells failed, by digest.

    A failure stops no other cell, except that after one that cannot be written the rest is not attempted. Progress goes
    to stderr, and so does the traceback of each error that is no refusal, once.

    Args:
        processes: how many cells are computed at a time.
        fresh: whether cells in the store are computed again.
        asked: who asks for them, as in `compute`.
    """
    stock = look(study, cells, fresh=fresh)
    tell_behind(study.name, stock, len(cells))
    failed = _prepare(stock.missing)
    waiting = [cell for cell in stock.missing if cell.digest not in failed]
    how = {"fresh": fresh, "asked": asked}
    expected = published.expected(waiting, study.scale)
    done, total = 0.0, sum(expected.values())
    progress = Progress(sys.stderr, "cells", total / max(1, min(processes, len(waiting))))
    told: set[str] = set()
    for count, (cell, error, trace) in enumerate(_outcomes(study, waiting, processes, how), 1):
        if error is not None:
            failed[cell.digest] = error
            if trace and trace not in told:
                told.add(trace)
                progress.clear()
                print(trace, file=sys.stderr, end="")
        done += expected[cell.digest]
        progress.update(count, len(waiting), share=done / total)
    progress.clear()
    return failed


class _Outcome(NamedTuple):
    cell: Cell
    error: str | None
    trace: str = ""


def _outcomes(study: Study, cells: Sequence[Cell], processes: int, how: dict) -> Iterator[_Outcome]:
    """Compute cells, yield each outcome as it comes, and stop attempting after a cell that cannot be written."""
    if processes > 1 and len(cells) > 1:
        yield from _in_processes(study, cells, min(processes, len(cells)), how)
        return
    origin, stopped = Origin(study), False
    for cell in cells:
        outcome = _Outcome(cell, "not attempted") if stopped else _attempt(study, cell, origin, how)
        stopped = stopped or (outcome.error or "").startswith("cannot write")
        yield outcome


def _attempt(study: Study, cell: Cell, origin: Origin, how: dict) -> _Outcome:
    try:
        compute(study, cell, origin, **how)
    except SettingError as error:
        return _Outcome(cell, str(error))
    except (OSError, MemoryError) as error:
        return _Outcome(cell, str(error) if isinstance(error, CannotWrite) else plainly(error))
    except Exception as error:
        return _Outcome(cell, f"{type(error).__name__}: {error}", traceback.format_exc())
    return _Outcome(cell, None)


def _in_processes(study: Study, cells: Sequence[Cell], processes: int, how: dict) -> Iterator[_Outcome]:
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(processes, context, initializer=_follow, initargs=(os.getpid(),))
    try:
        words = (study.name, study.scale, str(study.home), study.left_out)
        futures: list[Future] = [pool.submit(_in_process, words, cell, how) for cell in cells]
        waiting = dict(zip(futures, cells, strict=True))
        for future in as_completed(futures):
            if future.cancelled():
                continue
            error = future.exception()
            outcome = _Outcome(waiting[future], f"its process ended: {error}") if error else future.result()
            yield outcome
            if (outcome.error or "").startswith("cannot write"):
                pool.shutdown(wait=True, cancel_futures=True)
                rest = [waiting[other] for other in futures if other.cancelled()]
                yield from (_Outcome(cell, "not attempted") for cell in rest)
                return
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        with contextlib.suppress(Exception):
            for process in list((pool._processes or {}).values()):
                process.terminate()


def _in_process(words: tuple, cell: Cell, how: dict) -> _Outcome:
    study, origin = _study_of(words)
    return _attempt(study, cell, origin, how)


@functools.cache
def _study_of(words: tuple) -> tuple[Study, Origin]:
    name, scale, home, left_out = words
    study = Study(name, scale, Path(home), left_out)
    return study, Origin(study)


def _follow(parent: int) -> None:
    """Leave interrupts to the loop's own process, and end when it is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(WATCHED)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _prepare(missing: Iterable[Cell]) -> dict[str, str]:
    """Prepare the data sets that cells read; returns, by digest, why a cell's data cannot be had.

    What other code of the loader prepared is prepared again: cells record the loader's code of today.
    """
    missing, reasons = list(missing), {}
    for name in sorted({cell.dataset for cell in missing if cell.dataset}):
        from privpost.datasets import catalogue, fetch, prepared

        code = provenance.loader_digest(name)
        with contextlib.suppress(ValueError, FileNotFoundError):
            prepared.read(name, catalogue.load(name), prepared=PREPARED)
            if prepared.code_of(name, PREPARED) in ("", code):
                continue
        if fetch.main([name]) == 0:
            prepared.prepare(catalogue.load(name), code=code)
        else:
            text = f"its data set {name} cannot be had (privpost fetch {name} says what is missing)"
            reasons |= {cell.digest: text for cell in missing if cell.dataset == name}
    return reasons
