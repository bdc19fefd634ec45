"""The proved mechanisms are those that run: if one releases other values, the studies that record it change, no others.

Each study's smoke cells say which mechanisms drew. One cell of each mechanism and study is computed again in this
process, or a part of it if that shows the mechanism, with the mechanism's releases exchanged for others, while all
mechanisms that the cell does not record raise. One mechanism of each study raises too, which must stop the
cell. A mechanism that draws without the ledger stops it too.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator

import numpy as np
import pytest
from test_studies import built, every_study

from privpost import discovery
from privpost.inference_benchmark.tasks.networks import FeaturesLaplace
from privpost.inference_benchmark.tasks.private_n import UnboundedLaplace
from privpost.lab import grid, store
from privpost.lab.streams import Streams
from privpost.privacy.ledger.gate import Ledger, Release

__all__ = ["built"]
# Also those of the benchmark's tasks, which nothing discovers.
KINDS = {kind.name: kind.mechanism for kind in discovery.kinds()}
KINDS |= {kind.__name__: kind for kind in (FeaturesLaplace, UnboundedLaplace)}
# It examines mechanisms, and finds what they do wrong: test_auditor.py.
AUDIT = "audit/audit"


# What draws from the statistics or the data that it is given.
DRAWS = ("perturb", "replicate", "draw", "draw_all", "posterior_sample")
# Axes whose values any cell takes one at a time.
BUDGETS = {"epsilon", "delta", "log_epsilon"}


class Sabotaged(BaseException):
    """Raised in place of a release: no Exception, which studies of all mechanisms would take for a failing one."""


class Uncharged(BaseException):
    """Raised where a mechanism draws and the ledger did not ask for it."""


def through_the_ledger_only(patch) -> None:
    """Make every mechanism's draws raise but within `Ledger.release_all`."""
    asked = []
    shipped = Ledger.release_all

    def release_all(self, requests):
        asked.append(requests)
        try:
            return shipped(self, requests)
        finally:
            asked.pop()

    def guarded(function):
        @functools.wraps(function)
        def checked(*arguments, **options):
            if not asked:
                raise Uncharged(function.__qualname__)
            return function(*arguments, **options)

        return checked

    patch.setattr(Ledger, "release_all", release_all)
    rooms = ("privpost.mechanisms", "privpost.inference_benchmark")
    bases = {base for kind in KINDS.values() for base in kind.__mro__ if base.__module__.startswith(rooms)}
    for kind in bases:
        for name in vars(kind).keys() & set(DRAWS):
            member = vars(kind)[name]
            wrapped = classmethod(guarded(member.__func__)) if isinstance(member, classmethod) else guarded(member)
            patch.setattr(kind, name, wrapped)


def sabotage(patch, name: str, draw_all) -> None:
    """Put a function of the shipped draw and the requests in a mechanism's place, not in that of its subclasses."""
    kind = KINDS[name]
    shipped = kind.draw_all.__func__

    def instead(cls, requests):
        draw, found = functools.partial(shipped, cls), {}
        own = [cls is kind and request.mechanism.name == name for request in requests]
        for function, mine in ((functools.partial(draw_all, draw), True), (draw, False)):
            places = [place for place, is_own in enumerate(own) if is_own is mine]
            if places:
                found.update(zip(places, function([requests[place] for place in places]), strict=True))
        return [found[place] for place in range(len(requests))]

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
    return _simulated(study, cell)[0]


def _simulated(study, cell) -> tuple[dict[str, np.ndarray], set[str]]:
    """A cell's arrays, and the mechanisms that its ledger records."""
    ledger = Ledger(cell.dataset, cell.sizes["trials"])
    found = study.module().simulate(cell.config, Streams.of(cell), ledger)
    drew = {row["mechanism"] for row in ledger.record()} - {None}
    return {name: np.asarray(array) for name, array in found.items()}, drew


def recorded(study) -> dict[str, tuple]:
    """The quickest cell that records each mechanism, with what the store has of it."""
    found: dict[str, tuple] = {}
    for cell in grid.expand(study):
        result = store.read(cell.path)
        for name in drew_in(result):
            if name not in found or result.record["wall_seconds"] < found[name][1].record["wall_seconds"]:
                found[name] = (cell, result)
    return found


