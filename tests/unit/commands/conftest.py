"""What every test of a command has."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _environment(monkeypatch):
    # Runs set it for Hydra; taken back after each test.
    monkeypatch.setenv("HYDRA_FULL_ERROR", "0")
