"""Plans that are kept for the next start: the same cells, and never those of an earlier state."""

import dataclasses
import shutil
from pathlib import Path

import pytest

from privpost.lab import grid, kept, planned

CONF = Path(__file__).parents[3] / "conf"
# Settings of several kinds, and data sets.
NAMES = ["bernstein2018/oracle", "geumlek2017/link_functions", "geumlek2017/rdp_curves"]
# It reads the ledgers of all others.
READER = "audit/audit"


@pytest.fixture
def plan(tmp_path, monkeypatch):
    """A copy of conf/, and a function that loads studies there."""
    shutil.copytree(CONF, tmp_path / "conf")
    monkeypatch.chdir(tmp_path)
    return lambda *words, names=NAMES, scale="paper": planned.load_studies(names, scale, words)


def all_of(studies):
    return [(s.name, s.config, [(c, c.digest, c.overrides, c.path) for c in grid.expand(s)]) for s in studies]


def test_a_kept_plan_is_the_plan(plan, monkeypatch):
    names = [READER, *NAMES]
    first = plan(names=names)
    worked_out = all_of(grid.load_studies(names))
    assert all_of(first) == worked_out
    monkeypatch.setattr(grid, "load_studies", lambda *_: pytest.fail("planned anew"))
    again = plan(names=names)
    assert all_of(again) == worked_out
    # The kept digests are those of the cells.
    fresh = [dataclasses.replace(cell) for study in again for cell in grid.expand(study)]
    assert [cell.digest for cell in fresh] == [cell.digest for study in first for cell in grid.expand(study)]
    assert all(study.schema.fields for study in again)


@pytest.mark.parametrize("what", ["conf", "source", "scale", "root", "names", "data", "damage", "python"])
def test_a_plan_of_another_state_is_not_used(plan, what, tmp_path, monkeypatch):
    source = tmp_path / "package"
    source.mkdir()
    (source / "module.py").write_text("a = 1\n")
    monkeypatch.setattr(planned, "PACKAGE", source)
    plan()
    (file,) = Path(".snakemake/privpost/planned").glob("*/*.json")
    words, given = [], {}
    if what == "conf":
        path = Path("conf/study/geumlek2017/rdp_curves.yaml")
        path.write_text(path.read_text().replace("rev: ", "rev: 1"))
    elif what == "source":
        (source / "module.py").write_text("a = 2\n")
    elif what == "scale":
        given["scale"] = "smoke"
    elif what == "root":
        words = ["root=build/x"]
    elif what == "names":
        given["names"] = NAMES[1:]
    elif what == "data":
        value = kept.read(file)
        value["data"]["abalone"]["rev"] += 1
        kept.write(file.parent, {file.name: value})
    elif what == "damage":
        file.write_text(file.read_text().replace("rdp_curves", "rdp_curvet"))
    else:
        monkeypatch.setattr(planned.platform, "python_version", lambda: "3.0.0")
    expected = all_of(grid.load_studies(given.get("names", NAMES), given.get("scale", "paper"), words))
    asked = []
    load = grid.load_studies
    monkeypatch.setattr(grid, "load_studies", lambda *words: asked.append(words) or load(*words))
    assert all_of(plan(*words, **given)) == expected
    assert asked
    # What was worked out is kept in turn.
    asked.clear()
    assert all_of(plan(*words, **given)) == expected
    assert asked == []


def test_large_plans_are_not_kept(plan, monkeypatch):
    monkeypatch.setattr(planned, "MOST_CELLS", 3)
    plan()
    assert not Path(".snakemake/privpost/planned").exists()


def test_plans_of_modules_outside_the_package_are_not_kept(toy):
    assert planned.load_studies(["toy/curve"], "paper")[0].name == "toy/curve"
    assert not Path(".snakemake/privpost/planned").exists()
