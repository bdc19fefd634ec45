"""Names that mean the same over studies: what a command line may say for a setting that a study calls otherwise."""

import math
from collections.abc import Callable, Sequence
from typing import Any

from privpost.lab.compose import hydra_value
from privpost.lab.schema import SettingError
from privpost.lab.study import SIZES, Study

# Other names of a setting, and what is then done to values; singular and plural of one name go by rule.
_OTHERS: dict[str, tuple[str, str, Callable[[float], float] | None]] = {
    "epsilon": ("log_epsilon", ", its natural logarithm", math.log),
    "log_epsilon": ("epsilon", ", the exponential of it", math.exp),
    "data": ("dataset", "", None),
}
SHOWN = 80  # letters of a setting that are told


def taken_as(study: Study, key: str, values: Callable[[], Sequence]) -> tuple[str, str] | None:
    """Return the override in the study's own words, and a line that says so; None where the key has no other name.

    Raises SettingError for a value of which there is no logarithm.
    """
    fields = {**study.schema.fields, **SIZES}
    stem = key.removesuffix("s")
    for name, how, turned in (
        (stem, "", None),
        (f"{stem}s", "", None),
        *(_OTHERS[word] for word in (key, stem) if word in _OTHERS),
    ):
        if name not in fields or key in fields:
            continue
        listed = list(values())
        if turned:
            listed = [_each(value, turned, f"{key} is taken as {name}{how}") for value in listed]
        within = name in study.config["within"]
        listed = [part for value in listed for part in _shaped(fields[name], value, within)]
        word = f"{name}={','.join(map(hydra_value, listed))}"
        says = f" ({fields[name].says})" if fields[name].says else ""
        return word, f"{key} is taken as {name}{how}{says}{': ' + word if len(word) <= SHOWN else ''}"
    return None


def _each(value: Any, turned: Callable[[float], float], what: str) -> Any:
    if isinstance(value, list):
        return [_each(part, turned, what) for part in value]
    try:
        return None if value is None else turned(value)
    except (TypeError, ValueError, OverflowError):
        raise SettingError(f"{what}, but {value!r} has none.") from None


def _shaped(field: Any, value: Any, within: bool) -> list:
    """Return a value as the field takes it: a word as a list of one, or a list as several values."""
    for one in (value, [value]):
        try:
            field.normalise(one)
        except SettingError:
            # The field says more about a value of this form than that it is not allowed.
            return [one]
        except (ValueError, TypeError, OverflowError):
            continue
        return [one]
    return value if isinstance(value, list) and not within else [value]
