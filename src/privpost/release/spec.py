"""Reading the specification of a release, all of which is decided before a record is read."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from privpost.pipeline.schema import Choice, Flag, Integer, Real, Schema, SettingError, Text
from privpost.release import models
from privpost.release.specification import Specification

# Draws of a posterior that a statement may hold.
LARGEST_DRAWS = 100_000
# A count up to here is exact in a float together with its noise.
LARGEST_N = 2**40
# Beyond it no event is kept from becoming exp(10), 22,000, times as likely.
LARGEST_EPSILON = 10.0

SETTINGS = Schema(
    model=Text(),
    n=Integer(at_least=1, at_most=LARGEST_N),
    epsilon=Real(above=0),
    allow_large_epsilon=Flag(),
    delta=Real(above=0, below=1),
    mechanism=Choice("laplace", "gaussian"),
    noise=Choice("secure", "simulation"),
    seed=Integer(at_least=0),
    data=Text(),
)
BLOCKS = ("columns", "prior", "posterior", "budget")
POSTERIOR = Schema(draws=Integer(at_least=1, at_most=LARGEST_DRAWS))
BUDGET = Schema(ledger=Text(), epsilon=Real(above=0), delta=Real(above=0, below=1))
REQUIRED = ("model", "columns", "n", "epsilon")


class _Loader(yaml.SafeLoader):
    """YAML without repeated keys, and with 1e-6 as the number that it looks like."""

    def construct_mapping(self, node, deep=False):
        seen = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, str | int | float | bool | None):
                raise SettingError(f"line {key_node.start_mark.line + 1}: a key must be a text")
            if key in seen:
                raise SettingError(f"line {key_node.start_mark.line + 1}: {key!r} is given twice")
            seen.add(key)
        return super().construct_mapping(node, deep)


# YAML 1.1 reads 1e-6, without a decimal point, as a text.
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"^[-+]?[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+$"), list("-+0123456789")
)


def read(path: Path) -> Specification:
    """Return the specification in a YAML file.

    Raises:
        SettingError: the file cannot be read, or a setting is unknown, missing or outside its range; the message
            names the setting, its value and what is allowed.
    """
    where = str(path)
    content = _load(path)
    for key in content:
        if key not in SETTINGS and key not in BLOCKS:
            raise SETTINGS.unknown(key, where, BLOCKS)
    for key in REQUIRED:
        if key not in content:
            raise SettingError(f"{where}: {key} is missing. Required: {', '.join(REQUIRED)}.")
    plain = {key: SETTINGS.value(key, value, where) for key, value in content.items() if key in SETTINGS}
    if plain["epsilon"] > LARGEST_EPSILON and not plain.get("allow_large_epsilon", False):
        raise SettingError(
            f"{where}: epsilon is {plain['epsilon']:g}, but must be a number in (0, {LARGEST_EPSILON:g}]: more "
            "protects hardly anything. allow_large_epsilon: true lifts the limit, and the statement then says that "
            "nothing is private."
        )
    kind = models.named(plain["model"], where)
    mechanism = plain.get("mechanism", "laplace")
    if mechanism not in kind.mechanisms:
        raise SettingError(
            f"{where}: mechanism is {mechanism!r}, but {kind.name} is released with: {', '.join(kind.mechanisms)}."
        )
    _check_delta(mechanism, plain.get("delta"), where)
    noise = plain.get("noise", "secure")
    if noise == "secure" and "seed" in plain:
        raise SettingError(
            f"{where}: seed is {plain['seed']}, but secure noise has no seed; noise: simulation has one."
        )
    columns = _block(content, "columns", where)
    settings = {name: _settings(block, kind.column, f"{where}: columns: {name}") for name, block in columns.items()}
    prior = {**kind.prior_defaults, **_settings(content.get("prior", {}), kind.prior, f"{where}: prior")}
    for key in kind.prior.fields:
        if key not in prior:
            raise SettingError(f"{where}: prior: {key} is missing. Required: {', '.join(kind.prior.fields)}.")
    specification = Specification(
        path=path,
        model=kind.name,
        columns=settings,
        n=plain["n"],
        epsilon=plain["epsilon"],
        delta=plain.get("delta"),
        mechanism=mechanism,
        noise=noise,
        seed=plain.get("seed"),
        data=path.parent / plain["data"] if "data" in plain else None,
        prior=prior,
        draws=_draws(content, kind, where),
        budget=_budget(content, where),
    )
    kind.check(specification)
    return specification


def _load(path: Path) -> dict[str, Any]:
    try:
        content = yaml.load(path.read_text(encoding="utf-8"), Loader=_Loader)
    except FileNotFoundError:
        raise SettingError(f"{path}: there is no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise SettingError(f"{path} cannot be read: {error}") from None
    except SettingError as error:
        raise SettingError(f"{path}: {error}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise SettingError(f"{path} is not valid YAML: {' '.join(str(error).split())}") from None
    if not isinstance(content, dict):
        raise SettingError(f"{path}: it must hold settings, key: value. Required: {', '.join(REQUIRED)}.")
    return content


def _check_delta(mechanism: str, delta: float | None, where: str) -> None:
    if mechanism == "gaussian" and delta is None:
        raise SettingError(f"{where}: delta is missing; Gaussian noise is (epsilon, delta)-DP with a delta in (0, 1).")
    if mechanism == "laplace" and delta is not None:
        raise SettingError(f"{where}: delta is {delta:g}, but Laplace noise is epsilon-DP; leave delta out.")


def _block(content: dict[str, Any], key: str, where: str) -> dict[str, Any]:
    block = content[key]
    if not isinstance(block, dict) or not block or not all(isinstance(name, str) and name for name in block):
        raise SettingError(f"{where}: {key} is {block!r}, but must be a map from names of columns to their settings.")
    return block


def _settings(block: Any, schema: Schema, where: str) -> dict[str, Any]:
    if not isinstance(block, dict):
        raise SettingError(f"{where} is {block!r}, but must be a map with the keys {', '.join(schema.fields)}.")
    for key in block:
        if key not in schema:
            raise schema.unknown(key, where)
    return {key: schema.value(key, value, where) for key, value in block.items()}


def _draws(content: dict[str, Any], kind: models.Kind, where: str) -> int:
    if "posterior" not in content:
        return 0
    if not kind.has_posterior:
        raise SettingError(f"{where}: posterior: {kind.name} has no posterior; leave it out.")
    posterior = _settings(content["posterior"], POSTERIOR, f"{where}: posterior")
    if "draws" not in posterior:
        raise SettingError(f"{where}: posterior: draws is missing, {POSTERIOR.fields['draws'].describe()}.")
    return posterior["draws"]


def _budget(content: dict[str, Any], where: str) -> dict[str, Any]:
    if "budget" not in content:
        return {}
    budget = _settings(content["budget"], BUDGET, f"{where}: budget")
    for key in ("ledger", "epsilon"):
        if key not in budget:
            raise SettingError(f"{where}: budget: {key} is missing. Required: ledger, epsilon.")
    return budget
