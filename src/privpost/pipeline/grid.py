"""The one grid: a study's YAML becomes a list of cells, each with all that defines its numbers and a digest of it.

A study is composed once (and the composed configuration kept for the next start, see `compose`); its points are
expanded, validated against the study's typed schema and hashed in plain Python. A cell's path is content-addressed, so
a changed setting is a missing file.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import hashlib
import importlib
import importlib.metadata
import itertools
import json
import math
import os
import re
import shutil
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from privpost.pipeline.project import CONF, STATE
from privpost.pipeline.schema import Choice, Integer, Real, Schema, SettingError, suggest

# Keys of a composed configuration that are not settings of the study itself. `hydra` is left out when composing.
DESCRIPTION = ("title", "paper", "claim", "target", "tables", "figures", "beyond_papers")
GRID = ("sweep", "within", "common", "smoke")
RUN = ("scale", "root", "figure_root", "mirrors", "expect")
SIZES = {
    "trials": Integer(at_least=1, at_most=10**9, optional=True),
    "block": Integer(at_least=1, at_most=10**9, optional=True),
    "rev": Integer(at_least=1, at_most=10**9),
    "seed": Integer(at_least=0),
}
# What a grid, a sweep or an axis may hold at most: more is a slip of the pen, and would take all memory to expand.
LARGEST_GRID = 1_000_000
FORMATS = ("pdf", "png", "svg")
# Tables and figures of studies some of whose data sets cannot be had: never in the place of shipped ones.
PARTIAL = Path("build/partial")


@dataclass(frozen=True)
class Study:
    """One experiment of one paper, as its YAML and its module's schema describe it.

    `left_out` names data sets that cannot be had: cells on them are no part of the study then, and its tables and
    figures go to folders of their own.
    """

    name: str
    config: dict[str, Any]
    schema: Schema
    left_out: tuple[str, ...] = ()

    @property
    def file(self) -> str:
        return f"{CONF}/study/{self.name}.yaml"

    @property
    def paper(self) -> str:
        return self.name.split("/")[0]

    @property
    def beyond_papers(self) -> bool:
        """Whether no paper has the study: one in a folder without a year, or whose YAML says `beyond_papers: true`."""
        return bool(self.config.get("beyond_papers", not self.paper[-4:].isdigit()))

    @property
    def identifier(self) -> str:
        """The name with an underscore for the slash, as rules and flat files use it."""
        return self.name.replace("/", "_")

    @property
    def tables(self) -> list[str]:
        return self.config.get("tables") or [self.name.split("/")[1]]

    @property
    def figures(self) -> dict[str, list[str]]:
        """The figures' stems, each with its file formats."""
        figures = self.config.get("figures") or []
        if isinstance(figures, Mapping):
            return {stem: list(formats or FORMATS) for stem, formats in figures.items()}
        return {stem: list(FORMATS) for stem in figures}

    def module(self):
        return importlib.import_module(self.config["target"])

    @property
    def claims_target(self) -> str:
        """The module that scores the study's claims: the study's own name in the room `claims`."""
        return self.config["target"].replace(".studies.", ".claims.", 1)

    @property
    def table_root(self) -> Path:
        """The folder of tables: that of all results, or, where data are left out, one for partial tables."""
        root = Path(self.config["root"])
        return root if not self.left_out else PARTIAL if root == Path("results") else root / PARTIAL.name

    @property
    def figure_root(self) -> Path:
        """The folder of figures, chosen as that of tables is."""
        return self.table_root / "figures" if self.left_out else Path(self.config["figure_root"])

    def table_path(self, table: str) -> Path:
        return self.table_root / self.paper / f"{table}.csv"

    def grid_path(self) -> Path:
        return self.table_root / f"{self.name}.grid.json"

    def timing_path(self) -> Path:
        return self.table_root / "timing" / f"{self.identifier}.csv"

    def figure_paths(self) -> list[Path]:
        folder = self.figure_root / self.paper
        return [folder / f"{stem}.{ending}" for stem, formats in self.figures.items() for ending in formats]


