"""A ledger of releases beside the data: one line of JSON per release, and a refusal where the budget is spent."""

from __future__ import annotations

import contextlib
import datetime
import fcntl
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from privpost.pipeline.schema import SettingError
from privpost.privacy.accounting import Cost
from privpost.privacy.ledger import BudgetExceeded, Ledger
from privpost.release.specification import Specification

ACCOUNT = "data"


@contextlib.contextmanager
def charged(spec: Specification) -> Iterator[None]:
    """Charge a release to the specification's ledger, before the noise of the body is drawn; without one, do nothing.

    A release that fails after that stays charged: whether its noise was seen cannot be known.

    Raises:
        SettingError: the ledger cannot be read or written, or the release would exceed its budget.
    """
    if not spec.budget:
        yield
        return
    path = spec.path.parent / spec.budget["ledger"]
    try:
        if not path.exists():
            # A release that its budget refuses leaves no ledger behind.
            _check(spec, path, [])
        with path.open("a+", encoding="utf-8") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX)
            _charge(spec, path, handle)
    except OSError as error:
        raise SettingError(f"{spec.where}: budget: {path} cannot be used as a ledger: {error.strerror}") from None
    yield


def _charge(spec: Specification, path: Path, handle: IO[str]) -> None:
    handle.seek(0)
    cost = _check(spec, path, [_entry(path, number, line) for number, line in enumerate(handle, start=1)])
    line = {
        "time": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "specification": spec.path.name,
        "model": spec.model,
        "mechanism": spec.mechanism,
        "noise": spec.noise,
        "epsilon": cost.epsilon,
        "delta": cost.delta,
    }
    handle.write(json.dumps(line) + "\n")
    handle.flush()
    os.fsync(handle.fileno())


def _check(spec: Specification, path: Path, entries: list[Cost]) -> Cost:
    """Return what this release costs; a SettingError unless the budget covers it beside the earlier releases."""
    delta = spec.budget.get("delta", 0.0)
    budget = Cost("approximate", spec.budget["epsilon"], delta=delta)
    ledger = Ledger()
    ledger.open(ACCOUNT, budget)
    cost = Cost("approximate", spec.epsilon, delta=spec.delta or 0.0)
    spent = ""
    try:
        for entry in entries:
            ledger.charge(ACCOUNT, entry)
        total = ledger.spent(ACCOUNT)
        spent = f"{len(entries)} earlier releases cost epsilon {total.epsilon:g}, delta {total.delta:g}; "
        ledger.charge(ACCOUNT, cost)
    except BudgetExceeded:
        raise SettingError(
            f"{spec.where}: budget: {spent}this one, epsilon {cost.epsilon:g}, delta {cost.delta:g}, would exceed "
            f"epsilon {budget.epsilon:g}, delta {delta:g} ({path})."
        ) from None
    return cost


def _entry(path: Path, number: int, line: str) -> Cost:
    try:
        entry: dict[str, Any] = json.loads(line)
        return Cost("approximate", float(entry["epsilon"]), delta=float(entry["delta"]))
    except (ValueError, KeyError, TypeError):
        raise SettingError(f"{path}: line {number} is no entry of a ledger; nothing can be released with it.") from None
