"""Source digests: code counts, comments and docstrings do not; what a study does not import does not either."""

from __future__ import annotations

from pathlib import Path

import pytest

from privpost.pipeline import provenance

STUDY = '''
"""A study."""
from privpost.helper import double  # imported


def simulate(x):
    """Return twice x."""
    # twice
    return double(x)
'''


@pytest.fixture
def package(tmp_path, monkeypatch) -> Path:
    """A package of its own in place of the project's."""
    monkeypatch.setattr(provenance, "PACKAGE", tmp_path)
    for name, text in {
        "__init__.py": "",
        "study.py": STUDY,
        "helper.py": "from . import deeper\n\ndef double(x):\n    return deeper.two() * x\n",
        "deeper.py": "def two():\n    return 2\n",
        "stranger.py": "VALUE = 1\n",
        "kinds/__init__.py": "from pkgutil import iter_modules\ndef discover():\n  return iter_modules(__path__)\n",
        "kinds/one.py": "ONE = 1\n",
        "pipeline/streams.py": "SEED = 1\n",
        "pipeline/grid.py": "GRID = 1\n",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return tmp_path


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("study.py", "# twice", "# two times"),
        ("study.py", "Return twice x.", "Double x."),
        ("study.py", '"""A study."""', '"""Another text."""'),
        ("study.py", "# imported", ""),
        ("study.py", "\n\n\ndef", "\n\ndef"),
        ("stranger.py", "1", "2"),
        ("pipeline/grid.py", "1", "2"),
    ],
)
def test_words_layout_and_unrelated_files_do_not_count(package, file, old, new):
    before = provenance.source_digest("privpost.study")
    edit(package / file, old, new)
    assert provenance.source_digest("privpost.study") == before


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("study.py", "return double(x)", "return double(x) + 0"),
        ("helper.py", "two() * x", "x * deeper.two()"),
        ("deeper.py", "return 2", "return 2.0"),
    ],
)
def test_code_counts_also_of_what_is_imported_indirectly(package, file, old, new):
    before = provenance.source("privpost.study")
    edit(package / file, old, new)
    after = provenance.source("privpost.study")
    assert {name for name in before if before[name] != after[name]} == {file}


def test_a_package_that_discovers_its_modules_stands_for_all_of_them(package):
    edit(
        package / "study.py", "from privpost.helper import double", "from privpost.kinds import discover\ndouble = int"
    )
    assert "kinds/one.py" in provenance.source("privpost.study")


def test_random_streams_count_for_every_cell(package):
    assert "pipeline/streams.py" in provenance.of_cell("privpost.study", None)["source"]
    assert "pipeline/grid.py" not in provenance.of_cell("privpost.study", None)["source"]


def test_changes_are_said_in_words(package):
    before = provenance.of_cell("privpost.study", None)
    edit(package / "deeper.py", "return 2", "return 3")
    now = provenance.of_cell("privpost.study", None)
    now["versions"] = {**now["versions"], "numpy": "9.9.9"}
    numpy = before["versions"]["numpy"]
    assert provenance.changes(before, now) == ["deeper.py changed", f"numpy {numpy} became 9.9.9"]
    assert provenance.changes(now, now) == []


def test_a_patch_release_of_python_does_not_count(package):
    before = provenance.of_cell("privpost.study", None)
    major = ".".join(before["versions"]["python"].split(".")[:2])
    patched = {**before, "versions": {**before["versions"], "python": f"{major}.99"}}
    assert provenance.changes(before, patched) == []
