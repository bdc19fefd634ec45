"""Base classes of models that can be released, and the posterior draws that a statement reports."""

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple

import numpy as np

from privpost.lab.schema import Schema, SettingError
from privpost.mechanisms.base import Mechanism
from privpost.mechanisms.noise.additive import AdditiveNoiseMechanism
from privpost.release.columns import Levels
from privpost.release.specification import Specification

# Largest number of entries in all tables of a posterior of counts. Each table has n + 1 entries.
LARGEST_SUM = 10_000_000
EXACT = "independent draws from the exact posterior, summed over all true counts"
# What is approximate about draws that ignore the noise.
NAIVE = ("noisy counts are taken for the true ones",)


class Posterior(NamedTuple):
    """Draws from a posterior given a release.

    Attributes:
        draws: draws of each parameter by name, shape (draws, ...).
        noise_aware: whether the posterior accounts for the noise.
        method: how the draws were made.
        approximations: what is not exact about the draws.
        rhat: largest R-hat of the Markov chains; nan if unknown, None for independent draws.
        ess: smallest effective sample size of the chains; nan if unknown, None for independent draws.
        chains: number of chains, whose draws are stored one after the other; 1 for independent draws.
        reason: why R-hat or the effective sample size is not known.
    """

    draws: dict[str, np.ndarray]
    noise_aware: bool
    method: str
    approximations: tuple[str, ...]
    rhat: float | None = None
    ess: float | None = None
    chains: int = 1
    reason: str = ""


class Kind(ABC):
    """A model that can be released. Its `name` is the value of `model:` in a specification."""

    name: ClassVar[str]
    # Settings of a column, and the names of required settings.
    column: ClassVar[Schema] = Schema(levels=Levels())
    required: ClassVar[tuple[str, ...]] = ("levels",)
    # Settings of the prior, and the defaults of optional settings.
    prior: ClassVar[Schema]
    prior_defaults: ClassVar[dict[str, Any]] = {}
    mechanisms: ClassVar[tuple[str, ...]] = ("laplace",)
    # Number of columns, or None for any number, and whether each column must have two levels.
    columns: ClassVar[int | None] = 1
    binary: ClassVar[bool] = False
    # Whether a posterior draw lies on a lattice whose step follows from public settings.
    on_lattice: ClassVar[bool] = False

    def check(self, spec: Specification) -> None:
        """Raise SettingError unless the columns fit the model."""
        if self.columns is not None and len(spec.columns) != self.columns:
            raise SettingError(f"columns has {len(spec.columns)} entries, but {self.name} has exactly {self.columns}.")
        for name, settings in spec.columns.items():
            try:
                self.check_column(spec, settings)
                self._check_missing(spec, name, settings)
            except SettingError as error:
                raise SettingError(f"columns: {name}: {error}") from None
        if spec.draws and spec.n * (tables := self.tables(spec)) > LARGEST_SUM:
            raise SettingError(
                f"n is {spec.n}; posterior draws need n <= {LARGEST_SUM // tables} with these columns, or none."
            )
        try:
            names = self.parameters(spec)
        except ValueError as error:
            raise SettingError(f"columns: {error}") from None
        if name := _twice(names):
            raise SettingError(
                f"columns: two parameters would have the name {name!r}: rename a column or a level that has ' = ', "
                "' | ' or ', ' in it, or the name of a parameter."
            )

    def check_column(self, spec: Specification, settings: dict[str, Any]) -> None:
        """Raise SettingError unless the settings of a column fit the model."""
        if self.binary and len(levels := settings.get("levels", "ab")) != 2:
            raise SettingError(f"levels has {len(levels)} entries; {self.name} needs 2.")
        if "low" in settings and not settings["low"] < settings["high"]:
            raise SettingError(f"low is {settings['low']:g} and high is {settings['high']:g}; low must be less.")

    def _check_missing(self, spec: Specification, name: str, settings: dict[str, Any]) -> None:
        policy = settings.get("missing")
        if isinstance(policy, dict) and self.encode(spec, name, policy["impute"]) is None:
            raise SettingError(f"missing: impute is {policy['impute']!r}, but must be {self.allowed(spec, name)}.")
        for text in settings.get("missing_texts", ()):
            if self.encode(spec, name, text) is not None:
                raise SettingError(f"missing_texts has {text!r}, which is a value of the column.")

    def check_role(self, spec: Specification, role: str, others: str, most: float = math.inf) -> None:
        """Raise SettingError unless exactly one column has the role, and there are 1 to `most` other columns."""
        names = [name for name, settings in spec.columns.items() if settings.get("role") == role]
        if len(names) != 1 or not 1 < len(spec.columns) <= most + 1:
            raise SettingError(
                f"columns: {self.name} needs one column with role: {role} and {others}; {len(names)} of "
                f"{len(spec.columns)} columns have role: {role}."
            )

    def parameters(self, spec: Specification) -> list[str]:
        """Return the parameters' names in the order of a draw. Raise ValueError if the columns do not fit together."""
        return []

    def tables(self, spec: Specification) -> int:
        """Return how many tables of n + 1 entries the posterior of counts needs."""
        return 1

    @abstractmethod
    def mechanism(self, spec: Specification, setting: float) -> AdditiveNoiseMechanism:
        """Return the mechanism at ε = `setting` for Laplace noise, or σ = `setting` for Gaussian noise."""

    def encode(self, spec: Specification, column: str, text: str) -> int | None:
        """Return the whole number that stands for a cell's text, or None if the text is not allowed."""
        return spec.codes[column].get(text)

    def allowed(self, spec: Specification, column: str) -> str:
        """Return what the cells of a column may hold, in words for an error message."""
        return "one of its levels " + ", ".join(map(repr, spec.columns[column]["levels"]))

    def order(self, spec: Specification) -> list[str]:
        """Return the names of the columns in the order in which `records` takes them."""
        return list(spec.columns)

    def records(self, data: np.ndarray) -> np.ndarray:
        """Return the model's records, given encoded cells (n, columns)."""
        return data[:, 0] if self.columns == 1 else data

    def unit(self, spec: Specification) -> float:
        """Return the step between released whole numbers, in the data's units."""
        return 1.0

    def counted(self, spec: Specification, mechanism):
        """Return the object that computes the statistics of the records."""
        return mechanism.model

    def summed(self, chunks: Iterable[np.ndarray], model) -> np.ndarray:
        """Return the exact statistics (d,) of all records, from chunks (rows, columns) of encoded cells."""
        total = 0.0
        for chunk in chunks:
            total = total + model.sufficient_statistics(self.records(chunk))
        return np.asarray(total, float)

    @abstractmethod
    def statistics(self, spec: Specification, release: np.ndarray) -> dict[str, Any]:
        """Return the noisy statistics as named numbers for the statement."""


