"""Finds modules and classes of a package without importing them, and imports optional packages."""

import difflib
import functools
import re
from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

_CLASS = re.compile(r"^class (\w+)", re.MULTILINE)


def nearest(name: str, known: Iterable[str]) -> str:
    """Return a question that suggests the known name nearest to `name`, or "" if no known name is near.

    A known name that begins with `name`, as LaplaceMechanism does with Laplace, is preferred to other names.
    """
    known = list(known)
    begun = min((longer for longer in known if len(name) > 3 and longer.startswith(name)), key=len, default="")
    near = [begun] if begun else difflib.get_close_matches(name, known, 1)
    return f"; did you mean {near[0]!r}?" if near else ""


def modules(*folders: str | Path) -> list[str]:
    """Return the modules, such as `noise.laplace`, in some folders, in the order of their files' names."""
    return sorted({_module(path, folder) for path, folder in _paths(*folders)}, key=_last_first)


def _last_first(module: str) -> tuple[str, str]:
    return module.rpartition(".")[2], module


def home(name: str, *folders: str | Path) -> str | None:
    """Return the module, such as `noise.laplace`, that defines a class in some folders, or None if no module does."""
    return _homes(_files(*folders)).get(name)


def names(*folders: str | Path) -> list[str]:
    """Return the names of the public classes that the modules in some folders define."""
    return sorted(name for name in _homes(_files(*folders)) if not name.startswith("_"))


def optional(module: str, needed: str, install: str) -> ModuleType:
    """Import and return an optional package. Raises ValueError, with advice to install it, if it is missing."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ValueError(f"{needed}. Install it: {install}") from error


def _paths(*folders: str | Path) -> Iterator[tuple[Path, Path]]:
    """Yield (file, folder) for each Python file but `__init__.py` in or below each given folder."""
    for folder in map(Path, folders):
        yield from ((path, folder) for path in sorted(folder.rglob("*.py")) if path.name != "__init__.py")


def _module(path: Path, folder: Path) -> str:
    return ".".join(path.relative_to(folder).with_suffix("").parts)


def _files(*folders: str | Path) -> tuple[tuple[Path, str, int], ...]:
    return tuple((path, _module(path, folder), path.stat().st_mtime_ns) for path, folder in _paths(*folders))


@functools.cache
def _homes(files: tuple[tuple[Path, str, int], ...]) -> dict[str, str]:
    return {name: module for path, module, _ in files for name in _CLASS.findall(path.read_text(encoding="utf-8"))}


def find(package: str, name: str) -> type:
    """Return a class of a package by its name. Raises AttributeError if there is no class of this name."""
    # Only classes are looked for, since importing a submodule first calls this function with the submodule's name.
    folders = import_module(package).__path__
    module = home(name, *folders) if name[0].isupper() else None
    if module is None:
        hint = nearest(name, names(*folders)) if name[0].isupper() else ""
        raise AttributeError(f"module {package!r} has no attribute {name!r}{hint}")
    return getattr(import_module(f"{package}.{module}"), name)
