"""One account of a ledger: a budget that each of several repeats has for itself, and the releases that it paid."""

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

from privpost.privacy.accounting import Cost, at_most
from privpost.privacy.described import cost_fields, json_number


class BudgetExceeded(ValueError):
    """A charge would take an account over its budget."""


class _Counts(NamedTuple):
    """How many releases of each of some mechanisms were made in each of the repeats 0, 1, 2, ...

    Repeats of equal counts are one run, so that a million cost what few do: each run starts at one of `starts` and
    reaches up to the next, the last without end. Mechanisms beyond the end of a run's tuple have made none.
    """

    starts: tuple[int, ...] = (0,)
    values: tuple[tuple[int, ...], ...] = ((),)

    def plus(self, repeats: slice, place: int, number: int) -> "tuple[_Counts, list[tuple[int, ...]]]":
        """The same with more releases of the mechanism at a place in each of some repeats, and what these have then."""
        if repeats.start == self.starts[-1]:
            # After all that have any, as a simulation's trials come.
            value = (*(0,) * place, number)
            if self.values[-2:-1] == (value,):
                return _Counts((*self.starts[:-1], repeats.stop), self.values), [value]
            return _Counts((*self.starts, repeats.stop), (*self.values[:-1], value, ())), [value]
        starts, values = list(self.starts), list(self.values)
        for cut in (repeats.start, repeats.stop):
            at = bisect_left(starts, cut)
            if at == len(starts) or starts[at] != cut:
                starts.insert(at, cut)
                values.insert(at, values[at - 1])
        first, last = bisect_left(starts, repeats.start), bisect_left(starts, repeats.stop)
        touched = []
        for value in values[first:last]:
            whole = value + (0,) * (place + 1 - len(value))
            touched.append((*whole[:place], whole[place] + number, *whole[place + 1 :]))
        values[first:last] = touched
        for at in (last, first):
            if at and values[at] == values[at - 1]:
                del starts[at], values[at]
        return _Counts(tuple(starts), tuple(values)), touched

    def runs(self) -> list[tuple[int, tuple[int, ...]]]:
        """The number of repeats of each run but the last, in which there are no releases, with its counts."""
        return [(stop - start, value) for (start, stop), value in zip(pairwise(self.starts), self.values, strict=False)]


NOTHING = _Counts()


@dataclass
class Account:
    """A budget for each of several repeats of an experiment, which are independent and have the same target."""

    name: str
    budget: Cost
    accounting: str
    # There are no repeats beyond this number.
    repeats: float
    counts: _Counts = NOTHING
    # Mechanisms (or bare costs) by key in the order of their first release, and what one of each costs: in its own
    # notion and in that of the budget.
    places: dict[Any, int] = field(default_factory=dict)
    # The same places by identity: keys take as long as many a draw.
    known: dict[int, int] = field(default_factory=dict)
    stated: list[Cost] = field(default_factory=list)
    prices: list[Cost] = field(default_factory=list)
    # The repeats in which there was a release with some noise: by the source that gives the same whenever it is asked,
    # or by the state that the generator had.
    shared: dict[Any, list[slice]] = field(default_factory=dict)

    def total(self, counts) -> tuple[float, float]:
        """What some numbers of releases cost together, ε and δ."""
        epsilon = delta = 0.0
        for count, price in zip(counts, self.prices, strict=False):
            if count:
                epsilon += count * price.epsilon
                delta += count * (price.delta or 0.0)
        return epsilon, delta

    def largest(self) -> tuple[float, float]:
        """What the repeat that spent most has spent, of ε and of δ."""
        return tuple(map(max, zip(*map(self.total, self.counts.values), strict=True)))

    def spent(self) -> Cost:
        """The same in the notion of the budget."""
        epsilon, delta = self.largest()
        known = None if self.budget.delta is None else min(1.0, delta)
        return Cost(self.budget.notion, float(epsilon), self.budget.order, known)

    def published(self) -> tuple[float, float]:
        """What the releases of all repeats cost together if they are about the same people, of ε and of δ."""
        totals = [self.total([length * count for count in value]) for length, value in self.counts.runs()]
        if not totals:
            return 0.0, 0.0
        return sum(epsilon for epsilon, _ in totals), sum(delta for _, delta in totals)

    @staticmethod
    def _told(budget: dict, total: tuple[float, float]) -> dict:
        epsilon, delta = total
        return {**budget, "epsilon": json_number(epsilon), "delta": budget["delta"] and min(1.0, delta)}

    def check(self, price: Cost, totals: Iterable[tuple[float, float]], number: int) -> None:
        """Raises BudgetExceeded where one of some totals is over the budget."""
        for epsilon, delta in totals:
            if not (at_most(epsilon, self.budget.epsilon) and at_most(delta, self.budget.delta or 0.0)):
                raise BudgetExceeded(
                    f"account {self.name!r}: budget {self.budget}, spent {self.spent()}, asked {number} x {price}"
                )

    def place(self, key, stated: Cost, price: Cost) -> int:
        """The place of a mechanism (or a bare cost) among those that were charged.

        Args:
            key: what tells it from others.
            stated, price: what one release costs, in its own notion and in that of the budget.
        """
        if key not in self.places:
            self.places[key] = len(self.prices)
            self.prices.append(price)
            self.stated.append(stated)
        return self.places[key]

    def charge(self, place: int, repeats: slice, number: int) -> None:
        """Counts releases of the mechanism at a place in each of some repeats, if the budget covers them."""
        if repeats.stop > self.repeats:
            raise ValueError(f"account {self.name!r}: repeats are {repeats}, but there are {self.repeats}")
        counts, touched = self.counts.plus(repeats, place, number)
        self.check(self.prices[place], map(self.total, touched), number)
        self.counts = counts

    def share(self, noise, repeats: slice) -> None:
        """Notes who was given some noise, `Common` or a generator's state.

        Raises:
            ValueError: a repeat has a release with that noise already; both together would give the statistics away.
        """
        earlier = self.shared.setdefault(noise, [])
        if any(repeats.start < had.stop and had.start < repeats.stop for had in earlier):
            raise ValueError(
                f"account {self.name!r}: two releases in repeats {repeats} share their noise; "
                "each needs its own, as two releases with the same noise tell the statistics"
            )
        earlier.append(repeats)

    def rows(self, mechanisms: dict) -> list[dict]:
        """What `Ledger.record` has of the account; mechanisms by key, with number and class."""
        budget = cost_fields(self.budget)
        totals: dict[str, Any] = {
            name: self._told(budget, total)
            for name, total in (("spent", self.largest()), ("published", self.published()))
        }
        totals |= {"budget": budget, "accounting": self.accounting}
        none = {"mechanism": None, "settings": None}
        rows = []
        for key, place in self.places.items():
            runs = [(length, value[place]) for length, value in self.counts.runs() if any(value[place : place + 1])]
            # A charge that was refused has left its place, and no releases.
            if runs:
                mechanism = mechanisms.get(key, none)
                counts = {"releases": max(count for _, count in runs), "repeats": sum(length for length, _ in runs)}
                rows.append({"account": self.name, **mechanism, **cost_fields(self.stated[place]), **counts, **totals})
        nothing = {**none, **self._told(budget, (0.0, 0.0)), "releases": 0, "repeats": 0}
        return rows or [{"account": self.name, **nothing, **totals}]
