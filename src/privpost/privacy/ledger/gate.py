"""The gate: the only call that draws from private data. It checks the account, charges, runs the mechanism and records.

A study opens an account for each target of its configuration and asks the ledger for releases. The mechanism states the
cost that is charged, and its code makes the draw.
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

# The repeats of a release that names none: the first one only.
ONE = slice(0, 1)


class Release(NamedTuple):
    """A mechanism's output: the values, and what else its sampler reports, such as diagnostics of chains.

    The charge covers the values only, not the rest.

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
    """A request for one release; see `Ledger.release` for the fields."""

    account: str
    mechanism: Any
    statistics: np.ndarray
    rng: Any
    size: int | None = None
    repeats: slice | None = None
    settings: dict = {}  # noqa: RUF012

    def prepared(self) -> "Request":
        """The request with what its mechanism's `prepare` returns, if it has one; this may refuse the statistics."""
        prepare = getattr(self.mechanism, "prepare", None)
        if prepare is None or self.size is None:
            return self
        preparation = prepare(self.statistics, size=self.size, **self.settings)
        return self._replace(settings={**self.settings, "prepared": preparation})

    def check(self) -> None:
        """Raises a ValueError for an rng that is no source of randomness, or statistics not of n records."""
        check_source(self.rng)
        check_mechanism(self.mechanism)
        # `prepare` checks the statistics itself; a second check can take longer than the draw.
        if self.size is None or not hasattr(self.mechanism, "prepare"):
            self.mechanism.check_statistics(self.statistics)

    @property
    def lead(self) -> tuple[int, ...]:
        """The shape of the releases: the statistics' leading axes, or (size,).

        Raises:
            ValueError: a size for several data sets, no releases, or repeats that the first axis does not run over.
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

    The repeats of a simulation share one account's name and budget, and each may spend the budget once. If they are
    about the same people, publishing all repeats would cost the sum, which the record has as `published`.
    Composition is sequential; charge `parallel([...])` for releases about disjoint records.

    Args:
        data: name of the data set of real people that all releases are about; None where every repeat draws its own.
        trials: the number of the experiment's trials, beyond which there are no repeats; None for no limit.

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
        # Mechanisms and their keys, by identity; holding the mechanism keeps its identity from being reused.
        self._keys: dict[int, tuple[Any, Any]] = {}
        # Descriptions of the mechanisms that drew, by key, and of the models that they share, by identity.
        self._described: dict[Any, dict] = {}
        self._models: dict[int, tuple[Any, dict]] = {}

    def __repr__(self) -> str:
        states = (f"{name} {entry.spent()} of {entry.budget}" for name, entry in self._accounts.items())
        return f"Ledger({'; '.join(states) or 'no accounts'})"

    def open(
        self, account: str, budget: Cost, mechanism=None, *, accounting: str = "stated", repeats: int | None = None
    ) -> Any:
        """Opens an account with a budget, and returns its mechanism; refuses a mechanism that cannot draw within it.

        Args:
            account: its name.
            budget: the target that the configuration states.
            mechanism: a mechanism of which the budget must pay a single release, or a function of no arguments that
                calibrates one: its refusal then names the account.
            accounting: "stated", by the mechanism's guarantee; "exact", by its privacy curve δ(ε), for (ε, δ) budgets.
            repeats: number of independent repeats, each with the whole budget; the ledger's trials by default.

        Raises:
            BudgetExceeded: one release of the mechanism costs more than the budget.
            ValueError: the account is open already, an unknown accounting, a cost that does not convert, or what the
                calibration refuses.
        """
        if account in self._accounts:
            raise ValueError(f"account {account!r} is already open with budget {self._accounts[account].budget}")
        check_choice("accounting", accounting, ("stated", "exact"))
        check_cost("budget", budget)
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
        """Releases of a mechanism about private data, charged to an account before anything is drawn.

        Args:
            account: an open account.
            mechanism: its `draw` makes the releases, its `cost_in` says what one costs.
            statistics: sufficient statistics (..., d); each leading index is one release.
            rng: source of randomness, or of noise.
            size: number of releases about the one data set of statistics (d,); the new first axis.
            repeats: the trials, as a slice, that the first axis runs over; each has the whole budget. By default all
                releases are about the same people and their costs add.
            settings: passed to `draw`.

        Raises:
            BudgetExceeded: the account would be over its budget by more than a relative 1e-9.
            ValueError: no such account, a cost that does not convert to the account's notion, repeats beyond the
                account's, or noise that another release in these repeats has used.
        """
        return self.release_all([Request(account, mechanism, statistics, rng, size, repeats, settings)])[0]

    def release_all(self, requests: Sequence[Request]) -> list[Release]:
        """Several releases at once, see `release`; one call of a class's `draw_all` draws for all its mechanisms.

        Many small releases cost less together, and the samplers of some classes run faster.

        Raises:
            BudgetExceeded: an account would be over its budget; then none of the releases is made.
            ValueError: as `release`.
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
                # Nothing is drawn until all requests are charged, so one look at a generator's state is enough.
                if id(request.rng) not in states:
                    states[id(request.rng)] = _noise(request.rng)
                counts, noise = account.counts, states[id(request.rng)]
                # An infinite budget promises nothing, so repeated noise does no harm.
                guarded = noise is not None and math.isfinite(account.budget.epsilon)
                if guarded and (account.name, id(request.rng)) not in noted:
                    account.share(noise, repeats)
                else:
                    noise = None
                before.append((account, counts, noise))
                # A generator moves on from one release to the next of the same call.
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
        """Charges `releases` releases that were made elsewhere; all or none of them.

        A pure cost is converted to the account's notion: at order λ it is charged `pure_to_rdp(ε, λ)`.

        Raises:
            BudgetExceeded: the account would be over its budget by more than a relative 1e-9.
            ValueError: no such account, releases < 1, or a cost that does not convert to the account's notion.
        """
        entry = self._account(account)
        check_cost("cost", cost)
        check_count("releases", releases)
        charged = _asked(entry, cost.to_notion_of, entry.budget)
        entry.charge(entry.place(cost, cost, charged), ONE, int(releases))

    def spent(self, account: str) -> Cost:
        """The largest cost that a repeat of the account has spent so far, in the notion of the budget.

        Raises:
            ValueError: no such account.
        """
        return self._account(account).spent()

    def record(self) -> list[dict]:
        """The ledger as JSON-able rows, one per account, mechanism and cost, in the order of entry.

        `mechanism` is the class and `settings` a number for `mechanisms()` (None for a bare charge); `notion`,
        `epsilon`, `order` and `delta` describe one release in its own notion; `releases` is the number of releases in
        each of `repeats`; `spent` and `budget` are the account's totals in each repeat, in the notion of its budget, as
        Cost fields. `data` names the people that all repeats are about, None where each repeat draws new data;
        `published` is what the releases of all repeats together would cost them. An account without releases has one
        row with `releases` 0. An infinite ε is the string "inf".
        """
        numbered = {
            key: {"mechanism": described["class"], "settings": number}
            for number, (key, described) in enumerate(self._described.items())
        }
        return [{**row, "data": self.data} for account in self._accounts.values() for row in account.rows(numbered)]

    def mechanisms(self) -> list[dict]:
        """The mechanisms that drew, each once, as `describe` has them; in the order of their first release."""
        return list(self._described.values())

    def modules(self) -> list[str]:
        """Names of the modules that define the mechanisms and their models, in alphabetical order."""
        descriptions = [*self._described.values(), *(described for _, described in self._models.values())]
        return sorted({described["module"] for described in descriptions})

    def _account(self, name: str) -> Account:
        if name not in self._accounts:
            raise ValueError(f"account {name!r} is not open; open accounts: {', '.join(self._accounts) or 'none'}")
        return self._accounts[name]


