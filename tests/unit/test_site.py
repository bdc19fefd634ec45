"""The site: figures of half the size that look the same, and pages without indentation."""

from __future__ import annotations

import gzip
import importlib.util
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).parents[2]
FIGURES = (
    "bernstein2018/calibration/fig1a_ks",
    "foulds2016/war_logs_states/fig4_state_map",
    "foulds2016/sampling_error/fig2_sampling_error",
    "zhang2016/bounds/bounds",
)
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def module(name: str):
    spec = importlib.util.spec_from_file_location(name, ROOT / f"tools/{name}.py")
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def drawn(svg: str) -> list[tuple]:
    """Return the elements that a browser draws: tag, text, style, numbers and other attributes, but for names."""
    root = ElementTree.fromstring(svg)
    rules = dict(re.findall(r"\.(s\d+)\{([^}]*)\}", "".join(root.itertext())))
    found = []
    for element in root.iter():
        tag, given = element.tag.split("}")[1], dict(element.attrib)
        style = given.pop("style", None) or rules.get(given.pop("class", ""), "")
        if tag in ("metadata", "RDF", "Work", "type", "format", "style"):
            continue
        given.pop("id", None)
        values = " ".join(given[key] for key in sorted(given) if "href" not in key and key != "clip-path")
        # Decimals of styles are rounded, too.
        numbers = [float(number) for number in NUMBER.findall(values + style)]
        found.append((tag, (element.text or "").strip(), NUMBER.sub("", values + style).split(), numbers))
    return found


def test_the_pages_of_the_api_cover_modules_in_folders(monkeypatch):
    monkeypatch.chdir(ROOT)
    site = module("site")
    named = {name for package in site.INSIDE for name in site.modules_of(package)}
    folders = [ROOT / "src/privpost" / package for package in site.INSIDE]
    files = [path for folder in folders for path in folder.rglob("*.py") if path.name != "__init__.py"]
    assert named == {".".join(path.relative_to(ROOT / "src").with_suffix("").parts) for path in files}
    assert "privpost.samplers.hidden_markov.gibbs" in named


@pytest.mark.parametrize("stem", FIGURES)
def test_a_compact_figure_draws_the_same_in_less_than_two_thirds(stem):
    """Both are parsed as XML and compared element by element; numbers agree to half of the hundredth they keep."""
    plain = (ROOT / f"figures/{stem}.svg").read_text(encoding="utf-8")
    compact = module("site").compact(plain)
    assert len(compact) < len(plain) * 2 / 3
    before, after = drawn(plain), drawn(compact)
    assert [row[:3] for row in after] == [row[:3] for row in before]
    for old, new in zip(before, after, strict=True):
        assert new[3] == pytest.approx(old[3], abs=0.0051)
    # What is referred to has its name still.
    names = set(re.findall(r'id="([^"]+)"', compact))
    assert set(re.findall(r"#([a-z]\w{8,})", compact)) <= names


def test_a_page_s_tables_are_compressed_and_its_links_name_them(tmp_path, monkeypatch):
    """A page with links of each kind: what they name must lie beside it, and unpack to the bytes of the checkout."""
    site = module("site")
    monkeypatch.setattr(site, "SOURCE", tmp_path)
    monkeypatch.chdir(ROOT)
    page = tmp_path / "docs/page.md"
    page.parent.mkdir()
    page.write_text("[t](../results/times.csv), `times.csv`, [w](https://a.b/c.csv) and ![f](../figures/hero.svg#x)")
    site._write_linked(page)
    written = "[t](../results/times.csv.gz), `times.csv`, [w](https://a.b/c.csv) and ![f](../figures/hero.svg#x)"
    assert page.read_text() == written
    packed = tmp_path / "results/times.csv.gz"
    assert gzip.decompress(packed.read_bytes()) == Path("results/times.csv").read_bytes()
    assert sorted(path.name for path in tmp_path.rglob("*.*")) == ["hero.svg", "page.md", "times.csv.gz"]


def test_pages_lose_indentation_but_not_that_of_code():
    """By hand: indentation goes everywhere but inside `<pre>`."""
    page = "<div>\n   <p>a\n  b</p>\n\n</div><pre>x\n    y</pre>\n  <p>"
    assert module("site_hooks").on_post_page(page) == "<div>\n<p>a\nb</p>\n</div><pre>x\n    y</pre>\n<p>"


def test_a_site_loses_maps_and_has_a_limit(tmp_path):
    """Three files by hand: the map goes, the script stays; with a sparse file a byte beyond the limit it is refused."""
    hooks, scripts = module("site_hooks"), tmp_path / "assets/javascripts"
    (scripts / "lunr/min").mkdir(parents=True)
    for name in ("bundle.js", "bundle.js.map", "lunr/min/lunr.fr.min.js"):
        (scripts / name).touch()
    hooks.on_post_build({"site_dir": str(tmp_path)})
    assert [path.name for path in scripts.rglob("*") if path.is_file()] == ["bundle.js"]
    with (tmp_path / "large").open("wb") as file:
        file.truncate(hooks.LARGEST + 1)
    with pytest.raises(hooks.PluginError, match="12,000,001 bytes"):
        hooks.on_post_build({"site_dir": str(tmp_path)})
