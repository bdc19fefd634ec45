"""Names of version 0.1.0: each is what it was, or the page and the commands say where it stands now."""

from __future__ import annotations

from pathlib import Path

import pytest

import privpost
from privpost import moved
from privpost.commands import cli
from privpost.lab import grid
from privpost.lab.schema import SettingError
from privpost.report import scorecard


def there(kind: str, name: str) -> bool:
    """Whether a name is what it was in 0.1.0."""
    if kind == "study":
        return name in grid.study_names()
    if kind == "claim":
        return name in set(scorecard.read(Path("results/scorecard.csv")).id)
    if kind in ("table", "figure"):
        return Path(
            "results" if kind == "table" else "figures", name + (".csv" if kind == "table" else ".svg")
        ).is_file()
    if kind == "command":
        return name in cli.COMMANDS
    return name in privpost.__all__


@pytest.mark.parametrize("kind", moved.KINDS)
def test_every_name_is_there_or_says_where_it_went(checkout, kind):
    rows = {name: now for (other, name), now in moved.names().items() if other == kind}
    assert len(rows) >= 15
    wrong = [name for name, now in rows.items() if there(kind, name) == bool(now)]
    assert not wrong


def test_what_a_name_became_is_there(checkout):
    """Files that are named are files, and a claim, study or setting's study that is named exists."""
    known = {*grid.study_names(), *scorecard.read(Path("results/scorecard.csv")).id}
    for (kind, name), now in moved.names().items():
        if not now.startswith("now "):
            assert not now or now.startswith("retired"), (kind, name)
            continue
        words = now.removeprefix("now ").replace(",", " ").replace(";", " ").split()
        files = [word for word in words if word.endswith((".csv", ".svg", ".md"))]
        assert all(Path(word).is_file() for word in files), (kind, name, now)
        if not files:
            assert known & {*words}, (kind, name, now)


def test_commands_and_imports_say_where_a_name_went(checkout):
    with pytest.raises(
        SettingError, match=r"noise_aware/war_logs was a study of version 0\.1\.0: now method noise_aware"
    ):
        grid.load_study("noise_aware/war_logs")
    with pytest.raises(SettingError, match=r"F21 was a claim of version 0\.1\.0: retired with the mechanism"):
        cli.call("claims", ["F21"])
    with pytest.raises(SettingError, match=r"F7-afghanistan was a claim of version 0\.1\.0: now F7"):
        cli.call("claims", ["F7-afghanistan"])
    with pytest.raises(ImportError, match=r"LinkDraw was a name of version 0\.1\.0: retired with geumlek2017/link"):
        from privpost import LinkDraw  # noqa: F401
    with pytest.raises(AttributeError, match="did you mean 'LaplaceMechanism'"):
        privpost.Laplace  # noqa: B018


def test_a_name_that_goes_without_a_line_is_seen(checkout, monkeypatch):
    monkeypatch.setattr(moved, "names", lambda: {("study", "noise_aware/war_logs"): "", ("study", "audit/audit"): ""})
    assert [name for _, name in moved.names() if not there("study", name)] == ["noise_aware/war_logs"]
