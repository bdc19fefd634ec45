"""The ledger, through which all draws from private data go.

A study opens an account for each target in its configuration and asks the ledger for releases. The mechanism states the
cost of a release, the ledger charges this cost, and then the mechanism makes the draw.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from privpost.distributions.noise import Common
from privpost.privacy.accounting.costs import Cost, check_cost
from privpost.privacy.checks import check_budget, check_choice, check_count, check_source
from privpost.privacy.ledger.account import Account, BudgetExceeded
from privpost.privacy.ledger.described import describe, key_of

__all__ = ["BudgetExceeded", "Ledger", "Release", "Request"]

# A release that names no repeats is charged to the first repeat.
ONE = slice(0, 1)


class Release(NamedTuple):
    """The released values, and other reports of a mechanism's sampler, for instance diagnostics of its Markov chains.

    The charge covers only the values.

    >>> Release(np.array([3.2])).values
    array([3.2])
    """

    values: np.ndarray
    info: Any = None


def check_mechanism(value) -> None:
    """Raises a ValueError unless a value is a configured mechanism."""
    if isinstance(value, type) or not hasattr(value, "cost_in"):
        raise ValueError(
            f"mechanism is {value!r}; it must be one, for instance LaplaceMechanism(BetaBernoulli(1, 1), 400, 0.5)"
        )


class Request(NamedTuple):
    """A request for releases of one mechanism. `Ledger.release` describes the fields."""

    account: str
    mechanism: Any
    statistics: np.ndarray
    rng: Any
    size: int | None = None
    repeats: slice | None = None
    settings: dict = {}  # noqa: RUF012

    def prepared(self) -> "Request":
        """Return the request with the result of the mechanism's `prepare`, which may raise a ValueError."""
        prepare = getattr(self.mechanism, "prepare", None)
        if prepare is None or self.size is None:
            return self
        preparation = prepare(self.statistics, size=self.size, **self.settings)
        return self._replace(settings={**self.settings, "prepared": preparation})

    def check(self) -> None:
        """Raises a ValueError if the source of randomness, the mechanism or the statistics are invalid."""
        check_source(self.rng)
        check_mechanism(self.mechanism)
        # `prepare` checks the statistics itself; a second check can take longer than the draw.
        if self.size is None or not hasattr(self.mechanism, "prepare"):
            self.mechanism.check_statistics(self.statistics)

    @property
    def lead(self) -> tuple[int, ...]:
        """Leading axes of the releases: (size,) if size is given, otherwise the leading axes of the statistics.

        Raises:
            ValueError: size is given for several data sets, there is no release, or the repeats do not fit the axes.
        """
        lead = np.shape(self.statistics)[:-1]
        if self.size is not None:
            check_count("size", self.size)
            if lead:
                raise ValueError(f"size is {self.size!r}; it needs the statistics of one data set, not of {lead}")
            lead = (self.size,)
        if 0 in lead:
            raise ValueError(f"the releases have the shape {lead}; there must be at least one")
        if self.repeats is not None:
            if not isinstance(self.repeats, slice):
                raise ValueError(f"repeats are {self.repeats!r}; they must be a slice, for instance slice(0, 100)")
            start, number = self.repeats.start, self.repeats.stop - self.repeats.start
            if start < 0 or number < 1:
                raise ValueError(f"repeats are {self.repeats}; they must be some of 0, 1, 2, ...")
            if not lead or lead[0] != number:
                raise ValueError(
                    f"repeats are {number}, but the releases have the shape {lead}; the first axis is repeats"
                )
        return lead


