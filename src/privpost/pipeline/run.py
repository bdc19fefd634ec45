"""Computing cells through Hydra: one point, or a sweep (multirun), into the same store that Snakemake uses."""

from __future__ import annotations

import contextlib
import itertools
import math
import os
import sys
import tempfile
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from privpost.pipeline import cells, grid, store
from privpost.pipeline.grid import Cell, Study
from privpost.pipeline.project import CONF
from privpost.pipeline.schema import SettingError, suggest

# Overrides that choose what runs and where, rather than a setting of the study.
_NOT_SETTINGS = {"study", *grid.RUN}
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
    if not request.multirun:
        _hydra(request.runs[0], _job)
        return 0
    for words in request.runs:
        # Hydra has printed the error of a job by then; which cells are missing is said at the end.
        with contextlib.suppress(SystemExit):
            _hydra(words, _job)
    return _finish(request)


def understand(argv: list[str]) -> Request:
    """Return what a command line asks for.

    Raises SettingError for a missing study, and for a key or a value that is not allowed, with the nearest right one.
    """
    words = [word for word in argv if "=" in word and not word.startswith("-")]
    flags = [word for word in argv if word not in words]
    unknown = sorted(set(flags) - {"-m", "--multirun"})
    if unknown:
        raise SettingError(
            f"there is no option {unknown[0]!r}; a run takes -m and key=value words (see privpost --help)"
        )
    multirun = bool(flags)
    given = {word.split("=", 1)[0]: word.split("=", 1)[1] for word in words}
    if "study" not in given:
        hint = next((suggest(key, ["study"]) for key in given if suggest(key, ["study"])), "")
        raise SettingError(
            f"study is missing.{hint} Say study=<paper>/<study>, one of {', '.join(grid.study_names())}."
        )
    scale = given.get("scale", "paper")
    where = [f"{key}={given[key]}" for key in ("root", "figure_root") if key in given]
    study = grid.load_study(given["study"], scale, where)
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
        points = [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]
        found = list({cell.digest: cell for cell in (grid.make_cell(study, point) for point in points)}.values())
        runs = [[*others, *settings]]
    if multirun:
        runs = [["-m", *words] for words in runs]
    return Request(study, found, runs, settings, multirun, whole)


def _is_setting(word: str) -> bool:
    return key_of(word) not in _NOT_SETTINGS and not word.lstrip("+").startswith("hydra")


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
        texts = list(itertools.islice(override.sweep_string_iterator(), grid.LARGEST_GRID + 1))
        if len(texts) > grid.LARGEST_GRID:
            raise SettingError(f"{word!r} has more than {grid.LARGEST_GRID} values.")
        return [parser.parse_override(f"key={text}").value() for text in texts]
    except HydraException as error:
        raise SettingError(f"{word!r} cannot be read: {str(error).splitlines()[0]}") from error


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


def _job(config) -> None:
    """Run one of Hydra's jobs; at module level, so that a launcher can send it to another process."""
    from hydra.core.hydra_config import HydraConfig
    from omegaconf import OmegaConf

    job = HydraConfig.get()
    cell_job(job.runtime.choices.study, OmegaConf.to_container(config, resolve=True), list(job.overrides.task))


def cell_job(name: str, config: Mapping[str, Any], words: list[str]) -> None:
    """Compute the cell that a composed configuration describes, unless the store holds it already.

    `words` are the overrides as they were given; they win over a study's `smoke:` section. Raises SettingError when
    the digest is not the one that `expect` names.
    """
    keys = [key_of(word) for word in words if _is_setting(word)]
    study = grid.as_study(name, dict(config), pinned=keys)
    cell = grid.make_cell(study, {key: config[key] for key in keys})
    expected = config["expect"]
    if expected is not None and str(expected) != cell.digest:
        raise SettingError(
            f"expect is {expected}, but these settings have the digest {cell.digest}: the configuration changed "
            "since the run was planned. Nothing was computed; start the run again."
        )
    if cells.in_store(cell):
        print(f"{cell.path} is in the store already")
    else:
        print(cells.compute(study, cell))


def _finish(request: Request) -> int:
    """Write a sweep's table and figure when all of its cells are there; returns the exit status."""
    from privpost.pipeline import sweeps

    missing = [cell for cell in request.cells if not cells.in_store(cell)]
    if missing:
        print(f"privpost: {len(missing)} of {len(request.cells)} cells could not be computed:", file=sys.stderr)
        for cell in missing:
            print(f"  {cell.slug}: privpost {' '.join(cell.command())}", file=sys.stderr)
        return 1
    results = [store.read(cell.path, cell.digest) for cell in request.cells]
    paths = sweeps.write(request.study, request.cells, results, request.settings, request.whole)
    print(f"{len(request.cells)} cells; the sweep's table and figure:")
    for path in paths:
        print(f"  {path}")
    return 0
