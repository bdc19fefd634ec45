"""docs/<name>.md from docs/templates/<name>.md.in: prose with measured numbers, and tables made from results.

Placeholders are those of README.md. A module of the document's name in this folder may add more: its `values(plan)`
returns a map from names to texts.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from importlib import util
from pathlib import Path

from privpost.pipeline import store
from privpost.pipeline.plan import Plan
from privpost.report import numbers, templates

TEMPLATES = Path("docs/templates")
FOLDER = Path("docs")
ENDING = ".md.in"


def sources() -> dict[str, Path]:
    """Return the template of each document by its name; README.md has a place and a module of its own."""
    found = {path.name.removesuffix(ENDING): path for path in sorted(TEMPLATES.glob(f"*{ENDING}"))}
    return {name: path for name, path in found.items() if name != "README"}


def files() -> list[Path]:
    """Return the files that `write` makes."""
    return [FOLDER / f"{name}.md" for name in sources()]


def render(plan: Plan, name: str) -> str:
    """Return a document's text; raises ValueError for a placeholder that names no number and no table."""
    template = sources()[name]
    values = {**numbers.read(plan.root), **_own_values(plan, name)}
    return templates.render(template.read_text(encoding="utf-8"), values, str(template))


def write(plan: Plan) -> list[Path]:
    """Write all documents; returns their paths."""
    for name, path in zip(sources(), files(), strict=True):
        store.write_text(path, render(plan, name))
    return files()


def modules() -> list[str]:
    """Return the modules that documents are made by."""
    own = (f"{__name__}.{name}" for name in sources())
    return [__name__, *(module for module in own if util.find_spec(module))]


def _own_values(plan: Plan, name: str) -> Mapping[str, str]:
    module = f"{__name__}.{name}"
    return importlib.import_module(module).values(plan) if module in modules() else {}
