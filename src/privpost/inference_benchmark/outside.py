"""Methods from a user's file or an installed package, tasks from a user's file, and draws from files."""

import dataclasses
import gzip
import importlib.util
import inspect
import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from privpost import __version__
from privpost.inference_benchmark import methods, optional, scoring, tasks
from privpost.inference_benchmark.base import Budget, Inferred, Refused
from privpost.lab.schema import SettingError, suggest

# Entry-point group in which a package names its methods: `[project.entry-points."privpost.methods"]`.
GROUP = "privpost.methods"
# Folder with files of draws: draws/<method>/<task>/<release>.csv.
DRAWS = "draws"
# Number of draws from each exact posterior.
REFERENCE = 10_000


class Method(NamedTuple):
    """A method with its name.

    Attributes:
        packages: packages whose versions are stored with the scores.
        timed: whether the time of inference can be measured. It is False if draws are read from files.
    """

    name: str
    infer: methods.Infer
    packages: Sequence[str] = ()
    timed: bool = True


class Entry(NamedTuple):
    """A task with one of its mechanisms, where `label` names the pair."""

    label: str
    name: str
    noise: str
    how: tasks.Made


class Setting(NamedTuple):
    """Settings of all tasks: ε, number of releases per task, number of a method's draws per release, and seed."""

    epsilon: float = 1.0
    releases: int = 5
    draws: int = 1000
    seed: int = 0

    @property
    def budget(self) -> Budget:
        """Budget of four chains with `draws` draws in all. Each chain has as many burn-in steps as draws."""
        return Budget(4, self.draws // 4, self.draws // 4)


def method(source: str) -> Method:
    """Return the method with this name, or the method in this Python file. Raise SettingError if there is none."""
    if source in methods.names():
        return _of(source, methods.method(source))
    if source in optional.names():
        return _of(source, optional.method(source))
    installed = {point.name: point for point in entry_points(group=GROUP)}
    if source in installed:
        return _of(source, _or_told(f"entry point {source}", installed[source].load))
    if not source.endswith(".py"):
        known = [*sorted(methods.names()), *optional.names(), *installed]
        raise SettingError(
            f"{source!r} is no method, file of Python or folder; methods: {', '.join(known)}.{suggest(source, known)}"
        )
    infer = getattr(_loaded(Path(source)), "infer", None)
    if not callable(infer):
        raise SettingError(f"{source} has no function infer(task, releases, rng, budget).")
    return _of(Path(source).stem, infer)


def _of(name: str, infer: methods.Infer) -> Method:
    return Method(name, infer, getattr(infer, "__globals__", {}).get("PACKAGES", ()))


def entries(chosen: str = "") -> list[Entry]:
    """Return the tasks in a comma-separated list of labels and files. Without a list, return all tasks of this package.

    Raises:
        SettingError: there is no such task or file, or the file has no `TASKS`.
    """
    ours = {entry.label: entry for entry in _entries(tasks.known())}
    found: list[Entry] = []
    for word in filter(None, chosen.split(",")):
        if word.endswith(".py"):
            own = getattr(_loaded(Path(word)), "TASKS", None)
            if not isinstance(own, dict) or not all(isinstance(how, tasks.Made) for how in own.values()):
                raise SettingError(f"{word} has no TASKS, a dictionary from a task's name to tasks.Made(...).")
            found.extend(_entries(own))
        elif word in ours:
            found.append(ours[word])
        else:
            raise SettingError(f"task is {word!r}, but must be one of {', '.join(ours)}.{suggest(word, ours)}")
    return found or list(ours.values())


def _entries(made: dict[str, tasks.Made]) -> Iterator[Entry]:
    for name, how in made.items():
        for noise in how.noises:
            yield Entry(name if noise == how.noises[0] else f"{name}_{noise}", name, noise, how)


def _loaded(path: Path) -> ModuleType:
    if not path.is_file():
        raise SettingError(f"{path} is not there.")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    _or_told(str(path), partial(spec.loader.exec_module, module))
    return module


def _or_told(what: str, call: Callable[[], Any]) -> Any:
    """Call a user's code and return the result. Any error becomes a SettingError."""
    try:
        return call()
    except Exception as error:
        raise SettingError(f"{what}: {scoring.in_a_line(error)}") from error


def case(entry: Entry, setting: Setting) -> scoring.Case:
    """Return a task with its releases and their exact posteriors. Raise SettingError if the task's code fails."""
    return _or_told(f"task {entry.label}", partial(_case, entry, setting))


def _case(entry: Entry, setting: Setting) -> scoring.Case:
    task = tasks.of(entry.how, entry.name, epsilon=setting.epsilon, noise=entry.noise)
    return scoring.case(task, setting.releases, REFERENCE, setting.seed)


def parameters(size: int) -> list[str]:
    """Return the parameters' names, as files write them."""
    return [f"theta_{i}" for i in range(1, size + 1)]


def describe(entry: Entry, task, setting: Setting) -> dict[str, Any]:
    """Return the public facts of a task, which are its model, mechanism, guarantee and reference."""
    try:
        scale = task.scale
    except Refused:
        scale = None
    return {
        "task": entry.label,
        "says": _says(task),
        "n": task.n,
        "model": _told(task.model),
        # A mechanism that redacts or clamps has a model with bounds. Other mechanisms repeat the task's model.
        "mechanism": _told(task.mechanism, *["model"] * (task.mechanism.model == task.model)),
        "noise": task.noise,
        "scale": scale,
        "sensitivity": getattr(task.mechanism, "sensitivity", None),
        "neighbours": task.neighbours,
        "notion": task.budget.notion,
        "epsilon": task.budget.epsilon,
        "delta": task.budget.delta,
        "public": list(task.mechanism.public_inputs),
        "parameters": parameters(task.size),
        "reference": {"kind": task.kind, "draws": REFERENCE, "error_of_mean_in_sd": REFERENCE**-0.5},
        **setting._asdict(),
        "privpost": __version__,
    }


def _told(what, *without: str) -> dict[str, Any]:
    """Return the name, description and fields of a model or mechanism. Fields in `without` are left out."""
    fields = dataclasses.asdict(what) if dataclasses.is_dataclass(what) and not isinstance(what, type) else {}
    kept = {key: value for key, value in fields.items() if key not in without}
    return {"name": type(what).__name__, "says": _says(what), **kept}


def _says(what) -> str:
    return " ".join((inspect.getdoc(type(what)) or "").split("\n\n")[0].split())


def export(entry: Entry, case: scoring.Case, setting: Setting, folder: Path) -> None:
    """Write the files `task.json`, `releases.csv` and `reference.csv.gz` of a task into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    told = json.dumps(describe(entry, case.task, setting), indent=1, default=_plain, ensure_ascii=False)
    (folder / "task.json").write_text(told + "\n", encoding="utf-8")
    names = [f"y_{i}" for i in range(1, case.releases.shape[1] + 1)]
    (folder / "releases.csv").write_text(_lines(names, case.releases), encoding="ascii")
    place = np.repeat(np.arange(1, len(case.reference) + 1), case.reference.shape[1])
    rows = np.column_stack([place, case.reference.reshape(len(place), -1)])
    text = _lines(["release", *parameters(case.task.size)], rows, "%.7g")
    # The time of writing is left out, so that the same task gives the same bytes.
    (folder / "reference.csv.gz").write_bytes(gzip.compress(text.encode("ascii"), mtime=0))


def _plain(value):
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else str(value)


def _lines(names: Sequence[str], rows, form: str = "%.17g") -> str:
    return "".join(f"{line}\n" for line in [",".join(names), *(",".join(form % x for x in row) for row in rows)])


def read_setting(folder: Path, entry: Entry) -> Setting:
    """Return the setting with which a task was exported. Raise SettingError if `task.json` is missing or damaged."""
    path = folder / entry.label / "task.json"
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        return Setting(**{key: type(value)(told[key]) for key, value in Setting()._asdict().items()})
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SettingError(f"{path} is not as `privpost bench export` writes it: {scoring.in_a_line(error)}") from error


def check_releases(folder: Path, entry: Entry, case: scoring.Case) -> None:
    """Raise SettingError unless the exported releases of a task equal the releases of a case."""
    path = folder / entry.label / "releases.csv"
    try:
        _, values = _read(path)
    except (OSError, ValueError) as error:
        raise SettingError(f"{path} cannot be read: {scoring.in_a_line(error)}") from error
    if values.shape != case.releases.shape or not np.allclose(values, case.releases, rtol=1e-9, atol=1e-9):
        raise SettingError(f"{path} has other releases than this version of privpost: export the task again.")


def drawn(folder: Path, entry: Entry) -> list[Method]:
    """Return the methods that have files of draws for a task in a folder."""
    places = sorted(path / entry.label for path in (folder / DRAWS).glob("*"))
    return [Method(place.parent.name, partial(_from_files, place), timed=False) for place in places if place.is_dir()]


def _from_files(place: Path, task, releases, rng, budget) -> Inferred:
    """Return the draws in the files <release>.csv of a folder, one file for each release."""
    draws = [_chains(place / f"{i}.csv", parameters(task.size)) for i in range(1, len(releases) + 1)]
    if len({part.shape for part in draws}) > 1:
        raise ValueError("its files have different numbers of chains or draws")
    return Inferred(np.stack(draws))


def _chains(path: Path, wanted: list[str]) -> np.ndarray:
    if not path.is_file():
        raise ValueError(f"{path.name} is not there")
    names, rows = _read(path)
    if names not in (wanted, ["chain", *wanted]):
        raise ValueError(f"{path.name} has columns {', '.join(names)}; they must be {', '.join(wanted)}")
    if names == wanted:
        return rows[None]
    parts = [rows[rows[:, 0] == chain, 1:] for chain in np.unique(rows[:, 0])]
    if len({len(part) for part in parts}) > 1:
        raise ValueError(f"{path.name} has chains of different lengths")
    return np.stack(parts)


def _read(path: Path) -> tuple[list[str], np.ndarray]:
    """Return the names of the columns and the rows of a CSV file."""
    head, *lines = path.read_text(encoding="utf-8").splitlines() or [""]
    names = [name.strip().strip('"') for name in head.split(",")]
    # Empty cells and NA become nan.
    return names, np.array([[_number(word) for word in line.split(",")] for line in lines if line], float)


def _number(word: str) -> float:
    return np.nan if word.strip().strip('"') in ("", "NA") else float(word)
