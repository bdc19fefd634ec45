"""Helpers of the tests of data sets."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from privpost.datasets import catalogue, prepared
from privpost.datasets.catalogue import Dataset

ROOT = Path(__file__).resolve().parents[3]


CONF = ROOT / "conf"
# Nothing outside the checkout, and nothing that a user put into it.
ORIGINAL = (ROOT / "data" / "original",)


# Sums, quotients and a square root of up to 784 numbers of size 1: each within a few hundred units of 2e-16.
ROUNDING = 1e-12


def sized(name: str, **settings: Any) -> Dataset:
    dataset = catalogue.load(name, CONF)
    return dataclasses.replace(dataset, settings={**dataset.settings, **settings})


def prepare(dataset: Dataset, folder: Path) -> Path:
    return prepared.prepare(dataset, raw=folder / "raw", prepared=folder / "prepared")
