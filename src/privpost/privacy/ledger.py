"""The gate: the one call that draws from private data. It checks the account, runs the mechanism, charges and records.

A study opens an account for each target of its configuration and asks the ledger for releases; what is charged is
what the mechanism says of itself, and what is drawn is what the mechanism's own code draws.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from importlib import import_module
from itertools import pairwise
from operator import add
from typing import Any, NamedTuple

import numpy as np

from privpost.privacy.accounting import Cost, at_most

ACCOUNTINGS = ("stated", "exact")


class BudgetExceeded(ValueError):
    """A charge would take an account over its budget."""


class Release(NamedTuple):
    """What a mechanism gave out: the values, and what else its sampler tells (of chains, their diagnostics)."""

    values: np.ndarray
    info: Any = None


class Request(NamedTuple):
    """One release that is asked for; see `Ledger.release` for the fields."""

    account: str
    mechanism: Any
    statistics: np.ndarray
    rng: Any
    size: int | None = None
    repeats: slice | None = None
    settings: dict = {}  # noqa: RUF012

    @property
    def lead(self) -> tuple[int, ...]:
        """The shape of the releases: that of the statistics' leading axes, or the size."""
        return np.shape(self.statistics)[:-1] if self.size is None else (self.size,)

    def count(self) -> tuple[slice, int]:
        """The repeats that the request is about, and the releases for each of them.

        Raises:
            ValueError: releases that cannot be shared equally among the repeats.
        """
        lead = np.shape(self.statistics)[:-1]
        if self.size is not None:
            if lead:
                raise ValueError(f"size is {self.size!r}; it needs the statistics of one data set, not of {lead}")
            lead = (self.size,)
        total = math.prod(lead)
        if total < 1:
            raise ValueError(f"the releases have the shape {lead}; there must be at least one")
        if self.repeats is None:
            return slice(0, 1), total
        start, number = self.repeats.start, self.repeats.stop - self.repeats.start
        if start < 0 or number < 1:
            raise ValueError(f"repeats are {self.repeats}; they must be some of 0, 1, 2, ...")
        if not lead or lead[0] != number:
            raise ValueError(f"repeats are {number}, but the releases have the shape {lead}; the first axis is repeats")
        return self.repeats, total // number


class _Runs:
    """Numbers of the repeats 0, 1, 2, ... which are equal over long runs, so that a million repeats cost what few do.

    Each run reaches up to the next one's start, the last without end.
    """

    def __init__(self, starts: list[int], values: list[tuple]):
        self.starts, self.values = starts, values

    def plus(self, repeats: slice, *added) -> _Runs:
        """The same with numbers added in some repeats."""
        found = _Runs([], [])
        for start in sorted({*self.starts, repeats.start, repeats.stop}):
            value = self.values[bisect_right(self.starts, start) - 1]
            if repeats.start <= start < repeats.stop:
                value = tuple(map(add, value, added))
            if not found.values or found.values[-1] != value:
                found.starts.append(start)
                found.values.append(value)
        return found

    def largest(self) -> tuple:
        """Each number in the repeat where it is largest."""
        return tuple(map(max, zip(*self.values, strict=True)))

    def above_zero(self) -> int:
        """In how many repeats the first number is above 0."""
        runs = zip(pairwise(self.starts), self.values[:-1], strict=True)
        return sum(stop - start for (start, stop), value in runs if value[0] > 0)


@dataclass
class _Entry:
    """Releases of one mechanism within an account: their number in each repeat."""

    cost: Cost
    releases: _Runs = field(default_factory=lambda: _Runs([0], [(0,)]))


