"""A ledger of releases beside the data: lines of JSON, chained by hash, and a refusal where the budget is spent.

The first line is the header, with the budget. Every further line is a change of the budget or a release; each holds the
SHA-256 of the line before it, so that no line can be changed, taken out or put in unseen.
"""

import contextlib
import datetime
import fcntl
import hashlib
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

from privpost.lab.schema import SettingError
from privpost.privacy.accounting import Cost
from privpost.privacy.ledger import BudgetExceeded, Ledger
from privpost.release.specification import Specification

FORMAT = "privpost ledger 2"
ACCOUNT = "data"


class _Content(NamedTuple):
    costs: list[Cost]
    budget: tuple[float, float]
    changes: list[dict[str, float]]
    last: str
    whole: int


def charge(spec: Specification, *, change_budget: bool = False) -> dict[str, Any] | None:
    """Charge a release to the specification's ledger, durably, before anything is drawn; None without a ledger.

    A release that fails after that stays charged. Returns what its statement shows: the entry's number, what was spent
    in all, the budget and its changes, and the entry's SHA-256.

    Args:
        spec: the specification.
        change_budget: whether a budget other than the ledger's replaces it, which the ledger and every later statement
            show.

    Raises:
        SettingError: the ledger cannot be read or written, its chain is broken, its budget is another one, or the
            release would exceed it.
    """
    if not spec.budget:
        return None
    path = spec.path.parent / spec.budget["ledger"]
    try:
        if not path.exists():
            # A release that its budget refuses leaves no ledger behind.
            _check(spec, path, [])
        with _locked(path) as handle:
            return _charge(spec, path, handle, change_budget)
    except OSError as error:
        raise SettingError(f"{spec.where}: budget: {path} cannot be used as a ledger: {error.strerror}") from None


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[IO[bytes]]:
    """The ledger, open and locked; opened again where another file took its name while the lock was waited for."""
    while True:
        with path.open("a+b", buffering=0) as handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX)
                if _is_at(path, handle):
                    yield handle
                    return
            finally:
                # A release that cannot be charged, as where there are no locks, leaves no empty ledger behind.
                if os.fstat(handle.fileno()).st_size == 0 and _is_at(path, handle):
                    path.unlink()


def _is_at(path: Path, handle: IO[bytes]) -> bool:
    """Whether a path names an open file."""
    try:
        return os.path.samestat(path.stat(), os.fstat(handle.fileno()))
    except FileNotFoundError:
        return False


def _charge(spec: Specification, path: Path, handle: IO[bytes], change_budget: bool) -> dict[str, Any]:
    handle.seek(0)
    content = _read(path, handle.read())
    if content.whole < os.fstat(handle.fileno()).st_size:
        # Noise is drawn only after its line is on the disk: half a line stands for no release.
        print(f"privpost: {path}: its last line was cut off before anything was drawn; it is removed.", file=sys.stderr)
    budget = _asked(spec)
    lines: list[dict[str, Any]] = []
    if content.last == "":
        lines.append({"format": FORMAT, "budget": {"epsilon": budget[0], "delta": budget[1]}})
    elif budget != content.budget:
        if not change_budget:
            raise SettingError(
                f"{spec.where}: budget: epsilon {budget[0]:g}, delta {budget[1]:g}, but the ledger {path} was opened "
                f"with epsilon {content.budget[0]:g}, delta {content.budget[1]:g}. --change-budget replaces it, and "
                "every later statement shows that."
            )
        lines.append({"budget": {"epsilon": budget[0], "delta": budget[1]}})
        content.changes.append({"before": len(content.costs) + 1, "epsilon": budget[0], "delta": budget[1]})
    cost = _check(spec, path, content.costs)
    time = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    number = len(content.costs) + 1
    terms = {name: getattr(spec, name) for name in ("model", "mechanism", "noise")}
    named = {
        "release": number,
        "time": time,
        "specification": spec.path.name,
        "sha256": _digest(spec.path.read_bytes()),
    }
    lines.append({**named, **terms, "epsilon": cost.epsilon, "delta": cost.delta})
    head = _append(handle, content, lines)
    spent = [*content.costs, cost]
    return {
        "release": number,
        "spent": {"epsilon": sum(one.epsilon for one in spent), "delta": sum(one.delta for one in spent)},
        "budget": {"epsilon": budget[0], "delta": budget[1]},
        "budget_changes": content.changes,
        "entry_sha256": head,
    }


def _append(handle: IO[bytes], content: _Content, lines: list[dict[str, Any]]) -> str:
    """Write lines durably, or leave the ledger as it was; return the digest of the last one."""
    last, text = content.last, b""
    for line in lines:
        encoded = json.dumps({**line, "previous": last}).encode()
        text += encoded + b"\n"
        last = _digest(encoded)
    os.ftruncate(handle.fileno(), content.whole)
    try:
        while text:
            text = text[handle.write(text) :]
        os.fsync(handle.fileno())
    except OSError:
        os.ftruncate(handle.fileno(), content.whole)
        raise
    return last


def _read(path: Path, raw: bytes) -> _Content:
    """Return what a ledger holds; a SettingError names the first line that is none of its own."""
    whole = raw.rfind(b"\n") + 1
    costs: list[Cost] = []
    changes: list[dict[str, float]] = []
    budget, last = (0.0, 0.0), ""
    for number, line in enumerate(raw[:whole].splitlines(), start=1):
        try:
            entry = json.loads(line)
            if entry["previous"] != last or (number == 1) is not (entry.get("format") == FORMAT):
                raise ValueError
            if "budget" in entry:
                budget = float(entry["budget"]["epsilon"]), float(entry["budget"]["delta"])
                if number > 1:
                    changes.append({"before": len(costs) + 1, "epsilon": budget[0], "delta": budget[1]})
            else:
                if entry["release"] != len(costs) + 1:
                    raise ValueError
                costs.append(Cost("approximate", float(entry["epsilon"]), delta=float(entry["delta"])))
        except (ValueError, KeyError, TypeError):
            raise SettingError(
                f"{path}: line {number} is no entry of a ledger, or does not follow from the line before it; nothing "
                "can be released with it."
            ) from None
        last = _digest(line)
    return _Content(costs, budget, changes, last, whole)


def _asked(spec: Specification) -> tuple[float, float]:
    return float(spec.budget["epsilon"]), float(spec.budget.get("delta", 0.0))


def _check(spec: Specification, path: Path, entries: list[Cost]) -> Cost:
    """Return what this release costs; a SettingError unless the budget covers it beside the earlier releases."""
    epsilon, delta = _asked(spec)
    budget = Cost("approximate", epsilon, delta=delta)
    # The gate itself does the sums; a lowered budget may be below what is spent already.
    ledger = Ledger()
    try:
        ledger.open(ACCOUNT, budget)
    except ValueError as error:
        raise SettingError(f"{spec.where}: {error}") from None
    cost = Cost("approximate", spec.epsilon, delta=spec.delta or 0.0)
    spent = ""
    try:
        if entries:
            total = sum(entry.epsilon for entry in entries), sum(entry.delta for entry in entries)
            spent = f"{len(entries)} earlier releases cost epsilon {total[0]:g}, delta {total[1]:g}; "
        for entry in (*entries, cost):
            ledger.charge(ACCOUNT, entry)
    except BudgetExceeded:
        raise SettingError(
            f"{spec.where}: budget: {spent}this one, epsilon {cost.epsilon:g}, delta {cost.delta:g}, would exceed "
            f"epsilon {epsilon:g}, delta {delta:g} ({path})."
        ) from None
    return cost


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