class Inferred(Kind):
    """A model with draws from the posterior given a release."""

    def seconds(self, spec: Specification) -> float:
        """Return the approximate time of the draws in seconds."""
        return 0.0

    @abstractmethod
    def posterior(self, spec, mechanism, release: np.ndarray, rng: np.random.Generator) -> Posterior:
        """Return posterior draws given a release (d,). Drawing costs no privacy."""


class Predictive(Inferred):
    """A model whose parameters determine the law of whole records, so that synthetic data can be drawn."""

    @abstractmethod
    def predicted(self, spec, theta: np.ndarray, size: int, rng: np.random.Generator) -> list[list[str]]:
        """Draw `size` records given θ (parameters,). Return a list of cells for each column, as in `order`."""


class Sampled(Kind):
    """A model whose release can be one posterior draw, which is rounded to a lattice or to a public number of bits."""

    # Name of the posterior's family.
    law: ClassVar[str]

    @abstractmethod
    def sampler(self, spec: Specification, setting: float) -> Mechanism:
        """Return the mechanism of one posterior draw. The setting is ε for "ops", and otherwise a coefficient."""

    def exact_statistics(self, spec: Specification, statistics: np.ndarray) -> Any:
        """Return the statistics as exact numbers in the form that the sampler expects."""
        return [Fraction(int(count)) for count in statistics]


def whole(value: float) -> int:
    return round(float(value)) if float(value).is_integer() else float(value)


def _twice(names) -> str:
    """Return the first name that occurs more than once, or "" if all names differ."""
    return next((name for name, number in Counter(names).items() if number > 1), "")


def levels_of(levels, chances, size: int, rng: np.random.Generator) -> list[str]:
    """Return random levels (size,) with probabilities proportional to `chances` (levels,)."""
    places = np.searchsorted(np.cumsum(chances), rng.random(size) * np.sum(chances), side="right")
    return [levels[place] for place in np.minimum(places, len(levels) - 1)]


def by_name(names, draws) -> dict[str, np.ndarray]:
    """Return a map from names to columns of `draws` (draws, parameters). Raise ValueError if two names are equal."""
    if name := _twice(names):
        raise ValueError(f"two parameters have the name {name!r}")
    return dict(zip(names, np.moveaxis(draws, -1, 0), strict=True))
