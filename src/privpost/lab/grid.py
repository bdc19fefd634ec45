"""The one grid: a study's YAML becomes a list of cells, each with all that defines its numbers and a digest of it.

Points are expanded, validated against the study's typed schema and hashed in plain Python. A cell's path is
content-addressed, so a changed setting is a missing file.
"""

import ast
import functools
import hashlib
import inspect
import itertools
import math
import sys
import textwrap
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from privpost import configurations, moved
from privpost.lab.axes import axis_values, check_size
from privpost.lab.compose import hydra_value, study_names
from privpost.lab.project import PUBLISHED, built
from privpost.lab.schema import Schema, SettingError, suggest
from privpost.lab.study import SIZES, Cell, Study, canonical

# Keys of a study's file that are not settings.
DESCRIPTION = ("title", "paper", "claim", "reads", "beyond_papers", "shards", "tolerance")
GRID = ("sweep", "within", "common", "smoke")
RUN = ("scale", "fresh", "shard", "objective")


def load_study(name: str, scale: str = "paper", home: Path | None = None) -> Study:
    """Return a study by its name; raises SettingError for an unknown study or scale, with the nearest known name."""
    first, *others = load_studies([name], scale, home)
    if others or first.name != name:
        studies = ", ".join(study.name for study in (first, *others))
        raise SettingError(f"study is {name!r}, which is a paper: name one of its studies: {studies}.")
    return first


def load_studies(names: Iterable[str] | None = None, scale: str = "paper", home: Path | None = None) -> list[Study]:
    """Return the named studies (all when None).

    Args:
        names: names as `<paper>/<study>`, or a paper's for all its studies.
        scale: paper or smoke.
        home: where their tables and figures are: by default what is published, or at another scale what was built.

    Raises:
        SettingError: an unknown study or scale, with the nearest known name.
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
    """Return the cells of the study's whole grid, in the order of its YAML; of a build, those whose data can be had.

    The rebuild, a command and `status` plan the same cells: what lacks its data is left out here, and nowhere else.
    What is published has all cells. Raises SettingError for an unknown key or a value that is not allowed, naming the
    file.
    """
    lacking = study.once("lacking", lambda: _lacking(study))
    return [cell for cell in _whole(study) if cell.dataset not in lacking]


def _whole(study: Study) -> list[Cell]:
    return study.once("cells", lambda: list({cell.digest: cell for cell in make_cells(study, points(study))}.values()))


def _lacking(study: Study) -> set[str]:
    """Return the data sets of a build's own cells that cannot be had."""
    if study.home == PUBLISHED or not (names := {cell.dataset for cell in _whole(study) if cell.dataset}):
        return set()
    from privpost.datasets import catalogue, fetch

    return {name for name in names if not fetch.findable(catalogue.load(name))}


def left_out(study: Study) -> tuple[str, ...]:
    """Return the data sets that cannot be had, without which a build of a study, or of what it reads, has to do."""
    lacking = (other.once("lacking", lambda other=other: _lacking(other)) for other in (study, *read_by(study)))
    return tuple(sorted(set().union(*lacking)))


def names_read(study: Study) -> list[str]:
    """Return the names of the studies that a study's cells read: with `reads: all`, of all that do not say so.

    Raises SettingError for another word than all, and for a name that there is not or of a study that reads others.
    """
    reads = study.text.get("reads") or []
    if reads == "all":
        return [name for name in study_names() if Study(name).text.get("reads") != "all"]
    if isinstance(reads, str):
        raise SettingError(f"{study.file}: reads is {reads!r}, but must be all or a list of studies.")
    names = study_names()
    for name in reads:
        if name not in names or Study(name).text.get("reads"):
            why = "reads others itself" if name in names else f"does not exist.{suggest(str(name), names)}"
            raise SettingError(f"{study.file}: reads names {name!r}, which {why}")
    return reads


def read_by(study: Study) -> list[Study]:
    """Return the studies that a study's cells read."""
    return study.once("read", lambda: _read_by(study))


def _read_by(study: Study) -> list[Study]:
    if not (names := names_read(study)):
        return []
    # Studies that were loaded together are composed and checked once.
    beside = study.once("beside", dict)
    beside |= {other.name: other for other in load_studies({*names} - {*beside}, study.scale, study.home)}
    return [beside[name] for name in names]


