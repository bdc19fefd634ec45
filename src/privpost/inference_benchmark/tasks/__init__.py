"""Tasks of the benchmark, with one file per kind of release. `TASKS` of a file maps task names to a `Made`."""

from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import NamedTuple

from privpost.inference_benchmark.base import Task
from privpost.lab.schema import SettingError, suggest
from privpost.privacy.accounting.costs import Cost

# δ of tasks with Gaussian noise.
DELTA = 1e-6


class Made(NamedTuple):
    """The function that makes a task, and its default arguments.

    Attributes:
        make: function of the name, the prior, n, the method id of the mechanism, and the budget.
        prior: default parameters of the prior.
        n: default number of records.
        noises: method ids of the possible mechanisms, with the default first.
        largest: largest number of records that the task allows, or None.
    """

    make: Callable[[str, Sequence[float], int, str, Cost], Task]
    prior: tuple[float, ...]
    n: int = 100
    noises: tuple[str, ...] = ("laplace",)
    largest: int | None = None


@cache
def _found(folders: tuple[str, ...]) -> dict[str, Made]:
    files = sorted(module.name for module in iter_modules(folders))
    return {name: made for file in files for name, made in import_module(f"{__name__}.{file}").TASKS.items()}


def known() -> dict[str, Made]:
    """Return all tasks of the files in this folder, by name."""
    return _found(tuple(__path__))


def made(name: str, prior=None, n: int | None = None, epsilon: float = 1.0, noise: str | None = None) -> Task:
    """Return a task at a budget of ε, or of (ε, 10⁻⁶) for Gaussian noise. Raise SettingError for a wrong argument."""
    if name not in known():
        raise SettingError(f"task is {name!r}, but must be one of {', '.join(known())}.{suggest(name, known())}")
    return of(known()[name], name, prior, n, epsilon, noise)


def of(how: Made, name: str, prior=None, n: int | None = None, epsilon: float = 1.0, noise: str | None = None) -> Task:
    """Return the task that `how` makes. Other arguments and errors are those of `made`."""
    noise, n, prior = noise or how.noises[0], how.n if n is None else n, how.prior if prior is None else prior
    if noise not in how.noises:
        raise SettingError(f"noise is {noise!r}, but must be one of {', '.join(how.noises)} for {name}.")
    if how.largest and n > how.largest:
        raise SettingError(f"n is {n}, but must be at most {how.largest} for {name}, whose reference sums over counts")
    budget = Cost("approximate", epsilon, delta=DELTA) if "gaussian" in noise else Cost("pure", epsilon)
    try:
        task = how.make(name, prior, n, noise, budget)
    except (TypeError, ValueError) as error:
        raise SettingError(f"prior is {list(prior)} and n {n}, which {name} cannot have: {error}") from error
    task.budget = budget
    return task
