"""Computing cells through Hydra: one point, or a sweep (multirun), into the same store that Snakemake uses."""

from __future__ import annotations

import itertools
import math
import os
import re
import sys
import tempfile
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from privpost.pipeline import cells, grid, store
from privpost.pipeline.grid import Cell, Study
from privpost.pipeline.project import CONF, plainly
from privpost.pipeline.schema import SettingError, suggest

# Overrides that choose what runs and where, rather than a setting of the study.
_NOT_SETTINGS = {"study", "shard", *grid.RUN}
_MULTIRUN = {"-m", "--multirun"}
_DRY_RUN = {"-n", "--dry-run"}
# Hydra's flags that show something instead of running.
_SHOWING = {"--cfg", "-c", "--info", "-i", "--hydra-help", "--version"}


class Request(NamedTuple):
    """A command line `[-m] study=... [key=value ...]`, understood and checked: the cells that it asks for."""

    study: Study
    cells: list[Cell]
    # One Hydra run each, as its arguments: a ragged grid takes several.
    runs: list[list[str]]
    settings: list[str]
    multirun: bool
    whole: bool
    # The part `(i, n)` of the cells that was asked for (shard=i/n), and the digest that it is expected to have.
    shard: tuple[int, int] | None = None
    expect: str | None = None

    @property
    def launcher(self) -> bool:
        """Whether Hydra is told how to run the jobs."""
        return any(_is_hydras(word) for words in self.runs for word in words)


def key_of(override: str) -> str:
    """Return the key of an override `key=value`, without Hydra's `++` and without the `within.` of an axis."""
    return override.split("=", 1)[0].lstrip("+").removeprefix("within.")


def main(argv: list[str]) -> int:
    """Run `privpost [-m] study=... [key=value ...]`; returns the exit status.

    Raises SettingError for a key or a value that is not allowed, before anything runs.
    """
    if _SHOWING & set(argv):
        _hydra(argv, lambda config: None)
        return 0
    request = understand(argv)
    if _DRY_RUN & set(argv):
        return _announce(request)
    if request.shard:
        return _compute_shard(request)
    if not request.multirun:
        _hydra(request.runs[0], _job)
        return 0
    found = _stored(request)
    missing = [cell for cell, result in zip(request.cells, found, strict=True) if result is None]
    if len(missing) < len(found):
        print(f"{len(found) - len(missing)} of {len(found)} cells are in the store already", flush=True)
    # Hydra takes a run a cell, also of those that shards or an earlier sweep have computed.
    if len(missing) == len(found) or (missing and request.launcher):
        for words in request.runs:
            _hydra_sweep(words)
    elif missing:
        cells.compute_each(request.study, missing)
    pairs = zip(request.cells, found, strict=True)
    return _finish(request, [cells.stored(cell) if result is None else result for cell, result in pairs])


def understand(argv: list[str]) -> Request:
    """Return what a command line asks for.

    Raises SettingError for a missing study, and for a key or a value that is not allowed, with the nearest right one.
    """
    words = [word for word in argv if "=" in word and not word.startswith("-")]
    flags = [word for word in argv if word not in words]
    unknown = sorted(set(flags) - {*_MULTIRUN, *_DRY_RUN})
    if unknown:
        raise SettingError(
            f"there is no option {unknown[0]!r}; a run takes -m, -n and key=value words (see privpost --help)"
        )
    multirun = bool(_MULTIRUN & set(flags))
    given = {word.split("=", 1)[0]: word.split("=", 1)[1] for word in words}
    if "study" not in given:
        hint = next((suggest(key, ["study"]) for key in given if suggest(key, ["study"])), "")
        raise SettingError(
            f"study is missing.{hint} Say study=<paper>/<study>, one of {', '.join(grid.study_names())}."
        )
    scale = given.get("scale", "paper")
    where = [f"{key}={given[key]}" for key in ("root", "figure_root") if key in given]
    study = grid.load_study(given["study"], scale, where)
    if "shard" in given:
        return _understand_shard(study, words, given["shard"], multirun)
    settings = [_translated(study, word) for word in words if _is_setting(word)]
    others = [word for word in words if not _is_setting(word)]
    whole = multirun and not settings
    if whole:
        blocks = grid.sweep_blocks(study)
        runs = [[*others, *(_sweep_word(study, key, values) for key, values in block.items())] for block in blocks]
        found = grid.expand(study)
    else:
        axes = {key_of(word): _values(word) for word in settings}
        sweeping = [key for key, values in axes.items() if len(values) > 1]
        if sweeping and not multirun:
            raise SettingError(f"{sweeping[0]} has several values, which is a sweep: say privpost -m study=...")
        grid.check_size(math.prod(map(len, axes.values())), " ".join(settings))
        found = _sweep(study, axes)
        runs = [[*others, *settings]]
    if multirun:
        runs = [["-m", *words] for words in runs]
    return Request(study, found, runs, settings, multirun, whole)


