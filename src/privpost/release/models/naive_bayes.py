"""The model `naive_bayes` of private releases."""

from typing import Any, ClassVar

import numpy as np

from privpost.lab.schema import Choice, Real, Schema
from privpost.mechanisms.noise.event_counts import EventCountsLaplace
from privpost.models.events import EventCounts
from privpost.release.columns import Levels
from privpost.release.models.base import EXACT, Posterior, Predictive, by_name, levels_of, whole
from privpost.samplers.noise_aware import exact_counts


class NaiveBayes(Predictive):
    """A class and its attributes, whose levels are counted per class. The shares of classes have a flat prior."""

    name = "naive_bayes"
    column = Schema(levels=Levels(), role=Choice("class", "attribute"))
    prior = Schema(concentration=Real(above=0))
    prior_defaults: ClassVar[dict[str, Any]] = {"concentration": 1.0}
    columns = None

    def check(self, spec):
        self.check_role(spec, "class", "at least one other")
        super().check(spec)

    def mechanism(self, spec, setting):
        classes, *sizes = (len(spec.columns[name]["levels"]) for name in self.order(spec))
        # With one state, and one cell for each class, the event model is naive Bayes.
        return EventCountsLaplace(EventCounts((1,) * classes, tuple(sizes), 1), spec.n, setting)

    def order(self, spec):
        """Return the names of the columns with the class first."""
        return sorted(spec.columns, key=lambda name: spec.columns[name].get("role") != "class")

    def _cells(self, spec) -> list[tuple[str, str, str]]:
        """Return the class, attribute and level of every count, in the mechanism's order."""
        label, *attributes = self.order(spec)
        return [
            (given, name, level)
            for given in spec.columns[label]["levels"]
            for name in attributes
            for level in spec.columns[name]["levels"]
        ]

    def statistics(self, spec, release):
        label, *attributes = self.order(spec)
        tables: dict[str, Any] = {name: {} for name in attributes}
        for (given, name, level), count in zip(self._cells(spec), release, strict=True):
            tables[name].setdefault(f"{label} = {given}", {})[level] = whole(count)
        return {"counts": tables}

    def tables(self, spec):
        return sum(len(spec.columns[name]["levels"]) for name in self.order(spec)[1:])

    def seconds(self, spec):
        # Seconds for each number that is drawn, and for each entry of the tables of counts.
        classes = len(spec.columns[self.order(spec)[0]]["levels"])
        return classes * self.tables(spec) * (1e-6 * spec.draws + 3.5e-7 * spec.n)

    def parameters(self, spec):
        label = self.order(spec)[0]
        names = [f"P({label} = {level})" for level in spec.columns[label]["levels"]]
        return names + [f"P({name} = {level} | {label} = {given})" for given, name, level in self._cells(spec)]

    def predicted(self, spec, theta, size, rng):
        label, *attributes = self.order(spec)
        classes = spec.columns[label]["levels"]
        given = np.array(levels_of(range(len(classes)), theta[: len(classes)], size, rng))
        # Probabilities of the levels by class, in the order of `_cells`.
        shares, columns = theta[len(classes) :].reshape(len(classes), -1), [[classes[place] for place in given]]
        for name in attributes:
            levels = spec.columns[name]["levels"]
            own, shares = shares[:, : len(levels)], shares[:, len(levels) :]
            cells = np.empty(size, object)
            for place in range(len(classes)):
                cells[given == place] = levels_of(levels, own[place], int((given == place).sum()), rng)
            columns.append(cells.tolist())
        return columns

    def posterior(self, spec, mechanism, release, rng):
        label = self.order(spec)[0]
        classes = spec.columns[label]["levels"]
        rows = release.reshape(len(classes), -1)
        given = rows, mechanism.model.sizes, spec.prior["concentration"], spec.n, mechanism.scale
        shares, levels = exact_counts.class_posterior(*given, spec.draws, rng)
        draws = np.concatenate([shares, levels.reshape(len(levels), -1)], axis=1)
        return Posterior(by_name(self.parameters(spec), draws), True, EXACT, ())