def points(study: Study) -> list[dict[str, Any]]:
    """Return the points of the study's sweep as maps from key to value.

    Raises SettingError for more points than `LARGEST_GRID`.
    """
    factorials = blocks(study)
    check_size(sum(math.prod(map(len, block.values())) for block in factorials), f"{study.file}: sweep")
    return [
        dict(zip(block, combination, strict=True))
        for block in factorials
        for combination in itertools.product(*block.values())
    ]


def blocks(study: Study) -> list[dict[str, list]]:
    """Return the axes of the study's sweep, a map for each block of a ragged one."""
    return [
        {key: axis_values(values, f"{study.file}: sweep.{key}") for key, values in block.items()}
        for block in _blocks(_scaled(study, {}).get("sweep"), study.file)
    ]


def _blocks(sweep: Any, where: str) -> list[dict]:
    """Return the maps under a `sweep`, which is one map or a list of them."""
    blocks = sweep if isinstance(sweep, list) else [sweep or {}]
    if not all(isinstance(block, Mapping) for block in blocks):
        raise SettingError(
            f"{where}: sweep is {sweep!r}, but must be a map from key to values, or a list of such maps."
        )
    return blocks


def _scaled(study: Study, overrides: Container[str]) -> dict[str, Any]:
    """Return the configuration at the study's scale: the `smoke:` section gives way to explicit overrides only."""
    config = dict(study.config)
    if config["scale"] == "smoke":
        for key, value in config["smoke"].items():
            if key == "within":
                config["within"] = {**config["within"], **value}
            elif key not in overrides:
                config[key] = value
    return config


def make_cell(study: Study, overrides: Mapping[str, Any]) -> Cell:
    """Return the cell at the study's base point with some keys set.

    A key of a within axis is pinned (to a value or a list of values); any other key replaces the setting. Raises
    SettingError for an unknown key or a value that is not allowed.
    """
    return next(make_cells(study, [overrides]))


def make_cells(study: Study, points: Iterable[Mapping[str, Any]]) -> Iterator[Cell]:
    """Yield the cell of each point, as `make_cell` returns it; what the points share is checked once."""
    bases: dict[tuple[str, ...], _Base] = {}
    for overrides in points:
        keys = tuple(overrides)
        if keys not in bases:
            bases[keys] = _Base(study, keys)
        yield bases[keys].cell(overrides)


