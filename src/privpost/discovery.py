"""Finds every mechanism and every model of the package, and the mechanisms that can serve a model."""

import contextlib
import inspect
import itertools
import math
import os
import traceback
from collections.abc import Iterable, Iterator
from dataclasses import MISSING, fields
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple

from privpost import lookup
from privpost.lab.schema import SettingError
from privpost.mechanisms.base import Mechanism
from privpost.models.base import ConjugateModel
from privpost.privacy.accounting.costs import Cost
from privpost.privacy.checks import check_budget


def _classes(package: str, base: type) -> Iterator[type]:
    """Yield the public concrete subclasses of `base` in the modules of a package, in the order of file and name."""
    for place in lookup.modules(*import_module(f"privpost.{package}").__path__):
        module = _imported(f"privpost.{package}.{place}")
        for name, member in inspect.getmembers(module, inspect.isclass):
            public = member.__module__ == module.__name__ and not name.startswith("_")
            if public and issubclass(member, base) and not inspect.isabstract(member):
                yield member


def _imported(name: str) -> ModuleType:
    """Import and return a module. Raises a SettingError of one line, naming file and line, if the import fails."""
    try:
        return import_module(name)
    except Exception as error:
        if isinstance(error, SyntaxError):
            where, line, reason = error.filename, error.lineno, f"{type(error).__name__}: {error.msg}"
        else:
            # Name the deepest line that is in the package itself.
            frames = [f for f in traceback.extract_tb(error.__traceback__) if f"{os.sep}privpost{os.sep}" in f.filename]
            where, line, reason = frames[-1].filename, frames[-1].lineno, f"{type(error).__name__}: {error}"
        raise SettingError(
            f"{where} line {line}: {reason}; until it is mended no mechanism or model is known"
        ) from error


class Kind(NamedTuple):
    """A class of mechanisms with one of its weightings. Each kind has a different name in tables and ledgers.

    Attributes:
        mechanism: the class.
        settings: the weighting; empty if the class has only one.
        examples: the class's examples with these settings.
    """

    mechanism: type[Mechanism]
    settings: dict[str, str]
    examples: tuple[Mechanism, ...]

    @property
    def name(self) -> str:
        """The name of the kind in tables and ledgers."""
        return self.examples[0].name

    @property
    def method(self) -> str:
        """The id of the method, such as `laplace`, in tables and figures."""
        return self.examples[0].method

    @property
    def calibrated(self) -> str | None:
        """The name of the field that `calibrate` determines, or None if there is no field to determine."""
        return self.examples[0].calibrated

    def calibrate(self, model, n: int, budget: Cost, **options) -> Mechanism:
        """Return a mechanism of this kind for the model and n records, calibrated to the budget."""
        return self.mechanism.calibrate(model, n, budget, **{**options, **self.settings})


def kinds() -> list[Kind]:
    """Return every mechanism with each of its weightings, ordered by file, class and weighting.

    Raises a ValueError if a mechanism has no example of one of its weightings.
    """
    rows = []
    for member in _classes("mechanisms", Mechanism):
        all_examples = member.examples()
        for settings in [{"weighting": value} for value in member.weightings] if len(member.weightings) > 1 else [{}]:
            examples = tuple(e for e in all_examples if settings.items() <= e.options.items())
            if not examples:
                raise ValueError(f"{member.__name__} has no example{''.join(f' of {v}' for v in settings.values())}")
            rows.append(Kind(member, settings, examples))
    return rows


def mechanisms() -> dict[str, tuple[Kind, ...]]:
    """Return, by method id, the kinds that have this id, in the order of `kinds`."""
    by_method: dict[str, tuple[Kind, ...]] = {}
    for kind in kinds():
        by_method[kind.method] = (*by_method.get(kind.method, ()), kind)
    return by_method


def curators(found: Iterable[Kind]) -> list[Kind]:
    """Return the kinds that a trusted curator of all records runs: all kinds except local mechanisms."""
    return [kind for kind in found if not kind.mechanism.local]


@cache
def _by_name() -> dict[str, Kind]:
    return {kind.name: kind for kind in kinds()}


