"""Sweeps of the toy project without their drawings, where these are not what is tested."""

from __future__ import annotations

import pytest

from privpost.commands import sweeps


@pytest.fixture
def drawn() -> None:
    """A test that names this fixture draws the figures of its sweeps."""


@pytest.fixture(autouse=True)
def empty_figures(request, monkeypatch) -> None:
    """Figures of the toy's sweeps are empty files: drawing one takes longer than the rest of a sweep."""
    if "toy" in request.fixturenames and "drawn" not in request.fixturenames:
        monkeypatch.setattr(sweeps, "_draw", lambda study, frames, columns, paths: ([*map(touched, paths)], []))


def touched(path):
    path.touch()
    return path