class Ledger:
    """Accounts of one experiment, each with a budget that its releases may not exceed.

    All repeats of a simulation use one account, and each repeat may spend the whole budget. If all repeats are about
    the same people, publishing them costs the sum, which the record states as `published`. Composition is sequential.
    For releases about disjoint records, charge `parallel([...])`.

    Args:
        data: name of the data set of real people that all releases are about; None if each repeat draws new data.
        trials: largest number of repeats; None for no limit.

    >>> ledger, mechanism = Ledger(), LaplaceMechanism(BetaBernoulli(1, 1), 10, 0.5)
    >>> _ = ledger.open("survey", Cost("pure", 1.0), mechanism)
    >>> _ = ledger.release("survey", mechanism, [3, 7], rng)
    >>> ledger
    Ledger(survey pure(epsilon=0.5) of pure(epsilon=1))
    """

    def __init__(self, data: str | None = None, trials: int | None = None):
        self.data = data
        self._trials = math.inf if trials is None else trials
        self._accounts: dict[str, Account] = {}
        # Mechanisms and their keys by the mechanism's `id`, which cannot be reused while the mechanism is held here.
        self._keys: dict[int, tuple[Any, Any]] = {}
        # Descriptions of the mechanisms, by key, and of their models, by `id`.
        self._described: dict[Any, dict] = {}
        self._models: dict[int, tuple[Any, dict]] = {}

    def __repr__(self) -> str:
        states = (f"{name} {entry.spent()} of {entry.budget}" for name, entry in self._accounts.items())
        return f"Ledger({'; '.join(states) or 'no accounts'})"

    def open(
        self, account: str, budget: Cost, mechanism=None, *, accounting: str = "stated", repeats: int | None = None
    ) -> Any:
        """Open an account with a budget and return its mechanism.

        Args:
            account: name of the account.
            budget: what each repeat may spend.
            mechanism: a mechanism, or a function without arguments that calibrates one.
            accounting: "stated" uses the mechanism's guarantee. "exact" uses the mechanism's curve δ(ε), for (ε, δ)
                budgets.
            repeats: number of independent repeats; by default, the ledger's `trials`.

        Raises:
            BudgetExceeded: one release of the mechanism costs more than the budget.
            ValueError: the account is open already, the accounting is unknown, the cost does not convert to the notion
                of the budget, or the calibration fails.
        """
        if account in self._accounts:
            raise ValueError(f"account {account!r} is already open with budget {self._accounts[account].budget}")
        check_choice("accounting", accounting, ("stated", "exact"))
        entry = Account(account, budget, accounting, self._trials if repeats is None else repeats)
        _asked(entry, check_budget, budget)
        if callable(mechanism) and not isinstance(mechanism, type):
            mechanism = _asked(entry, mechanism)
        if mechanism is not None:
            check_mechanism(mechanism)
            price = _price(entry, mechanism)
            entry.check(price, [(price.epsilon, price.delta or 0.0)], 1)
        self._accounts[account] = entry
        return mechanism

    def release(self, account: str, mechanism, statistics, rng, *, size=None, repeats=None, **settings) -> Release:
        """Make releases about private data, after charging them to an account.

        Args:
            account: name of an open account.
            mechanism: the mechanism that makes the releases and states the cost of each release.
            statistics: sufficient statistics (..., d). Each leading index is one release.
            rng: source of randomness, or of noise.
            size: number of releases about a single data set's statistics (d,), along a new first axis.
            repeats: slice of the trials along the first axis. Each trial has the whole budget. By default, all releases
                are about the same people, and their costs add up.
            settings: passed to `draw`.

        Raises:
            BudgetExceeded: the account would exceed its budget by more than a relative 1e-9.
            ValueError: the account is not open or has fewer repeats, the cost does not convert to the account's notion,
                or another release in these repeats has used the same noise.
        """
        return self.release_all([Request(account, mechanism, statistics, rng, size, repeats, settings)])[0]

    def release_all(self, requests: Sequence[Request]) -> list[Release]:
        """Return the releases for several requests, in their order. All requests are charged before anything is drawn.

        Many small releases take less time together than in separate calls of `release`.

        Raises:
            BudgetExceeded: an account would exceed its budget. Then none of the releases is made.
            ValueError: for the same reasons as in `release`.
        """
        leads = [request.lead for request in requests]
        for request in requests:
            request.check()
        # Requests that cannot be drawn are refused here, before anything is charged.
        requests = [_asked(self._account(request.account), request.prepared) for request in requests]
        self._reserve(requests, leads)
        kinds: dict[Any, list[int]] = {}
        for place, request in enumerate(requests):
            kinds.setdefault(type(request.mechanism), []).append(place)
        releases: dict[int, Release] = {}
        for kind, places in kinds.items():
            releases.update(zip(places, kind.draw_all([requests[place] for place in places]), strict=True))
        for place, (request, lead) in enumerate(zip(requests, leads, strict=True)):
            _check_number(request.mechanism, lead, np.shape(releases[place].values))
        return [releases[place] for place in range(len(requests))]

    def _reserve(self, requests: Sequence[Request], leads: Sequence[tuple[int, ...]]) -> None:
        """Charge all requests, or none of them."""
        before, noted, states = [], set(), {}
        try:
            for request, lead in zip(requests, leads, strict=True):
                account, repeats = self._account(request.account), request.repeats or ONE
                # Nothing is drawn until all requests are charged, so each generator's state is read only once.
                if id(request.rng) not in states:
                    states[id(request.rng)] = _noise(request.rng)
                counts, noise = account.counts, states[id(request.rng)]
                # An infinite budget promises no privacy, so it allows repeated noise.
                guarded = noise is not None and math.isfinite(account.budget.epsilon)
                if guarded and (account.name, id(request.rng)) not in noted:
                    account.share(noise, repeats)
                else:
                    noise = None
                before.append((account, counts, noise))
                # Releases of one call draw from a generator in turn, so they do not share noise.
                if noise is not request.rng:
                    noted.add((account.name, id(request.rng)))
                number = math.prod(lead) // (repeats.stop - repeats.start)
                account.charge(self._place(account, request.mechanism), repeats, number)
        except ValueError:
            for account, counts, noise in reversed(before):
                account.counts = counts
                if noise is not None:
                    account.shared[noise].pop()
            raise

    def _place(self, account: Account, mechanism) -> int:
        place = account.known.get(id(mechanism))
        if place is None:
            if id(mechanism) not in self._keys:
                self._keys[id(mechanism)] = mechanism, key_of(mechanism)
            key, price = self._keys[id(mechanism)][1], _price(account, mechanism)
            if key not in self._described:
                self._described[key] = describe(mechanism, self._models)
            account.known[id(mechanism)] = place = account.place(key, mechanism.stated_cost, price)
        return place

    def charge(self, account: str, cost: Cost, releases: int = 1) -> None:
        """Charge `releases` releases that were made elsewhere, either all or none of them.

        A pure cost is converted to the account's notion.

        Raises:
            BudgetExceeded: the account would exceed its budget by more than a relative 1e-9.
            ValueError: the account is not open, releases < 1, or the cost does not convert to the account's notion.
        """
        entry = self._account(account)
        check_cost("cost", cost)
        check_count("releases", releases)
        charged = _asked(entry, cost.to_notion_of, entry.budget)
        entry.charge(entry.place(cost, cost, charged), ONE, int(releases))

    def spent(self, account: str) -> Cost:
        """Return the largest cost that a repeat of an account has spent. Raises a ValueError for an unknown account."""
        return self._account(account).spent()

    def record(self) -> list[dict]:
        """Return the ledger as rows for JSON, one row per account and mechanism or bare cost, in the order of entry.

        An account without releases has one row. An infinite ε is the string "inf". The fields of a row are:
            mechanism, settings: class of the mechanism and its index in `mechanisms()`; both None for a bare cost.
            notion, epsilon, order, delta: cost of one release.
            releases, repeats: largest number of releases in one repeat, and number of repeats with releases.
            spent, budget: the most that a repeat has spent, and what a repeat may spend, in the budget's notion.
            published: cost of the releases of all repeats together.
            data: name of the data set that all repeats are about; None if each repeat draws new data.
        """
        numbered = {
            key: {"mechanism": described["class"], "settings": number}
            for number, (key, described) in enumerate(self._described.items())
        }
        return [{**row, "data": self.data} for account in self._accounts.values() for row in account.rows(numbered)]

    def mechanisms(self) -> list[dict]:
        """Return descriptions (`describe`) of the mechanisms that the ledger was asked to use, ordered by first use."""
        return list(self._described.values())

    def modules(self) -> list[str]:
        """Return the sorted names of the modules that define the mechanisms and their models."""
        descriptions = [*self._described.values(), *(described for _, described in self._models.values())]
        return sorted({described["module"] for described in descriptions})

    def _account(self, name: str) -> Account:
        if name not in self._accounts:
            raise ValueError(f"account {name!r} is not open; open accounts: {', '.join(self._accounts) or 'none'}")
        return self._accounts[name]


