"""Where a result comes from: versions, and a digest of the source that a study imports."""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib.metadata
import platform
from pathlib import Path

import privpost

PACKAGE = Path(privpost.__file__).parent
# A cell's numbers depend on these; the rest of the pipeline only moves files.
LIBRARIES = ("numpy", "scipy")


def versions() -> dict[str, str]:
    """Return the versions of Python, of the package and of the numerical libraries."""
    found = {name: importlib.metadata.version(name) for name in LIBRARIES}
    return {"python": platform.python_version(), "privpost": privpost.__version__, **found}


@functools.cache
def _digest_and_imports(path: Path) -> tuple[str, tuple[str, ...]]:
    """Return the digest of one file's code (comments and docstrings left out) and the package's modules it imports."""
    tree = ast.parse(path.read_text())
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
    base = PACKAGE.joinpath(*module.split(".")[1:])
    for path in (base.with_suffix(".py"), base / "__init__.py"):
        if path.is_file():
            return path
    return None


def source_files(*modules: str) -> list[Path]:
    """Return the package's files that the modules import, directly or through others (pipeline excepted)."""
    found: dict[Path, None] = {}
    waiting = list(modules)
    while waiting:
        module = waiting.pop()
        path = _file(module)
        if path is None or path in found or module.startswith("privpost.pipeline."):
            continue
        found[path] = None
        waiting += _digest_and_imports(path)[1]
    return sorted(found)


def source_digest(*modules: str) -> str:
    """Return a digest of the code that the modules import; comments, docstrings and layout do not count."""
    digest = hashlib.sha256()
    for path in source_files(*modules):
        digest.update(f"{path.relative_to(PACKAGE)}:{_digest_and_imports(path)[0]};".encode())
    return digest.hexdigest()[:16]
