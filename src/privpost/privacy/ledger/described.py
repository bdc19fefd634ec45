"""Converts mechanisms, models and costs to JSON, and to keys that identify them."""

import math
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any

import numpy as np

from privpost.privacy.accounting.costs import Cost

PLAIN = {bool, int, float, str, type(None)}


def key_of(value):
    """Return a hashable key of an object. Objects with equal settings have equal keys."""
    try:
        hash(value)
    except TypeError:
        if isinstance(value, np.ndarray):
            return value.shape, value.dtype.str, value.tobytes()
        parts = value if isinstance(value, list | tuple) else (getattr(value, name) for name in _settings(type(value)))
        return type(value), *map(key_of, parts)
    return value


def json_number(value: float | None) -> float | str | None:
    """Return a number for JSON, with infinity as the string "inf"."""
    return value if value is None else "inf" if math.isinf(value) else float(value)


def cost_fields(cost: Cost) -> dict:
    """Return `notion`, `epsilon`, `order` and `delta` of a cost for JSON, with infinity as the string "inf"."""
    return {
        "notion": cost.notion,
        "epsilon": json_number(cost.epsilon),
        "order": json_number(cost.order),
        "delta": json_number(cost.delta),
    }


@cache
def _settings(kind: Any) -> tuple[str, ...]:
    return tuple(entry.name for entry in fields(kind) if entry.init)


def _named(value) -> tuple[str, str, dict[str, Any]]:
    """Return the name, the module and the settings of a dataclass."""
    if hasattr(value, "recorded"):
        return value.recorded
    kind: Any = type(value)
    return kind.__name__, kind.__module__, {name: getattr(value, name) for name in _settings(kind)}


def text(mechanism) -> str:
    """Return one line of text with a mechanism's recorded name and settings."""
    kind, _, settings = mechanism.recorded
    return f"{kind}({', '.join(f'{name}={value!r}' for name, value in settings.items())})"


def describe(value, known: dict[int, tuple[Any, dict]] | None = None) -> Any:
    """Return a description of a mechanism or model for JSON, with its class, module and settings.

    `discovery.rebuild` rebuilds the object. An array of settings, one for each repeat, is described by its first entry.

    Args:
        value: the mechanism, model or setting.
        known: descriptions of models, by the object's identity. New descriptions are added to it.
    """
    if type(value) in PLAIN:
        return "inf" if value == math.inf else value
    known = {} if known is None else known
    if is_dataclass(value) and not isinstance(value, type):
        kind, module, parts = _named(value)
        settings = {}
        for name, part in parts.items():
            if type(part) not in PLAIN and is_dataclass(part):
                if id(part) not in known:
                    known[id(part)] = part, describe(part, known)
                settings[name] = known[id(part)][1]
            else:
                settings[name] = describe(part, known)
        return {"class": kind, "module": module, "settings": settings}
    if isinstance(value, tuple | list):
        return [describe(item, known) for item in value]
    if isinstance(value, np.ndarray):
        return describe(value.ravel()[0])
    return describe(value.item()) if isinstance(value, np.generic) else value
