"""Fixtures of the tests of releases."""

from __future__ import annotations

import pytest
from release_cases import Folder

from privpost.release import statement
from privpost.samplers.noise_aware import draws as noise_aware_draws


@pytest.fixture
def folder(tmp_path, monkeypatch, capsys) -> Folder:
    """A user's folder as working directory; chains are short, for what is tested is not their convergence."""
    for name, value in (("COUNT_BURN_IN", 10), ("COUNT_THIN", 1)):
        monkeypatch.setattr(noise_aware_draws, name, value)
    monkeypatch.setattr(statement, "RHAT_LIMIT", 1e9)
    monkeypatch.chdir(tmp_path)
    return Folder(tmp_path, capsys)