@dataclass(frozen=True)
class Cell:
    """One job: a point of the sweep with all its trials and all its within axes.

    `digest` covers all that defines the numbers (settings, within axes, trials, block, seed, axes of the random
    streams, rev, the data's identity); not the commit, host, paths or scale.
    """

    study: str
    settings: dict[str, Any]
    within: dict[str, list]
    sizes: dict[str, Any]
    axes: tuple[str, ...]
    common: tuple[str, ...]
    root: str
    data: dict[str, Any] | None
    overrides: tuple[str, ...] = field(compare=False)
    # The within axes as JSON where many cells share them: most of what is hashed.
    within_json: str | None = field(default=None, compare=False, repr=False)

    @functools.cached_property
    def digest(self) -> str:
        text = canonical(
            {
                "study": self.study,
                "settings": self.settings,
                "sizes": self.sizes,
                "axes": sorted(self.axes),
                "common": sorted(self.common),
                "data": self.data,
            }
        )
        # One sorted JSON map, of whose keys `within` is the last.
        text = f'{text[:-1]},"within":{self.within_json or canonical(self.within)}}}'
        return hashlib.sha256(text.encode()).hexdigest()[:10]

    @property
    def point(self) -> dict[str, Any]:
        return {axis: self.settings[axis] for axis in self.axes}

    @property
    def slug(self) -> str:
        words = [_word(value) for value in self.point.values()]
        return "-".join(words)[:80] or "all"

    @functools.cached_property
    def path(self) -> Path:
        return Path(self.root) / "cells" / self.study / f"{self.slug}_{self.digest}.npz"

    @property
    def dataset(self) -> str | None:
        return self.settings.get("dataset")

    @property
    def config(self) -> SimpleNamespace:
        """Settings, within axes (as lists), trials and block as attributes: what `simulate` is given."""
        within = {key: list(values) for key, values in self.within.items()}
        return SimpleNamespace(**self.settings, **within, trials=self.sizes["trials"], block=self.sizes["block"])

    def command(self) -> list[str]:
        """Return the arguments of `privpost` that compute this cell."""
        return [f"study={self.study}", *self.overrides]


def canonical(value: Any) -> str:
    """Return sorted, compact JSON: the form in which settings are hashed and compared."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _word(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, float):
        return f"{value:g}"
    return "".join(c if c.isalnum() or c in "._" else "" for c in str(value)) or "empty"


# Composition


def study_names() -> list[str]:
    """Return the names of all studies, `<paper>/<study>`, in alphabetical order."""
    folder = CONF / "study"
    return sorted(str(p.relative_to(folder).with_suffix("")) for p in folder.glob("*/*.yaml"))


def compose(names: Iterable[str], scale: str, overrides: Iterable[str] = ()) -> dict[str, dict]:
    """Return the composed configuration of each study as a plain dict.

    A Hydra compose takes some 50 ms a study, at every start of Snakemake, so the plain configurations are kept under
    .snakemake. They are looked up by all that they depend on: the content of conf/, Hydra's version, the arguments.
    """
    names, overrides = list(names), list(overrides)
    folder = STATE / "composed" / _conf_digest()
    files = {name: folder / f"{_short_digest(name, scale, *overrides)}.json" for name in names}
    configs = {}
    for name, file in files.items():
        # Another process may take the folder away once conf/ has changed.
        with contextlib.suppress(FileNotFoundError):
            configs[name] = json.loads(file.read_text(encoding="utf-8"))
    composed = _compose_with_hydra([name for name in names if name not in configs], scale, overrides)
    if composed:
        # A folder that cannot be written (a read-only checkout) only makes the next start slower.
        with contextlib.suppress(OSError):
            _keep({files[name]: config for name, config in composed.items()}, folder)
    configs |= composed
    return {name: configs[name] for name in names}


def _compose_with_hydra(names: list[str], scale: str, overrides: list[str]) -> dict[str, dict]:
    if not names:
        return {}
    import yaml
    from hydra import compose as hydra_compose
    from hydra import initialize_config_dir
    from hydra.core.global_hydra import GlobalHydra
    from hydra.errors import HydraException
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    configs = {}
    # A cell's job is itself run by Hydra, which allows one composition at a time.
    outer = GlobalHydra.instance().hydra
    GlobalHydra.instance().clear()
    try:
        with initialize_config_dir(version_base="1.3", config_dir=str(CONF.resolve())):
            for name in names:
                words = [f"study={name}", f"scale={scale}", *overrides]
                try:
                    configs[name] = OmegaConf.to_container(hydra_compose("config", overrides=words), resolve=True)
                except (HydraException, OmegaConfBaseException, yaml.YAMLError, UnicodeDecodeError) as error:
                    # Hydra's own messages go on for many lines; what is wrong stands in the first ones.
                    reason = " ".join(line.strip() for line in str(error).splitlines()[:4])
                    raise SettingError(
                        f"{CONF}/study/{name}.yaml cannot be read with {' '.join(words)}: {reason}"
                    ) from error
    finally:
        GlobalHydra.instance().hydra = outer
    return configs


def _conf_digest() -> str:
    """Return a digest of every configuration file's path and content, and of the versions that compose them."""
    digest = hashlib.sha256()
    for package in ("hydra-core", "omegaconf"):
        digest.update(f"{package} {importlib.metadata.version(package)};".encode())
    for path in sorted(CONF.rglob("*.yaml")):
        text = path.read_bytes()
        digest.update(f"{path.relative_to(CONF)} {len(text)};".encode() + text)
    return digest.hexdigest()[:20]