def rebuild(described) -> Any:
    """Return the mechanism or model of a description that `described.describe` made."""
    if isinstance(described, dict):
        settings = {name: rebuild(value) for name, value in described["settings"].items()}
        if kind := _by_name().get(described["class"]):
            return kind.mechanism(**kind.settings, **settings)
        return getattr(import_module(described["module"]), described["class"])(**settings)
    if isinstance(described, list):
        return tuple(map(rebuild, described))
    return math.inf if described == "inf" else described


def models() -> dict[str, type[ConjugateModel]]:
    """Return, by file name, every conjugate model. Raises a ValueError if a file defines two models."""
    by_module: dict[str, type[ConjugateModel]] = {}
    for member in _classes("models", ConjugateModel):
        name = member.__module__.rpartition(".")[2]
        if name in by_module:
            raise ValueError(f"{member.__module__} defines more than one conjugate model")
        by_module[name] = member
    return by_module


def serving(model, n: int, budget: Cost, **settings) -> dict[str, Mechanism]:
    """Return, by method id, every mechanism that can serve the model within a budget, calibrated to the budget.

    A mechanism serves if one of its `examples` has a model of the same class, `settings` has each required option of
    `calibrate`, and `calibrate` accepts the budget. Local mechanisms, which trust no curator, are left out. If two
    classes share a method id, the first class that serves the model is taken.

    Args:
        model: the model that the release serves.
        n: public number of records.
        budget: what one release may cost.
        settings: values of options, such as a0. A mechanism ignores options that it does not have.

    Raises:
        ValueError: `check_budget` refuses the budget.

    >>> serving(BetaBernoulli(1, 1), 100, Cost("pure", 1.0))["laplace"].scale
    1.0
    """
    check_budget(budget)
    calibrated: dict[str, Mechanism] = {}
    for method, classes in sorted(mechanisms().items()):
        for candidate in curators(classes):
            with contextlib.suppress(ValueError):
                calibrated[method] = _calibrated(candidate, model, n, budget, settings)
                break
    return calibrated


def left_out(model, n: int, budgets: Iterable[Cost], **settings) -> dict[str, str]:
    """Return, by name, why kinds cannot serve the model within any of the budgets: the reason at the last budget."""
    reasons: dict[str, str] = {}
    for candidate in curators(itertools.chain.from_iterable(mechanisms().values())):
        reason = ""
        for budget in budgets:
            try:
                _calibrated(candidate, model, n, budget, settings)
                break
            except ValueError as error:
                reason = str(error)
        else:
            reasons[candidate.name] = reason
    return reasons


def _calibrated(candidate: Kind, model, n: int, budget: Cost, settings: dict) -> Mechanism:
    """Return a mechanism of a kind, calibrated to the budget, or raise ValueError with the reason."""
    about = sorted({type(example.model).__name__ for example in candidate.examples})
    if type(model).__name__ not in about:
        raise ValueError(f"serves {', '.join(about)}")
    options = options_of(candidate)
    if lacking := [name for name, default in options.items() if default is MISSING and name not in settings]:
        raise ValueError(f"needs the setting {', '.join(lacking)}")
    return candidate.calibrate(model, n, budget, **{name: settings[name] for name in options if name in settings})


def options_of(candidate: Kind) -> dict[str, object]:
    """Return the options of a mechanism's `calibrate` with their defaults. A required option has the default MISSING.

    Options are the keyword-only parameters of `calibrate`. If `calibrate` takes any keyword, keyword-only fields of the
    class are options too. Settings of the kind are no options.
    """
    parameters = inspect.signature(candidate.mechanism.calibrate).parameters.values()
    options = {
        entry.name: MISSING if entry.default is entry.empty else entry.default
        for entry in parameters
        if entry.kind is entry.KEYWORD_ONLY
    }
    if any(entry.kind is entry.VAR_KEYWORD for entry in parameters):
        options |= {entry.name: entry.default for entry in fields(candidate.mechanism) if entry.kw_only}
    return {name: default for name, default in options.items() if name not in candidate.settings}