@dataclass
class _Account:
    """A budget for each of several repeats of an experiment, which are independent and have the same target."""

    name: str
    budget: Cost
    accounting: str
    # (ε, δ)
    spent: _Runs = field(default_factory=lambda: _Runs([0], [(0.0, 0.0)]))
    entries: dict[str, _Entry] = field(default_factory=dict)

    def total(self) -> Cost:
        """What the repeat that spent most has spent."""
        epsilon, delta = map(float, self.spent.largest())
        return Cost(self.budget.notion, epsilon, self.budget.order, _delta(self.budget, delta))

    def after(self, repeats: slice, price: Cost, releases: int) -> _Runs:
        """What will have been spent; refused if the budget does not cover it."""
        if math.isinf(price.epsilon) and math.isinf(self.budget.epsilon):
            # Without a limit nothing is counted; inf and zero releases would make nan of it.
            return self.spent.plus(repeats, math.inf, releases * (price.delta or 0.0))
        spent = self.spent.plus(repeats, releases * price.epsilon, releases * (price.delta or 0.0))
        epsilon, delta = spent.largest()
        if not (at_most(epsilon, self.budget.epsilon) and at_most(delta, self.budget.delta or 0.0)):
            raise BudgetExceeded(
                f"account {self.name!r}: budget {self.budget}, spent {self.total()}, asked {releases} x {price}"
            )
        return spent


