"""Expands the grid of a study's YAML into cells. The digest of a cell covers everything that defines its numbers.

Points are validated against the study's typed schema. The path of a cell contains the digest, so a cell with a changed
setting has another file.
"""

import ast
import hashlib
import inspect
import itertools
import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from privpost import configurations, moved
from privpost.lab.compose import hydra_value, study_names
from privpost.lab.project import PUBLISHED, built
from privpost.lab.schema import Choice, Integer, Real, Schema, SettingError, suggest
from privpost.lab.study import SIZES, Cell, Study, canonical

# Keys of a study's file that are not settings.
DESCRIPTION = ("title", "paper", "claim", "reads", "beyond_papers", "shards", "tolerance")
GRID = ("sweep", "within", "common", "smoke")
RUN = ("scale", "fresh", "shard", "objective")
# Largest number of points of a grid, a sweep or an axis. More points must be a typing error, and would fill the memory.
LARGEST_GRID = 1_000_000


def load_study(name: str, scale: str = "paper", home: Path | None = None) -> Study:
    """Return a study by its name. Raises SettingError, with the nearest known name, for an unknown study or scale."""
    first, *others = load_studies([name], scale, home)
    if others or first.name != name:
        studies = ", ".join(study.name for study in (first, *others))
        raise SettingError(f"study is {name!r}, which is a paper: name one of its studies: {studies}.")
    return first


def load_studies(names: Iterable[str] | None = None, scale: str = "paper", home: Path | None = None) -> list[Study]:
    """Return the named studies, or all studies.

    Args:
        names: names `<paper>/<study>`, or `<paper>` for all studies of a paper; None for all studies.
        scale: paper or smoke.
        home: the folder of results and figures. The default is the published folder at paper scale, else the build's.

    Raises:
        SettingError: a study or the scale is unknown. The message has the nearest known name.
    """
    known = study_names()
    selected = known if names is None else [study for name in names for study in _named(name, known)]
    scales = sorted(p.stem for p in (configurations.folder() / "scale").glob("*.yaml"))
    if scale not in scales:
        raise SettingError(f"scale is {scale!r}, but must be one of {', '.join(scales)}.{suggest(scale, scales)}")
    if home is None:
        home = PUBLISHED if scale == "paper" else built(scale)
    studies = {name: Study(name, scale, home) for name in selected}
    for study in studies.values():
        study.once("beside", lambda: studies)
    return list(studies.values())


def _named(name: str, known: Sequence[str]) -> list[str]:
    if name in known:
        return [name]
    if of_paper := [study for study in known if study.startswith(f"{name}/")]:
        return of_paper
    if not name:
        raise SettingError("study is empty. Say study=<paper>/<study>; privpost list shows all.")
    alone = [study for study in known if study.endswith(f"/{name}")]
    hint = suggest(name, alone or (known if "/" in name else {study.split("/")[0] for study in known}))
    hint = moved.told("study", name) or hint
    raise SettingError(f"study is {name!r}, which does not exist.{hint} privpost list shows all.")


def expand(study: Study) -> list[Cell]:
    """Return the cells of a study's whole grid in the order of its YAML.

    A build skips cells whose data set is missing, and a published study has all cells. Raises SettingError, naming the
    file, for an unknown key or a wrong value.
    """
    lacking = [] if study.home == PUBLISHED else study.lacking
    cells = study.once("cells", lambda: make_cells(study, points(study)))
    return [cell for cell in cells if cell.dataset not in lacking]


def left_out(study: Study) -> list[str]:
    """Return the missing data sets of a study's build and of the builds whose ledgers the study reads."""
    builds = (other for other in (study, *read_by(study)) if other.home != PUBLISHED)
    return sorted({name for other in builds for name in other.lacking})


def names_read(study: Study) -> list[str]:
    """Return the names of the studies whose ledgers a study reads. `reads: all` means all studies without `reads`."""
    reads = study.text.get("reads")
    if reads not in (None, "all"):
        raise SettingError(f"{study.file}: reads is {reads!r}, but must be all.")
    return [name for name in study_names() if not Study(name).text.get("reads")] if reads else []


def read_by(study: Study) -> list[Study]:
    """Return the studies whose ledgers a study's cells read."""
    names = study.once("read", lambda: names_read(study))
    # Studies that are loaded together share their composed and checked configurations.
    beside = study.once("beside", dict)
    if new := {*names} - {*beside}:
        beside |= {other.name: other for other in load_studies(new, study.scale, study.home)}
    return [beside[name] for name in names]


def blocks(study: Study) -> list[dict[str, list]]:
    """Return the blocks of the study's sweep. Each block is a map from keys to lists of values."""
    return [
        {key: axis_values(values, f"{study.file}: sweep.{key}") for key, values in block.items()}
        for block in _blocks(_scaled(study).get("sweep"), study.file)
    ]


