"""A ledger of releases beside the data: lines of JSON, chained by hash, and a refusal where the budget is spent.

The first line is the header, with the budget; every other one is a release. Each line ends with the SHA-256 of what it
holds before that, and holds the one of the line before it: a line counts if its digest is right, newline or not, and
none can be changed, taken out or put in unseen.
"""

import contextlib
import datetime
import errno
import fcntl
import hashlib
import json
import os
import secrets
import signal
import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

from privpost.lab.schema import SettingError
from privpost.privacy.accounting import Cost
from privpost.privacy.ledger import BudgetExceeded, Ledger
from privpost.release.specification import Specification

FORMAT = "privpost ledger 3"
ACCOUNT = "data"
# Bytes of a ledger, some hundred thousand releases.
LARGEST_LEDGER = 2**26
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Content(NamedTuple):
    """What a ledger holds: the budget that it was opened with, its releases' lines, and the last line's digest."""

    budget: Cost | None
    entries: list[dict[str, Any]]
    last: str

    def spent(self, number: int | None = None) -> dict[str, float]:
        """ε and δ of the first releases, or of all."""
        entries = self.entries[:number]
        return {key: sum(float(entry[key]) for entry in entries) for key in ("epsilon", "delta")}


@contextlib.contextmanager
def charged(spec: Specification) -> Iterator[dict[str, Any] | None]:
    """Charge a release, durably, and keep signals waiting until what it paid for is stored; yields None unless it has
    a ledger, else what the statement shows: the entry's number, what was spent in all, the budget and the digest.

    A release that fails after that stays charged.

    Raises:
        SettingError: the ledger cannot be read or written, or is none, its chain is broken, its budget is another one,
            or the release would exceed it.
    """
    waiting: list[int] = []
    kept: dict[int, Any] = {}

    def hold():
        if not kept and threading.current_thread() is threading.main_thread():
            kept.update({number: signal.signal(number, lambda got, _: waiting.append(got)) for number in _SIGNALS})

    try:
        if spec.budget:
            yield _charged(spec, hold)
        else:
            hold()
            yield None
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)
        for number in waiting:
            os.kill(os.getpid(), number)


def _charged(spec: Specification, hold) -> dict[str, Any]:
    path = spec.ledger
    try:
        while True:
            with _locked(path) as handle:
                hold()
                # Another file may have taken the name meanwhile: it needs the entry too.
                if (entry := _charge(spec, path, handle)) is not None:
                    return entry
    except OSError as error:
        raise SettingError(f"{spec.path}: budget: {path} cannot be used as a ledger: {error.strerror}") from None


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[IO[bytes]]:
    """The ledger, open and locked; opened again where another file took its name while the lock was waited for."""
    while True:
        handle = path.open("a+b", buffering=0)
        try:
            if not stat.S_ISREG(os.fstat(handle.fileno()).st_mode):
                raise OSError(errno.EINVAL, "it is no regular file")
            fcntl.flock(handle, fcntl.LOCK_EX)
            if not _is_at(path, handle):
                continue
            try:
                yield handle
                return
            finally:
                # A release that cannot be charged leaves no empty ledger behind; whoever waits for it opens another.
                with contextlib.suppress(OSError):
                    if os.fstat(handle.fileno()).st_size == 0 and _is_at(path, handle):
                        path.unlink()
        finally:
            # What was charged is on the disk before.
            with contextlib.suppress(OSError):
                handle.close()


def _is_at(path: Path, handle: IO[bytes]) -> bool:
    """Whether a path names an open file."""
    try:
        return os.path.samestat(path.stat(), os.fstat(handle.fileno()))
    except FileNotFoundError:
        return False


def _charge(spec: Specification, path: Path, handle: IO[bytes]) -> dict[str, Any] | None:
    """The new entry as the statement shows it; None if the file has lost its name meanwhile."""
    raw = _raw(path, handle)
    content = parsed(path, raw)
    budget, cost = _check(spec, content)
    terms = {"epsilon": budget.epsilon, "delta": budget.delta}
    entry = {
        "release": len(content.entries) + 1,
        "time": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "specification": spec.path.name,
        "sha256": spec.sha256,
        # Two entries of one number and one second have different digests.
        "nonce": secrets.token_hex(8),
        **{name: getattr(spec, name) for name in ("model", "mechanism", "noise")},
        "epsilon": cost.epsilon,
        "delta": cost.delta,
    }
    # A last line without its newline is whole all the same.
    text, last = b"\n" * (raw[-1:] not in (b"", b"\n")), content.last
    for line in (entry,) if raw else ({"format": FORMAT, "budget": terms}, entry):
        body = json.dumps({**line, "previous": last}).encode()
        last = _digest(body)
        text += body[:-1] + _seal(last) + b"\n"
    if not _append(path, handle, len(raw), text):
        return None
    spent = content._replace(entries=[*content.entries, entry]).spent()
    return {"release": entry["release"], "spent": spent, "budget": terms, "entry_sha256": last}


