"""Lays out the documentation site under build/site/source: documents, what they link to, and pages of the API.

Documents are rendered from the published tables first, in the checkout too. Link targets have the same paths as in the
checkout, so the links work here too. Tables are compressed, and figures lose everything that is not visible.
"""

from __future__ import annotations

import gzip
import os
import re
import shutil
from pathlib import Path

import privpost
from privpost import lookup
from privpost.lab import grid
from privpost.report import documents

SOURCE = Path("build/site/source")
# Folders of pages that are not rendered, and targets of a page's links: in Markdown, with or without title, or in HTML.
PAGES = ("conf", "examples", "src")
TARGET = re.compile(r'(?<=\]\()[^()\s#]+|(?<=href=")[^"#]+|(?<=src=")[^"#]+')
# Packages from which a user calls only the public names.
PUBLIC = ("mechanisms", "models")
# Base classes of a package's public names.
BASES = {"Mechanism": "privpost.mechanisms.base"}
# The packages with which a study is written; "Find your way" leads to studies, claims and figures.
INSIDE = ("distributions", "datasets", "evaluation", "inference_benchmark", "lab", "privacy", "release", "samplers")


def main() -> None:
    """Remove the folder and build it again."""
    shutil.rmtree(SOURCE, ignore_errors=True)
    documents.write(grid.load_studies(), Path("."), Path("."))
    pages = [Path("README.md"), Path("CONTRIBUTING.md"), *sorted(Path("docs").glob("*.md"))]
    pages += (page for folder in PAGES for page in Path(folder).rglob("*.md"))
    for path in [*pages, *Path("docs/site").iterdir()]:
        if not (SOURCE / path).exists():
            (SOURCE / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, SOURCE / path)
    for page in sorted(SOURCE.rglob("*.md")):
        _write_linked(page)
    for package in PUBLIC:
        homes = privpost._homes(f"privpost.{package}")
        base = [f"{module}.{name}" for name, module in BASES.items() if package in module]
        _write_reference(package, [*base, *(f"{module}.{name}" for name, module in sorted(homes.items()))])
    for package in INSIDE:
        _write_reference(package, modules_of(package))


def modules_of(package: str) -> list[str]:
    """Return the modules of a package, those of its folders included."""
    return [f"privpost.{package}.{module}" for module in sorted(lookup.modules(Path("src/privpost", package)))]


def _write_linked(page: Path) -> None:
    """Write the files that a page links to, and make its links name the compressed tables."""
    text = page.read_text(encoding="utf-8")
    for target in sorted(set(TARGET.findall(text))):
        path = Path(os.path.normpath(page.parent.relative_to(SOURCE) / target))
        if not path.is_file() or path.suffix == ".md":
            continue
        (SOURCE / path).parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".csv":
            (SOURCE / f"{path}.gz").write_bytes(gzip.compress(path.read_bytes(), 9, mtime=0))
        elif path.suffix == ".svg":
            (SOURCE / path).write_text(compact(path.read_text(encoding="utf-8")), encoding="utf-8")
        else:
            shutil.copy(path, SOURCE / path)
    named = TARGET.sub(lambda target: re.sub(r"^(?!https?:)(.*\.csv)$", r"\1.gz", target[0]), text)
    page.write_text(named, encoding="utf-8")


def compact(svg: str) -> str:
    """Return an SVG of half its size that looks the same.

    Coordinates are rounded to a hundredth of a point, and styles become classes. Metadata, line breaks and names that
    nothing refers to are removed.
    """
    svg = re.sub(r"<metadata>.*?</metadata>|<!DOCTYPE[^>]*>", "", svg, flags=re.DOTALL)
    # Only inside tags: numbers in text are tick labels.
    svg = re.sub(r"<[^>]*>", lambda tag: re.sub(r"-?\d+\.\d{3,}", _rounded, tag[0]), svg)
    used = set(re.findall(r"#([\w.]+)", svg))
    svg = re.sub(r' id="([\w.]+)"', lambda name: name[0] if name[1] in used else "", svg)
    classes: dict[str, str] = {}
    svg = re.sub(r' style="([^"]*)"', lambda look: f' class="{classes.setdefault(look[1], f"s{len(classes)}")}"', svg)
    rules = "".join(f".{name}{{{look}}}" for look, name in classes.items())
    svg = svg.replace("</style>", f"{rules}</style>", 1)
    return re.sub(r"\s*\n\s*", " ", svg).replace("> <", "><")


def _rounded(number: re.Match) -> str:
    """Return a number with at most two decimals, and without the sign of a zero."""
    return f"{round(float(number[0]), 2) + 0.0:.10g}"


def _write_reference(package: str, names: list[str]) -> None:
    """Write a page of the API, with a block for each name."""
    page = SOURCE / "reference" / f"{package}.md"
    page.parent.mkdir(exist_ok=True)
    page.write_text("\n\n".join([f"# privpost.{package}", *(f"::: {name}" for name in names)]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
