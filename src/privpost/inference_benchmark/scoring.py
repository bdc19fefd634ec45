"""Runs methods on tasks with fixed releases."""

import sysconfig
import time
import traceback
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from privpost.inference_benchmark.base import Budget, Inferred, Refused, Task
from privpost.inference_benchmark.methods import Infer
from privpost.inference_benchmark.metrics import SCORES, Reference, score

PACKAGE = str(Path(__file__).parents[1])


@dataclass(frozen=True)
class Case:
    """A task with fixed releases (k, q), true parameters (k, p), and draws (k, draws, p) from the exact posteriors."""

    task: Task
    theta: np.ndarray
    releases: np.ndarray
    reference: np.ndarray

    @cached_property
    def references(self) -> list[Reference]:
        """The exact posterior of each release with its summaries."""
        return [Reference.of(draws) for draws in self.reference]


def case(task: Task, size: int, draws: int, seed: int = 0) -> Case:
    """Return a task with `size` random releases, and `draws` draws from the exact posterior of each release."""
    data, noise, exact = np.random.default_rng(seed).spawn(3)
    theta = task.prior(size, data)
    releases = task.mechanism.perturb(task.data(theta, data), noise)
    return Case(task, theta, releases, task.reference(releases, draws, exact))


class Outcome(NamedTuple):
    """A method's draws or None, the CPU seconds, a status, and the reason of a refusal or a failure in one line.

    The status is "" for draws, "refused" if the method cannot serve the task, and "failed" after an error.
    """

    inferred: Inferred | None
    seconds: float = 0.0
    status: str = ""
    reason: str = ""


def run(infer: Infer, task: Task, releases, rng, budget: Budget) -> Outcome:
    """Run a method on releases (k, q) and return its draws or the reason of a failure.

    The method fails if it raises an error other than `Refused`, or returns draws of a wrong shape or number.
    """
    try:
        _warm(infer, task, releases[:1])
        # If the method uses work that was prepared for the reference, the time of this work counts too.
        start = time.process_time() + task.saved
        inferred = infer(task, releases.copy(), rng, budget)
        spent = time.process_time() - start + task.saved
        if not isinstance(inferred, Inferred):
            raise TypeError(f"it returned a {type(inferred).__name__}; it must return Inferred(draws)")
        effective = None if inferred.effective is None else np.asarray(inferred.effective, float)
        inferred = Inferred(np.asarray(inferred.draws, float), effective)
    except Refused as refusal:
        return Outcome(None, status="refused", reason=str(refusal))
    except Exception as error:
        return Outcome(None, status="failed", reason=in_a_line(error))
    if wrong := _misshapen(inferred, len(releases), task.size, budget.total):
        return Outcome(None, status="failed", reason=wrong)
    return Outcome(inferred, spent)


def _misshapen(inferred: Inferred, releases: int, size: int, total: int) -> str:
    """Return what is wrong with the shape of draws, or "" for a right shape."""
    shape = inferred.draws.shape
    if len(shape) != 4 or (shape[0], shape[3]) != (releases, size):
        return f"it gave draws of shape {shape}; the shape must be ({releases}, chains, draws, {size})"
    if shape[1] * shape[2] != total:
        return f"it gave {shape[1] * shape[2]} draws for each release; it must give {total}"
    if inferred.effective is not None and inferred.effective.shape != (releases,):
        return f"it gave effective numbers of shape {inferred.effective.shape}; the shape must be ({releases},)"
    return ""


def in_a_line(error: Exception) -> str:
    """Return one line with an error's type, the first line of its text, and its place in a user's file."""
    libraries = (PACKAGE, sysconfig.get_path("stdlib"), sysconfig.get_path("purelib"), "<")
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(libraries)]
    place = f" ({Path(own[-1].filename).name}:{own[-1].lineno})" if own else ""
    return ": ".join([type(error).__name__, *str(error).strip().splitlines()[:1]]) + place


def measured(inferred: Inferred, case: Case, rng) -> dict[str, np.ndarray]:
    """Return each metric (k,) of a method's draws for k releases, or nan for draws that are not finite."""
    return dict(zip(SCORES, score(inferred, case.references, case.theta, rng).T, strict=True))


def _warm(infer: Infer, task: Task, releases) -> None:
    """Run a method briefly, so that its loops are compiled before the timing."""
    if (infer, task.name) not in _WARMED:
        infer(task, releases.copy(), np.random.default_rng(0), Budget(2, 4, 1))
        _WARMED.add((infer, task.name))


_WARMED: set[tuple[Infer, str]] = set()
