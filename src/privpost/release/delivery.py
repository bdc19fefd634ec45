"""Delivers a statement and posterior draws to files or standard output. Writing is tried before the charge."""

import contextlib
import fcntl
import hashlib
import itertools
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from privpost.atomic import claim, replacing, sync_folder
from privpost.evaluation import draw_files
from privpost.lab.schema import SettingError
from privpost.release.models.base import Posterior
from privpost.release.specification import Specification

# The trial before the charge writes this many bytes more than the rehearsed statement has.
_ROOM = 2**16


class Undelivered(Exception):
    """Raised if a statement could not be handed over. The message says where the statement is."""


def check_draws(path: Path, spec: Specification, output: Path | None) -> None:
    """Raise SettingError unless posterior draws can be written to a new file."""
    if not spec.draws:
        raise SettingError(f"--draws: {spec.path} asks for no posterior draws (posterior: {{draws: 4000}}).")
    for other, what in ((output, "--output"), (spec.ledger, "the ledger")):
        if other is not None and os.path.realpath(path) == os.path.realpath(other):
            raise SettingError(f"--draws: {path} is {what} too; name another file.")
    try:
        draw_files.check(path)
    except ValueError as error:
        raise SettingError(f"--draws: {error}") from None


def write_draws(path: Path, posterior: Posterior, content: dict[str, Any]) -> dict[str, Any]:
    """Write posterior draws to a new file, and return what the statement says of the file. Raise OSError on failure."""
    privacy = content["privacy"]
    attributes = {
        "method": posterior.method,
        "noise_aware": str(posterior.noise_aware).lower(),
        "private": str(privacy["private"]).lower(),
        **{key: privacy[key] for key in ("notion", "epsilon", "delta")},
    }
    return draw_files.write(path, posterior.draws, posterior.chains, content["release"], attributes)


class Delivery:
    """The place of a statement: a new file, or standard output.

    Before the release is charged, a hidden file beside the output or the ledger is locked and filled with blanks. A
    blank hidden file of an earlier release is reused. If a hidden file holds a paid release, a message names the file.

    Args:
        output: a new file, or None for standard output.

    Raises:
        SettingError: the file exists, or its folder cannot be used.
    """

    def __init__(self, output: Path | None, spec: Specification):
        self._output = output
        self._place = output or spec.ledger
        self._hidden: Path | None = None
        self._handle: int | None = None
        # Path of the statement on the disk, once the release is charged.
        self._stored: Path | None = None
        with self._named_refusal():
            self._check()

    @contextlib.contextmanager
    def _named_refusal(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            # This happens, for instance, if the name is too long.
            raise SettingError(f"--output: {self._place} cannot be written: {error.strerror}") from None

    def _check(self) -> None:
        if self._output is not None:
            with contextlib.suppress(FileNotFoundError):
                os.lstat(self._output)
                raise SettingError(
                    f"--output: {self._output} exists. Another release costs its epsilon again; name a new file if "
                    "that is meant."
                )
        if self._place is not None and not self._place.parent.is_dir():
            raise SettingError(f"--output: there is no folder {self._place.parent}")

    def __enter__(self) -> "Delivery":
        return self

    def __exit__(self, *exception) -> None:
        if self._hidden is not None and self._stored is None:
            with contextlib.suppress(OSError):
                self._hidden.unlink()
        if self._handle is not None:
            os.close(self._handle)

    def prepare(self, like: str) -> None:
        """Try every step of storing a statement except the last, which gives the file its name.

        Args:
            like: a text of about the statement's length.

        Raises:
            SettingError: the place cannot be written, or another release is about to write there.
        """
        if self._place is None:
            return
        with self._named_refusal():
            self._take()
            size = len(like.encode())
            self._write(b" " * (size + size // 4 + _ROOM))
            self._check()

    def _take(self) -> None:
        """Open and lock a hidden file beside the output file, or beside the ledger if there is no output file."""
        name = hashlib.sha256(os.fsencode(self._place.name)).hexdigest()[:16]
        for number in itertools.count():
            path = self._place.with_name(f".privpost.{name}.{number}")
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                here = os.path.lexists(path) and os.path.samestat(os.lstat(path), os.fstat(handle))
                if here and not os.read(handle, 1).strip():
                    self._hidden, self._handle, handle = path, handle, -1
                    return
                if self._output is not None:
                    problem = "holds a release that was paid for and not delivered: move it first" if here else "went"
                    raise SettingError(f"--output: {path} {problem}.")
                if here:
                    print(f"privpost: {path} holds a release that was not delivered; take it away.", file=sys.stderr)
            except BlockingIOError:
                if self._output is not None:
                    raise SettingError(f"--output: another release is about to write {self._place}.") from None
            finally:
                if handle >= 0:
                    os.close(handle)

    def _write(self, content: bytes) -> None:
        done = 0
        while done < len(content):
            done += os.pwrite(self._handle, content[done:], done)
        os.fsync(self._handle)

    def store(self, text: str) -> None:
        """Store a statement on the disk, or replace the stored statement. Raise Undelivered if this fails."""
        if self._place is None:
            return
        content = text.encode()
        if self._stored is not None:
            self._replace(content)
            return
        self._stored = self._hidden
        try:
            self._write(content)
        except OSError as error:
            self._to_output(text, f"{self._hidden} cannot be written: {error.strerror}")
        # If truncating fails, the file ends with blanks, which do no harm.
        with contextlib.suppress(OSError):
            os.ftruncate(self._handle, len(content))
        if self._output is None:
            return
        try:
            claim(self._hidden, self._output)
        except OSError as error:
            raise Undelivered(
                f"{self._output} cannot be written: {error.strerror}; the statement is in {self._hidden}"
            ) from None
        self._stored = self._output
        with contextlib.suppress(OSError):
            self._hidden.unlink()
        with contextlib.suppress(OSError):
            sync_folder(self._output)

    def _replace(self, content: bytes) -> None:
        try:
            with replacing(self._stored) as other:
                other.write_bytes(content)
            sync_folder(self._stored)
        except OSError as error:
            raise Undelivered(
                f"the posterior cannot be stored: {error.strerror}; {self._stored} holds the release, from which "
                "--again draws it"
            ) from None

    def _to_output(self, text: str, problem: str) -> None:
        """If a statement cannot be stored, write it to standard output. Raise Undelivered."""
        try:
            _print(text)
        except (OSError, ValueError):
            raise Undelivered(f"{problem}; the statement is lost") from None
        raise Undelivered(f"{problem}; the statement is on standard output")

    def hand_over(self, text: str) -> None:
        """Store the whole statement, and print it if there is no output file. Raise Undelivered if this fails."""
        self.store(text)
        if self._output is not None:
            return
        try:
            _print(text)
        except (OSError, ValueError) as error:
            # Otherwise the interpreter would write the rest of the buffer when it exits, and fail again.
            with contextlib.suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            where = f"the statement is in {self._stored}" if self._stored else "the statement is lost"
            reason = getattr(error, "strerror", None) or error
            raise Undelivered(f"standard output cannot be written: {reason}; {where}") from None
        # A printed statement needs no copy, so `__exit__` deletes the hidden file.
        self._stored = None


def _print(text: str) -> None:
    # The text is UTF-8, whatever the terminal's encoding is.
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode())
    sys.stdout.buffer.flush()