def _sweep(study: Study, axes: Mapping[str, list], number: int = 1, count: int = 1) -> list[Cell]:
    """Return the cells of a sweep, or every `count`-th of its points from the `number`-th on."""
    combinations = itertools.islice(itertools.product(*axes.values()), number - 1, None, count)
    points = (dict(zip(axes, values, strict=True)) for values in combinations)
    return list({cell.digest: cell for cell in grid.make_cells(study, points)}.values())


def _understand_shard(study: Study, words: list[str], shard: str, multirun: bool) -> Request:
    """Return what `-m ... shard=i/n` asks for: a part of the cells, in one process and without Hydra.

    Of a study's own grid those cells are left out whose bring-your-own data set cannot be had, as in a rebuild.
    """
    parts = re.fullmatch(r"([1-9]\d*)/([1-9]\d*)", shard)
    if parts is None or int(parts[1]) > int(parts[2]):
        raise SettingError(f"shard is {shard!r}, but must be i/n with i from 1 to n, for instance shard=3/40.")
    if not multirun:
        raise SettingError("shard is a part of a sweep: say privpost -m study=... shard=i/n.")
    number, count = int(parts[1]), int(parts[2])
    others = [word for word in words if key_of(word) != "shard"]
    launchers = [word for word in others if _is_hydras(word)]
    if launchers:
        raise SettingError(f"{launchers[0]!r}: a shard is computed in one process, without Hydra's launchers.")
    settings = [_translated(study, word) for word in others if _is_setting(word)]
    if settings:
        found = _sweep(study, {key_of(word): _values(word) for word in settings}, number, count)
    else:
        found = grid.shard_of(grid.expand(grid.without_missing(study)), number, count)
    expect = next((word.split("=", 1)[1].strip("'") for word in others if key_of(word) == "expect"), None)
    return Request(study, list(found), [], settings, multirun, not settings, (number, count), expect)


def _announce(request: Request) -> int:
    """Say what would be computed, after every setting of every cell has been checked; returns the exit status."""
    missing = [cell for cell in request.cells if not cell.path.exists()]
    print(f"{len(request.cells)} cells, {len(request.cells) - len(missing)} of them in the store already.")
    if missing:
        print(f"The first of the others: privpost {' '.join(missing[0].command())}")
    return 0


def _compute_shard(request: Request) -> int:
    """Compute a shard's cells one after another; returns the exit status. Raises SettingError as `cell_job` does."""
    _check_digest(request.expect, grid.joint_digest(request.cells) if request.expect else None)
    number, count = request.shard
    failed = cells.compute_each(request.study, request.cells)
    print(f"shard {number} of {count}: {len(request.cells) - len(failed)} of {len(request.cells)} cells in the store")
    if failed:
        _name_missing(failed, len(request.cells))
    return int(bool(failed))


def _check_digest(expected: str | None, digest: str | None) -> None:
    if expected is not None and str(expected) != digest:
        raise SettingError(
            f"expect is {expected}, but these settings have the digest {digest}: the configuration changed "
            "since the run was planned. Nothing was computed; start the run again."
        )


def _is_setting(word: str) -> bool:
    return key_of(word) not in _NOT_SETTINGS and not _is_hydras(word)


def _is_hydras(word: str) -> bool:
    return word.lstrip("+").startswith("hydra")


def _translated(study: Study, word: str) -> str:
    """Return an override of a setting as Hydra has to be told it, after checking its key."""
    key, value = key_of(word), word.split("=", 1)[1]
    within = study.config["within"]
    if key not in within and (word[0] in "+~" or word.startswith("within.")):
        raise SettingError(f"{word!r}: a study's settings can be changed (key=value), not added or removed.")
    if key not in study.schema and key not in grid.SIZES:
        raise study.schema.unknown(key, study.file, others=[*grid.SIZES, "scale"])
    if key not in within:
        return f"{key}={value}"
    return "++" + _pinned(key, _values(f"{key}={value}"))


def _values(word: str) -> list:
    """Return the values that an override gives to its key: one, or those of a sweep.

    Raises SettingError for a value that Hydra's grammar does not know, and for a sweep over names (glob).
    """
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import HydraException

    parser = OverridesParser.create()
    listed = SettingError(f"{word!r}: list the values (key=a,b) or give a range (key=range(1,4)).")
    if word.partition("=")[2].startswith("glob("):
        raise listed
    try:
        override = parser.parse_override(word)
        if not override.is_sweep_override():
            return [override.value()]
        if not override.is_discrete_sweep():
            raise listed
        if not _length(override.value()) <= grid.LARGEST_GRID:
            raise SettingError(f"{word!r} has too many values; at most {grid.LARGEST_GRID} are allowed.")
        texts = list(override.sweep_string_iterator())
        # Hydra's parser takes a millisecond a value; plain numbers, of which sweeps have thousands, need none.
        return [
            _number(text) if _NUMBER.fullmatch(text) else parser.parse_override(f"key={text}").value() for text in texts
        ]
    except SettingError:
        raise
    # Beside Hydra's own errors those of the numbers in a range: without end, or with too many digits.
    except (HydraException, ValueError, ArithmeticError) as error:
        reason = next(iter(str(error).splitlines()), "")
        raise SettingError(f"{word!r} cannot be read: {reason}") from error


