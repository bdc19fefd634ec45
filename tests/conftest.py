"""Fixtures shared by all tests: the checkout as working directory, and a toy project."""

from __future__ import annotations

import importlib
import os
import shutil
import sys
import textwrap
import time
from pathlib import Path

import pytest

import privpost.__main__  # noqa: F401  one BLAS thread, and the command line's folder of compiled code

ROOT = Path(__file__).resolve().parents[1]

TOY_MODULE = """
import numpy as np
from privpost.evaluation.claims import from_checks
from privpost.lab.schema import Choice, Integer, Real, Schema
from privpost.privacy.accounting import Cost

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


def claims(tables):
    return [from_checks("T1", "ours", "Toy.", "rows", {"has rows": len(tables["curve"]) > 0}, {})]
"""

TOY_YAML = """\
# @package _global_
# privpost -m study=toy/curve
title: A toy
paper: toy
claim: None.
target: toystudy
figures: []
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


def pytest_addoption(parser):
    """Add the option that keeps how long all tests take, for the README to quote (`make test RECORD=1`)."""
    parser.addoption("--record-time", action="store_true", help="keep the time in results/timing/run_test.json")


def pytest_sessionstart(session):
    """Start the clock."""
    session.config.stash[START] = time.perf_counter()


START = pytest.StashKey[float]()
# What pyproject.toml chooses.
DEFAULT_MARKS = "not by_hand"


def pytest_sessionfinish(session, exitstatus):
    """Keep the time of a run of all tests in which none failed; the workers of a parallel run don't."""
    options = session.config.option
    if not options.record_time or hasattr(session.config, "workerinput"):
        return
    chosen = session.config.args_source is not pytest.Config.ArgsSource.ARGS and not (
        options.keyword or options.markexpr != DEFAULT_MARKS
    )
    if exitstatus or not chosen:
        print("\nThe time is not kept: only a run of all tests, none of which fails, is one to quote.")
        return
    from privpost.lab import times
    from privpost.lab.plan import Plan
    from privpost.report import record

    os.environ[times.RECORD] = "1"

    seconds = time.perf_counter() - session.config.stash[START]
    # A parallel run has more processes than cores, since some tests wait; without the plugin there is one.
    cores = min(getattr(options, "numprocesses", None) or 1, os.cpu_count())
    record.record(Plan(), "test", seconds=round(seconds), cores=cores)


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
        (folder / "toystudy.py").write_text(textwrap.dedent(TOY_MODULE))

    def edit(self, old: str, new: str) -> None:
        """Replace a piece of the study's YAML, which has to be there once."""
        text = self.yaml.read_text()
        assert text.count(old) == 1, f"{old!r} is {text.count(old)} times in the toy's YAML"
        self.yaml.write_text(text.replace(old, new))

    def study(self, scale: str = "paper"):
        from privpost.lab import grid

        return grid.load_study("toy/curve", scale)

    def cells(self, scale: str = "paper"):
        from privpost.lab import grid

        return grid.expand(self.study(scale))


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """A toy project as working directory."""
    project = Toy(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    sys.modules.pop("toystudy", None)
    importlib.invalidate_caches()
    yield project
    sys.modules.pop("toystudy", None)
