"""Fixtures of the tests of data sets."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from dataset_cases import CONF, MIRRORS
from fetch_cases import Server

from privpost.datasets import catalogue
from privpost.datasets.catalogue import Dataset
from privpost.datasets.fetch import FetchError, fetch


@pytest.fixture(scope="session")
def original(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Dataset, dict[str, Path]]]:
    """Give a data set and its raw files, copied from a mirror once, or skip the test."""
    raw = tmp_path_factory.mktemp("raw")

    def find(name: str) -> tuple[Dataset, dict[str, Path]]:
        dataset = catalogue.load(name, CONF)
        offline = dataclasses.replace(
            dataset, files=tuple(dataclasses.replace(file, urls=()) for file in dataset.files)
        )
        try:
            paths = fetch(offline, raw=raw, mirrors=MIRRORS)
        except FetchError:
            pytest.skip(f"the raw files of {name} are in none of {', '.join(map(str, MIRRORS))}")
        return dataset, {path.name: path for path in paths}

    return find


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