def points(study: Study) -> list[dict[str, Any]]:
    """Return the points of the study's sweep as maps from keys to values. Raises SettingError for too many points."""
    factorials = blocks(study)
    check_size(sum(math.prod(map(len, block.values())) for block in factorials), f"{study.file}: sweep")
    return [
        dict(zip(block, combination, strict=True))
        for block in factorials
        for combination in itertools.product(*block.values())
    ]


def check_size(size: int, where: str) -> None:
    """Raise SettingError, with a message that starts with `where`, if a grid has more than `LARGEST_GRID` points."""
    if size > LARGEST_GRID:
        raise SettingError(f"{where} has {size} points, but a grid may have at most {LARGEST_GRID}.")


def axis_values(values: Any, where: str) -> list:
    """Return the values of an axis, given as a list or as a map with start, stop, num and spacing (linear or log).

    Raises SettingError, with a message that starts with `where`, for an empty axis or another type.
    """
    if isinstance(values, Mapping):
        return _spaced(values, where)
    if not isinstance(values, list) or not values:
        raise SettingError(f"{where} is {values!r}, but an axis must be a list of at least one value.")
    return values


def _spaced(axis: Mapping, where: str) -> list[float]:
    unknown = set(axis) - {"start", "stop", "num", "spacing"}
    if unknown or not {"start", "stop", "num"} <= set(axis):
        raise SettingError(f"{where} is {dict(axis)}; an axis given as a map needs start, stop, num (and spacing).")
    fields = Schema(
        start=Real(), stop=Real(), num=Integer(at_least=2, at_most=LARGEST_GRID), spacing=Choice("linear", "log")
    )
    checked = fields.checked({"spacing": "linear", **axis}, where)
    start, stop, log = checked["start"], checked["stop"], checked["spacing"] == "log"
    if log and not (start > 0 and stop > 0):
        raise SettingError(f"{where}: start is {start:g} and stop is {stop:g}, but log spacing needs both above 0.")
    if log:
        start, stop = math.log(start), math.log(stop)
    numbers = (start + i / (checked["num"] - 1) * (stop - start) for i in range(checked["num"]))
    # Twelve digits make the axis equal on every machine and readable in a table.
    return [float(f"{math.exp(number) if log else number:.12g}") for number in numbers]


def _blocks(sweep: Any, where: str) -> list[dict]:
    """Return the blocks under `sweep`, which is one map or a list of maps."""
    blocks = sweep if isinstance(sweep, list) else [sweep or {}]
    if not all(isinstance(block, Mapping) for block in blocks):
        raise SettingError(
            f"{where}: sweep is {sweep!r}, but must be a map from key to values, or a list of such maps."
        )
    return blocks


def _scaled(study: Study) -> dict[str, Any]:
    """Return the configuration at the study's scale. At smoke scale, the section `smoke:` replaces other entries."""
    config = study.config
    if config["scale"] != "smoke":
        return config
    return {**config, **config["smoke"], "within": {**config["within"], **config["smoke"].get("within", {})}}


def _base(study: Study) -> Cell:
    """Return the cell of a study's base point, which has the checked settings of the study's file."""
    where, schema = study.file, study.schema
    # The axes are checked first, since an axis without a base value is in the schema but is no setting.
    axes = _axes(study)
    config = _scaled(study)
    within = config["within"]
    settings = {k: v for k, v in config.items() if k not in {*DESCRIPTION, *GRID, *RUN, *SIZES, *within}}
    for key in {*settings, *within} - set(schema.fields):
        raise schema.unknown(key, where, others=[*DESCRIPTION, *GRID, *SIZES])
    for key in set(schema.fields) - {*settings, *within}:
        raise SettingError(f"{where}: the setting {key!r} is missing; it must be {schema.fields[key].describe()}.")
    read = " ".join(cell.digest for other in read_by(study) for cell in expand(other))
    settings = {key: schema.value(key, value, where) for key, value in settings.items()}
    return Cell(
        study=study.name,
        settings=settings,
        within={key: _within_values(schema, key, values, where) for key, values in within.items()},
        sizes=_checked_sizes({key: config[key] for key in SIZES}, where),
        axes=axes,
        common=_checked_common(config.get("common") or (), {*axes, *within}, where),
        folder=str(study.cells_folder),
        data=_identity(study, settings.get("dataset")),
        reads=hashlib.sha256(read.encode()).hexdigest()[:10] if read else None,
        overrides=() if study.scale == "paper" else (f"scale={study.scale}",),
    )


