"""Runs of cells from the command line: one point, a sweep or a part of one, into the store that Snakemake uses."""

import functools
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping

from privpost import configurations
from privpost.lab import cells, request
from privpost.lab.plan import PREPARED
from privpost.lab.project import plainly
from privpost.lab.request import Request
from privpost.lab.schema import SettingError
from privpost.lab.study import Cell
from privpost.progress import counted, say

# Names the process of a sweep to the workers of a launcher, which look every so many seconds whether it lives.
SWEEP, WATCHED = "PRIVPOST_SWEEP", 0.5
# Hydra's flags that show something instead of running.
_SHOWING = {"--cfg", "-c", "--info", "-i", "--hydra-help", "-sc", "--shell-completion"}


def main(argv: list[str]) -> int:
    """Run `privpost [-m] study=... [key=value ...]`; returns the exit status.

    Raises SettingError for a key or a value that is not allowed, before anything runs.
    """
    if _SHOWING & set(argv):
        _hydra(argv, lambda config: None)
        return 0
    asked = request.understand(argv)
    if request.DRY_RUN & set(argv):
        return _announce(asked)
    asked.check_digest()
    try:
        return _run(asked)
    except KeyboardInterrupt:
        done = sum(cell.path.exists() for cell in asked.cells)
        total = len(asked.cells)
        print(
            f"\nprivpost: stopped; {done} of {total} points are in the store, and the same command goes on from there.",
            file=sys.stderr,
        )
        return 130


def _run(asked: Request) -> int:
    if asked.shard:
        return _compute_shard(asked)
    if not asked.multirun:
        if lacking := _prepare([cell for cell in asked.cells if not cell.path.exists()]):
            raise SettingError(next(iter(lacking.values())))
        # A single run takes Hydra's own settings too (hydra.verbose=true).
        _hydra(asked.runs[0], _job) if asked.launcher else _compute(asked)
        return 0
    missing = [cell for cell in asked.cells if not cells.in_store(cell)]
    if len(missing) < len(asked.cells):
        say(f"{len(asked.cells) - len(missing)} of {len(asked.cells)} cells are in the store already")
    failed = _prepare(missing)
    missing = [cell for cell in missing if cell.digest not in failed]
    if missing and asked.launcher:
        # Hydra takes a run a cell, also of those that shards or an earlier sweep have computed.
        for words in asked.runs:
            _hydra(words, _job)
    elif missing:
        failed |= cells.compute_each(asked.study, missing)
    return _finish(asked, failed)


def _prepare(missing: list[Cell]) -> dict[str, str]:
    """Prepare the data sets that some cells read and that are not there yet.

    Returns the reasons of the cells, by digest, whose data set cannot be had.
    """
    reasons = {}
    for name in sorted({cell.dataset for cell in missing if cell.dataset}):
        if (PREPARED / f"{name}.npz").is_file():
            continue
        from privpost.commands import data

        if data.prepare([name]):
            text = f"its data set {name} cannot be had (privpost fetch {name} says what is missing)"
            reasons |= {cell.digest: text for cell in missing if cell.dataset == name}
    return reasons


def _compute(asked: Request) -> None:
    """Compute the one cell that was asked for, unless the store holds it already."""
    (cell,) = asked.cells
    if cells.in_store(cell):
        say(f"{cell.path} is in the store already")
    else:
        say(cells.compute(asked.study, cell))


def _announce(asked: Request) -> int:
    """Say what would be computed, after every setting of every cell has been checked; returns the exit status."""
    missing = [cell for cell in asked.cells if not cell.path.exists()]
    print(f"{counted(len(asked.cells), 'cell')}, {len(asked.cells) - len(missing)} of them in the store already.")
    if missing:
        print(f"The first of the others: privpost {' '.join(missing[0].command())}")
    return 0


def _compute_shard(asked: Request) -> int:
    """Compute a shard's cells one after another; returns the exit status."""
    number, count = asked.shard
    failed = _prepare([cell for cell in asked.cells if not cell.path.exists()])
    failed |= cells.compute_each(asked.study, [cell for cell in asked.cells if cell.digest not in failed])
    total = len(asked.cells)
    say(f"shard {number} of {count}: {total - len(failed)} of {counted(total, 'cell')} in the store")
    if failed:
        _name_missing([cell for cell in asked.cells if cell.digest in failed], total, failed)
    return int(bool(failed))