def _noise(source):
    """A key that is equal for two uses of a source exactly if they give the same noise; None if that cannot happen."""
    if not isinstance(source, np.random.Generator):
        return source if isinstance(source, Common) else None
    generator = source.bit_generator
    state = [v if type(v) is int else np.asarray(v).tobytes() for v in generator.state["state"].values()]
    # A mechanism that draws from spawned generators leaves the state unchanged, but not the number of children.
    return *state, getattr(generator.seed_seq, "n_children_spawned", 0)


def _asked(account: Account, function, *arguments) -> Any:
    """What a function returns; if it raises a ValueError, the account and its budget are added to the message."""
    try:
        return function(*arguments)
    except ValueError as error:
        raise ValueError(f"account {account.name!r} with budget {account.budget}: {error}") from error


def _price(account: Account, mechanism) -> Cost:
    return _asked(account, mechanism.cost_in, account.budget, account.accounting)


def _check_number(mechanism, lead: tuple[int, ...], shape: tuple[int, ...]) -> None:
    """Raises ValueError if a mechanism gave another number of draws than it was charged for."""
    asked = (*lead, *(mechanism.model.theta_shape if mechanism.releases == "sample" else shape[len(lead) :]))
    if shape != asked:
        raise ValueError(f"{type(mechanism).__name__} was asked for releases of shape {asked}, but gave {shape}")