def make_cell(study: Study, overrides: Mapping[str, Any]) -> Cell:
    """Return the cell at the study's base point, after replacing the values of some keys.

    The key of a within axis takes one value or a list of values. Any other key takes one value. Raises SettingError for
    an unknown key or a value that is not allowed.
    """
    where, schema, base = study.file, study.schema, study.once("base", lambda: _base(study))
    settings, sizes, within = dict(base.settings), dict(base.sizes), dict(base.within)
    for key, value in overrides.items():
        if key in within:
            values = value if isinstance(value, list | Mapping) else [value]
            within[key] = _within_values(schema, key, values, where)
        elif key in sizes:
            _check_drawn(study, base, key)
            sizes[key] = value
        elif key in settings:
            settings[key] = schema.value(key, value, where)
        else:
            raise schema.unknown(key, where, others=SIZES)
    # Hydra cannot replace a map by a list, so a within axis with new values is added as a new key (++).
    given = {f"++{key}" if key in within else key: {**settings, **sizes, **within}[key] for key in overrides}
    words = [f"{key}={hydra_value(value)}" for key, value in given.items()]
    schema.follow(settings, base.settings, overrides, where)
    schema.check_together(settings, where)
    if not {*SIZES}.isdisjoint(overrides):
        sizes = _checked_sizes(sizes, where, fit="block" not in overrides)
    data, overrides = _identity(study, settings.get("dataset")), (*base.overrides, *words)
    cell = replace(base, settings=settings, within=within, sizes=sizes, data=data, overrides=overrides)
    if check := study.once("check", lambda: getattr(study.module(), "check", None)):
        check(cell.config)
    return cell


def make_cells(study: Study, points: Iterable[Mapping[str, Any]]) -> list[Cell]:
    """Return the cells at some points, without duplicates."""
    return list({cell.digest: cell for cell in (make_cell(study, point) for point in points)}.values())


def _within_values(schema: Schema, key: str, values: Any, where: str) -> list:
    values = [schema.value(key, item, where) for item in axis_values(values, f"{where}: within.{key}")]
    seen = set()
    for text in map(canonical, values):
        if text in seen:
            raise SettingError(f"{where}: within.{key} has the value {text} twice.")
        seen.add(text)
    return values


def _axes(study: Study) -> tuple[str, ...]:
    axes: dict[str, None] = {}
    for config in (study.config, study.config["smoke"]):
        for block in _blocks(config.get("sweep"), study.file):
            axes.update(dict.fromkeys(key for key in block if key not in study.config["within"]))
    for key in axes:
        if key in SIZES:
            raise SettingError(f"{study.file}: {key!r} is swept, but only settings can be axes of a grid.")
        if key not in study.schema:
            raise study.schema.unknown(key, f"{study.file}: sweep")
        if key not in study.config:
            raise SettingError(f"{study.file}: {key!r} is swept, so it needs a base value among the settings.")
    return tuple(axes)


def _check_drawn(study: Study, base: Cell, key: str) -> None:
    """Raise SettingError if `key` is seed, trials or block and the study does not use this key."""
    if key == "seed" and not study.once("draws", lambda: draws_numbers(study)):
        raise SettingError(f"{study.name} draws no random numbers, so seed would change nothing: leave it out.")
    if key in ("trials", "block") and base.sizes["trials"] is None:
        raise SettingError(f"{study.name} has no trials, so {key} would change nothing: leave it out.")


def draws_numbers(study: Study) -> bool:
    """Whether a study draws random numbers, which it does if its `simulate` reads the argument `streams`."""
    function = ast.parse(textwrap.dedent(inspect.getsource(study.module().simulate))).body[0]
    return any(isinstance(node, ast.Name) and node.id == "streams" for node in ast.walk(function))


def _checked_sizes(sizes: dict, where: str, fit: bool = False) -> dict:
    """Return the checked trials, block, seed and rev. With `fit`, the block becomes a divisor of the trials."""
    sizes = Schema(**SIZES).checked(sizes, where)
    trials, block = sizes["trials"], sizes["block"]
    if (trials is None) != (block is None):
        raise SettingError(f"{where}: trials is {trials} and block is {block}; give both or neither.")
    if trials is not None and trials % block and fit:
        # Users need not care about blocks: take the divisor of the trials that is nearest to the study's own block.
        small = [size for size in range(1, math.isqrt(trials) + 1) if trials % size == 0]
        divisors = {*small, *(trials // size for size in small)}
        block = sizes["block"] = min(sorted(divisors), key=lambda size: abs(math.log(size / block)))
    if trials is not None and trials % block:
        raise SettingError(
            f"{where}: trials is {trials}, but must be a multiple of block, which is {block}, "
            f"for instance {max(1, (trials + block // 2) // block) * block}."
        )
    return sizes


def _checked_common(common: Any, known: set[str], where: str) -> tuple[str, ...]:
    if not isinstance(common, list | tuple):
        raise SettingError(f"{where}: common is {common!r}, but must be a list of axes.")
    for key in common:
        if not isinstance(key, str) or key not in known:
            raise SettingError(
                f"{where}: common names {key!r}, which is no axis.{suggest(str(key), known)} "
                f"Axes: {', '.join(sorted(known))}."
            )
    return tuple(common)


def _identity(study: Study, dataset: str | None) -> dict | None:
    if dataset is None:
        return None
    from privpost.datasets import catalogue

    # Many cells share a data set, and parsing YAML is slow.
    return study.once(f"data of {dataset}", lambda: catalogue.load(dataset).identity())


def shard_of(cells: list[Cell], number: int, count: int) -> list[Cell]:
    """Return shard `number` (from 1) of `count` shards: every `count`-th cell."""
    return cells[number - 1 :: count]