class Ledger:
    """Accounts of one experiment, each with a budget that its releases may not exceed.

    The repeats of a simulation are accounts of their own with one name and one budget: each may spend it once.
    Composition is sequential; charge `parallel([...])` for releases about disjoint records.
    """

    def __init__(self):
        self._accounts: dict[str, _Account] = {}
        self._described: dict[str, dict] = {}
        # Mechanisms and their keys in `_described` by identity: a key takes as long as many a draw.
        self._keys: dict[int, tuple[Any, str]] = {}

    def open(self, account: str, budget: Cost, *mechanisms, accounting: str = "stated") -> None:
        """Opens an account with a budget, and refuses now any of the mechanisms that is to draw on it and cannot.

        Args:
            account: its name.
            budget: the target that the configuration states.
            mechanisms: those whose releases it shall pay, each release by itself.
            accounting: "stated", by the mechanism's guarantee; "exact", by its privacy curve δ(ε), for (ε, δ) budgets.

        Raises:
            BudgetExceeded: one release of a mechanism costs more than the budget.
            ValueError: the account is open already, an unknown accounting, or a cost that does not convert.
        """
        if account in self._accounts:
            raise ValueError(f"account {account!r} is already open with budget {self._accounts[account].budget}")
        if accounting not in ACCOUNTINGS:
            raise ValueError(f"accounting is {accounting!r}; allowed: {', '.join(ACCOUNTINGS)}")
        entry = _Account(account, budget, accounting)
        for mechanism in mechanisms:
            entry.after(slice(0, 1), _price(entry, mechanism), 1)
        self._accounts[account] = entry

    def release(self, account: str, mechanism, statistics, rng, *, size=None, repeats=None, **settings) -> Release:
        """Releases of a mechanism about private data, charged to an account; nothing is drawn that it cannot pay.

        Args:
            account: an open account.
            mechanism: its `draw` makes the releases, its `cost_in` says what one costs.
            statistics: sufficient statistics (..., d); each leading index is one release.
            rng: source of randomness, or of noise.
            size: number of releases about the one data set of statistics (d,); the new first axis.
            repeats: the trials, as a slice, that the first axis runs over: each has the whole budget for itself. By
                default all releases are about the same people and their costs add.
            settings: passed to `draw`.

        Raises:
            BudgetExceeded: the account would be over its budget by more than a relative 1e-9.
            ValueError: no such account, or a cost that does not convert to the account's notion.
        """
        return self.release_all([Request(account, mechanism, statistics, rng, size, repeats, settings)])[0]

    def release_all(self, requests: Sequence[Request]) -> list[Release]:
        """Releases of mechanisms of one class whose samplers run faster together, as `draw_all` does; see `release`.

        Raises:
            BudgetExceeded: an account would be over its budget; then none of them is drawn.
            ValueError: as `release`, or mechanisms of several classes.
        """
        kinds = {type(request.mechanism) for request in requests}
        if len(kinds) != 1:
            names = ", ".join(sorted(kind.__name__ for kind in kinds)) or "none"
            raise ValueError(f"mechanisms are of the classes {names}; they must be of one")
        for request in requests:
            _check_statistics(request)
        charges = self._reserve(requests)
        found = kinds.pop().draw_all(requests)
        for request, (entry, repeats, releases), release in zip(requests, charges, found, strict=True):
            _check_number(request, release.values)
            self._enter(entry, request.mechanism, repeats, releases)
        return found

    def _reserve(self, requests: Sequence[Request]) -> list[tuple[_Account, slice, int]]:
        """Charge all requests, or none of them."""
        charges, before = [], []
        try:
            for request in requests:
                repeats, releases = request.count()
                account = self._account(request.account)
                spent = account.after(repeats, _price(account, request.mechanism), releases)
                before.append((account, account.spent))
                account.spent = spent
                charges.append((account, repeats, releases))
        except ValueError:
            for account, spent in reversed(before):
                account.spent = spent
            raise
        return charges

    def charge(self, account: str, cost: Cost, releases: int = 1) -> None:
        """Enters `releases` releases that were made elsewhere; refused as a whole if the budget does not cover them.

        A pure cost is converted to the account's notion: at order λ it is charged `pure_to_rdp(ε, λ)`.

        Raises:
            BudgetExceeded: the account would be over its budget by more than a relative 1e-9.
            ValueError: no such account, releases < 1, or a cost that does not convert to the account's notion.
        """
        entry = self._account(account)
        if not isinstance(releases, int | np.integer) or releases < 1:
            raise ValueError(f"releases is {releases!r}; it must be an integer >= 1")
        try:
            charged = cost.to_notion_of(entry.budget)
        except ValueError as error:
            raise ValueError(f"account {account!r} with budget {entry.budget}: {error}") from error
        entry.spent = entry.after(slice(0, 1), charged, int(releases))
        self._enter(entry, cost, slice(0, 1), int(releases))

    def spent(self, account: str) -> Cost:
        """What the repeat that spent most has spent so far, in the notion of its budget.

        Raises:
            ValueError: no such account.
        """
        return self._account(account).total()

    def record(self) -> list[dict]:
        """The ledger as JSON-able rows, one per account, mechanism and cost, in the order of entry.

        `mechanism` is the class and `settings` a number for `mechanisms()` (None for a bare charge); `notion`,
        `epsilon`, `order` and `delta` describe one release in its own notion; `releases` is their number in each of
        `repeats`; `spent` and `budget` are the account's totals in the notion of its budget, as Cost fields. An
        account without releases has one row with `releases` 0. An infinite ε is the string "inf".
        """
        rows, numbers = [], {key: number for number, key in enumerate(self._described)}
        for name, account in self._accounts.items():
            totals = {"spent": cost_fields(account.total()), "budget": cost_fields(account.budget)}
            totals["accounting"] = account.accounting
            for key, entry in account.entries.items():
                described = self._described.get(key)
                made = {"mechanism": described and described["class"], "settings": described and numbers[key]}
                counts = {"releases": entry.releases.largest()[0], "repeats": entry.releases.above_zero()}
                rows.append({"account": name, **made, **cost_fields(entry.cost), **counts, **totals})
            if not account.entries:
                nothing = Cost(account.budget.notion, 0.0, account.budget.order, _delta(account.budget, 0.0))
                made = {"mechanism": None, "settings": None}
                rows.append({"account": name, **made, **cost_fields(nothing), "releases": 0, "repeats": 0, **totals})
        return rows

    def mechanisms(self) -> list[dict]:
        """The mechanisms that drew, each once, as `describe` has them; in the order of their first release."""
        return list(self._described.values())

    def modules(self) -> list[str]:
        """Names of the modules that the mechanisms and what they hold are defined in, in alphabetical order."""
        return sorted(set().union(*map(_modules, self._described.values()), set()))

    def _account(self, name: str) -> _Account:
        if name not in self._accounts:
            raise ValueError(f"account {name!r} is not open; open accounts: {', '.join(self._accounts) or 'none'}")
        return self._accounts[name]

    def _enter(self, account: _Account, charged, repeats: slice, releases: int) -> None:
        """Records releases of a mechanism, or of a bare cost."""
        key = repr(charged) if isinstance(charged, Cost) else self._key(charged)
        if key not in account.entries:
            account.entries[key] = _Entry(charged if isinstance(charged, Cost) else charged.stated_cost)
        entry = account.entries[key]
        entry.releases = entry.releases.plus(repeats, releases)

    def _key(self, mechanism) -> str:
        if id(mechanism) not in self._keys:
            key = repr(mechanism)
            self._keys[id(mechanism)] = mechanism, key
            if key not in self._described:
                self._described[key] = describe(mechanism)
        return self._keys[id(mechanism)][1]