def cut(cell, account=None):
    """The cell's part with few trials at one budget; of an account, also at the settings that its name says."""
    within = {axis: values[-1:] if axis in BUDGETS else values for axis, values in cell.within.items()}
    settings, sizes = dict(cell.settings), dict(cell.sizes)
    if account is not None:
        words = set(account.split("/"))
        for axis, values in cell.within.items():
            named = [value for value in values if words & {_said(value), f"{axis}={_said(value)}"}]
            # Where an account names no method, all of them read what it released.
            within[axis] = named or within[axis][: 2 if axis == "method" else None]
        if "non_private" in cell.within.get("method", ()):
            # Releases are compared with it.
            within["method"] = list(dict.fromkeys(["non_private", *within["method"]]))
        if "methods" in settings:
            settings["methods"] = [method for method in settings["methods"] if method in words]
    if sizes["trials"]:
        # Each split has trials of its own.
        sizes["trials"] = sizes["block"] = min(max([2, *cell.within.get("n_splits", [])]), sizes["block"])
    return dataclasses.replace(cell, settings=settings, within=within, sizes=sizes)


def _said(value) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def places(study, mechanism, cell, result) -> Iterator[tuple]:
    """A part of a cell that may show what a mechanism releases, then all of it, with arrays and who draws in them."""
    for place in (cut(cell, accounts_of(result, mechanism)[-1]), cell):
        arrays, drew = _simulated(study, place)
        if mechanism in drew:
            yield place, arrays, drew


def drew_in(result) -> set[str]:
    return {row["mechanism"] for row in result.record["ledger"]} - {None}


def accounts_of(result, mechanism) -> list[str]:
    return [row["account"] for row in result.record["ledger"] if row["mechanism"] == mechanism]


def same(first, second) -> bool:
    return all(np.array_equal(array, second[name], equal_nan=array.dtype.kind == "f") for name, array in first.items())


@every_study
def test_a_study_shows_what_its_mechanisms_release(built, name):
    if name == AUDIT:
        pytest.skip("the audit's subject are the mechanisms themselves")
    for mechanism, found in recorded(built).items():
        cells = places(built, mechanism, *found)
        assert any(shows(built, mechanism, *cell) for cell in cells), f"{name} does not show what {mechanism} releases"


def shows(study, mechanism, cell, arrays, drew) -> bool:
    """Whether a cell's arrays change with the mechanism's releases."""
    with pytest.MonkeyPatch.context() as patch:
        exchange(patch, mechanism)
        for other in KINDS.keys() - drew:
            refuse(patch, other)
        through_the_ledger_only(patch)
        return not same(arrays, simulate(study, cell))


@every_study
def test_a_mechanism_that_raises_stops_a_study(built, name):
    """One of each study: the test above sees that each mechanism is asked."""
    if name == AUDIT:
        pytest.skip("the audit's subject are the mechanisms themselves")
    cell, result = quickest(built)
    drew = drew_in(result) & KINDS.keys()
    if not drew:
        pytest.skip("no mechanism draws in that cell")
    with pytest.MonkeyPatch.context() as patch:
        refuse(patch, min(drew))
        with pytest.raises(Sabotaged, match=min(drew)):
            simulate(built, cut(cell, accounts_of(result, min(drew))[-1]))


def quickest(study) -> tuple:
    return min(
        ((cell, store.read(cell.path)) for cell in grid.expand(study)),
        key=lambda found: found[1].record["wall_seconds"],
    )


@every_study
def test_a_study_draws_through_the_ledger_only(built, name, monkeypatch):
    """With all its methods, and nothing but what it records."""
    if name == AUDIT:
        pytest.skip("the audit's cells read the others' ledgers")
    cell, result = quickest(built)
    for other in KINDS.keys() - drew_in(result):
        refuse(monkeypatch, other)
    through_the_ledger_only(monkeypatch)
    simulate(built, cut(cell))


@pytest.mark.parametrize("name", ["geumlek2017/tradeoff"])
@pytest.mark.parametrize("draw", ["perturb", "replicate", "draw", "posterior_sample"])
def test_a_draw_past_the_ledger_stops_a_study(built, name, draw, monkeypatch):
    def past(self, requests):
        number = [2] if draw == "replicate" else []
        return [Release(getattr(asked.mechanism, draw)(asked.statistics, *number, asked.rng)) for asked in requests]

    through_the_ledger_only(monkeypatch)
    monkeypatch.setattr(Ledger, "release_all", past)
    with pytest.raises(Uncharged, match=draw):
        simulate(built, cut(quickest(built)[0]))


@pytest.mark.parametrize("name", sorted(KINDS))
def test_a_mechanism_draws_nothing_that_the_ledger_did_not_ask_for(name, monkeypatch):
    through_the_ledger_only(monkeypatch)
    for draw in set(DRAWS) & set(dir(KINDS[name])):
        with pytest.raises(Uncharged, match=draw):
            asked = [()] if draw == "draw_all" else [None] * (3 if draw == "replicate" else 2)
            getattr(KINDS[name] if draw == "draw_all" else KINDS[name].examples()[0], draw)(*asked)
