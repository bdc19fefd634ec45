"""Typed settings: the values that a study's keys may have, and the errors for other values.

A study declares `SETTINGS = Schema(epsilon=Real(above=0, says="ε of one release", unit="nats"), ...)`. Values are
normalised, which gives `1` and `1.0` one digest. Every Snakemake parse imports this module, so it must load quickly.
"""

import copy
import difflib
import math
from abc import ABC, abstractmethod
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self


class SettingError(ValueError):
    """Raised if a setting cannot be used. The message names the setting, its value and what is allowed."""


def suggest(word: str, known: Iterable[str]) -> str:
    """Return ` Did you mean 'x'?` with the known word nearest to `word`, or "" if no known word is near."""
    near = difflib.get_close_matches(str(word), list(known), n=1)
    return f" Did you mean {near[0]!r}?" if near else ""


@dataclass(frozen=True, kw_only=True, eq=False)
class Setting(ABC):
    """The values that a key may have, and the meaning of the key.

    Attributes:
        optional: whether null is allowed too, for an axis that does not apply.
        says: the meaning, in words.
        unit: the unit of the values; "" for names, truth values and numbers without a unit.
    """

    optional: bool = False
    says: str = ""
    unit: str = ""

    @abstractmethod
    def allowed(self) -> str:
        """Return the allowed values other than null, in words."""

    @abstractmethod
    def checked(self, value: Any) -> Any:
        """Return the normal form of a value. Raises ValueError, TypeError or OverflowError for a forbidden value."""

    def describe(self) -> str:
        """Return what is allowed, in words."""
        return self.allowed() + (" or null" if self.optional else "")

    def normalise(self, value: Any) -> Any:
        """Return the normal form of a value, or None for an allowed null. Raises the errors of `checked`."""
        return None if value is None and self.optional else self.checked(value)

    def means(self, says: str, unit: str = "") -> Self:
        """Return a copy of this setting with the given meaning and unit."""
        other = copy.copy(self)
        object.__setattr__(other, "says", says)
        object.__setattr__(other, "unit", unit)
        return other


def _check(fits: bool) -> None:
    if not fits:
        raise ValueError


@dataclass(frozen=True, kw_only=True)
class Real(Setting):
    """A setting that is a finite number within bounds."""

    above: float | None = None
    at_least: float | None = None
    below: float | None = None
    at_most: float | None = None

    def allowed(self) -> str:
        lows, highs = (("(", self.above), ("[", self.at_least)), ((")", self.below), ("]", self.at_most))
        low = next((f"{mark}{end:g}" for mark, end in lows if end is not None), "(-inf")
        high = next((f"{end:g}{mark}" for mark, end in highs if end is not None), "inf)")
        return f"a number in {low}, {high}"

    def checked(self, value: Any) -> float:
        _check(isinstance(value, int | float) and not isinstance(value, bool))
        number = float(value)
        _check(math.isfinite(number))
        _check(self.above is None or number > self.above)
        _check(self.at_least is None or number >= self.at_least)
        _check(self.below is None or number < self.below)
        _check(self.at_most is None or number <= self.at_most)
        return number


# Default upper bound of whole numbers. More rounds would take too long, and more records too much memory.
LARGEST_INTEGER = 10**9


@dataclass(frozen=True, kw_only=True)
class Integer(Setting):
    """A setting that is a whole number within bounds. `1000.0` and `1e3` are accepted.

    Attributes:
        under: the name of another setting, whose value must be larger.
        follows: the name of another setting. If only that setting is changed, this one is scaled by the same factor.
    """

    at_least: int | None = None
    at_most: int | None = LARGEST_INTEGER
    under: str | None = None
    follows: str | None = None
    unit: str = "count"

    def allowed(self) -> str:
        bounds = (("at least", self.at_least), ("at most", self.at_most))
        words = " and ".join(f"{which} {end}" for which, end in bounds if end is not None)
        return "a whole number" + (f" of {words}" if words else "") + (f", below {self.under}" if self.under else "")

    def checked(self, value: Any) -> int:
        _check(isinstance(value, int | float) and not isinstance(value, bool) and value == int(value))
        number = int(value)
        _check(self.at_least is None or number >= self.at_least)
        _check(self.at_most is None or number <= self.at_most)
        return number


class Choice(Setting):
    """A setting that is one of several words."""

    words: tuple[str, ...]

    def __init__(self, *words: str, **more: Any):
        super().__init__(**more)
        object.__setattr__(self, "words", words)

    def allowed(self) -> str:
        return "one of " + ", ".join(self.words)

    def checked(self, value: Any) -> str:
        _check(value in self.words)
        return value


class Flag(Setting):
    """A setting that is true or false."""

    def allowed(self) -> str:
        return "true or false"

    def checked(self, value: Any) -> bool:
        _check(isinstance(value, bool))
        return value


class Text(Setting):
    """A setting that is any text, such as a file's path."""

    def allowed(self) -> str:
        return "text"

    def checked(self, value: Any) -> str:
        if hint := unquoted(value):
            raise SettingError(hint)
        _check(isinstance(value, str) and value != "")
        return value


