"""The site: pages of the API for every module, tables compressed, and a limit."""

from __future__ import annotations

import gzip
import importlib.util
from pathlib import Path

import pytest

pytest.importorskip("mkdocs")
ROOT = Path(__file__).parents[2]


@pytest.fixture
def site(monkeypatch):
    """The hooks of mkdocs."""
    monkeypatch.chdir(ROOT)
    spec = importlib.util.spec_from_file_location("site_hooks", ROOT / "tools/site.py")
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def test_the_pages_of_the_api_cover_modules_in_folders(site):
    named = {name for package in site.INSIDE for name in site.api()[package]}
    folders = [ROOT / "src/privpost" / package for package in site.INSIDE]
    files = [path for folder in folders for path in folder.rglob("*.py") if path.name != "__init__.py"]
    assert named == {".".join(path.relative_to(ROOT / "src").with_suffix("").parts) for path in files}
    assert "privpost.samplers.hidden_markov.gibbs" in named
    assert "privpost.mechanisms.noise.laplace.LaplaceMechanism" in site.api()["mechanisms"]


def test_a_page_s_tables_are_compressed_and_its_links_name_them(site, tmp_path, monkeypatch):
    """A page with links of each kind: what they name is there, and unpacks to the bytes of the checkout."""
    for name in ("results", "figures"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)
    page = Path("docs/page.md")
    page.parent.mkdir()
    page.write_text("[t](../results/times.csv), `times.csv`, [w](https://a.b/c.csv) and ![f](../figures/hero.svg#x)")
    contents = site.linked(page)
    written = "[t](../results/times.csv.gz), `times.csv`, [w](https://a.b/c.csv) and ![f](../figures/hero.svg#x)"
    assert contents[page] == written
    assert gzip.decompress(contents[Path("results/times.csv.gz")]) == Path("results/times.csv").read_bytes()
    assert sorted(path.name for path in contents) == ["hero.svg", "page.md", "times.csv.gz"]


def test_pages_lose_indentation_but_not_that_of_code(site):
    """By hand: indentation goes everywhere but inside `<pre>`."""
    page = "<div>\n   <p>a\n  b</p>\n\n</div><pre>x\n    y</pre>\n  <p>"
    assert site.on_post_page(page) == "<div>\n<p>a\nb</p>\n</div><pre>x\n    y</pre>\n<p>"


def test_a_site_loses_maps_and_has_a_limit(site, tmp_path):
    """Three files by hand: the map goes, the script stays; with a sparse file a byte beyond the limit it is refused."""
    scripts = tmp_path / "assets/javascripts"
    (scripts / "lunr/min").mkdir(parents=True)
    for name in ("bundle.js", "bundle.js.map", "lunr/min/lunr.fr.min.js"):
        (scripts / name).touch()
    site.on_post_build({"site_dir": str(tmp_path)})
    assert [path.name for path in scripts.rglob("*") if path.is_file()] == ["bundle.js"]
    with (tmp_path / "large").open("wb") as file:
        file.truncate(site.LARGEST + 1)
    with pytest.raises(site.PluginError, match="12,000,001 bytes"):
        site.on_post_build({"site_dir": str(tmp_path)})
