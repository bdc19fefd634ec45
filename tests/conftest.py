"""Fixtures shared by all tests: the checkout as working directory, and a toy project."""

from __future__ import annotations

import functools
import hashlib
import importlib
import os
import pickle
import shutil
import sys
import textwrap
from pathlib import Path

import pytest

import privpost.__main__  # noqa: F401  one BLAS thread, and the command line's folder of compiled code
from privpost import configurations, experiments
from privpost.lab import compose, study

ROOT = Path(__file__).resolve().parents[1]

TOY_MODULE = """
import numpy as np
from privpost.lab.schema import Choice, Integer, Real, Schema
from privpost.privacy.accounting.costs import Cost

SETTINGS = Schema(
    level=Real(above=0), method=Choice("a", "b"), order=Real(above=1), variant=Choice("x", "y"), note=Choice("n", "m")
)


def simulate(config, streams, ledger):
    ledger.open("all", Cost("pure", 1.0))
    ledger.charge("all", Cost("pure", 1.0))
    draws = np.empty((len(config.order), config.trials))
    for i, order in enumerate(config.order):
        for block in streams.blocks():
            rng = streams("data", block.index, order=order)
            draws[i, block.trials] = config.level * rng.standard_normal(block.size)
    return {"mean": draws.mean(axis=1), "sem": draws.std(axis=1) / config.trials**0.5, "draws": draws}


def tabulate(cells):
    import pandas as pd

    frames = [
        pd.DataFrame({**{k: getattr(c.config, k) for k in ("method", "level", "order")},
                      "mean": c.arrays["mean"], "sem": c.arrays["sem"]})
        for c in cells
    ]
    return pd.concat(frames, ignore_index=True)

"""

TOY_CLAIMS = """
from privpost.lab.claims import check, claim


@claim("T1", "ours", "Toy.", "rows")
def has_rows(curve):
    yield check("has rows", len(curve) > 0)
"""

TOY_YAML = """\
# @package _global_
# privpost -m study=toy/curve
title: A toy
paper: toy
claim: None.
rev: 1

level: 1
method: a
note: n
sweep:
  method: [a, b]
  level: [1, 2]
within:
  order: {start: 2, stop: 4, num: 3}
  variant: [x, y]
common: [method]

trials: 20
block: 10

smoke:
  trials: 10
  sweep:
    method: [a]
  within:
    order: [2]
"""


@pytest.fixture(scope="session", autouse=True)
def logging_keeps_its_stream():
    """Hydra ends all log handlers before it sets up its own, and absl's would close the stream that pytest captures."""
    from absl import logging

    logging.get_absl_handler().python_handler.stream = sys.__stderr__


@pytest.fixture(scope="session", autouse=True)
def composed_once(tmp_path_factory):
    """Compose a configuration once for each state of its files, in whatever folder: Hydra takes a tenth of a second.

    Processes of one run of the tests, if they are several, read what one of them has composed.
    """
    folder = tmp_path_factory.getbasetemp()
    composed = (folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder) / "composed"
    composed.mkdir(exist_ok=True)

    @functools.lru_cache(None)
    def once(name, scale, state):
        path = composed / hashlib.sha256(repr((name, scale, state)).encode()).hexdigest()
        if not path.is_file():
            temporary = path.with_suffix(f".{os.getpid()}")
            temporary.write_bytes(pickle.dumps(compose._composed(name, scale)[0]))
            temporary.replace(path)
        return path.read_bytes()

    def contents(folder):
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        return tuple((path.relative_to(folder), path.read_bytes()) for path in files)

    # No test changes the checkout's files, which a clone has too; a toy's are few.
    own = contents(ROOT / "conf")

    def remembered(name, scale):
        folder = configurations.folder().resolve()
        found_by = (configurations.PRIMARY, *configurations.MORE)
        state = own if folder == ROOT / "conf" else contents(folder)
        return pickle.loads(once(name, scale, (*found_by, state)))

    study.compose = remembered


@pytest.fixture
def checkout(monkeypatch) -> Path:
    """The checkout as working directory; returns its path."""
    monkeypatch.chdir(ROOT)
    return ROOT


class Toy:
    """A project of one study in a folder of its own, edited by the tests."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.yaml = folder / "conf" / "study" / "toy" / "curve.yaml"
        for part in ("config.yaml", "scale"):
            source = ROOT / "conf" / part
            copy = shutil.copytree if source.is_dir() else shutil.copy
            (folder / "conf").mkdir(exist_ok=True)
            copy(source, folder / "conf" / part)
        (folder / "conf" / "dataset").mkdir()
        self.yaml.parent.mkdir(parents=True)
        self.yaml.write_text(TOY_YAML)
        self.package = folder / "experiments/toy"
        self.add("curve", TOY_MODULE, TOY_CLAIMS)

    def add(self, name: str, module: str, claims: str = "") -> None:
        """Add a study's modules."""
        place = self.package / name
        place.mkdir(parents=True)
        for folder in (self.package, place):
            (folder / "__init__.py").touch()
        (place / "study.py").write_text(textwrap.dedent(module))
        (place / "claims.py").write_text(textwrap.dedent(claims))

    def edit(self, old: str, new: str) -> None:
        """Replace a piece of the study's YAML, which must occur exactly once."""
        text = self.yaml.read_text()
        assert text.count(old) == 1, f"{old!r} is {text.count(old)} times in the toy's YAML"
        self.yaml.write_text(text.replace(old, new))

    def study(self, scale: str = "paper"):
        from privpost.lab import grid, project

        return grid.load_study("toy/curve", scale, project.built(scale))

    def cells(self, scale: str = "paper"):
        from privpost.lab import grid

        return grid.expand(self.study(scale))


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """A toy project as working directory."""
    project = Toy(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(experiments, "__path__", [*experiments.__path__, str(tmp_path / "experiments")])
    _forget()
    importlib.invalidate_caches()
    yield project
    _forget()


def _forget() -> None:
    for name in [name for name in sys.modules if name.startswith("privpost.experiments.toy")]:
        del sys.modules[name]
    vars(experiments).pop("toy", None)