def _short_digest(*words: str) -> str:
    return hashlib.sha256(json.dumps(words).encode()).hexdigest()[:20]


def _keep(configs: Mapping[Path, dict], folder: Path) -> None:
    """Write composed configurations, and forget those of an earlier state of conf/."""
    folder.mkdir(parents=True, exist_ok=True)
    for other in folder.parent.iterdir():
        if other != folder:
            shutil.rmtree(other, ignore_errors=True)
    for path, config in configs.items():
        # By rename, since several jobs may compose at once; an incomplete file would be taken for a configuration.
        temporary = path.with_name(f"{path.name}.{os.getpid()}")
        temporary.write_text(json.dumps(config), encoding="utf-8")
        os.replace(temporary, path)


def load_study(name: str, scale: str = "paper", overrides: Iterable[str] = ()) -> Study:
    """Return one composed study.

    Raises SettingError for an unknown study or scale, with the nearest known name.
    """
    return load_studies([name], scale, overrides)[0]


def load_studies(names: Iterable[str] | None = None, scale: str = "paper", overrides: Iterable[str] = ()):
    """Return the named studies (all when None), composed and checked."""
    known = study_names()
    names = known if names is None else list(names)
    for name in names:
        if name not in known:
            raise SettingError(
                f"study is {name!r}, which does not exist.{suggest(name, known)} Known studies: {', '.join(known)}."
            )
    scales = sorted(p.stem for p in (CONF / "scale").glob("*.yaml"))
    if scale not in scales:
        raise SettingError(f"scale is {scale!r}, but must be one of {', '.join(scales)}.{suggest(scale, scales)}")
    return [as_study(name, config) for name, config in compose(names, scale, overrides).items()]


def as_study(name: str, config: dict, pinned: Iterable[str] = ()) -> Study:
    """Return a study from its composed configuration; `pinned` are within axes that the command line set.

    Raises SettingError for a key that is missing, malformed or in two places, and for a target that is no study module.
    """
    config = copy.deepcopy(config)
    where = f"{CONF}/study/{name}.yaml"
    for key in ("title", "claim", "target", "rev", "scale", "root", "figure_root"):
        if not config.get(key):
            raise SettingError(f"{where}: the key {key!r} is missing.")
    for key in ("sweep", "within", "smoke"):
        config[key] = config.get(key) or {}
    config["common"] = tuple(_shaped(config, "common", where) or ())
    for key in SHAPES:
        _shaped(config, key, where)
    for key in {"sweep", "within", "common"} & set(config["smoke"]):
        _shaped(config["smoke"], key, f"{where}: smoke")
    for key in SIZES:
        config.setdefault(key, None)
    for key in set(config["within"]) & set(config) - set(pinned):
        raise SettingError(f"{where}: {key!r} is both a setting and a within axis; one of the two has to go.")
    schema = _schema(config["target"], where)
    if config.get("dataset") is None and "dataset" not in schema:
        config.pop("dataset", None)
    return Study(name, config, schema)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def _is_map(value: Any) -> bool:
    return isinstance(value, Mapping) and all(map(_is_text, value))


