"""Typed settings: what a study's keys may hold, and the errors that say so.

A study module declares `SETTINGS = Schema(epsilon=Real(above=0), ...)`. Values are normalised (so `1` and `1.0`
are one setting and one digest) and anything else is a `SettingError` that names the key, its value and what is
allowed. This module imports nothing heavy, because every Snakemake parse reads it.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any


class SettingError(ValueError):
    """A setting that cannot be used; the message names it, its value and what is allowed."""


def suggest(word: str, known: Iterable[str]) -> str:
    """Return ` Did you mean 'x'?` for the nearest of the known words, or nothing when none is near."""
    near = difflib.get_close_matches(str(word), list(known), n=1, cutoff=0.5)
    return f" Did you mean {near[0]!r}?" if near else ""


@dataclass(frozen=True)
class Real:
    """A finite number within bounds; `optional` also allows null (an axis that does not apply)."""

    above: float | None = None
    at_least: float | None = None
    below: float | None = None
    at_most: float | None = None
    optional: bool = False

    def describe(self) -> str:
        lows, highs = (("(", self.above), ("[", self.at_least)), ((")", self.below), ("]", self.at_most))
        low = next((f"{mark}{end:g}" for mark, end in lows if end is not None), "(-inf")
        high = next((f"{end:g}{mark}" for mark, end in highs if end is not None), "inf)")
        return f"a number in {low}, {high}" + (" or null" if self.optional else "")

    def normalise(self, value: Any) -> Any:
        if value is None and self.optional:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError
        number = float(value)
        if not math.isfinite(number) or not self._within(number):
            raise ValueError
        return number

    def _within(self, number: float) -> bool:
        return (
            (self.above is None or number > self.above)
            and (self.at_least is None or number >= self.at_least)
            and (self.below is None or number < self.below)
            and (self.at_most is None or number <= self.at_most)
        )


@dataclass(frozen=True)
class Integer:
    """A whole number within bounds; `1000.0` and `1e3` count as whole."""

    at_least: int | None = None
    at_most: int | None = None
    optional: bool = False

    def describe(self) -> str:
        low = "" if self.at_least is None else f" of at least {self.at_least}"
        high = "" if self.at_most is None else f"{' and' if low else ''} at most {self.at_most}"
        return f"a whole number{low}{high}" + (" or null" if self.optional else "")

    def normalise(self, value: Any) -> Any:
        if value is None and self.optional:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or value != int(value):
            raise ValueError
        number = int(value)
        if (self.at_least is not None and number < self.at_least) or (
            self.at_most is not None and number > self.at_most
        ):
            raise ValueError
        return number


class Choice:
    """One of a list of words."""

    def __init__(self, *words: str, optional: bool = False):
        self.words = words
        self.optional = optional

    def describe(self) -> str:
        return "one of " + ", ".join(self.words) + (" or null" if self.optional else "")

    def normalise(self, value: Any) -> Any:
        if value is None and self.optional:
            return None
        if value not in self.words:
            raise ValueError
        return value


@dataclass(frozen=True)
class Flag:
    """true or false."""

    def describe(self) -> str:
        return "true or false"

    def normalise(self, value: Any) -> bool:
        if not isinstance(value, bool):
            raise ValueError
        return value


@dataclass(frozen=True)
class Text:
    """Free text, for instance a file's path."""

    optional: bool = False

    def describe(self) -> str:
        return "text" + (" or null" if self.optional else "")

    def normalise(self, value: Any) -> Any:
        if value is None and self.optional:
            return None
        if not isinstance(value, str) or not value:
            raise ValueError
        return value


@dataclass(frozen=True)
class Vector:
    """A list whose items follow one type, of a fixed length when `length` is given."""

    item: Any
    length: int | None = None

    def describe(self) -> str:
        count = "" if self.length is None else f"{self.length} items, "
        return f"a list of {count}each {self.item.describe()}"

    def normalise(self, value: Any) -> list:
        if not isinstance(value, list | tuple) or (self.length is not None and len(value) != self.length):
            raise ValueError
        return [self.item.normalise(entry) for entry in value]


@dataclass(frozen=True)
class DatasetName:
    """The name of a data set described in conf/dataset; of one that serves a kind of studies, where `task` is given."""

    optional: bool = False
    task: str = ""

    def _names(self) -> list[str]:
        from privpost.datasets import catalogue

        return [name for name in catalogue.names() if not self.task or catalogue.serves(name, self.task)]

    def describe(self) -> str:
        return "one of the data sets " + ", ".join(self._names()) + (" or null" if self.optional else "")

    def normalise(self, value: Any) -> Any:
        if value is None and self.optional:
            return None
        from privpost.datasets import catalogue

        if isinstance(value, Mapping):
            value = value.get("name")
        # Of a name that is known, only its own file is read: cells by the hundred name a data set.
        if value not in catalogue.names() or (self.task and not catalogue.serves(value, self.task)):
            raise ValueError
        return value


class Schema:
    """The settings of a study: one type per key.

    Raises `SettingError` from `normalise` for an unknown key, a missing key or a value that is not allowed.
    """

    def __init__(self, **fields: Any):
        self.fields = fields

    def __contains__(self, key: str) -> bool:
        return key in self.fields

    def value(self, key: str, value: Any, where: str) -> Any:
        """Return the value of one key in its normal form; a field may raise SettingError to say what is wrong."""
        field = self.fields[key]
        try:
            return field.normalise(value)
        except SettingError as error:
            raise SettingError(f"{where}: {key}: {error}") from None
        except (ValueError, TypeError, OverflowError):
            words = getattr(field, "words", None) or (field._names() if isinstance(field, DatasetName) else ())
            hint = suggest(value, words) if isinstance(value, str) else ""
            raise SettingError(f"{where}: {key} is {value!r}, but must be {field.describe()}.{hint}") from None

    def unknown(self, key: str, where: str, others: Iterable[str] = ()) -> SettingError:
        """Return the error for a key that the study does not have."""
        known = sorted({*self.fields, *others})
        return SettingError(f"{where}: there is no setting {key!r}.{suggest(key, known)} Allowed: {', '.join(known)}.")
