"""A study, as its YAML and its module's schema describe it, and a cell: one job, with a digest of what defines it."""

import ast
import hashlib
import importlib
import importlib.util
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from privpost import configurations
from privpost.drawing import figures as marked
from privpost.lab.schema import Schema, SettingError

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
    left_out: tuple[str, ...] = ()
    _kept: dict[str, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def kept(self, name: str, find: Callable[[], Any]) -> Any:
        """Return what `find` gives, found once: grids are asked for again and again while a rebuild is planned."""
        if name not in self._kept:
            self._kept[name] = find()
        return self._kept[name]

    @property
    def schema(self) -> Schema:
        """What the study's module says of its settings; raises SettingError for a target that is no study module."""
        # Looked up where it is needed: the module imports numpy, scipy and more.
        return self.kept("schema", lambda: _schema(self.target, self.file))

    @property
    def file(self) -> str:
        return f"{configurations.folder()}/study/{self.name}.yaml"

    @property
    def paper(self) -> str:
        return self.name.split("/")[0]

    @property
    def beyond_papers(self) -> bool:
        """Whether the study is in none of the papers: what its YAML says, else that its folder has no year."""
        return bool(self.config.get("beyond_papers", not self.paper[-4:].isdigit()))

    @property
    def identifier(self) -> str:
        """The name with an underscore for the slash, as rules and flat files use it."""
        return self.name.replace("/", "_")

    @property
    def tables(self) -> list[str]:
        declared = _keys("TABLES", (self.folder / "study.py").read_text(encoding="utf-8"))
        return declared or self.config.get("tables") or [self.name.split("/")[1]]

    @property
    def package(self) -> str:
        """The package of the study's modules: study, claims and figures."""
        return f"privpost.experiments.{self.name.replace('/', '.')}"

    @property
    def target(self) -> str:
        """The module of its settings, `simulate` and `tabulate`."""
        return f"{self.package}.study"

    @property
    def folder(self) -> Path:
        """The folder of the study's modules."""
        return Path(next(iter(importlib.util.find_spec(self.package).submodule_search_locations)))

    @property
    def figures(self) -> dict[str, list[str]]:
        """The figures' stems, each with its file formats: those that figures.py marks."""
        modules = sorted((self.folder / "figures").glob("*.py"))
        stems = [path.stem for path in modules if "\ndef draw(" in path.read_text(encoding="utf-8")]
        return dict.fromkeys([*marked.names(self.folder / "figures.py"), *stems], list(FORMATS))

    def draw(self, stem: str, tables: Mapping[str, Any]):
        """Return one of the study's figures, drawn from its tables."""
        if (self.folder / "figures.py").is_file():
            module = importlib.import_module(f"{self.package}.figures")
            return marked.draw(marked.functions(module)[stem], tables)
        return importlib.import_module(figure_module(self, stem)).draw(tables)

    def module(self):
        return importlib.import_module(self.target)

    @property
    def claims_target(self) -> str:
        """The module that scores the study's claims."""
        return f"{self.package}.claims"

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

    def figure_paths(self, printed: bool = False) -> list[Path]:
        """Return the figure files: one a figure, the SVG where there is one; with `printed` every format."""
        folder = self.figure_root / self.paper
        return [
            folder / f"{stem}.{ending}"
            for stem, formats in self.figures.items()
            for ending in (formats if printed or "svg" not in formats else ["svg"])
        ]

    def shipped_figures(self) -> list[Path]:
        """Return the figure files that the repository holds: text, in which a small change is a small difference."""
        return [path for path in self.figure_paths() if path.suffix == ".svg"]


@dataclass(frozen=True, slots=True)
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
    # The joint digest of the cells whose ledgers the study reads, where it reads some.
    reads: str | None
    overrides: tuple[str, ...] = field(compare=False)
    # The within axes as JSON where many cells share them: most of what is hashed.
    within_json: str | None = field(default=None, compare=False, repr=False)
    # Known once it was asked for. A plan has cells by the hundred thousand: they have slots, and keep no paths.
    _digest: str | None = field(default=None, init=False, compare=False, repr=False)

    @property
    def digest(self) -> str:
        if self._digest is None:
            self.known_by(self._worked_out())
        return self._digest

    def known_by(self, digest: str) -> None:
        """Take a digest that was worked out before."""
        object.__setattr__(self, "_digest", digest)

    def _worked_out(self) -> str:
        parts = {
            "study": self.study,
            "settings": self.settings,
            "sizes": self.sizes,
            "axes": sorted(self.axes),
            "common": sorted(self.common),
            "data": self.data,
        }
        text = canonical(parts if self.reads is None else {**parts, "reads": self.reads})
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

    @property
    def path(self) -> Path:
        return Path(f"{self.root}/cells/{self.study}/{self.slug}_{self.digest}.npz")

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


def _keys(name: str, text: str) -> list[str]:
    """Return the keys of a map that a module assigns to a name, without importing it; none where it assigns none."""
    if f"\n{name} = " not in text:
        return []
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign) and [getattr(target, "id", "") for target in node.targets] == [name]:
            return [key.value for key in node.value.keys]
    return []


def blocks(sweep: Any) -> list[dict]:
    """Return the maps under a `sweep`, of which there may be one or a list."""
    return sweep if isinstance(sweep, list) else [sweep or {}]


def canonical(value: Any) -> str:
    """Return sorted, compact JSON: the form in which settings are hashed and compared."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _word(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, float):
        return f"{value:g}"
    return "".join(c if c.isalnum() or c in "._" else "" for c in str(value)) or "empty"


def figure_module(study: Study, stem: str) -> str:
    """Return the name of the module that draws a figure."""
    return f"{study.package}.figures.{stem}"


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
