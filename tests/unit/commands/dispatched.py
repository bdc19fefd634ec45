"""Helpers of the tests of commands: the dispatcher, and a toy project with its cells and tables built."""

from __future__ import annotations

from privpost.commands import cli
from privpost.lab import cells, grid


def privpost(*argv: str) -> int:
    return cli.main(list(argv))


def build(toy) -> None:
    study = toy.study()
    for cell in grid.expand(study):
        cells.compute(study, cell)
    assert privpost("build", "toy/curve") == 0


def in_store(toy, root="build/paper") -> set[str]:
    return {str(path.relative_to(toy.folder)) for path in (toy.folder / root / "cells").rglob("*.npz")}