_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?(e[+-]?[0-9]+)?")


def _length(sweep) -> float:
    """Return how many values a sweep has, for a range without counting them out."""
    from hydra.core.override_parser.types import RangeSweep

    if not isinstance(sweep, RangeSweep):
        return 0
    return abs((sweep.stop - sweep.start) / sweep.step) if sweep.step else math.inf


def _number(text: str) -> int | float:
    return int(text) if text.lstrip("-").isdecimal() else float(text)


def _pinned(key: str, values: list) -> str:
    lists = [value if isinstance(value, list) else [value] for value in values]
    return f"{key}={','.join(grid.hydra_value(items) for items in lists)}"


def _sweep_word(study: Study, key: str, values: list) -> str:
    if key in study.config["within"]:
        return "++" + _pinned(key, values)
    return f"{key}={','.join(grid.hydra_value(value) for value in values)}"


def _hydra(words: list[str], task: Callable) -> None:
    import hydra

    # One run's error is ours to print; in a sweep Hydra prints it, after the other jobs have run.
    os.environ["HYDRA_FULL_ERROR"] = "0" if "-m" in words else "1"
    with tempfile.TemporaryDirectory(prefix="privpost-") as scratch:
        # Hydra writes multirun.yaml into the sweep's folder, whatever it is told.
        sys.argv = ["privpost", *words, f"hydra.sweep.dir={scratch}"]
        hydra.main(version_base="1.3", config_path=str(CONF.resolve()), config_name="config")(task)()


def _hydra_sweep(words: list[str]) -> None:
    try:
        _hydra(words, _job)
    except SystemExit as end:
        # Hydra has printed the error of a job by then; which cells are missing is said at the end. A signal ends all.
        if isinstance(end.code, int) and end.code > 128:
            raise


def _job(config) -> None:
    """Run one of Hydra's jobs; at module level, so that a launcher can send it to another process."""
    from hydra.core.hydra_config import HydraConfig
    from hydra.types import RunMode
    from omegaconf import OmegaConf

    job = HydraConfig.get()
    words = list(job.overrides.task)
    try:
        cell_job(job.runtime.choices.study, OmegaConf.to_container(config, resolve=True), words)
    except (SettingError, OSError, MemoryError) as error:
        if job.mode is not RunMode.MULTIRUN:
            raise
        # In a sweep the other cells go on, and the end says which are missing; Hydra would print a traceback.
        text = str(error) if isinstance(error, SettingError) else plainly(error)
        print(f"privpost: {' '.join(words)}: {text}", file=sys.stderr)


def cell_job(name: str, config: Mapping[str, Any], words: list[str]) -> None:
    """Compute the cell that a composed configuration describes, unless the store holds it already.

    `words` are the overrides as they were given; they win over a study's `smoke:` section. Raises SettingError when
    the digest is not the one that `expect` names.
    """
    keys = [key_of(word) for word in words if _is_setting(word)]
    study = grid.as_study(name, dict(config), pinned=keys)
    cell = grid.make_cell(study, {key: config[key] for key in keys})
    _check_digest(config["expect"], cell.digest)
    if cells.in_store(cell):
        print(f"{cell.path} is in the store already")
    else:
        print(cells.compute(study, cell))


def _stored(request: Request) -> list[store.Result | None]:
    return [cells.stored(cell) for cell in request.cells]


def _name_missing(missing: list[Cell], total: int) -> None:
    print(f"privpost: {len(missing)} of {total} cells could not be computed:", file=sys.stderr)
    for cell in missing:
        print(f"  {cell.slug}: privpost {' '.join(cell.command())}", file=sys.stderr)


def _finish(request: Request, results: list[store.Result | None]) -> int:
    """Write a sweep's table and figure when all of its cells are there; returns the exit status."""
    from privpost.pipeline import sweeps

    missing = [cell for cell, result in zip(request.cells, results, strict=True) if result is None]
    if missing:
        _name_missing(missing, len(request.cells))
        return 1
    paths = sweeps.write(request.study, request.cells, results, request.settings, request.whole)
    print(f"{len(request.cells)} cells; the sweep's table and figure:")
    for path in paths:
        print(f"  {path}")
    return 0
