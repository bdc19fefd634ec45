"""Settings of the columns in a user's data: levels, and what to do with missing values."""

import collections
from typing import Any

from privpost.lab.schema import Setting, SettingError, Text, unquoted


class Levels(Setting):
    """The values of a categorical column: a list of at least two different texts."""

    def allowed(self) -> str:
        return "a list of at least 2 different texts or whole numbers"

    def checked(self, value: Any) -> list[str]:
        if not isinstance(value, list) or len(value) < 2:
            raise ValueError
        for level in value:
            if isinstance(level, bool) or level is None:
                raise SettingError(unquoted(level))
            if not isinstance(level, str | int):
                raise SettingError(f"level {level!r} is neither a text nor a whole number; quote it if it is a text")
        texts = [str(level) for level in value]
        ((text, times),) = collections.Counter(texts).most_common(1)
        if times > 1:
            raise SettingError(f"level {text!r} is given twice")
        return texts


class Missing(Setting):
    """What a missing value counts as: an error (refuse), a separate level, or a public value."""

    def allowed(self) -> str:
        return "refuse, level or {impute: VALUE}"

    def checked(self, value: Any) -> str | dict[str, str]:
        if isinstance(value, dict) and list(value) == ["impute"]:
            imputed = value["impute"]
            if isinstance(imputed, bool) or imputed is None:
                raise SettingError(f"impute: {unquoted(imputed)}")
            if not isinstance(imputed, str | int | float):
                raise SettingError(f"impute: {unquoted(imputed)}") if unquoted(imputed) else ValueError
            return {"impute": str(imputed)}
        if value not in ("refuse", "level"):
            raise ValueError
        return value


class MissingText(Text):
    """A text that marks a missing value, in addition to the empty text."""

    def checked(self, value: Any) -> str:
        if value == "":
            raise SettingError("'' is always missing; leave it out")
        return super().checked(value)