def _is_texts(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(map(_is_text, value))


def _is_formats(value: Any) -> bool:
    return value is None or (_is_texts(value) and set(value) <= set(FORMATS))


# The keys of a study's file that hold no setting: what each must look like, in words and as a test.
_NAMES = "a list of names"
_FIGURES = f"{_NAMES}, or a map from name to formats ({', '.join(FORMATS)})"
SHAPES = {
    **{key: ("text", _is_text) for key in ("title", "paper", "claim", "target", "scale", "root", "figure_root")},
    "tables": (_NAMES, _is_texts),
    "figures": (_FIGURES, lambda value: _is_texts(value) or (_is_map(value) and all(map(_is_formats, value.values())))),
    "sweep": (
        "a map from key to values, or a list of such maps",
        lambda value: _is_map(value) or (isinstance(value, list) and all(map(_is_map, value))),
    ),
    "within": ("a map from key to values", _is_map),
    "common": (_NAMES, _is_texts),
    "smoke": ("a map from key to value", _is_map),
}


def _shaped(config: Mapping, key: str, where: str) -> Any:
    """Return the value of a key that holds no setting, when it looks as it must or is absent."""
    value = config.get(key)
    allowed, fits = SHAPES[key]
    if value is not None and not fits(value):
        raise SettingError(f"{where}: {key} is {value!r}, but must be {allowed}.")
    return value


def _schema(target: str, where: str) -> Schema:
    try:
        schema = getattr(importlib.import_module(target), "SETTINGS", None)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{target}.".startswith(f"{error.name}."):
            raise
        raise SettingError(f"{where}: target is {target!r}, but there is no module {error.name}.") from None
    if not isinstance(schema, Schema):
        raise SettingError(f"{where}: target is {target!r}, which has no SETTINGS = Schema(...).")
    return schema


# Expansion


def expand(study: Study) -> list[Cell]:
    """Return the cells of the study's whole grid, in the order of its YAML.

    Raises SettingError for an unknown key or a value that is not allowed, naming the file.
    """
    cells = {}
    for cell in make_cells(study, points(study)):
        if cell.dataset not in study.left_out:
            cells.setdefault(cell.digest, cell)
    return list(cells.values())


def without_missing(study: Study, cells: Iterable[Cell] | None = None) -> Study:
    """Return the study with the bring-your-own data sets left out that cannot be had; itself when all can.

    `cells` are the study's, when they are known already.
    """
    names = sorted({cell.dataset for cell in (expand(study) if cells is None else cells) if cell.dataset})
    if not names:
        return study
    from privpost.datasets import catalogue, fetch

    missing = tuple(name for name in names if not fetch.findable(catalogue.load(name)))
    return replace(study, left_out=missing)


def points(study: Study) -> list[dict[str, Any]]:
    """Return the points of the study's sweep as maps from key to value.

    Raises SettingError for more points than `LARGEST_GRID`.
    """
    blocks = sweep_blocks(study)
    check_size(sum(math.prod(map(len, block.values())) for block in blocks), f"{study.file}: sweep")
    return [
        dict(zip(block, combination, strict=True))
        for block in blocks
        for combination in itertools.product(*block.values())
    ]


def check_size(size: int, where: str) -> None:
    """Raise SettingError, beginning with `where`, for more points than a grid may have."""
    if size > LARGEST_GRID:
        raise SettingError(f"{where} has {size} points, but a grid may have at most {LARGEST_GRID}.")


def sweep_blocks(study: Study) -> list[dict[str, list]]:
    """Return the study's sweep as full factorials, one for each of the maps under `sweep`: axis to values."""
    sweep = _scaled(study, {}).get("sweep") or {}
    blocks = sweep if isinstance(sweep, list) else [sweep]
    return [
        {key: axis_values(values, f"{study.file}: sweep.{key}") for key, values in block.items()} for block in blocks
    ]


def axis_values(values: Any, where: str) -> list:
    """Return an axis as a list: a list itself, or a map with start, stop, num and spacing (linear or log).

    Raises SettingError, beginning with `where`, for anything else and for an axis without values.
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
    checked = {key: fields.value(key, value, where) for key, value in {"spacing": "linear", **axis}.items()}
    start, stop, log = checked["start"], checked["stop"], checked["spacing"] == "log"
    if log and not (start > 0 and stop > 0):
        raise SettingError(f"{where}: start is {start:g} and stop is {stop:g}, but log spacing needs both above 0.")
    if log:
        start, stop = math.log(start), math.log(stop)
    numbers = (start + i / (checked["num"] - 1) * (stop - start) for i in range(checked["num"]))
    # Twelve digits: the axis is the same on every machine, and reads well in a table.
    return [float(f"{math.exp(number) if log else number:.12g}") for number in numbers]


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
    """What all cells share that set the same keys: the other settings and axes, checked and in their normal form."""

    def __init__(self, study: Study, keys: tuple[str, ...]):
        where, schema = study.file, study.schema
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
        self.within_json = None if set(keys) & set(within) else canonical(self.within)
        self.sizes = {key: config[key] for key in SIZES}
        self.axes = _axes(study)
        self.common = _checked_common(config["common"], {*self.axes, *within}, where)
        self.scale = [f"scale={config['scale']}"] * (config["scale"] != "paper")

    def cell(self, overrides: Mapping[str, Any]) -> Cell:
        where, schema = self.study.file, self.study.schema
        settings, sizes, within = dict(self.settings), dict(self.sizes), self.within
        for key, value in overrides.items():
            if key in within:
                values = value if isinstance(value, list | Mapping) else [value]
                within = {**within, key: _within_values(schema, key, values, where)}
            elif key in sizes:
                sizes[key] = value
            else:
                settings[key] = schema.value(key, value, where)
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
            sizes=_checked_sizes(sizes, where),
            axes=self.axes,
            common=self.common,
            root=self.study.config["root"],
            data=_identity(settings.get("dataset")),
            overrides=(*self.scale, *words),
            within_json=self.within_json,
        )


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
        sweep = config.get("sweep") or {}
        for block in sweep if isinstance(sweep, list) else [sweep]:
            axes.update(dict.fromkeys(key for key in block if key not in study.config["within"]))
    for key in axes:
        if key in SIZES:
            raise SettingError(f"{study.file}: {key!r} is swept, but only settings can be axes of a grid.")
        if key not in study.schema:
            raise study.schema.unknown(key, f"{study.file}: sweep")
        if key not in study.config:
            raise SettingError(f"{study.file}: {key!r} is swept, so it needs a base value among the settings.")
    return tuple(axes)


def _checked_sizes(sizes: dict, where: str) -> dict:
    checked = Schema(**SIZES)
    sizes = {key: checked.value(key, value, where) for key, value in sizes.items()}
    trials, block = sizes["trials"], sizes["block"]
    if (trials is None) != (block is None):
        raise SettingError(f"{where}: trials is {trials} and block is {block}; give both or neither.")
    if trials is not None and trials % block:
        raise SettingError(
            f"{where}: trials is {trials}, but must be a multiple of block, which is {block}, "
            f"for instance {max(1, (trials + block // 2) // block) * block}."
        )
    return sizes


def _checked_common(common: Iterable[str], known: set[str], where: str) -> tuple[str, ...]:
    for key in common:
        if key not in known:
            raise SettingError(
                f"{where}: common names {key!r}, which is no axis.{suggest(key, known)} "
                f"Axes: {', '.join(sorted(known))}."
            )
    return tuple(common)


def _identity(dataset: str | None) -> dict | None:
    return (
        None
        if dataset is None
        else _identity_of(dataset, (CONF / "dataset" / f"{dataset}.yaml").read_text(encoding="utf-8"))
    )


@functools.cache
def _identity_of(dataset: str, text: str) -> dict:
    # `text` is the content of the data set's file: many cells share a data set, and parsing YAML is slow.
    from privpost.datasets import catalogue

    return catalogue.load(dataset).identity()


# What Hydra would read as a number, a truth value or null; anything else in these characters is a plain word.
_NO_WORD = re.compile(r"[+-]?(\d[\d_]*)?\.?(\d[\d_]*)?(e[+-]?\d+)?|[+-]?(inf|nan)|true|false|null", re.IGNORECASE)
_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./-]*")


def hydra_value(value: Any) -> str:
    """Return a value in the grammar of Hydra's command-line overrides."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, list):
        return "[" + ",".join(hydra_value(item) for item in value) + "]"
    text = str(value)
    if _PLAIN.fullmatch(text) and not _NO_WORD.fullmatch(text):
        return text
    # In quotes Hydra takes a backslash literally, except before a quote.
    return "'" + re.sub(r"(\\*)('|$)", lambda found: found[1] * 2 + "\\'" * bool(found[2]), text) + "'"


def shard_of(cells: Sequence[Cell], number: int, count: int) -> Sequence[Cell]:
    """Return one of `count` shards of a list of cells, counted from 1: every `count`-th cell, so that neighbours part.

    Neighbours on an axis take about as long as each other, so shards do too.
    """
    return cells[number - 1 :: count]


def joint_digest(cells: Iterable[Cell]) -> str:
    """Return the digest of several cells together: what `expect` names for a shard."""
    return hashlib.sha256(" ".join(cell.digest for cell in cells).encode()).hexdigest()[:10]


def describe(study: Study, cells: list[Cell]) -> str:
    """Return the text of a study's .grid.json: which cells its tables and figures were drawn from."""
    lines = [canonical({"digest": cell.digest, "point": cell.point}) for cell in cells]
    return f'{{"study":"{study.name}","cells":[\n' + ",\n".join(lines) + "\n]}\n"
