"""The catalogue of data sets: what ``conf/dataset/<name>.yaml`` declares, read and checked."""

import dataclasses
import difflib
import importlib
import math
import os
import re
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

import yaml

from privpost import configurations
from privpost.datasets.files import checksum, parsed

# The folders of the repository's files, of a user's own files, and of the verified and unpacked files made of both.
ORIGINAL, OWN, RAW = "data/original", "data/mirror", "data/raw"
ABSENT = "absent"
ACCESS = ("public", "bring-your-own", "generated")
# Kinds of studies: events in cells; features with a class; a number to be predicted; columns that become bits.
TASKS = ("counts", "classification", "regression", "bits")
SUM = "64 lower-case hexadecimal digits, in quotes"
_SERVES = re.compile(r"^serves: *\[(.*)\]", re.MULTILINE)
_TITLES = re.compile(r"^(title|short): *(.*?) *$", re.MULTILINE)


class CatalogueError(ValueError):
    """A declaration cannot be used. The error names its file, the part at fault, and what is allowed."""


@dataclass(frozen=True)
class File:
    """One raw file: its size in bytes, its sha256 and the publishers' addresses in the order in which they are tried.

    If no checksum is `declared`, size and sha256 are read from the user's own file, or are 0 and ABSENT without a file.
    """

    name: str
    bytes: int
    sha256: str
    urls: tuple[str, ...]
    declared: bool = True


@dataclass(frozen=True)
class Dataset:
    """The declaration of one data set.

    Attributes:
        access: one of `ACCESS`. A generated data set has no files: its loader draws the data from the settings.
        rev: number that is raised when the loader's meaning changes.
        files: the raw files, on which the data set's identity depends.
        public: knowledge that does not come from the records: `bounds` maps columns to [low, high], and `levels` maps
            columns to lists in ASCII order.
        settings: all else that changes numbers.
        folder: folder of the files below data/original and data/mirror; by default the name.
        serves: kinds of studies that can read the data set (`TASKS`).
        short: title of the data set's panels in figures.
        instead: files, each of which gives by itself the arrays of `files`.
        arrays: sha256 of the arrays (`prepared.sum_of`).
    """

    name: str
    title: str
    access: str
    stand_in: bool
    licence: str
    citation: str
    origin: str
    rev: int
    files: tuple[File, ...]
    public: dict[str, Any]
    settings: dict[str, Any]
    folder: str = ""
    serves: tuple[str, ...] = ()
    short: str = ""
    instead: tuple[File, ...] = ()
    arrays: str = ""

    @property
    def place(self) -> str:
        return self.folder or self.name

    def choices(self) -> list[tuple[File, ...]]:
        """Return the sets of files from which the arrays can be made, with the preferred set first."""
        return [self.files, *((file,) for file in self.instead)]

    def identity(self) -> dict[str, Any]:
        """Return everything that can change a number, as values for JSON."""
        return {
            "name": self.name,
            "rev": self.rev,
            "sha256": {file.name: file.sha256 for file in self.files},
            "public": self.public,
            "settings": self.settings,
        }

    def loader(self) -> ModuleType:
        """Import and return ``privpost.datasets.<name>``. Raises ValueError if there is no module of this name."""
        module = f"privpost.datasets.{self.name}"
        try:
            return importlib.import_module(module)
        except ModuleNotFoundError as error:
            if error.name != module:
                raise
            raise ValueError(f"dataset = {self.name!r}: there is no loader module {module}") from error


def names(conf: str | os.PathLike[str] | None = None) -> list[str]:
    """Return the names of all catalogued data sets, sorted. Raises ValueError if there is no catalogue."""
    folder = Path(configurations.folder() if conf is None else conf) / "dataset"
    if not folder.is_dir():
        raise ValueError(f"there is no folder {folder}; run from the root of the checkout")
    return sorted(path.stem for path in folder.glob("*.yaml"))


def serves(name: str, task: str) -> bool:
    """Whether a kind of studies (`TASKS`) can read a catalogued data set, according to its unchecked declaration."""
    text = (configurations.folder() / "dataset" / f"{name}.yaml").read_text(encoding="utf-8")
    match = _SERVES.search(text)
    return match is not None and task in match[1].split(", ")


