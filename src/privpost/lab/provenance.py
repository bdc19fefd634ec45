"""Where a result comes from: versions, and digests of the source files that made it.

The code of a cell is what its study imports, directly or through others, and the modules of the mechanisms, models and
samplers that the cell's ledger recorded. Looking for mechanisms is not using them all: `privpost.discovery`, which
also calibrates, counts by itself for those that import it, what it finds by name does not. What
reads tables only (claims, figures, the report) is not imported by studies.
"""

import ast
import atexit
import contextlib
import functools
import hashlib
import importlib.metadata
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import privpost
from privpost import lookup
from privpost.lab import kept
from privpost.lab.project import STATE

PACKAGE = Path(privpost.__file__).parent
# A cell's numbers depend on these; the rest of the pipeline only moves files.
LIBRARIES = ("numpy", "scipy")
# What every cell draws with.
DRAWING = ("privpost.lab.streams", "privpost.privacy.ledger")
# Digests and imports of the package's files by their content, and how many of them are kept.
PARSED, MOST_PARSED = STATE / "parsed.json", 2000
# These move files and find classes: the rest of the pipeline, and the package's own tools.
MOVING = ("privpost.lab", "privpost.lookup", "privpost.atomic", "privpost.configurations")


def versions() -> dict[str, str]:
    """Return the versions of Python, of the package and of the numerical libraries."""
    found = {name: importlib.metadata.version(name) for name in LIBRARIES}
    return {"python": platform.python_version(), "privpost": privpost.__version__, **found}


def _digest_and_imports(path: Path) -> tuple[str, tuple[str, ...]]:
    """Return the digest of one file's code (comments and docstrings left out) and the package's modules it imports."""
    status = path.stat()
    return _parsed(path, status.st_mtime_ns, status.st_size)


@functools.cache
def _parsed(path: Path, mtime: int, size: int) -> tuple[str, tuple[str, ...]]:
    content = path.read_bytes()
    # The syntax tree depends on Python, a relative import on the folder.
    where = f"{platform.python_version()} {path.parent.relative_to(PACKAGE)} "
    key, found = hashlib.sha256(where.encode() + content).hexdigest(), _parsed_before()
    if key not in found:
        found[key] = _parse(path, content)
    digest, imports = found[key]
    return digest, tuple(imports)


@functools.cache
def _parsed_before() -> dict[str, tuple[str, list[str]]]:
    """Return what former processes parsed, and write down at the end what this one adds: parsing all takes a second."""
    found = kept.read(PARSED) or {}
    atexit.register(_keep, found, len(found), PARSED.absolute())
    return found


def _keep(found: dict, before: int, path: Path) -> None:
    if len(found) == before or not path.parent.is_dir():
        return
    with contextlib.suppress(OSError):
        # States of files that are no more would add up.
        kept.write_file(path, dict(list(found.items())[-MOST_PARSED:]))


def _parse(path: Path, content: bytes) -> tuple[str, tuple[str, ...]]:
    tree = ast.parse(content)
    imports = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imports += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            imports += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.ImportFrom):
            folder = path.parents[node.level - 1]
            base = ".".join(("privpost", *folder.relative_to(PACKAGE).parts))
            base = f"{base}.{node.module}" if node.module else base
            imports += [base, *(f"{base}.{alias.name}" for alias in node.names)]
        if (
            isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
            and ast.get_docstring(node, clean=False) is not None
        ):
            node.body = node.body[1:]
    digest = hashlib.sha256(ast.dump(tree).encode()).hexdigest()
    return digest, tuple(sorted({name for name in imports if name.startswith("privpost")}))


def _file(module: str) -> Path | None:
    """Return the file of a module, or of the one that defines a class which is imported from its package."""
    # The package's own file holds its version, which is recorded as such.
    if not module.startswith("privpost."):
        return None
    base = PACKAGE.joinpath(*module.split(".")[1:])
    for path in (base.with_suffix(".py"), base / "__init__.py"):
        if path.is_file():
            return path
    home = lookup.home(base.name, base.parent) if (base.parent / "__init__.py").is_file() else None
    return None if home is None else base.parent / f"{home}.py"


def _states(*modules: str) -> dict[Path, str]:
    """Return the digests of the package's files that the modules import, directly or through others."""
    found: dict[Path, str] = {}
    waiting, seen = set(modules), set()
    while waiting:
        seen.add(module := waiting.pop())
        path = _file(module)
        if path is None or path in found or (module.startswith(MOVING) and module not in DRAWING):
            continue
        found[path], imports = _digest_and_imports(path)
        waiting.update(name for name in imports if name not in seen)
    return found


def source(*modules: str, since: float | None = None) -> dict[str, str]:
    """Return a digest of each file that the modules import; comments, docstrings and layout do not count.

    Of a file that was edited after `since` (seconds of the epoch) nobody knows which state ran: it has no digest.
    """
    return {
        path.relative_to(PACKAGE).as_posix(): "edited meanwhile"
        if since is not None and path.stat().st_mtime > since
        else digest[:12]
        for path, digest in sorted(_states(*modules).items())
    }


def source_digest(*modules: str) -> str:
    """Return one digest of all the code that the modules import."""
    text = ";".join(f"{file}:{digest}" for file, digest in source(*modules).items())
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def of_cell(target: str, dataset: str | None, used: Sequence[str] = ()) -> dict[str, dict[str, str]]:
    """Return the source and the versions on which a cell of a study module depends.

    `used` are the modules that its ledger recorded.
    """
    modules = [target, *DRAWING, *used] + ([] if dataset is None else [f"privpost.datasets.{dataset}"])
    return {"source": source(*modules), "versions": versions()}


def changes(recorded: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return what changed between two results of `of_cell`, in words: files of the source, versions of libraries.

    A file that is imported no more needs no mention: the one that imported it has changed.
    """
    before, after = recorded["source"], now["source"]
    files = sorted(name for name in after if before.get(name) != after[name])
    found = [f"{name} changed" for name in files]
    for name in ("python", *LIBRARIES):
        old, new = recorded["versions"].get(name), now["versions"][name]
        # A patch release of Python leaves numbers alone.
        if name == "python":
            old, new = (".".join(str(version).split(".")[:2]) for version in (old, new))
        if old != new:
            found.append(f"{name} {old} became {new}")
    return found
