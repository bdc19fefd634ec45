"""`privpost [-m] study=...`, a Hydra application that runs one point, a sweep, a study's whole grid or a shard."""

import contextlib
import io
import os
import re
import shlex
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hydra.experimental.callback import Callback

from privpost import configurations
from privpost.lab import cells, grid, plan, request, store, tables
from privpost.lab.compose import hydra_value
from privpost.lab.request import Request
from privpost.lab.schema import SettingError
from privpost.lab.study import Cell, Study
from privpost.progress import counted, say, some

# Options of Hydra that run nothing and need no study.
ABOUT_HYDRA = ("hydra_help", "shell_completion", "experimental_rerun")


@dataclass
class Run:
    """A command line's request and its outcome so far, which Hydra's sweeper, jobs and callback share."""

    argv: list[str]
    asked: Request
    code: str
    failed: dict[str, str] = field(default_factory=dict)
    start: float = field(default_factory=time.time)
    status: int = 0
    error: Exception | None = None


# The run of this process; None in a process that a launcher started.
_run: Run | None = None


def main(argv: list[str]) -> int:
    """Run `privpost [-m] study=...` and return the exit status. Raises SettingError for a wrong key or value."""
    global _run  # noqa: PLW0603
    words = request.words_of(argv)
    flags = [word for word in argv if word not in words]
    options = _options(words, flags)
    with configurations.found_by(options.config_name, options.config_dir or options.config_path):
        shown = options.cfg or options.info
        alone = shown and "study" not in map(request.key_of, words)
        if alone or any(getattr(options, name) for name in ABOUT_HYDRA):
            return _hydra([*words, *flags])
        asked = request.understand([*flags, *words])
        # Without -m, the user asks for a point, unless the only override is a data set.
        hint = asked.multirun or [*map(request.key_of, asked.settings)] == ["dataset"]
        told = plan.lacking(asked.study) if asked.whole else [request.grid_on(asked.study, asked.settings)] * hint
        for line in filter(None, told):
            print(line, file=sys.stderr) if shown else say(line)
        hydras = [*_in_hydras_words(asked, words), *flags]
        if options.dry_run:
            with contextlib.redirect_stdout(io.StringIO()):
                # The settings are checked already. Composing makes Hydra refuse whatever it would refuse in a run.
                own = [word for word in hydras if request.key_of(word) not in map(request.key_of, asked.settings)]
                _hydra([*(word for word in own if word not in request.MULTIRUN), "--cfg", "hydra"])
            return _announce(asked)
        if shown:
            return _hydra(hydras)
        # The digest of the code is taken before the cells are computed, since later edits do not affect them.
        _run = Run(argv, asked, tables.code_of(asked.study) if asked.whole else "")
        try:
            return _hydra(hydras)
        except KeyboardInterrupt:
            done = sum(cell.path.exists() for cell in asked.cells)
            print(
                f"\nprivpost: stopped; {done} of {counted(len(asked.cells), 'cell')} are in the store, and the same "
                "command goes on from there.",
                file=sys.stderr,
            )
            return 130
        finally:
            _run = None


def _options(words: list[str], flags: list[str]) -> Any:
    """Return the values of Hydra's options and of ours, or raise SettingError for an unknown option."""
    from hydra._internal.utils import get_args_parser

    def refuse(message: str):
        raise SettingError(f"{message} (see privpost --help)")

    parser = get_args_parser()
    parser.allow_abbrev, parser.error = False, refuse  # type: ignore[method-assign, assignment]
    parser.add_argument("-n", "--dry-run", action="store_true")
    options, unknown = parser.parse_known_args([*words, *flags])
    if unknown := sorted([*unknown, *(word for word in options.overrides if word not in words and word[0] != "~")]):
        raise SettingError(
            f"there is no option {unknown[0]!r}; a run takes -m, -n and key=value words (see privpost --help)"
        )
    return options


def _in_hydras_words(asked: Request, words: list[str]) -> list[str]:
    """Return overrides in the form that Hydra composes, with the request's output folder."""
    from privpost.commands import sweeps

    own = [word for word in words if request.key_of(word) in request.WORDS or word.lstrip("+~").startswith("hydra")]
    within = asked.study.config["within"]
    for word in asked.settings:
        # A within axis is added as a new key (++), since Hydra cannot replace a map by a list.
        key = request.key_of(word)
        own.append(f"{'++' if key in within else ''}{key}={word.split('=', 1)[1]}")
    for word in own if asked.sweeper == request.OURS else ():
        if (key := word.partition("=")[0]).startswith("+hydra.sweeper."):
            value = word.partition("=")[2]
            raise SettingError(f"{key} is {value!r}, but hydra/sweeper=study has no settings: say key=a,b instead.")
    folder = sweeps.folder_of(asked)
    sweeps.check_folder(folder, asked)
    known = {word.split("=", 1)[0] for word in own}
    folders = [key for key in ("hydra.run.dir", "hydra.sweep.dir") if key not in known]
    return own + [f"{key}={hydra_value(str(folder))}" for key in folders]