def _price(account: _Account, mechanism) -> Cost:
    try:
        return mechanism.cost_in(account.budget, account.accounting)
    except ValueError as error:
        raise ValueError(f"account {account.name!r} with budget {account.budget}: {error}") from error


def _check_statistics(request: Request) -> None:
    """Raises ValueError where the last axis is longer than one data set's statistics, which would hide releases."""
    size = getattr(request.mechanism.model, "statistics_size", None)
    given = np.shape(request.statistics)[-1]
    if size not in (None, given):
        raise ValueError(f"statistics have a last axis of {given}; those of one data set have {size}")


def _check_number(request: Request, values) -> None:
    """Raises ValueError where a mechanism gave out more draws than it was charged for."""
    mechanism, shape = request.mechanism, np.shape(values)
    if mechanism.releases == "sample":
        asked = (*request.lead, *mechanism.model.theta_shape)
    else:
        asked = (*request.lead, *shape[len(request.lead) :])
    if shape != asked:
        raise ValueError(f"{type(mechanism).__name__} was asked for releases of shape {asked}, but gave {shape}")


def _delta(budget: Cost, value: float) -> float | None:
    return None if budget.delta is None else min(1.0, value)


def cost_fields(cost: Cost) -> dict:
    """A cost as JSON: `notion`, `epsilon`, `order`, `delta`; an infinite number is the string "inf"."""

    def number(value):
        return value if value is None else "inf" if math.isinf(value) else float(value)

    return {
        "notion": cost.notion,
        "epsilon": number(cost.epsilon),
        "order": number(cost.order),
        "delta": number(cost.delta),
    }


def describe(value) -> Any:
    """A mechanism or model as JSON: class, module and settings, nested; `rebuild` makes it again.

    An array of many settings, one a repeat, is described by its first.
    """
    if is_dataclass(value):
        settings = {entry.name: describe(getattr(value, entry.name)) for entry in fields(value) if entry.init}
        return {"class": type(value).__name__, "module": type(value).__module__, "settings": settings}
    if isinstance(value, tuple | list):
        return [describe(item) for item in value]
    if isinstance(value, np.ndarray):
        return describe(value.ravel()[0])
    if isinstance(value, np.generic):
        value = value.item()
    return "inf" if isinstance(value, float) and math.isinf(value) else value


def rebuild(described) -> Any:
    """The mechanism or model that `describe` described."""
    if isinstance(described, dict):
        kind = getattr(import_module(described["module"]), described["class"])
        return kind(**{name: rebuild(value) for name, value in described["settings"].items()})
    if isinstance(described, list):
        return tuple(map(rebuild, described))
    return math.inf if described == "inf" else described


def _modules(described) -> set[str]:
    if isinstance(described, dict):
        return {described["module"]}.union(*map(_modules, described["settings"].values()))
    return set().union(*map(_modules, described)) if isinstance(described, list) else set()
