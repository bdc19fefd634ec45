"""Records the origin of a result: versions, and digests of the source files that made the result.

The code of a cell consists of the modules that its study imports, directly or indirectly, and of the modules of the
mechanisms, models and samplers in its ledger. Studies do not import code that only reads tables.
"""

import ast
import functools
import hashlib
import importlib.metadata
import os
import platform
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import privpost
from privpost import lookup
from privpost.lab import memo

PACKAGE = Path(privpost.__file__).parent
# The libraries on whose versions a cell's numbers depend.
LIBRARIES = ("numpy", "scipy")
# Modules that every cell uses for its draws.
ALWAYS = ("privpost.lab.streams", "privpost.privacy.ledger.gate")
# Modules that move files and find classes. They count only if they are named, as in `ALWAYS`, not if imported.
MOVING = ("privpost.lab", "privpost.lookup", "privpost.atomic", "privpost.configurations")
# Digests of source texts, which take a third of a second for the files of a study. Each job of a rebuild needs them.
DIGESTS = Path("build/digests.json")
_IMPORT = re.compile(r"^\s*(?:from (privpost[\w.]*) import (\([^)]*\)|[^\n]*)|import (privpost[\w.]*))", re.MULTILINE)


@functools.cache
def versions() -> dict[str, str]:
    """Return the versions of Python, of the package and of the numerical libraries."""
    numerical = {name: importlib.metadata.version(name) for name in LIBRARIES}
    return {"python": platform.python_version(), "privpost": privpost.__version__, **numerical}


@functools.cache
def imports(text: str) -> frozenset[str]:
    """Return the names of the package's modules that a source text imports, and imported names that may be modules."""
    names: set[str] = set()
    for module, imported, whole in _IMPORT.findall(text):
        words = re.findall(r"(\w+)(?: as \w+)?", imported.split("#")[0] if "(" not in imported else imported)
        names |= {whole} if whole else {module, *(f"{module}.{word}" for word in words)}
    return frozenset(names)


def text_of(path: Path) -> str:
    """Return a source file's text."""
    return path.read_text(encoding="utf-8")


def file_of(module: str) -> Path | None:
    """Return a module's file, or the file that defines a class if `module` names a class of a package."""
    # The package's own file does not count, since it holds the version, which is recorded separately.
    if not module.startswith("privpost."):
        return None
    # Planning asks for thousands of names, and texts are quicker than instances of Path.
    *folders, name = module.split(".")[1:]
    parent = os.path.join(PACKAGE, *folders)
    for path in (os.path.join(parent, f"{name}.py"), os.path.join(parent, name, "__init__.py")):
        if os.path.isfile(path):
            return Path(path)
    home = lookup.home(name, Path(parent)) if os.path.isfile(os.path.join(parent, "__init__.py")) else None
    return None if home is None else Path(parent, *home.split(".")).with_suffix(".py")


def files(modules: Iterable[str]) -> list[Path]:
    """Return the package's files of some modules and of all modules that these import, directly or indirectly.

    Modules in `MOVING` count if they are among `modules`, but not if they are only imported.
    """
    paths: set[Path] = set()
    waiting, seen = set(modules), set()
    named = {*waiting, *ALWAYS}
    while waiting:
        seen.add(module := waiting.pop())
        if module.startswith(MOVING) and module not in named:
            continue
        path = file_of(module)
        if path is None or path in paths:
            continue
        paths.add(path)
        waiting |= imports(text_of(path)) - seen
    return sorted(paths)


def text_digest(modules: Iterable[str]) -> str:
    """Return a digest of the source text of modules and of all modules that they import."""
    texts = (f"{path.relative_to(PACKAGE)}\n{text_of(path)}" for path in files(modules))
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]


def _forget_words(node: ast.AST) -> None:
    """Replace the meanings of columns (in `TABLES`) and of settings (in `says=`) by ""."""
    if isinstance(node, ast.Dict):
        for value in node.values:
            _forget_words(value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        node.value = ""


def _without_tables(tree: ast.Module) -> list[ast.stmt]:
    """Return a study module's statements without `tabulate`, `TABLES` and definitions that only these two use."""
    defined = {
        node.targets[0].id if isinstance(node, ast.Assign) else node.name: node
        for node in tree.body
        if isinstance(node, ast.FunctionDef)
        or (isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name))
    }
    gone, more = set(), {"tabulate"} & {*defined}
    while more:
        gone |= more
        kept = _names(node for node in tree.body if node not in [defined[name] for name in gone])
        used = {"TABLES", *_names(defined[name] for name in gone)}
        more = used.intersection(defined) - gone - kept
    return [node for node in tree.body if node not in [defined[name] for name in gone]]