def _noise(source):
    """Return a key of the noise that a source gives next, or None if the source never repeats its noise."""
    if not isinstance(source, np.random.Generator):
        return source if isinstance(source, Common) else None
    generator = source.bit_generator
    state = [v if type(v) is int else np.asarray(v).tobytes() for v in generator.state["state"].values()]
    # Drawing from spawned generators leaves the state unchanged, but raises the number of children.
    return *state, getattr(generator.seed_seq, "n_children_spawned", 0)


def _asked(account: Account, function, *arguments) -> Any:
    """Return the result of a function. The account and its budget are added to the message of a ValueError."""
    try:
        return function(*arguments)
    except ValueError as error:
        raise ValueError(f"account {account.name!r} with budget {account.budget}: {error}") from error


def _price(account: Account, mechanism) -> Cost:
    return _asked(account, mechanism.cost_in, account.budget, account.accounting)


def _check_number(mechanism, lead: tuple[int, ...], shape: tuple[int, ...]) -> None:
    """Raises a ValueError if the number of releases that a mechanism made differs from the number charged."""
    asked = (*lead, *(mechanism.model.theta_shape if mechanism.releases == "sample" else shape[len(lead) :]))
    if shape != asked:
        raise ValueError(f"{type(mechanism).__name__} was asked for releases of shape {asked}, but gave {shape}")
