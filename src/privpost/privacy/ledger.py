"""The gate: the one call that draws from private data. It checks the account, runs the mechanism, charges and records.

A study opens an account for each target of its configuration and asks the ledger for releases; what is charged is
what the mechanism says of itself, and what is drawn is what the mechanism's own code draws.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from importlib import import_module
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
        if self.repeats is None:
            return slice(0, 1), total
        number = self.repeats.stop - self.repeats.start
        if not lead or lead[0] != number:
            raise ValueError(f"repeats are {number}, but the releases have the shape {lead}; the first axis is repeats")
        return self.repeats, total // number


@dataclass
class _Entry:
    """Equal releases of one mechanism within an account: how many a repeat, and which repeats had them."""

    cost: Cost
    releases: int
    repeats: int


@dataclass
class _Account:
    """A budget for each of several repeats of an experiment, which are independent and have the same target."""

    budget: Cost
    accounting: str
    spent: np.ndarray = field(default_factory=lambda: np.zeros((1, 2)))
    entries: dict[str, _Entry] = field(default_factory=dict)

    def after(self, repeats: slice, cost: Cost, releases: int) -> np.ndarray:
        """What each repeat (rows) will have spent of ε and δ."""
        size = max(len(self.spent), repeats.stop)
        spent = np.zeros((size, 2))
        spent[: len(self.spent)] = self.spent
        spent[repeats] += [releases * cost.epsilon, releases * (cost.delta or 0.0)]
        return spent

    def covers(self, spent: np.ndarray) -> bool:
        epsilon, delta = spent.max(axis=0)
        return at_most(epsilon, self.budget.epsilon) and at_most(delta, self.budget.delta or 0.0)


class Ledger:
    """Accounts of one experiment, each with a budget that its releases may not exceed.

    The repeats of a simulation are accounts of their own with one name and one budget: each may spend it once.
    Composition is sequential; charge `parallel([...])` for releases about disjoint records.
    """

    def __init__(self):
        self._accounts: dict[str, _Account] = {}
        self._described: dict[str, dict] = {}

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
        entry = self._accounts[account] = _Account(budget, accounting)
        for mechanism in mechanisms:
            self._check(account, slice(0, 1), _price(account, entry, mechanism), 1)

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
        charges = self._reserve(requests)
        found = kinds.pop().draw_all(requests)
        for request, (entry, repeats, releases), release in zip(requests, charges, found, strict=True):
            _check_number(request, release.values)
            self._enter(entry, request.mechanism, request.mechanism.cost(), repeats, releases)
        return found

    def _reserve(self, requests: Sequence[Request]) -> list[tuple[_Account, slice, int]]:
        """Charge all requests, or none of them."""
        before = {name: account.spent for name, account in self._accounts.items()}
        charges = []
        try:
            for request in requests:
                repeats, releases = request.count()
                account = self._account(request.account)
                price = _price(request.account, account, request.mechanism)
                account.spent = self._check(request.account, repeats, price, releases)
                charges.append((account, repeats, releases))
        except ValueError:
            for name, spent in before.items():
                self._accounts[name].spent = spent
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
        entry.spent = self._check(account, slice(0, 1), charged, releases)
        self._enter(entry, None, cost, slice(0, 1), int(releases))

    def spent(self, account: str) -> Cost:
        """What the account's dearest repeat has spent so far, in the notion of its budget.

        Raises:
            ValueError: no such account.
        """
        entry = self._account(account)
        epsilon, delta = map(float, entry.spent.max(axis=0))
        return Cost(entry.budget.notion, epsilon, entry.budget.order, _delta(entry.budget, delta))

    def record(self) -> list[dict]:
        """The ledger as JSON-able rows, one per account, mechanism and cost, in the order of entry.

        `mechanism` is the class and `settings` a number for `mechanisms()` (None for a bare charge); `notion`,
        `epsilon`, `order` and `delta` describe one release in its own notion; `releases` is their number in each of
        `repeats`; `spent` and `budget` are the account's totals in the notion of its budget, as Cost fields. An
        account without releases has one row with `releases` 0. An infinite ε is the string "inf".
        """
        rows, keys = [], list(self._described)
        for name, account in self._accounts.items():
            totals = {"spent": cost_fields(self.spent(name)), "budget": cost_fields(account.budget)}
            totals["accounting"] = account.accounting
            for key, entry in account.entries.items():
                described = self._described.get(key)
                made = {"mechanism": described and described["class"], "settings": described and keys.index(key)}
                counts = {"releases": entry.releases, "repeats": entry.repeats}
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

    def _check(self, name: str, repeats: slice, price: Cost, releases: int) -> np.ndarray:
        account = self._accounts[name]
        spent = account.after(repeats, price, releases)
        if not account.covers(spent):
            raise BudgetExceeded(
                f"account {name!r}: budget {account.budget}, spent {self.spent(name)}, asked {releases} x {price}"
            )
        return spent

    def _enter(self, account: _Account, mechanism, cost: Cost, repeats: slice, releases: int) -> None:
        number = repeats.stop - repeats.start
        if mechanism is None:
            key = repr(cost)
        else:
            key = repr(mechanism)
            if key not in self._described:
                self._described[key] = describe(mechanism)
        entry = account.entries.get(key)
        if entry is None:
            account.entries[key] = _Entry(cost, releases, number)
        elif repeats.start >= entry.repeats and entry.releases == releases:
            entry.repeats += number
        else:
            entry.releases += releases


def _price(name: str, account: _Account, mechanism) -> Cost:
    try:
        return mechanism.cost_in(account.budget, account.accounting)
    except ValueError as error:
        raise ValueError(f"account {name!r} with budget {account.budget}: {error}") from error


def _check_number(request: Request, values) -> None:
    """Raises ValueError where a mechanism gave out more draws than it was charged for."""
    mechanism, lead = request.mechanism, request.lead
    if mechanism.releases == "sample" and np.shape(values) != (*lead, *mechanism.model.theta_shape):
        raise ValueError(
            f"{type(mechanism).__name__} was asked for samples of shape {(*lead, *mechanism.model.theta_shape)}, "
            f"but gave {np.shape(values)}"
        )


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