def _names(nodes: Iterable[ast.AST]) -> set[str]:
    """Return the names that some nodes of a syntax tree read."""
    within = (inner for node in nodes for inner in ast.walk(node))
    return {node.id for node in within if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}


def _code_digests(paths: Sequence[Path], of_cell: bool = False) -> list[str]:
    """Return a digest of each file's source text without its comments, docstrings, meanings and layout.

    The build keeps the digests by text. Where it cannot be read or written, they are computed.
    """
    texts = [text_of(path) for path in paths]
    keys = [hashlib.sha256(f"{of_cell}\0{text}".encode()).hexdigest() for text in texts]
    digests = _digests()
    if new := {key: (text, path) for key, text, path in zip(keys, texts, paths, strict=True) if key not in digests}:
        digests.update({key: _code_digest(text, path, of_cell) for key, (text, path) in new.items()})
        # Another process may have stored more meanwhile.
        memo.write(DIGESTS, _state(), (memo.read(DIGESTS, _state()) or {}) | digests)
    return [digests[key] for key in keys]


@functools.cache
def _digests() -> dict[str, str]:
    """Return the digests that this process knows, at first those that the build keeps."""
    return memo.read(DIGESTS, _state()) or {}


@functools.cache
def _state() -> str:
    """Return a digest of this code and of Python's version."""
    return hashlib.sha256(f"{sys.version}\0{text_of(Path(__file__))}".encode()).hexdigest()


def _code_digest(text: str, path: Path, of_cell: bool) -> str:
    tree = ast.parse(text, str(path))
    if of_cell:
        tree.body = _without_tables(tree)
    for node in ast.walk(tree):
        tables = isinstance(node, ast.Assign) and "TABLES" in map(ast.unparse, node.targets)
        if tables or (isinstance(node, ast.keyword) and node.arg == "says"):
            _forget_words(node.value)  # type: ignore[attr-defined]
        holder = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        if holder and ast.get_docstring(node, clean=False) is not None:  # type: ignore[arg-type]
            node.body = node.body[1:]  # type: ignore[attr-defined]
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest()[:12]


def source(*modules: str) -> dict[str, str]:
    """Return, by file, a digest of the code of some modules and of all modules that they import."""
    paths = files(modules)
    names = [path.relative_to(PACKAGE).as_posix() for path in paths]
    return dict(zip(names, _code_digests(paths), strict=True))


def source_digest(*modules: str) -> str:
    """Return one digest of the code of some modules and of all modules that they import."""
    text = ";".join(f"{file}:{digest}" for file, digest in source(*modules).items())
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def loader_digest(dataset: str) -> str:
    """Return a digest of the code that parses the raw files of a data set."""
    return source_digest(f"privpost.datasets.{dataset}")


def of_cell(target: str, dataset: str | None, used: Sequence[str] = ()) -> dict[str, dict[str, str]]:
    """Return the digests of source files (`source`) and the versions (`versions`) on which a study's cell depends.

    `target` is the study's module, whose code for tables does not count. `used` are the modules in the cell's ledger.
    """
    modules = [target, *ALWAYS, *used] + ([] if dataset is None else [f"privpost.datasets.{dataset}"])
    digests = source(*modules)
    if own := file_of(target):
        (digests[own.relative_to(PACKAGE).as_posix()],) = _code_digests([own], of_cell=True)
    return {"source": digests, "versions": versions()}


def changes(recorded: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return, in words, which source files and versions of software changed between two results of `of_cell`."""
    before, after = recorded["source"], now["source"]
    changed = [f"{name} changed" for name in sorted(after) if before.get(name) != after[name]]
    for name in ("python", *LIBRARIES):
        old, new = recorded["versions"].get(name), now["versions"][name]
        # A patch release of Python changes no numbers.
        if name == "python":
            old, new = (".".join(str(version).split(".")[:2]) for version in (old, new))
        if old != new:
            changed.append(f"{name} {old} became {new}")
    return changed