def unquoted(value: Any) -> str:
    """Return advice to quote a text that YAML reads as another type, or "" for texts, lists and maps."""
    if isinstance(value, bool):
        return f"YAML reads an unquoted yes, no, true, false, on or off as {value}; quote it"
    if value is None:
        return "YAML reads an unquoted null or ~, or nothing at all, as no value; quote it"
    if isinstance(value, str | list | dict):
        return ""
    return f"YAML reads {value} as a {'number' if isinstance(value, int | float) else 'date'}, not a text; quote it"


@dataclass(frozen=True)
class Vector(Setting):
    """A setting that is a list with items of one type. `empty` allows a list without items."""

    item: Any
    empty: bool = False

    def allowed(self) -> str:
        return f"a list of {'any number' if self.empty else 'one or more'}, each {self.item.describe()}"

    def checked(self, value: Any) -> list:
        _check(isinstance(value, list | tuple) and (self.empty or len(value) > 0))
        return [self.item.normalise(entry) for entry in value]


@dataclass(frozen=True, kw_only=True)
class DatasetName(Setting):
    """A setting that names a data set in conf/dataset. With `task`, the data set must serve this kind of study."""

    task: str = ""

    @property
    def words(self) -> list[str]:
        from privpost.datasets import catalogue

        return [name for name in catalogue.names() if not self.task or catalogue.serves(name, self.task)]

    def allowed(self) -> str:
        return "one of the data sets " + ", ".join(self.words)

    def checked(self, value: Any) -> str:
        from privpost.datasets import catalogue

        if isinstance(value, Mapping):
            value = value.get("name")
        # Hundreds of cells name a data set, so only the file of that data set is read.
        _check(value in catalogue.names() and (not self.task or catalogue.serves(value, self.task)))
        return value


def _at(where: str) -> str:
    return f"{where}: " if where else ""


class Schema:
    """The settings of a study: one `Setting` for each key. Methods raise `SettingError` for wrong keys and values."""

    def __init__(self, **fields: Any):
        self.fields = fields
        numbers = {key: field for key, field in fields.items() if isinstance(field, Integer)}
        self._under = {key: field.under for key, field in numbers.items() if field.under}
        self._follows = {key: field.follows for key, field in numbers.items() if field.follows}

    def __contains__(self, key: str) -> bool:
        return key in self.fields

    def value(self, key: str, value: Any, where: str) -> Any:
        """Return the normal form of a key's value. Raises SettingError, with a text that begins with `where`."""
        field = self.fields[key]
        try:
            return field.normalise(value)
        except SettingError as error:
            raise SettingError(f"{_at(where)}{key}: {error}") from None
        except (ValueError, TypeError, OverflowError):
            hint = suggest(value, getattr(field, "words", ())) if isinstance(value, str) else ""
            raise SettingError(f"{_at(where)}{key} is {value!r}, but must be {field.describe()}.{hint}") from None

    def follow(self, settings: dict[str, Any], base: Mapping[str, Any], given: Container[str], where: str) -> None:
        """Scale each setting that follows another setting, if the user changed only the other setting.

        Args:
            settings: all settings of a point, changed in place.
            base: the study's own settings.
            given: the keys that the user changed.
            where: what error messages begin with.
        """
        for key, other in self._follows.items():
            if other in given and key not in given and other in settings:
                settings[key] = self.value(key, round(base[key] * settings[other] / base[other]), where)

    def check_together(self, settings: Mapping[str, Any], where: str) -> None:
        """Raise SettingError if a setting is not below the setting that `under` names."""
        for key, under in self._under.items():
            if {key, under} <= settings.keys() and settings[key] >= settings[under]:
                raise SettingError(
                    f"{_at(where)}{key} is {settings[key]}, but must be below {under}, which is {settings[under]}."
                )

    def checked(
        self, block: Any, where: str, required: Iterable[str] = (), others: Iterable[str] = ()
    ) -> dict[str, Any]:
        """Return, by key, the normal form of the settings in a map.

        Args:
            block: the given values. Keys in `others` are allowed too, but are not returned.
            where: start of error messages; empty if the caller adds a start.
            required: keys that must be given.
        """
        if not isinstance(block, Mapping):
            raise SettingError(f"{where} is {block!r}, but must be a map with the keys {', '.join(self.fields)}.")
        for key in block:
            if key not in self and key not in others:
                raise self.unknown(key, where, others)
        for key in required:
            if key not in block:
                raise SettingError(f"{_at(where)}{key} is missing. Required: {', '.join(required)}.")
        return {key: self.value(key, value, where) for key, value in block.items() if key in self}

    def unknown(self, key: str, where: str, others: Iterable[str] = ()) -> SettingError:
        """Return the error for a key that the study does not have. The message has the nearest key and its meaning."""
        known = sorted({*self.fields, *others})
        hint = suggest(key, known)
        meant = next((field.says for name, field in self.fields.items() if repr(name) in hint), "")
        hint = f"{hint[:-1]} ({meant})?" if meant else hint
        return SettingError(f"{_at(where)}there is no setting {key!r}.{hint} Allowed: {', '.join(known)}.")