def _hydra(argv: list[str]) -> int:
    """Run Hydra with these arguments, and return the exit status."""
    import hydra
    from hydra.errors import HydraException
    from omegaconf.errors import OmegaConfBaseException

    before, full = sys.argv, os.environ.get("HYDRA_FULL_ERROR")
    # With this variable, Hydra raises exceptions instead of printing them.
    os.environ["HYDRA_FULL_ERROR"] = "1"
    sys.argv = ["privpost", *(word for word in argv if word not in request.DRY_RUN)]
    folder, name = str(configurations.folder().resolve()), configurations.PRIMARY
    try:
        hydra.main(version_base="1.3", config_path=folder, config_name=name)(job)()
    except SystemExit as end:
        # Some of Hydra's options end the run with SystemExit.
        if end.code:
            raise
    except (HydraException, OmegaConfBaseException, ImportError, ValueError) as error:
        if full:
            raise
        raise SettingError(" ".join(str(error).split())) from error
    finally:
        sys.argv = before
        os.environ.pop("HYDRA_FULL_ERROR") if full is None else None
    if _run is None:
        return 0
    if _run.error:
        raise _run.error
    return _run.status


def job(cfg: Any) -> Any:
    """Compute the cell of one of Hydra's jobs, unless the store has the cell.

    Returns the objective if a sweeper optimises one, and otherwise None or the reason why the cell failed. Raises
    RuntimeError if the cell failed and an objective is wanted.
    """
    from hydra.core.hydra_config import HydraConfig
    from hydra.types import RunMode

    here = HydraConfig.get()
    # Paths are relative to the project's root, also with hydra.job.chdir=true.
    os.chdir(here.runtime.cwd)
    if _run and here.mode == RunMode.RUN:
        asked = _run.asked
        _say_there(asked)
    else:
        folders = [source.path for source in here.runtime.config_sources if source.provider == "command-line"]
        with configurations.found_by(here.job.config_name, *folders):
            asked = request.understand(list(here.overrides.task))
    failed = cells.compute_each(asked.study, asked.cells, fresh=asked.fresh, asked="sweep")
    if _run:
        _run.failed |= failed
    if asked.objective is None:
        return next(iter(failed.values()), None)
    # A sweeper counts a job that raises an exception as failed.
    if failed:
        raise RuntimeError(next(iter(failed.values())))
    return _objective(asked, asked.cells[0])


def _say_there(asked: Request) -> None:
    if (there := sum(cell.path.exists() for cell in asked.cells)) and not asked.fresh:
        say(f"{there} of {counted(len(asked.cells), 'cell')} in the store already")


def sweep(launcher: Any) -> None:
    """Compute the requested cells that the store lacks, in one loop or as jobs of the user's launcher."""
    from hydra._internal.core_plugins.basic_launcher import BasicLauncher

    assert _run is not None
    asked, failed = _run.asked, _run.failed
    _say_there(asked)
    waiting, unprepared = cells.ready(asked.study, asked.cells, fresh=asked.fresh)
    failed |= unprepared
    # One loop neither composes a configuration nor makes a folder for each point.
    if isinstance(launcher, BasicLauncher):
        whose = "grid" if asked.whole else "sweep"
        failed |= cells.compute_ready(asked.study, waiting, fresh=asked.fresh, asked=whose)
        return
    try:
        fresh = ["fresh=true"] * asked.fresh
        returns = launcher.launch([[*cell.command(), *fresh] for cell in waiting], initial_job_idx=0)
        failed |= {
            cell.digest: result.return_value
            for cell, result in zip(waiting, returns, strict=True)
            if isinstance(result.return_value, str)
        }
    except Exception as error:
        # The launcher's process was killed. The cells that its jobs stored are kept.
        reason = f"its process ended: {type(error).__name__}: {error}"
        failed |= {cell.digest: reason for cell in waiting if not cell.path.exists()}


def _objective(asked: Request, cell: Cell) -> float:
    """Return the objective at a point, or raise SettingError if the table's entry is not one number."""
    assert asked.objective is not None
    name, column = asked.objective
    frame = tables.tables_of(asked.study, [store.read(cell.path, cell.digest)])[name]
    if column not in frame or len(frame) != 1:
        axes = [axis for axis, values in cell.within.items() if len(values) > 1 and axis in frame]
        cure = f": give {', '.join(axes)} one value each" if axes else ""
        rows = f"{counted(len(frame), 'row')} at a point{cure}"
        what = f"has {rows}" if column in frame else f"has the columns {', '.join(frame.columns)}"
        raise SettingError(f"objective is '{name}.{column}', but must be one number; the table {name} {what}.")
    return float(frame[column].iloc[0])


