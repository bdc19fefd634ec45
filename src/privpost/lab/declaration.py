"""What a study's YAML may hold beside its settings, checked when it is read."""

import copy
import re
from collections.abc import Mapping
from typing import Any

from privpost import configurations
from privpost.lab.project import NAME
from privpost.lab.schema import Integer, SettingError
from privpost.lab.study import FORMATS, Study

SIZES = {
    "trials": Integer(at_least=1, optional=True),
    "block": Integer(at_least=1, optional=True),
    "rev": Integer(at_least=1),
    "seed": Integer(at_least=0, at_most=None),
}


def as_study(name: str, config: dict) -> Study:
    """Return a study from its composed configuration.

    Raises SettingError for a key that is missing, malformed or in two places, and for a target that is no study module.
    """
    config = copy.deepcopy(config)
    where = f"{configurations.folder()}/study/{name}.yaml"
    for key in ("title", "claim", "rev", "scale", "root", "figure_root"):
        if not config.get(key):
            raise SettingError(f"{where}: the key {key!r} is missing.")
    for key in ("sweep", "within", "smoke"):
        config[key] = config.get(key) or {}
    config["common"] = tuple(_shaped(config, "common", where) or ())
    for key in SHAPES:
        _shaped(config, key, where)
    for key in {"sweep", "within", "common"} & set(config["smoke"]):
        _shaped(config["smoke"], key, f"{where}: smoke")
    for key in SIZES:
        config.setdefault(key, None)
    for key in set(config["within"]) & set(config):
        raise SettingError(f"{where}: {key!r} is both a setting and a within axis; one of the two has to go.")
    study = Study(name, config)
    if config.get("dataset") is None and "dataset" not in study.schema:
        config.pop("dataset", None)
    return study


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def _is_map(value: Any) -> bool:
    return isinstance(value, Mapping) and all(map(_is_text, value))


def _is_texts(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(map(_is_text, value))


def _is_names(value: Any) -> bool:
    return _is_texts(value) and all(map(NAME.fullmatch, value))


def _is_path(value: Any) -> bool:
    return _is_text(value) and re.fullmatch(r"[\w./ +,=@~-]+", value) is not None


def _is_formats(value: Any) -> bool:
    return value is None or (_is_texts(value) and set(value) <= set(FORMATS))


# The keys of a study's file that hold no setting: what each must look like, in words and as a test.
# Names become parts of paths and rules, and paths words of shells and Snakemake's patterns.
_NAMES = "a list of names of letters, digits, _, - and ."
_PATH = "a path of letters, digits, blanks and . _ - + , = @ ~ /"
_FIGURES = f"{_NAMES}, or a map from name to formats ({', '.join(FORMATS)})"
SHAPES = {
    **{key: ("text", _is_text) for key in ("title", "paper", "claim", "scale")},
    **{key: (_PATH, _is_path) for key in ("root", "figure_root")},
    "tables": (_NAMES, _is_names),
    "figures": (
        _FIGURES,
        lambda value: (
            _is_names(value) or (_is_map(value) and _is_names([*value]) and all(map(_is_formats, value.values())))
        ),
    ),
    "sweep": (
        "a map from key to values, or a list of such maps",
        lambda value: _is_map(value) or (isinstance(value, list) and all(map(_is_map, value))),
    ),
    "within": ("a map from key to values", _is_map),
    "common": (_NAMES, _is_texts),
    "reads": (f"{_NAMES} of studies, or all", lambda value: value == "all" or _is_texts(value)),
    "smoke": ("a map from key to value", _is_map),
}


def _shaped(config: Mapping, key: str, where: str) -> Any:
    """Return the value of a key that holds no setting, when it looks as it must or is absent."""
    value = config.get(key)
    allowed, fits = SHAPES[key]
    if value is not None and not fits(value):
        raise SettingError(f"{where}: {key} is {value!r}, but must be {allowed}.")
    return value
