"""`privpost bench`: scores methods of inference against the exact posteriors of the benchmark's tasks."""

import contextlib
import math
import os
import platform
import sys
import textwrap
import warnings
from argparse import Namespace
from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np

from privpost import __version__
from privpost.atomic import replacing
from privpost.commands.cli import positive
from privpost.distributions.noise import SimulationNoise
from privpost.evaluation.summaries import mean_and_sem
from privpost.inference_benchmark import methods, optional, outside, scoring, tasks
from privpost.lab.schema import SettingError
from privpost.progress import counted

# The scores that are printed for a method on a task, with their meanings.
SHOWN = {
    "c2st": "how often a classifier tells the draws from exact ones, 0.5 is best",
    "distance": "sliced Wasserstein distance from exact draws, in posterior sd",
    "mean_error": "error of the posterior mean, in posterior sd",
    "sd_error": "posterior sd over the exact one, less 1",
    "z2": "mean z² of the true parameters, above 1 where posteriors are too narrow",
    "ess": "how many independent draws the draws are worth",
}


def main(given: Namespace) -> int:
    """List tasks and methods, score methods, or export tasks, and return the exit status."""
    run, least, most = {"list": (_list, 0, 0), "score": (_score, 1, math.inf), "export": (_export, 1, 1)}[given.verb]
    if not least <= len(given.source) <= most:
        raise SettingError("score takes methods, files or folders, export takes one folder, and list takes nothing.")
    with warnings.catch_warnings():
        # All releases are of simulated data, so this warning does not apply.
        warnings.simplefilter("ignore", SimulationNoise)
        return run(given)


def _setting(given: Namespace) -> outside.Setting:
    chosen = outside.Setting()
    if given.epsilon is not None:
        if not 0 < given.epsilon < math.inf:
            raise SettingError(f"--epsilon is {given.epsilon}, but must be a positive number.")
        chosen = chosen._replace(epsilon=given.epsilon)
    if given.releases:
        chosen = chosen._replace(releases=positive("--releases", given.releases))
    return chosen


def _list(given: Namespace) -> int:
    setting = _setting(given)
    form = "{:<30}{:<24}{:>4}  {:<27}{:<18}{:<19}{}".format
    print(form("task", "model", "n", "mechanism", "budget", "neighbours", "reference"))
    for entry in outside.entries(given.tasks):
        task = tasks.of(entry.how, entry.name, epsilon=setting.epsilon, noise=entry.noise)
        model, mechanism = type(task.model).__name__, type(task.mechanism).__name__
        print(form(entry.label, model, task.n, mechanism, _budget(task.budget), task.neighbours, task.kind))
    for name in [*sorted(methods.names()), *optional.names()]:
        about = " ".join((sys.modules[outside.method(name).infer.__module__].__doc__ or "").split())
        print("\n" + textwrap.fill(f"{name}: {about}", 118, subsequent_indent="  "))
    print("\nScores, with standard errors:", *(f"  {name:<12}{meaning}" for name, meaning in SHOWN.items()), sep="\n")
    return 0


def _budget(cost) -> str:
    return f"ε = {cost.epsilon:g} (pure DP)" if cost.notion == "pure" else f"({cost.epsilon:g}, {cost.delta:g})-DP"


def _score(given: Namespace) -> int:
    folders = [Path(source) for source in given.source if Path(source).is_dir()]
    named = [outside.method(source) for source in given.source if not Path(source).is_dir()]
    entries, asked = outside.entries(given.tasks), _setting(given)
    rows = []
    print(
        "  ".join(
            [f"{'task':<28}{'method':<20}{'n':>5}{'ε':>7}", *(f"{name:>15}" for name in SHOWN), f"{'seconds':>8}"]
        )
    )
    for row in _rows(named, folders, entries, asked):
        print(_line(row), flush=True)
        rows.append(row)
        if given.output:
            _write(given.output, rows)
    if not rows:
        raise SettingError(f"there are no draws for {counted(len(entries), 'task')} in {', '.join(map(str, folders))}.")
    return 1 if any(row.get("status") == "failed" for row in rows) else 0


def _rows(named, folders, entries, asked: outside.Setting) -> Iterator[dict]:
    for entry in entries:
        if named:
            case = outside.case(entry, asked)
            for method in named:
                yield _row(method, entry, case, asked)
        for folder in folders:
            if drawn := outside.drawn(folder, entry):
                setting = outside.read_setting(folder, entry)
                case = outside.case(entry, setting)
                outside.check_releases(folder, entry, case)
                for method in drawn:
                    yield _row(method, entry, case, setting)


def _row(method: outside.Method, entry: outside.Entry, case: scoring.Case, setting: outside.Setting) -> dict:
    """Return a method's row on a task: the scores, or why there are none."""
    row = {"task": entry.label, "method": method.name, "n": case.task.n, **setting._asdict(), **_where(method.packages)}
    rng = np.random.default_rng(setting.seed + 1)
    outcome = scoring.run(method.infer, case.task, case.releases, rng, setting.budget)
    if outcome.inferred is None:
        return row | {"status": outcome.status, "reason": outcome.reason}
    try:
        # Squares of very large numbers overflow.
        with np.errstate(all="ignore"):
            measured = scoring.measured(outcome.inferred, case, rng)
    except Exception as error:
        return row | {"status": "failed", "reason": f"its draws cannot be scored: {scoring.in_a_line(error)}"}
    if lost := int((~np.isfinite(measured["mean_error"])).sum()):
        reason = f"draws of {lost} of {counted(setting.releases, 'release')} are no numbers"
        return row | {"status": "failed", "reason": reason}
    for name, values in measured.items():
        row[name], row[f"{name}_sem"] = map(float, mean_and_sem(values[np.isfinite(values)]))
    # The mean error is a mean of squares over releases. Take the root, with its standard error by the delta method.
    row["mean_error"] = math.sqrt(row["mean_error"])
    row["mean_error_sem"] /= max(2 * row["mean_error"], 1e-9)
    return row | ({"seconds": outcome.seconds / setting.releases} if method.timed else {})


def _line(row: dict) -> str:
    start = f"{row['task']:<28}{row['method']:<20}{row['n']:>5}{row['epsilon']:>7g}"
    if "status" in row:
        return f"{start}  {row['status']}: {row['reason']}"
    values = (f"{row[name]:>7.{0 if name == 'ess' else 3}f} ± {row[f'{name}_sem']:<5.2g}" for name in SHOWN)
    return "  ".join([start, *values, f"{row['seconds']:>8.2g}" if "seconds" in row else f"{'-':>8}"])


def _write(path: Path, rows: list[dict]) -> None:
    import pandas as pd

    with replacing(path) as temporary:
        pd.DataFrame(rows).to_csv(temporary, index=False, lineterminator="\n")


def _where(packages: Sequence[str]) -> dict[str, str]:
    """Return the versions of the packages that ran, and a description of the machine."""
    versions = [f"privpost {__version__}"]
    for name in packages:
        # A missing package was reported when the method ran.
        with contextlib.suppress(PackageNotFoundError):
            versions.append(f"{name} {version(name)}")
    return {"version": ", ".join(versions), "machine": f"{counted(os.cpu_count() or 1, 'core')}, {_processor()}"}


def _processor() -> str:
    information = Path("/proc/cpuinfo")
    lines = information.read_text().splitlines() if information.is_file() else []
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()


def _export(given: Namespace) -> int:
    setting = _setting(given)
    for entry in outside.entries(given.tasks):
        folder = Path(given.source[0], entry.label)
        outside.export(entry, outside.case(entry, setting), setting, folder)
        print(folder, flush=True)
    return 0
