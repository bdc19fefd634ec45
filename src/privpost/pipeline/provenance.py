"""Where a result comes from: versions, and digests of the source files that a study imports."""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib.metadata
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import privpost

PACKAGE = Path(privpost.__file__).parent
# A cell's numbers depend on these; the rest of the pipeline only moves files.
LIBRARIES = ("numpy", "scipy")
# The one module of the pipeline that numbers depend on.
STREAMS = "privpost.pipeline.streams"


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
    tree = ast.parse(path.read_text(encoding="utf-8"))
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
        elif isinstance(node, ast.Name) and node.id == "iter_modules" and path.name == "__init__.py":
            # A package that discovers its modules may use each of them.
            package = ".".join(("privpost", *path.parent.relative_to(PACKAGE).parts))
            imports += [f"{package}.{file.stem}" for file in path.parent.glob("*.py") if file != path]
        if (
            isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
            and ast.get_docstring(node, clean=False) is not None
        ):
            node.body = node.body[1:]
    digest = hashlib.sha256(ast.dump(tree).encode()).hexdigest()
    return digest, tuple(sorted({name for name in imports if name.startswith("privpost")}))


def _file(module: str) -> Path | None:
    if module.split(".", maxsplit=1)[0] != "privpost":
        return None
    base = PACKAGE.joinpath(*module.split(".")[1:])
    for path in (base.with_suffix(".py"), base / "__init__.py"):
        if path.is_file():
            return path
    return None


def source_files(*modules: str) -> list[Path]:
    """Return the package's files that the modules import, directly or through others, in alphabetical order.

    Of the pipeline only the random streams count; the rest of it moves files.
    """
    found: dict[Path, None] = {}
    waiting = list(modules)
    while waiting:
        module = waiting.pop()
        path = _file(module)
        if path is None or path in found or (module.startswith("privpost.pipeline.") and module != STREAMS):
            continue
        found[path] = None
        waiting += _digest_and_imports(path)[1]
    return sorted(found)


def source(*modules: str) -> dict[str, str]:
    """Return a digest of each file that the modules import; comments, docstrings and layout do not count."""
    return {path.relative_to(PACKAGE).as_posix(): _digest_and_imports(path)[0][:12] for path in source_files(*modules)}


def source_digest(*modules: str) -> str:
    """Return one digest of all the code that the modules import."""
    text = ";".join(f"{file}:{digest}" for file, digest in source(*modules).items())
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def of_cell(target: str, dataset: str | None) -> dict[str, dict[str, str]]:
    """Return the source and the versions on which a cell of a study module depends."""
    modules = [target, STREAMS] + ([] if dataset is None else [f"privpost.datasets.{dataset}"])
    return {"source": source(*modules), "versions": versions()}


def changes(recorded: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return what changed between two results of `of_cell`, in words: files of the source, versions of libraries."""
    before, after = recorded["source"], now["source"]
    files = sorted(name for name in {*before, *after} if before.get(name) != after.get(name))
    found = [f"{name} changed" for name in files]
    for name in ("python", *LIBRARIES):
        old, new = recorded["versions"].get(name), now["versions"][name]
        # A patch release of Python leaves numbers alone.
        if name == "python":
            old, new = (".".join(str(version).split(".")[:2]) for version in (old, new))
        if old != new:
            found.append(f"{name} {old} became {new}")
    return found
