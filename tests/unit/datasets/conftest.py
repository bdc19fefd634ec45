"""Fixtures of the tests of data sets."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path

import pooch
import pytest
from dataset_cases import CONF, ORIGINAL
from fetch_cases import Server

from privpost.datasets import catalogue
from privpost.datasets.catalogue import Dataset
from privpost.datasets.fetch import fetch


@pytest.fixture(scope="session")
def original(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Dataset, dict[str, Path]]]:
    """Give a data set and its raw files, unpacked once from the repository; one that each user has skips the test."""
    raw = tmp_path_factory.mktemp("raw")

    def find(name: str) -> tuple[Dataset, dict[str, Path]]:
        dataset = catalogue.load(name, CONF)
        if dataset.access == "bring-your-own":
            pytest.skip(f"each user has a file of {name}")
        offline = dataclasses.replace(
            dataset, files=tuple(dataclasses.replace(file, urls=()) for file in dataset.files)
        )
        paths = fetch(offline, raw=raw, folders=ORIGINAL)
        return dataset, {path.name: path for path in paths}

    return find


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pooch waits some seconds before it asks again."""
    monkeypatch.setattr(pooch.core.time, "sleep", lambda seconds: None)


@pytest.fixture
def server() -> Iterator[Server]:
    running = Server()
    yield running
    running.close()


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    return tmp_path / "raw"


@pytest.fixture
def mirror(tmp_path: Path) -> Path:
    folder = tmp_path / "mirror"
    (folder / "toy").mkdir(parents=True)
    return folder
