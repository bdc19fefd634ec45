"""What is proved is what runs: a mechanism that releases other values changes the studies that record it, no others.

Each study's smoke cells say which mechanisms drew. One cell of each mechanism and study is computed again in this
process with the mechanism's releases exchanged for others, while all mechanisms that the cell does not record raise;
and with the mechanism itself raising, which must stop the cell.
"""

from __future__ import annotations

import functools

import numpy as np
import pytest
from test_studies import built, every_study, everything

from privpost import discovery
from privpost.pipeline import grid, store
from privpost.pipeline.streams import Streams
from privpost.privacy.ledger import Ledger, Release

__all__ = ["built", "everything"]
KINDS = {kind.__name__: kind for kinds in discovery.mechanisms().values() for kind in kinds}
# It examines mechanisms, and finds what they do wrong: test_seeded_faults.py.
AUDIT = "audit/audit"


class Sabotaged(Exception):
    """Raised in place of a release."""


def sabotage(patch, name: str, draw_all) -> None:
    """Put a function of the shipped draw and the requests in the place of a mechanism's own, not its subclasses'."""
    kind = KINDS[name]
    shipped = kind.draw_all.__func__

    def instead(cls, requests):
        draw = functools.partial(shipped, cls)
        return draw_all(draw, requests) if cls is kind else draw(requests)

    patch.setattr(kind, "draw_all", classmethod(instead))


def refuse(patch, name: str) -> None:
    """Make a mechanism's releases raise."""

    def raises(draw, requests):
        raise Sabotaged(name)

    sabotage(patch, name, raises)


def exchange(patch, name: str) -> None:
    """Make a mechanism release the values of other random numbers; what its sampler tells of itself stays."""
    rng = np.random.default_rng(2026)

    def exchanged(draw, requests):
        told = draw(requests)
        others = draw([request._replace(rng=np.random.default_rng(rng.integers(2**63))) for request in requests])
        return [Release(other.values, one.info) for one, other in zip(told, others, strict=True)]

    sabotage(patch, name, exchanged)


def simulate(study, cell) -> dict[str, np.ndarray]:
    found = study.module().simulate(cell.config, Streams.of(cell), Ledger())
    return {name: np.asarray(array) for name, array in found.items()}


def recorded(study) -> dict[str, tuple]:
    """The quickest cell that records each mechanism, with what the store has of it."""
    found: dict[str, tuple] = {}
    for cell in grid.expand(study):
        result = store.read(cell.path)
        for name in {row["mechanism"] for row in result.record["ledger"]} - {None}:
            if name not in found or result.record["wall_seconds"] < found[name][1].record["wall_seconds"]:
                found[name] = (cell, result)
    return found


def same(first, second) -> bool:
    return all(np.array_equal(array, second[name], equal_nan=array.dtype.kind == "f") for name, array in first.items())


@every_study
def test_a_study_shows_what_its_mechanisms_release(built, name):
    if name == AUDIT:
        pytest.skip("the audit's subject are the mechanisms themselves")
    for mechanism, (cell, result) in recorded(built).items():
        drew = {row["mechanism"] for row in result.record["ledger"]}
        with pytest.MonkeyPatch.context() as patch:
            exchange(patch, mechanism)
            for other in KINDS.keys() - drew:
                refuse(patch, other)
            changed = simulate(built, cell)
        assert not same(result.arrays, changed), f"{name} does not show what {mechanism} releases"
        with pytest.MonkeyPatch.context() as patch:
            refuse(patch, mechanism)
            with pytest.raises(Sabotaged, match=mechanism):
                simulate(built, cell)