def _hydra(words: list[str], task: Callable) -> None:
    import hydra

    sweep = "-m" in words
    os.environ[SWEEP] = str(os.getpid())
    # One run's error is ours to print; in a sweep Hydra prints it, after the other jobs have run.
    os.environ["HYDRA_FULL_ERROR"] = "0" if sweep else "1"
    with tempfile.TemporaryDirectory(prefix="privpost-") as scratch:
        # Hydra writes multirun.yaml into the sweep's folder, whatever it is told.
        overrides = [word for word in words if "=" in word and not word.startswith("-")]
        # Hydra's parser takes overrides in one piece only, wherever its own options stand.
        options = [word for word in words if word not in overrides]
        given = {word.lstrip("+").split("=")[0] for word in overrides}
        if not given.isdisjoint({"hydra.run.dir", "hydra.sweep.dir"}) and "hydra.output_subdir" not in given:
            # Whoever names Hydra's folder wants its record of the job there; by default there is none.
            overrides.append("hydra.output_subdir=.hydra")
        if "hydra.sweep.dir" not in given:
            overrides.append(f"hydra.sweep.dir={scratch}")
        sys.argv = ["privpost", *options, *overrides]
        try:
            hydra.main(version_base="1.3", config_path=str(configurations.folder().resolve()), config_name="config")(
                task
            )()
        except SystemExit as end:
            # Hydra has printed a job's error by then; which cells are missing is said at the end. A signal ends all.
            if not sweep or (isinstance(end.code, int) and end.code > 128):
                raise


@functools.cache
def _end_with_the_sweep() -> None:
    """Let a launcher's worker end when the sweep that started it is killed, instead of waiting for work."""
    sweep = os.getppid()
    if os.environ.get(SWEEP) != str(sweep):
        return

    def watch() -> None:
        while os.getppid() == sweep:
            time.sleep(WATCHED)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _job(config) -> None:
    """Run one of Hydra's jobs; at module level, so that a launcher can send it to another process."""
    from hydra.core.hydra_config import HydraConfig
    from hydra.types import RunMode

    _end_with_the_sweep()
    job = HydraConfig.get()
    words = list(job.overrides.task)
    try:
        _compute(request.understand(words))
    except (SettingError, OSError, MemoryError) as error:
        if job.mode is not RunMode.MULTIRUN:
            raise
        # In a sweep the other cells go on, and the end says which are missing; Hydra would print a traceback.
        text = str(error) if isinstance(error, SettingError) else plainly(error)
        print(f"privpost: {' '.join(words)}: {text}", file=sys.stderr)


def _name_missing(missing: list[Cell], total: int, reasons: Mapping[str, str]) -> None:
    """Name each cell that is missing on one line, with the reason and the command that asks for it alone."""
    for cell in missing:
        reason = " ".join(reasons.get(cell.digest, "not computed").split())
        print(f"privpost: {cell.slug}: {reason} [privpost {' '.join(cell.command())}]", file=sys.stderr)
    print(f"privpost: {len(missing)} of {counted(total, 'cell')} could not be computed", file=sys.stderr)


def _finish(asked: Request, failed: dict[str, str]) -> int:
    """Write the tables and the figure of a sweep's cells, without those that failed; returns the exit status."""
    from privpost.commands import sweeps

    there = [cell for cell in asked.cells if cell.path.exists()]
    written = None
    if there:
        whole = asked.whole and len(there) == len(asked.cells)
        print("writing the sweep's tables and drawing its figure", file=sys.stderr, flush=True)
        # Read one after another: those of a large sweep would not fit into memory together.
        written = sweeps.write(asked.study, there, map(cells.stored, there), asked.settings, whole)
        failed = failed | written.failed
        say(f"{counted(len(there) - len(written.failed), 'cell')}; the sweep's table and figure:")
        for line in (*(f"  {path}" for path in written.paths), *written.notes):
            say(line)
    missing = [cell for cell in asked.cells if cell.digest in failed or not cell.path.exists()]
    if missing:
        _name_missing(missing, len(asked.cells), failed)
    return int(bool(missing))
