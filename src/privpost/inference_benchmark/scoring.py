"""Tasks with fixed releases, and how a method is run on them: whatever it does, the others run on."""

import time
from typing import NamedTuple

import numpy as np

from privpost.inference_benchmark.base import Budget, Inferred, Refused, Task
from privpost.inference_benchmark.methods import Infer
from privpost.inference_benchmark.metrics import SCORES, Reference, score


class Case(NamedTuple):
    """A task with fixed releases: true parameters (k, p), releases (k, q), and exact draws (k, draws, p) of each."""

    task: Task
    theta: np.ndarray
    releases: np.ndarray
    reference: np.ndarray


def case(task: Task, size: int, draws: int, seed: int = 0) -> Case:
    """Return `size` releases of data sets whose θ are drawn from the prior, the same for the same seed."""
    data, noise, exact = np.random.default_rng(seed).spawn(3)
    theta = task.prior(size, data)
    releases = task.mechanism.perturb(task.data(theta, data), noise)
    return Case(task, theta, releases, task.reference(releases, draws, exact))


class Outcome(NamedTuple):
    """What came of a method on a task.

    Attributes:
        inferred: its draws; None where there are none.
        seconds: CPU time.
        status: "" where it has draws, "refused" where it cannot serve the task, "failed" where it should have.
        reason: of a refusal or a failure, in one line.
    """

    inferred: Inferred | None
    seconds: float = 0.0
    status: str = ""
    reason: str = ""


def run(infer: Infer, task: Task, releases, rng, budget: Budget) -> Outcome:
    """Return what a method infers from releases (k, q), or why there is nothing; draws that are no numbers are left in.

    It fails where it raises another error than `Refused`, or gives draws of another shape.
    """
    try:
        _warm(infer, task, releases[:1])
        # Work that the reference has already prepared counts as the method's too.
        start = time.process_time() + task.saved
        inferred = infer(task, releases, rng, budget)
        spent = time.process_time() - start + task.saved
        shape = np.shape(inferred.draws)
    except Refused as refusal:
        return Outcome(None, status="refused", reason=str(refusal))
    except Exception as error:
        return Outcome(None, status="failed", reason=f"{type(error).__name__}: {error}".splitlines()[0])
    if len(shape) != 4 or (shape[0], shape[3]) != (len(releases), task.size) or 0 in shape:
        wanted = f"({len(releases)}, chains, draws, {task.size})"
        return Outcome(None, status="failed", reason=f"it gave draws of shape {shape}; the shape must be {wanted}")
    return Outcome(inferred, spent)


def measured(inferred: Inferred, case: Case, rng) -> dict[str, np.ndarray]:
    """Return every metric of a method's draws by release, shape (k,), nan where the draws are no numbers."""
    references = [Reference.of(draws) for draws in case.reference]
    return dict(zip(SCORES, score(inferred, references, case.theta, rng).T, strict=True))


def _warm(infer: Infer, task: Task, releases) -> None:
    """Let a method compile its loops before time is taken, once for each kind of task."""
    if (infer, task.name) not in _WARMED:
        infer(task, releases, np.random.default_rng(0), Budget(2, 4, 1))
        _WARMED.add((infer, task.name))


_WARMED: set[tuple[Infer, str]] = set()
