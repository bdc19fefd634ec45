"""Hooks of mkdocs that supply the site's pages: documents, files to which documents link, and the API.

Every file has the same path in the site and in the checkout, so that links work in both. Tables are compressed.
"""

from __future__ import annotations

import gzip
import os
import re
from pathlib import Path

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

import privpost
from privpost import lookup
from privpost.lab import grid
from privpost.report import documents

# Folders with pages that no template makes, and a pattern for the targets of links in Markdown or HTML.
PAGES = ("conf", "examples", "src")
TARGET = re.compile(r'(?<=\]\()[^()\s#]+|(?<=href=")[^"#]+|(?<=src=")[^"#]+')
# Packages whose public names are documented, with base classes to add.
BASES = {"mechanisms": ["privpost.mechanisms.base.Mechanism"], "models": []}
# Packages that are documented by module, since authors of studies need them.
INSIDE = ("distributions", "datasets", "evaluation", "inference_benchmark", "lab", "privacy", "release", "samplers")
# Largest size of the site in bytes, since the site is passed on as a folder.
LARGEST = 12_000_000


def on_files(files, config):
    """Replace mkdocs's list of files: take the site's pages and the files to which pages link."""
    # Documents are rendered from the published tables, in the checkout too.
    documents.write(grid.load_studies(), Path("."), Path("."))
    pages = [Path("README.md"), Path("CONTRIBUTING.md"), *sorted(Path("docs").glob("*.md"))]
    pages += (page for folder in PAGES for page in Path(folder).rglob("*.md"))
    contents = {path: path.read_bytes() for path in Path("docs/site").iterdir()}
    for page in pages:
        contents |= linked(page)
    for package, names in api().items():
        blocks = [f"# privpost.{package}", *(f"::: {name}" for name in names)]
        contents[Path("reference", f"{package}.md")] = "\n\n".join(blocks)
    for file in [file for file in files if file.src_dir == config.docs_dir]:
        files.remove(file)
    for path, content in contents.items():
        files.append(File.generated(config, str(path), content=content))
    return files


def api() -> dict[str, list[str]]:
    """Return, for each package, the names that its page of the API describes."""
    public = {package: sorted(privpost._homes(f"privpost.{package}").items()) for package in BASES}
    names = {package: [*BASES[package], *(f"{home}.{name}" for name, home in public[package])] for package in BASES}
    for package in INSIDE:
        modules = sorted(lookup.modules(Path("src/privpost", package)))
        names[package] = [f"privpost.{package}.{module}" for module in modules]
    return names


def linked(page: Path) -> dict[Path, str | bytes]:
    """Return the contents of a page and of the files to which the page links, by path."""
    text = page.read_text(encoding="utf-8")
    contents: dict[Path, str | bytes] = {}
    for target in set(TARGET.findall(text)):
        path = Path(os.path.normpath(page.parent / target))
        if path.suffix == ".csv" and path.is_file():
            contents[Path(f"{path}.gz")] = gzip.compress(path.read_bytes(), 9, mtime=0)
        elif path.suffix != ".md" and path.is_file():
            contents[path] = path.read_bytes()
    contents[page] = TARGET.sub(lambda target: re.sub(r"^(?!https?:)(.*\.csv)$", r"\1.gz", target[0]), text)
    return contents


def on_post_page(output: str, **_) -> str:
    """Return a page without indentation, except in `<pre>` and `<textarea>`."""
    # Indentation is a fifth of the page.
    parts = re.split(r"(<pre.*?</pre>|<textarea.*?</textarea>)", output, flags=re.DOTALL)
    return "".join(part if place % 2 else re.sub(r"\n\s+", "\n", part) for place, part in enumerate(parts))


def on_post_build(config, **_) -> None:
    """Remove files that the site does not need, and raise PluginError if the site is too large."""
    # These files are source maps, and stemmers for languages other than English.
    site = Path(config["site_dir"])
    assets = site / "assets"
    for path in [*assets.rglob("*.map"), *assets.glob("javascripts/lunr/min/*"), *assets.glob("javascripts/lunr/*.js")]:
        path.unlink()
    if (size := sum(path.stat().st_size for path in site.rglob("*") if path.is_file())) > LARGEST:
        raise PluginError(f"the site has {size:,} bytes, {LARGEST:,} at most")
