"""One account of a ledger: a budget for each repeat of an experiment, and the releases charged to it."""

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

from privpost.privacy.accounting.costs import Cost, at_most
from privpost.privacy.ledger.described import cost_fields, json_number


class BudgetExceeded(ValueError):
    """A charge would take an account over its budget."""


class _Counts(NamedTuple):
    """Numbers of releases by repeat and by mechanism. Successive repeats with equal counts form one run."""

    # First repeat of each run.
    starts: tuple[int, ...] = (0,)
    # Counts by mechanism of each run. Mechanisms beyond the end of a tuple have no releases.
    values: tuple[tuple[int, ...], ...] = ((),)

    def plus(self, repeats: slice, place: int, number: int) -> "tuple[_Counts, list[tuple[int, ...]]]":
        """Return the counts after `number` more releases at `place` in each of `repeats`, and the changed values."""
        if repeats.start == self.starts[-1]:
            # The trials of a simulation come in order, so usually no later repeat has a release.
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
        """Return the number of repeats and the counts of each run that has releases."""
        return [(stop - start, value) for (start, stop), value in zip(pairwise(self.starts), self.values, strict=False)]


NOTHING = _Counts()


@dataclass
class Account:
    """A budget that each of several independent repeats of an experiment may spend once."""

    name: str
    budget: Cost
    accounting: str
    # Number of repeats.
    repeats: float
    counts: _Counts = NOTHING
    # Key of each mechanism or bare cost, and its place in `stated` and `prices`. These two lists have the cost of one
    # release, in the mechanism's notion and in the budget's notion.
    places: dict[Any, int] = field(default_factory=dict)
    # Places by the object's identity, as computing a key can take longer than a draw.
    known: dict[int, int] = field(default_factory=dict)
    stated: list[Cost] = field(default_factory=list)
    prices: list[Cost] = field(default_factory=list)
    # The repeats in which each noise was used. The key of a noise is explained at `gate._noise`.
    shared: dict[Any, list[slice]] = field(default_factory=dict)

    def total(self, counts) -> tuple[float, float]:
        """Return the summed ε and the summed δ of all releases, given the number of releases of each mechanism."""
        epsilon = delta = 0.0
        for count, price in zip(counts, self.prices, strict=False):
            if count:
                epsilon += count * price.epsilon
                delta += count * (price.delta or 0.0)
        return epsilon, delta

    def largest(self) -> tuple[float, float]:
        """Return the largest ε and the largest δ that any repeat has spent."""
        return tuple(map(max, zip(*map(self.total, self.counts.values), strict=True)))

    def spent(self) -> Cost:
        """Return the largest ε and the largest δ that any repeat has spent, as a cost in the budget's notion."""
        epsilon, delta = self.largest()
        known = None if self.budget.delta is None else min(1.0, delta)
        return Cost(self.budget.notion, float(epsilon), self.budget.order, known)

    def published(self) -> tuple[float, float]:
        """Return the summed ε and δ of all releases in all repeats: the cost if all are about the same people."""
        totals = [self.total([length * count for count in value]) for length, value in self.counts.runs()]
        if not totals:
            return 0.0, 0.0
        return sum(epsilon for epsilon, _ in totals), sum(delta for _, delta in totals)

    @staticmethod
    def _told(budget: dict, total: tuple[float, float]) -> dict:
        epsilon, delta = total
        return {**budget, "epsilon": json_number(epsilon), "delta": budget["delta"] and min(1.0, delta)}

    def check(self, price: Cost, totals: Iterable[tuple[float, float]], number: int) -> None:
        """Raises BudgetExceeded if a total (ε, δ) exceeds the budget. The message quotes `price` and `number`."""
        for epsilon, delta in totals:
            if not (at_most(epsilon, self.budget.epsilon) and at_most(delta, self.budget.delta or 0.0)):
                raise BudgetExceeded(
                    f"account {self.name!r}: budget {self.budget}, spent {self.spent()}, asked {number} x {price}"
                )

    def place(self, key, stated: Cost, price: Cost) -> int:
        """Return the place of a mechanism or bare cost in the account's lists. A new one is added.

        Args:
            key: identifies the mechanism or the bare cost.
            stated: cost of one release in the notion of the mechanism.
            price: cost of one release in the notion of the budget.
        """
        if key not in self.places:
            self.places[key] = len(self.prices)
            self.prices.append(price)
            self.stated.append(stated)
        return self.places[key]

    def charge(self, place: int, repeats: slice, number: int) -> None:
        """Charge `number` more releases in each of `repeats`. Raises BudgetExceeded if this exceeds the budget."""
        if repeats.stop > self.repeats:
            raise ValueError(f"account {self.name!r}: repeats are {repeats}, but there are {self.repeats}")
        counts, touched = self.counts.plus(repeats, place, number)
        self.check(self.prices[place], map(self.total, touched), number)
        self.counts = counts

    def share(self, noise, repeats: slice) -> None:
        """Record that some repeats use a source of noise: a `Common` source, or a generator in a certain state.

        Raises:
            ValueError: a repeat already has a release with this noise. The two releases would reveal the statistics.
        """
        earlier = self.shared.setdefault(noise, [])
        if any(repeats.start < had.stop and had.start < repeats.stop for had in earlier):
            raise ValueError(
                f"account {self.name!r}: two releases in repeats {repeats} share their noise; "
                "each needs its own, as two releases with the same noise tell the statistics"
            )
        earlier.append(repeats)

    def rows(self, mechanisms: dict) -> list[dict]:
        """Return the rows for `Ledger.record`. `mechanisms` maps each key to a mechanism's class and number."""
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
            # A charge that was refused can leave a place without releases.
            if runs:
                mechanism = mechanisms.get(key, none)
                counts = {"releases": max(count for _, count in runs), "repeats": sum(length for length, _ in runs)}
                rows.append({"account": self.name, **mechanism, **cost_fields(self.stated[place]), **counts, **totals})
        nothing = {**none, **self._told(budget, (0.0, 0.0)), "releases": 0, "repeats": 0}
        return rows or [{"account": self.name, **nothing, **totals}]