def _append(path: Path, handle: IO[bytes], size: int, text: bytes) -> bool:
    """Write lines, durably, or leave the ledger as it was; returns whether the file has its name still."""
    try:
        while text:
            text = text[handle.write(text) :]
        os.fsync(handle.fileno())
        sync_folder(path)
        return _is_at(path, handle)
    except OSError:
        os.ftruncate(handle.fileno(), size)
        raise


def sync_folder(path: Path) -> None:
    """Make a file's name durable, where the file system can."""
    folder = os.open(os.path.dirname(os.path.realpath(path)), os.O_RDONLY)
    try:
        os.fsync(folder)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(folder)


def _raw(path: Path, handle: IO[bytes]) -> bytes:
    if os.fstat(handle.fileno()).st_size > LARGEST_LEDGER:
        raise SettingError(f"{path}: it is larger than a ledger of {LARGEST_LEDGER} bytes.")
    handle.seek(0)
    return handle.read()


def read(path: Path) -> Content:
    """Return what a ledger holds; raises SettingError if it cannot be read or is none."""
    try:
        if not path.is_file():
            raise SettingError(f"{path}: there is no such file")
        with path.open("rb", buffering=0) as handle:
            return parsed(path, _raw(path, handle))
    except OSError as error:
        raise SettingError(f"{path} cannot be read: {error.strerror}") from None


def parsed(path: Path, raw: bytes) -> Content:
    """Return what a ledger's bytes hold; a SettingError names the first line that is none of its own."""
    content = Content(None, [], "")
    lines = raw.removesuffix(b"\n").split(b"\n") if raw else []
    for number, line in enumerate(lines):
        try:
            body, digest = line[: -len(_seal(""))] + b"}", line[-66:-2].decode("ascii")
            if line != body[:-1] + _seal(digest) or _digest(body) != digest:
                raise ValueError
            entry = json.loads(body)
            if entry["previous"] != content.last or (number == 0) is not (entry.get("format") == FORMAT):
                raise ValueError
            if number == 0:
                content = Content(_cost(entry["budget"]), [], digest)
                continue
            _cost(entry)
            if entry["release"] != number:
                raise ValueError
            content.entries.append({**entry, "digest": digest})
            content = content._replace(last=digest)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise SettingError(_told(path, number + 1, raw)) from None
    return content


def _told(path: Path, number: int, raw: bytes) -> str:
    if number == 1:
        return f"{path} is no ledger of this version (line 1 is no entry of a ledger); it is left as it is."
    if number > raw.count(b"\n"):
        return (
            f"{path}: line {number}, the last one, is cut off. If a statement of release {number - 1} exists, put "
            "back what is missing; if none can exist, remove the line. Until then nothing can be released with it."
        )
    return (
        f"{path}: line {number} is no entry of a ledger, or does not follow from the line before it; nothing can be "
        "released with it."
    )


def _cost(entry: dict[str, Any]) -> Cost:
    return Cost("approximate", float(entry["epsilon"]), delta=float(entry["delta"]))


def _check(spec: Specification, content: Content) -> tuple[Cost, Cost]:
    """Return the budget and what this release costs; a SettingError unless the one is the ledger's and covers all."""
    budget, cost = _cost({"delta": 0.0, **spec.budget}), _cost({"epsilon": spec.epsilon, "delta": spec.delta or 0.0})
    if content.budget not in (None, budget):
        raise SettingError(
            f"{spec.path}: budget: epsilon {budget.epsilon:g}, delta {budget.delta:g}, but the ledger {spec.ledger} "
            f"was opened with epsilon {content.budget.epsilon:g}, delta {content.budget.delta:g}. Another budget needs "
            "another ledger."
        )
    # The gate itself does the sums.
    ledger = Ledger()
    ledger.open(ACCOUNT, budget)
    try:
        for entry in (*map(_cost, content.entries), cost):
            ledger.charge(ACCOUNT, entry)
    except BudgetExceeded:
        total = "{epsilon:g}, delta {delta:g}".format(**content.spent())
        earlier = f"{len(content.entries)} earlier releases cost epsilon {total}; " * bool(content.entries)
        raise SettingError(
            f"{spec.path}: budget: {earlier}this one, epsilon {cost.epsilon:g}, delta {cost.delta:g}, would exceed "
            f"epsilon {budget.epsilon:g}, delta {budget.delta:g} ({spec.ledger})."
        ) from None
    return budget, cost


def _seal(digest: str) -> bytes:
    return b', "digest": "%s"}' % (digest or "0" * 64).encode()


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