def title(name: str) -> str:
    """Return a data set's short title, or its title, or its name in words if neither is declared."""
    path = configurations.folder() / "dataset" / f"{name}.yaml"
    titles = dict(_TITLES.findall(path.read_text(encoding="utf-8"))) if path.is_file() else {}
    return titles.get("short") or titles.get("title") or name.replace("_", " ").capitalize()


def load(name: str, conf: str | os.PathLike[str] | None = None) -> Dataset:
    """Read and check ``<conf>/dataset/<name>.yaml``. Raises CatalogueError naming what is unknown or malformed."""
    known = names(conf)
    if name not in known:
        close = difflib.get_close_matches(str(name).lower(), known, n=1, cutoff=0.5)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise CatalogueError(f"dataset = {name!r}: unknown, known are {', '.join(known)}{hint}")
    path = Path(configurations.folder() if conf is None else conf) / "dataset" / f"{name}.yaml"
    try:
        return _checked(parsed(path), name)
    except yaml.YAMLError as error:
        raise CatalogueError(f"{path}: not valid YAML: {' '.join(str(error).split())}") from error
    except ValueError as error:
        raise CatalogueError(f"{path}: {error}") from None


def _checked(raw: Any, name: str) -> Dataset:
    demand(isinstance(raw, dict), "(whole file)", raw, "a mapping")
    raw = {"folder": "", "serves": [], "short": "", "instead": [], "arrays": "", **raw}
    _same_keys(raw, [field.name for field in dataclasses.fields(Dataset)])
    demand(raw["name"] == name, "name", raw["name"], f"{name!r}, as the file is called")
    # The name of a data set is also the name of a module and of a folder.
    demand(re.fullmatch(r"[a-z][a-z0-9_]*", raw["name"]) is not None, "name", raw["name"], "a lower-case identifier")
    for key in ("title", "licence", "citation", "origin"):
        demand(isinstance(raw[key], str) and raw[key].strip() != "", key, raw[key], "a non-empty string")
    demand(raw["access"] in ACCESS, "access", raw["access"], " or ".join(ACCESS))
    demand(isinstance(raw["short"], str), "short", raw["short"], "a string")
    plain = isinstance(raw["folder"], str) and re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*|", raw["folder"]) is not None
    demand(plain, "folder", raw["folder"], "a plain folder name")
    served = isinstance(raw["serves"], list) and all(task in TASKS for task in raw["serves"])
    demand(served, "serves", raw["serves"], f"a list of {', '.join(TASKS)}")
    demand(isinstance(raw["stand_in"], bool), "stand_in", raw["stand_in"], "true or false")
    demand(type(raw["rev"]) is int and raw["rev"] >= 1, "rev", raw["rev"], "an integer of 1 or more")
    for key in ("public", "settings"):
        demand(isinstance(raw[key], dict), key, raw[key], "a mapping (possibly empty)")
        demand(_is_plain(raw[key]), key, raw[key], "made of texts, finite numbers, lists and maps with texts as keys")
    for key in ("train_rows", "test_rows") if "classification" in raw["serves"] else ():
        rows = raw["settings"].get(key)
        demand(
            type(rows) is int and rows > 0, f"settings.{key}", rows, "a positive integer, as serves has classification"
        )
    if raw["access"] == "generated":
        demand(raw["files"] == [], "files", raw["files"], "empty, as access is generated")
    demand(isinstance(raw["files"], list), "files", raw["files"], "a list")
    demand(bool(raw["files"]) or raw["access"] == "generated", "files", raw["files"], "a non-empty list")
    checked = {"files": _checked_files(raw, "files"), "instead": _checked_files(raw, "instead")}
    if raw["access"] == "public" and not raw["instead"]:
        for index, file in enumerate(checked["files"]):
            demand(file.urls != (), f"files[{index}].urls", [], "at least one address, as access is public")
    demand(raw["arrays"] == "" or _is_sum(raw["arrays"]), "arrays", raw["arrays"], SUM)
    demand(not raw["instead"] or raw["arrays"] != "", "arrays", raw["arrays"], f"{SUM}, as instead names files")
    return Dataset(**{**raw, **checked, "serves": tuple(raw["serves"]), "public": _checked_public(raw["public"])})


