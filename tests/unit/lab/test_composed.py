"""Configurations that the build keeps are those that Hydra would compose now."""

from __future__ import annotations

import json

import pytest

from privpost import configurations
from privpost.lab import compose
from privpost.lab.schema import SettingError

NAME = "toy/curve"
KEPT = "build/paper/configurations/toy/curve.json"


@pytest.fixture
def composed(monkeypatch) -> list[str]:
    """The names of the studies whose configurations Hydra composed."""
    names, by_hydra = [], compose._composed
    monkeypatch.setattr(compose, "_composed", lambda name, scale: names.append(name) or by_hydra(name, scale))
    return names


def test_hydra_composes_once_and_again_after_a_change(toy, composed):
    first = compose.compose(NAME, "paper")
    assert compose.compose(NAME, "paper") == first == compose._composed(NAME, "paper")[0]
    assert composed == [NAME] * 2
    # Any file may be in a defaults list.
    for file, old, new in (
        ("study/toy/curve.yaml", "trials: 20", "trials: 40"),
        ("config.yaml", "seed: 20171204", "seed: 7"),
        ("scale/paper.yaml", "scale: paper", "scale: paper\nextra: m"),
    ):
        path = toy.folder / "conf" / file
        assert old in path.read_text()
        path.write_text(path.read_text().replace(old, new))
        composed.clear()
        changed = compose.compose(NAME, "paper")
        assert changed != first and compose.compose(NAME, "paper") == changed == compose._composed(NAME, "paper")[0]
        assert composed == [NAME] * 2
        first = changed


def test_another_primary_file_or_search_path_composes_anew(toy, composed):
    compose.compose(NAME, "paper")
    (toy.folder / "conf/other.yaml").write_text((toy.folder / "conf/config.yaml").read_text() + "\nextra: 1\n")
    with configurations.found_by("other"):
        assert compose.compose(NAME, "paper")["extra"] == 1
    assert "extra" not in compose.compose(NAME, "paper")
    more = toy.folder / "more/study/toy"
    more.mkdir(parents=True)
    (more / "second.yaml").write_text(toy.yaml.read_text())
    composed.clear()
    with configurations.found_by(None, str(toy.folder / "more")):
        compose.compose(NAME, "paper")
    assert composed == [NAME]


def test_what_depends_on_the_environment_is_not_kept(toy, monkeypatch):
    toy.edit("trials: 20", "trials: ${oc.decode:${oc.env:TRIALS}}")
    for trials in (30, 50):
        monkeypatch.setenv("TRIALS", str(trials))
        assert compose.compose(NAME, "paper")["trials"] == trials
    assert not (toy.folder / KEPT).exists()


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"state": "x"}'])
def test_a_damaged_file_is_composed_anew(toy, text):
    config = compose.compose(NAME, "paper")
    path = toy.folder / KEPT
    assert json.loads(path.read_text())["value"] == config
    path.write_text(text)
    assert compose.compose(NAME, "paper") == config
    assert json.loads(path.read_text())["value"] == config


def test_where_nothing_can_be_written_hydra_composes_each_time(toy, composed):
    (toy.folder / "build").write_text("no folder")
    assert compose.compose(NAME, "paper") == compose.compose(NAME, "paper")
    assert composed == [NAME] * 2


def test_a_configuration_that_hydra_refuses_is_not_kept(toy):
    toy.edit("trials: 20", "trials: [")
    with pytest.raises(SettingError, match=r"toy/curve\.yaml cannot be read"):
        compose.compose(NAME, "paper")
    assert not (toy.folder / KEPT).exists()