class Finish(Callback):
    """Hydra's callback that writes tables, figure and record when a run or a sweep ends."""

    def on_run_end(self, config: Any, **_: Any) -> None:
        self._end(Path(config.hydra.run.dir))

    def on_multirun_end(self, config: Any, **_: Any) -> None:
        self._end(Path(config.hydra.sweep.dir))

    def _end(self, folder: Path) -> None:
        if _run is None:
            return
        try:
            ours = _run.asked.sweeper == request.OURS
            _run.status = _finish(_run, folder, _run.asked.cells if ours else _chosen(_run, folder))
            for best in folder.glob("optimization_results.yaml"):
                say("; ".join(best.read_text("utf-8").split("\n")).replace(":; ", ": ").rstrip("; "))
        except Exception as error:
            # Hydra turns what a callback raises into a warning.
            _run.error = error


def _chosen(run: Run, folder: Path) -> list[Cell]:
    """Return the cells that jobs of another sweeper computed, found from Hydra's records of overrides."""
    import yaml

    notes = (path for path in folder.glob("*/.hydra/overrides.yaml") if path.stat().st_mtime >= run.start)
    chosen = (request.cell_of(run.asked.study, yaml.safe_load(path.read_text("utf-8"))) for path in notes)
    return list({cell.digest: cell for cell in chosen}.values())


def _announce(asked: Request) -> int:
    """Print how many of the requested cells are missing in the store, and return the exit status."""
    missing = [cell for cell in asked.cells if asked.fresh or not cell.path.exists()]
    print(f"{counted(len(asked.cells), 'cell')}, {len(asked.cells) - len(missing)} of them in the store already.")
    if missing:
        print(f"The first missing one: privpost {command_of(missing[0])}")
    return 0


def build(study: Study, code: str, *, draw: bool = True) -> list[Path]:
    """Write the tables and figures of a study from its stored cells, and return the files' paths.

    `code` is as in `tables.write`. Raises SettingError if a cell of the study is not in the store.
    """
    results = []
    for cell in grid.expand(study):
        if (result := cells.stored(cell)) is None:
            raise SettingError(f"{study.name}: the cell {cell.slug} is not in the store: privpost {command_of(cell)}")
        results.append(result)
    paths = tables.write(study, results, code)
    tell_unexplained(study)
    if draw:
        from privpost.commands import drawing

        paths += drawing.draw(study, study.home)
    return paths


def tell_unexplained(study: Study) -> None:
    """Print which columns of a study's tables lack a meaning in `TABLES`."""
    from privpost.report.documents import dictionary

    of_tables = dictionary.columns(study).items()
    names = [f"{table}.{name}" for table, columns in of_tables for name, known in columns.items() if not known]
    if names:
        say(f"No meaning for {some(names)}: give it in TABLES of {study.package.replace('.', '/')}/study.py.")


def _finish(run: Run, folder: Path, chosen: list[Cell]) -> int:
    """Write the tables and figures of the cells that did not fail, and return the exit status."""
    asked, failed = run.asked, run.failed
    if asked.shard:
        number, count = asked.shard
        there = len(chosen) - len(failed)
        say(f"shard {number} of {count}: {there} of {counted(len(chosen), 'cell')} in the store")
        return name_failed(chosen, failed)
    if asked.whole and asked.folder is None:
        if failed:
            return name_failed(chosen, failed)
        for path in build(asked.study, run.code):
            say(path)
        return 0
    from privpost.commands import sweeps

    if there := [cell for cell in chosen if cell.digest not in failed and cell.path.exists()]:
        written = sweeps.already(asked, folder, there) or sweeps.write(asked, folder, run.argv, there)
        failed |= written.failed
        say(f"{counted(len(there) - len(written.failed), 'cell')}; tables, figure and record:")
        for line in (*(f"  {path}" for path in written.paths), *written.notes):
            say(line)
        if asked.study.has("claims"):
            say(f"To see which verdicts change: privpost claims {shlex.quote(str(folder))}")
    return name_failed(chosen, failed)


def command_of(cell: Cell) -> str:
    """Return the arguments of `privpost` that compute a cell, quoted for a shell."""
    return shlex.join(re.sub(r"^\+\+(\w+=)\[?([^][,]*)\]?$|^\+\+", r"\1\2", word) for word in cell.command())


def name_failed(asked: list[Cell], failed: Mapping[str, str]) -> int:
    """Print each failed cell with the reason and the cell's command, and return the exit status."""
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