def demand(condition: bool, key: str, value: Any, allowed: str) -> None:
    """Raise ValueError, naming a key and its value, unless a condition holds."""
    if not condition:
        raise ValueError(f"{key} = {value!r}: must be {allowed}")


def _checked_files(raw: dict[str, Any], key: str) -> tuple[File, ...]:
    files: list[File] = []
    demand(isinstance(raw[key], list), key, raw[key], "a list")
    for index, entry in enumerate(raw[key]):
        where = f"{key}[{index}]"
        demand(isinstance(entry, dict), where, entry, "a mapping")
        _same_keys(entry, ["name", "bytes", "sha256", "urls"], f"{where}: ")
        name, urls = entry["name"], entry["urls"]
        plain = isinstance(name, str) and re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*", name) is not None
        demand(plain, f"{where}.name", name, "a plain file name without folders")
        demand(name not in [file.name for file in files], f"{where}.name", name, "unique")
        size, sha256 = entry["bytes"], entry["sha256"]
        declared = not (size is None and sha256 is None and (raw["access"] == "bring-your-own" or key == "instead"))
        if declared:
            demand(type(size) is int and size > 0, f"{where}.bytes", size, "a positive integer")
            demand(_is_sum(sha256), f"{where}.sha256", sha256, SUM)
        else:
            # A file of `instead` is no part of the identity. The arrays that it gives are checked instead.
            size, sha256 = (0, ABSENT) if key == "instead" else _user_file(raw["name"], raw["folder"], name)
        demand(isinstance(urls, list), f"{where}.urls", urls, "a list (empty when bring-your-own)")
        for url in urls:
            web = isinstance(url, str) and urlsplit(url).scheme in ("http", "https") and urlsplit(url).netloc != ""
            demand(web, f"{where}.urls", url, "an http or https address")
        if raw["access"] != "public":
            demand(len(urls) == 0, f"{where}.urls", urls, "empty, as access is bring-your-own")
        files.append(File(name, size, sha256, tuple(urls), declared))
    return tuple(files)


def _is_sum(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch(r"[0-9a-f]{64}", value) is not None


def _checked_public(public: dict[str, Any]) -> dict[str, Any]:
    public = dict(public)
    if "bounds" in public:
        demand(isinstance(public["bounds"], dict), "public.bounds", public["bounds"], "a mapping")
        for column, pair in public["bounds"].items():
            numbers = isinstance(pair, list) and len(pair) == 2 and all(type(x) in (int, float) for x in pair)
            demand(numbers and -1e300 < pair[0] < pair[1] < 1e300, f"public.bounds.{column}", pair, "[low, high]")
        # Bounds become floats, so that 1 and 1.0 give one identity.
        public["bounds"] = {key: [float(x) for x in pair] for key, pair in public["bounds"].items()}
    if "levels" in public:
        demand(isinstance(public["levels"], dict), "public.levels", public["levels"], "a mapping")
        for column, levels in public["levels"].items():
            texts = isinstance(levels, list) and len(levels) > 1 and all(isinstance(x, str) for x in levels)
            ordered = texts and levels == sorted(set(levels))
            demand(ordered, f"public.levels.{column}", levels, "two or more different strings in ASCII order")
    return public


def _is_plain(value: Any) -> bool:
    """Whether a value has one canonical JSON text, which a digest needs."""
    if isinstance(value, dict):
        return all(isinstance(key, str) for key in value) and all(map(_is_plain, value.values()))
    if isinstance(value, list):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value))


def _user_file(dataset: str, folder: str, name: str) -> tuple[int, str]:
    """Return size and sha256 of a file that each user makes, or 0 and ABSENT if there is no file."""
    for path in (Path(OWN) / (folder or dataset) / name, Path(RAW) / dataset / name):
        if path.is_file():
            return checksum(path)
    return 0, ABSENT


def _same_keys(block: dict[str, Any], expected: list[str], where: str = "") -> None:
    missing = [key for key in expected if key not in block]
    unknown = [str(key) for key in block if key not in expected]
    if missing or unknown:
        wrong = [f"missing {', '.join(missing)}"] * bool(missing) + [f"unknown {', '.join(unknown)}"] * bool(unknown)
        raise ValueError(f"{where}{'; '.join(wrong)}; the fields are {', '.join(expected)}")
