"""Other names of settings: a command line may use the name that another study has for the same setting."""

import math
from collections.abc import Callable, Sequence
from typing import Any

from privpost.lab.compose import hydra_value
from privpost.lab.schema import SettingError
from privpost.lab.study import SIZES, Study

# By name: the setting it may stand for, how values are converted, and the function; plurals need no entry.
_OTHERS: dict[str, tuple[str, str, Callable[[float], float] | None]] = {
    "epsilon": ("log_epsilon", ", its natural logarithm", math.log),
    "log_epsilon": ("epsilon", ", the exponential of it", math.exp),
    "data": ("dataset", "", None),
}
SHOWN = 80  # the longest override that a note repeats, in letters


def taken_as(study: Study, key: str, values: Callable[[], Sequence]) -> tuple[str, str] | None:
    """Return the override in the study's own words, and a line that says so; None where the key has no other name.

    Raises SettingError for a value without a logarithm.
    """
    fields = {**study.schema.fields, **SIZES}
    stem = key.removesuffix("s")
    for name, how, convert in (
        (stem, "", None),
        (f"{stem}s", "", None),
        *(_OTHERS[word] for word in (key, stem) if word in _OTHERS),
    ):
        if name not in fields or key in fields:
            continue
        converted = list(values())
        if convert:
            converted = [_converted(value, convert, f"{key} is taken as {name}{how}") for value in converted]
        within = name in study.config["within"]
        converted = [part for value in converted for part in _shaped(fields[name], value, within)]
        word = f"{name}={','.join(map(hydra_value, converted))}"
        says = f" ({fields[name].says})" if fields[name].says else ""
        return word, f"{key} is taken as {name}{how}{says}{': ' + word if len(word) <= SHOWN else ''}"
    return None


def _converted(value: Any, convert: Callable[[float], float], what: str) -> Any:
    if isinstance(value, list):
        return [_converted(part, convert, what) for part in value]
    try:
        return None if value is None else convert(value)
    except (TypeError, ValueError, OverflowError):
        raise SettingError(f"{what}, but {value!r} has none.") from None


def _shaped(field: Any, value: Any, within: bool) -> list:
    """Return a value as the field takes it: a word as a list of one, or a list as several values."""
    for form in (value, [value]):
        try:
            field.normalise(form)
        except SettingError:
            # The field says more about a value of this form than that it is not allowed.
            return [form]
        except (ValueError, TypeError, OverflowError):
            continue
        return [form]
    return value if isinstance(value, list) and not within else [value]
