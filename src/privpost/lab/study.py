"""Studies, whose YAML, modules, tables and figures are found by name, and cells, which are points of a study's grid."""

import ast
import copy
import functools
import hashlib
import importlib
import importlib.util
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import yaml

from privpost import configurations
from privpost.drawing import figures
from privpost.lab.compose import compose
from privpost.lab.project import PUBLISHED, built
from privpost.lab.schema import Integer, Schema, SettingError

SIZES = {
    "trials": Integer(at_least=1, optional=True),
    "block": Integer(at_least=1, optional=True),
    "rev": Integer(at_least=1),
    "seed": Integer(at_least=0, at_most=None),
}


@dataclass(frozen=True)
class Study:
    """One experiment of a paper at one scale, as a YAML file and Python modules define it.

    Attributes:
        name: `<paper>/<study>`.
        home: the folder that contains `results/` and `figures/`, either of the published files or of a build.
    """

    name: str
    scale: str = "paper"
    home: Path = PUBLISHED
    _memory: dict[str, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def paper(self) -> str:
        return self.name.split("/")[0]

    @property
    def identifier(self) -> str:
        """The study's name with an underscore in place of the slash, for file names."""
        return self.name.replace("/", "_")

    @functools.cached_property
    def file(self) -> str:
        return f"{configurations.folder()}/study/{self.name}.yaml"

    @property
    def published(self) -> "Study":
        """The study with the published tables and figures."""
        twin = copy.copy(self)
        object.__setattr__(twin, "home", PUBLISHED)
        return twin

    # What the study's YAML says

    @functools.cached_property
    def text(self) -> dict[str, Any]:
        """The content of the study's own file. Raises SettingError if the file is not valid YAML."""
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        try:
            return yaml.load(Path(self.file).read_text(encoding="utf-8"), loader) or {}
        except (yaml.YAMLError, UnicodeDecodeError) as error:
            raise SettingError(f"{self.file} cannot be read: {' '.join(str(error).split())}") from error

    @functools.cached_property
    def config(self) -> dict[str, Any]:
        """The study's configuration as Hydra composes it at the study's scale.

        Raises SettingError for a key that is missing, malformed or given in two places.
        """
        config = compose(self.name, self.scale)
        for key in ("title", "claim", "rev", "scale"):
            if not config.get(key):
                raise SettingError(f"{self.file}: the key {key!r} is missing.")
        for key in ("within", "smoke"):
            config[key] = config.get(key) or {}
            if not isinstance(config[key], Mapping):
                raise SettingError(f"{self.file}: {key} is {config[key]!r}, but must be a map.")
        if not isinstance(of_smoke := config["smoke"].get("within", {}), Mapping):
            raise SettingError(f"{self.file}: smoke.within is {of_smoke!r}, but must be a map.")
        for key in SIZES:
            config.setdefault(key, None)
        for key in set(config["within"]) & set(config):
            raise SettingError(f"{self.file}: {key!r} is both a setting and a within axis; one of the two has to go.")
        if config.get("dataset") is None and "dataset" not in self.schema:
            config.pop("dataset", None)
        return config

    @property
    def shards(self) -> int:
        """Number of jobs that share the study's cells. At smoke scale there are at most two jobs."""
        shards = int(self.text.get("shards", 1))
        return min(2, shards) if self.scale == "smoke" else shards

    @functools.cached_property
    def datasets(self) -> list[str]:
        """Names of the data sets in the sweep of the study's own file, or else in the whole file."""
        from privpost.datasets import catalogue

        sweep = (self.text.get("smoke") or {}).get("sweep") if self.scale == "smoke" else None
        swept = {*_words(sweep or self.text.get("sweep"))}.intersection(catalogue.names())
        anywhere = _words({key: value for key, value in self.text.items() if key != "smoke"})
        return sorted(swept or {*anywhere}.intersection(catalogue.names()))

    @property
    def lacking(self) -> list[str]:
        """Names of the study's data sets that are not available."""
        return [name for name in self.datasets if not findable(name)]

    # The study's modules

    @property
    def package(self) -> str:
        """The name of the package with the study's modules `study`, `claims` and `figures`."""
        return f"privpost.experiments.{self.name.replace('/', '.')}"

    @property
    def folder(self) -> Path:
        """The folder of the study's modules. Raises SettingError if the folder does not exist."""
        try:
            spec = importlib.util.find_spec(self.package)
        except ModuleNotFoundError:
            spec = None
        if spec is None or not spec.submodule_search_locations:
            raise SettingError(f"{self.file}: there is no package {self.package}.")
        return Path(next(iter(spec.submodule_search_locations)))

    def module(self, name: str = "study") -> ModuleType:
        return importlib.import_module(f"{self.package}.{name}")

    def has(self, name: str) -> bool:
        """Whether the study has a module or a package of this name."""
        return (self.folder / f"{name}.py").is_file() or (self.folder / name / "__init__.py").is_file()

    @functools.cached_property
    def schema(self) -> Schema:
        """`SETTINGS` of the study's module. Raises SettingError if the module does not define this schema."""
        schema = getattr(self.module(), "SETTINGS", None)
        if not isinstance(schema, Schema):
            raise SettingError(f"{self.package}.study has no SETTINGS = Schema(...).")
        return schema

    # The study's tables and figures

    @functools.cached_property
    def tables(self) -> list[str]:
        """Names of the tables: the keys of `TABLES` in study.py, or else the study's name without its paper."""
        for node in ast.parse((path := self.folder / "study.py").read_text(encoding="utf-8"), str(path)).body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "TABLES":
                return [key.value for key in node.value.keys]  # type: ignore[attr-defined]
        return [self.name.split("/")[1]]

    @functools.cached_property
    def figures(self) -> list[str]:
        """Names of the figures that the functions of figures.py draw."""
        return figures.names(self.folder / "figures.py")

    def draw(self, stem: str, tables: Mapping[str, Any]):
        """Return the figure with the name `stem`, drawn from the given tables."""
        return figures.draw(figures.functions(self.module("figures"))[stem], tables)

    # The study's files

    @property
    def results(self) -> Path:
        """The folder of the study's tables and ledger."""
        return self.home / "results" / self.name

    @property
    def drawings(self) -> Path:
        """The folder of the study's figures."""
        return self.home / "figures" / self.name

    @property
    def cells_folder(self) -> Path:
        """The folder of the study's cells in the store. It does not depend on `home`."""
        return built(self.scale) / "cells" / self.name

    def table_path(self, table: str) -> Path:
        return self.results / f"{table}.csv"

    def figure_path(self, stem: str) -> Path:
        return self.drawings / f"{stem}.svg"

    @property
    def ledger_path(self) -> Path:
        return self.results / "ledger.json"

    def once(self, name: str, find):
        """Return the result of `find`, which is called only at the first call with this `name`."""
        if name not in self._memory:
            self._memory[name] = find()
        return self._memory[name]


@functools.cache
def findable(name: str) -> bool:
    """Whether a data set is available on this machine."""
    from privpost.datasets import catalogue, fetch

    return fetch.findable(catalogue.load(name))


def _words(value: Any) -> Iterator[str]:
    """Yield the strings in nested maps and lists."""
    if isinstance(value, str):
        yield value
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _words(item)


@dataclass(frozen=True)
class Cell:
    """A point of a study's sweep, with all trials and with the within axes (axes inside a cell).

    `digest` covers everything that defines the numbers: settings, within axes, trials, block, seed, axes of the random
    streams, rev and the data's identity.
    """

    study: str
    settings: dict[str, Any]
    within: dict[str, list]
    sizes: dict[str, Any]
    axes: tuple[str, ...]
    common: tuple[str, ...]
    folder: str
    data: dict[str, Any] | None
    # Joint digest of the cells whose ledgers the study reads; None if the study reads no ledgers.
    reads: str | None
    overrides: tuple[str, ...] = field(compare=False)

    @functools.cached_property
    def digest(self) -> str:
        parts = {
            "study": self.study,
            "settings": self.settings,
            "within": self.within,
            "sizes": self.sizes,
            "axes": sorted(self.axes),
            "common": sorted(self.common),
            "data": self.data,
        }
        text = canonical(parts if self.reads is None else {**parts, "reads": self.reads})
        return hashlib.sha256(text.encode()).hexdigest()[:10]

    @property
    def point(self) -> dict[str, Any]:
        return {axis: self.settings[axis] for axis in self.axes}

    @property
    def slug(self) -> str:
        words = [_word(value) for value in self.point.values()]
        return "-".join(words)[:80] or "all"

    @property
    def path(self) -> Path:
        return Path(f"{self.folder}/{self.slug}_{self.digest}.npz")

    @property
    def dataset(self) -> str | None:
        return self.settings.get("dataset")

    @property
    def config(self) -> SimpleNamespace:
        """The argument of `simulate`: settings, within axes (as lists), trials and block as attributes."""
        within = {key: list(values) for key, values in self.within.items()}
        return SimpleNamespace(**self.settings, **within, trials=self.sizes["trials"], block=self.sizes["block"])

    def command(self) -> list[str]:
        """Return the arguments of `privpost` that compute this cell."""
        return [f"study={self.study}", *self.overrides]


def canonical(value: Any) -> str:
    """Return sorted, compact JSON, the form in which settings are hashed and compared."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _word(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, float):
        return f"{value:g}"
    return "".join(c if c.isalnum() or c in "._" else "" for c in str(value)) or "empty"
