"""A ledger in a file: lines of JSON that are chained by hashes and written durably under a lock.

The first line is the header, which has the budget. Every other line is a release. Each line contains the digest of the
previous line and ends with the SHA-256 of its own text. Changing, removing or inserting a line breaks this chain.
"""

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

from privpost.atomic import sync_folder
from privpost.lab.schema import SettingError
from privpost.privacy.accounting import composition, losses
from privpost.privacy.accounting.costs import Cost
from privpost.privacy.ledger.gate import BudgetExceeded, Ledger

FORMAT = "privpost ledger 3"
# Largest size of a ledger in bytes, enough for some hundred thousand releases.
LARGEST_LEDGER = 2**26


class Content(NamedTuple):
    """Content of a ledger: its budget, the lines of its releases, and the digest of the last line."""

    budget: Cost | None
    entries: list[dict[str, Any]]
    last: str

    def spent(self, number: int | None = None) -> dict[str, float]:
        """Return the summed ε and the summed δ of the first `number` releases. By default, all releases are summed."""
        entries = self.entries[:number]
        return {key: sum(float(entry[key]) for entry in entries) for key in ("epsilon", "delta")}

    def together(
        self, delta: float, number: int | None = None, tell: Callable[[int, int], None] | None = None
    ) -> float:
        """Return the ε at δ of the first `number` releases together, or inf if no ε is known.

        By default, all releases count. The result is valid only if no release influenced the choice of a later release.

        Raises:
            SettingError: a line that was written by hand states numbers that no release can have.
        """
        spent = self.spent(number)
        try:
            composed = composition.together([*map(losses.read, self.entries[:number])], delta, tell)
        # A line that was written by hand may state numbers that no release can have.
        except (ValueError, ArithmeticError, TypeError, MemoryError) as error:
            reason = (str(error).splitlines() or [type(error).__name__])[0][:200]
            raise SettingError(f"the laws of {self._worst(delta)} have no cost together: {reason}") from None
        return min(composed, spent["epsilon"]) if spent["delta"] <= delta else composed

    def _worst(self, delta: float) -> str:
        """Return a text that names the first line whose law cannot be composed, even alone."""
        for number, entry in enumerate(self.entries, start=1):
            try:
                composition.together([losses.read(entry)], delta)
            except (ValueError, ArithmeticError, TypeError, MemoryError):
                return f"release {number} (line {number + 1})"
        return "its lines"

    def leaves(self, budget: Cost, cost: Cost) -> bool:
        """Whether a budget covers all releases and one more cost, by simple sums of ε and δ."""
        gate = Ledger()
        gate.open("data", budget)
        try:
            for entry in (*map(cost_of, self.entries), cost):
                gate.charge("data", entry)
        except BudgetExceeded:
            return False
        return True


class Locked(NamedTuple):
    """A ledger file that is locked against other processes, and its content."""

    path: Path
    handle: IO[bytes]
    raw: bytes
    content: Content

    def append(self, lines: Sequence[dict[str, Any]]) -> str | None:
        """Append lines and sync them to disk. After a failure, the ledger has its earlier content.

        Returns:
            The digest of the last line, or None if the path no longer names this file.

        Raises:
            OSError: the lines cannot be written.
        """
        # The last line may be valid without a newline. Then a newline is added first.
        text, last = b"\n" * (self.raw[-1:] not in (b"", b"\n")), self.content.last
        for line in lines:
            body = json.dumps({**line, "previous": last}).encode()
            last = _digest(body)
            text += body[:-1] + _seal(last) + b"\n"
        try:
            while text:
                text = text[self.handle.write(text) :]
            os.fsync(self.handle.fileno())
            sync_folder(self.path)
            return last if _is_at(self.path, self.handle) else None
        except OSError:
            os.ftruncate(self.handle.fileno(), len(self.raw))
            raise


@contextlib.contextmanager
def locked(path: Path) -> Iterator[Locked]:
    """Open and lock a ledger file, which is created if missing.

    Raises:
        OSError: the file cannot be opened or locked.
        SettingError: the file is not a ledger, or its chain of hashes is broken.
    """
    while True:
        handle = path.open("a+b", buffering=0)
        try:
            if not stat.S_ISREG(os.fstat(handle.fileno()).st_mode):
                raise OSError(errno.EINVAL, "it is no regular file")
            fcntl.flock(handle, fcntl.LOCK_EX)
            if not _is_at(path, handle):
                continue
            try:
                raw = _read(path, handle)
                yield Locked(path, handle, raw, parsed(path, raw))
                return
            finally:
                # A refused release leaves no empty file. A process that waits for the file's lock opens a new file.
                with contextlib.suppress(OSError):
                    if os.fstat(handle.fileno()).st_size == 0 and _is_at(path, handle):
                        path.unlink()
        finally:
            # An error is ignored, as all charges are on the disk already.
            with contextlib.suppress(OSError):
                handle.close()


def _is_at(path: Path, handle: IO[bytes]) -> bool:
    """Whether a path still names this open file."""
    try:
        return os.path.samestat(path.stat(), os.fstat(handle.fileno()))
    except FileNotFoundError:
        return False


def _read(path: Path, handle: IO[bytes]) -> bytes:
    if os.fstat(handle.fileno()).st_size > LARGEST_LEDGER:
        raise SettingError(f"{path}: it is larger than a ledger of {LARGEST_LEDGER} bytes.")
    handle.seek(0)
    return handle.read()


def read(path: Path) -> Content:
    """Return the content of a ledger. Raises a SettingError if the file cannot be read or is not a ledger."""
    try:
        if not path.is_file():
            raise SettingError(f"{path}: there is no such file")
        with path.open("rb", buffering=0) as handle:
            return parsed(path, _read(path, handle))
    except OSError as error:
        raise SettingError(f"{path} cannot be read: {error.strerror}") from None


def parsed(path: Path, raw: bytes) -> Content:
    """Return the content of a ledger, given its bytes. Raises a SettingError that names the first invalid line."""
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
                content = Content(cost_of(entry["budget"]), [], digest)
                continue
            cost_of(entry)
            losses.read(entry)
            if entry["release"] != number:
                raise ValueError
            content.entries.append({**entry, "digest": digest})
            content = content._replace(last=digest)
        except (ValueError, ArithmeticError, LookupError, TypeError, AttributeError, RecursionError):
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


def cost_of(entry: dict[str, Any]) -> Cost:
    """Return the (ε, δ) cost that a line or the header's budget states."""
    return Cost("approximate", float(entry["epsilon"]), delta=float(entry["delta"]))


def _seal(digest: str) -> bytes:
    return b', "digest": "%s"}' % (digest or "0" * 64).encode()


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
