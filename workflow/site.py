"""Lays out the documentation site under build/site/source: documents, what they link to, and pages of the API.

Documents are rendered from the published tables. Everything stands where it stands in the checkout, so that its links
hold on the site as they do there.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import privpost
from privpost.lab import grid
from privpost.report import documents

SOURCE = Path("build/site/source")
# What pages link to: pictures, tables, settings, sources.
LINKED = ("conf", "examples", "figures", "results", "src")
SUFFIXES = (".csv", ".md", ".png", ".py", ".svg", ".yaml")
# Of these a user calls the public names; what else their modules define is machinery.
PUBLIC = ("mechanisms", "models")
# What all of them share.
BASES = {"Mechanism": "privpost.mechanisms.base"}
# The packages that a study is written with; studies, claims and figures are found from "Find your way".
INSIDE = ("distributions", "datasets", "evaluation", "lab", "privacy", "release", "samplers")


def main() -> None:
    """Make the folder anew."""
    shutil.rmtree(SOURCE, ignore_errors=True)
    documents.write(grid.load_studies(), Path("results"), Path("figures"), SOURCE)
    files = [Path("CONTRIBUTING.md"), *sorted(Path("docs").glob("*.md")), *Path("docs/site").iterdir()]
    for folder in LINKED:
        files += (path for path in Path(folder).rglob("*") if path.suffix in SUFFIXES and "cells" not in path.parts)
    for path in files:
        if (SOURCE / path).exists():
            continue
        (SOURCE / path).parent.mkdir(parents=True, exist_ok=True)
        (SOURCE / path).symlink_to(path.resolve())
    for package in PUBLIC:
        homes = privpost._homes(f"privpost.{package}")
        base = [f"{module}.{name}" for name, module in BASES.items() if package in module]
        _write_reference(package, [*base, *(f"{module}.{name}" for name, module in sorted(homes.items()))])
    for package in INSIDE:
        modules = sorted(path.stem for path in Path("src/privpost", package).glob("[!_]*.py"))
        _write_reference(package, [f"privpost.{package}.{module}" for module in modules])


def _write_reference(package: str, names: list[str]) -> None:
    """Write a page of the API, with a block for each of some names."""
    page = SOURCE / "reference" / f"{package}.md"
    page.parent.mkdir(exist_ok=True)
    page.write_text("\n\n".join([f"# privpost.{package}", *(f"::: {name}" for name in names)]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