class _Base:
    """What cells that set the same keys share: the other settings and axes, checked and in their normal form."""

    def __init__(self, study: Study, keys: tuple[str, ...]):
        where, schema = study.file, study.schema
        # Checked first: the schema knows an axis without a base value, but it is no setting.
        self.axes = _axes(study)
        config = _scaled(study, keys)
        within = config["within"]
        settings = {k: v for k, v in config.items() if k not in {*DESCRIPTION, *GRID, *RUN, *SIZES, *within}}
        for key in keys:
            if key not in within and key not in SIZES and key not in settings:
                raise schema.unknown(key, where, others=SIZES)
        for key in {*settings, *within} - set(schema.fields):
            raise schema.unknown(key, where, others=[*DESCRIPTION, *GRID, *SIZES])
        for key in set(schema.fields) - {*settings, *within}:
            raise SettingError(f"{where}: the setting {key!r} is missing; it must be {schema.fields[key].describe()}.")
        self.study = study
        self.settings = {k: v if k in keys else schema.value(k, v, where) for k, v in settings.items()}
        self.within = {k: v if k in keys else _within_values(schema, k, v, where) for k, v in within.items()}
        self.pinned: dict[tuple[int, str, str], dict] = {}
        self.within_json = None if set(keys) & set(within) else canonical(self.within)
        self.sizes = {key: config[key] for key in SIZES}
        _check_drawn(study, keys)
        if not set(keys) & set(SIZES):
            self.sizes = _checked_sizes(self.sizes, where)
        read = [cell for other in read_by(study) for cell in expand(other)]
        self.reads = joint_digest(read) if read else None
        self.common = _checked_common(config.get("common") or (), {*self.axes, *within}, where)
        self.scale = [] if study.scale == "paper" else [f"scale={study.scale}"]
        self.folder = str(study.cells_folder)

    def cell(self, overrides: Mapping[str, Any]) -> Cell:
        where, schema = self.study.file, self.study.schema
        settings, sizes, within = dict(self.settings), self.sizes, self.within
        for key, value in overrides.items():
            if key in within:
                within = self._with_axis(within, key, value if isinstance(value, list | Mapping) else [value])
            elif key in sizes:
                sizes = {**sizes, key: value}
            else:
                settings[key] = schema.value(key, value, where)
        schema.follow(settings, self.settings, overrides, where)
        schema.check_together(settings, where)
        # Hydra cannot replace an axis given as a map by a list, so a pinned axis is a key of its own (++).
        words = [
            f"++{key}={hydra_value(within[key])}"
            if key in within
            else f"{key}={hydra_value(settings[key] if key in settings else sizes[key])}"
            for key in overrides
        ]
        return Cell(
            study=self.study.name,
            settings=settings,
            within=within,
            # Cells that set no size share one map.
            sizes=sizes if sizes is self.sizes else _checked_sizes(sizes, where, fit="block" not in overrides),
            axes=self.axes,
            common=self.common,
            folder=self.folder,
            data=_identity(settings.get("dataset")),
            reads=self.reads,
            overrides=(*self.scale, *map(sys.intern, words)),
            within_json=self.within_json,
        )

    def _with_axis(self, within: dict, key: str, values: Any) -> dict:
        """Return the axes with the values of one replaced; cells with equal axes share one map."""
        name = (id(within), key, repr(values))
        if name not in self.pinned:
            self.pinned[name] = {**within, key: _within_values(self.study.schema, key, values, self.study.file)}
        return self.pinned[name]


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


def _check_drawn(study: Study, keys: Iterable[str]) -> None:
    """Raise SettingError for a size or a seed that would change nothing."""
    draws = draws_numbers(study)
    for key in keys:
        if key == "seed" and not draws:
            raise SettingError(f"{study.name} draws no random numbers, so seed would change nothing: leave it out.")
        if key in ("trials", "block") and study.config["trials"] is None:
            raise SettingError(f"{study.name} has no trials, so {key} would change nothing: leave it out.")


def draws_numbers(study: Study) -> bool:
    """Whether a study draws random numbers: its `simulate` reads the argument `streams`."""
    function = ast.parse(textwrap.dedent(inspect.getsource(study.module().simulate))).body[0]
    return any(isinstance(node, ast.Name) and node.id == "streams" for node in ast.walk(function))


def _checked_sizes(sizes: dict, where: str, fit: bool = False) -> dict:
    """Return trials, block, seed and rev in their normal form; with `fit` the block is one that divides the trials."""
    sizes = Schema(**SIZES).checked(sizes, where)
    trials, block = sizes["trials"], sizes["block"]
    if (trials is None) != (block is None):
        raise SettingError(f"{where}: trials is {trials} and block is {block}; give both or neither.")
    if trials is not None and trials % block and fit:
        # Users need not care about blocks: take the divisor of the trials nearest to the study's own block.
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


def _identity(dataset: str | None) -> dict | None:
    if dataset is None:
        return None
    file = configurations.folder() / "dataset" / f"{dataset}.yaml"
    return _identity_of(dataset, file.read_text(encoding="utf-8"))


@functools.cache
def _identity_of(dataset: str, text: str) -> dict:
    # `text` is the content of the data set's file: many cells share a data set, and parsing YAML is slow.
    from privpost.datasets import catalogue

    return catalogue.load(dataset).identity()


def shard_of(cells: Sequence[Cell], number: int, count: int) -> Sequence[Cell]:
    """Return shard `number`, counted from 1, of `count` shards: every `count`-th cell, so that neighbours are apart.

    Neighbours on an axis take about equally long, and so the shards do too.
    """
    return cells[number - 1 :: count]


def joint_digest(cells: Iterable[Cell]) -> str:
    """Return the digest of several cells together."""
    return hashlib.sha256(" ".join(cell.digest for cell in cells).encode()).hexdigest()[:10]
