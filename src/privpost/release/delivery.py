"""Where a statement and its draws go: tried before anything is charged, the statement stored before all else."""

import contextlib
import csv
import hashlib
import os
import secrets
import sys
from pathlib import Path
from typing import Any

import numpy as np

from privpost.atomic import claim, replacing
from privpost.lab.schema import SettingError
from privpost.release.specification import Specification

# Room for a statement besides its terms, tried on the disk before the charge.
_ROOM = 2**16


class Undelivered(Exception):
    """A release that was paid for and could not be handed over; the message says where it is kept, if anywhere."""


def encoded(text: str) -> bytes:
    """A statement in UTF-8; a SettingError where a character has no code there."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise SettingError(f"the statement cannot be written in UTF-8: {error.reason}") from None


def check_draws(path: Path, spec: Specification) -> None:
    """Raise SettingError unless posterior draws can be put into a new file, before anything is charged."""
    if not spec.draws or spec.sampling:
        raise SettingError(f"--draws: {spec.where} asks for no posterior draws (posterior: {{draws: 4000}}).")
    if path.suffix not in (".csv", ".parquet"):
        raise SettingError(f"--draws: {path} must end in .csv or .parquet.")
    if path.suffix == ".parquet":
        try:
            import pyarrow  # noqa: F401
        except ImportError:
            raise SettingError("--draws: Parquet needs the package pyarrow: pip install 'privpost[parquet]'") from None
    if os.path.lexists(path):
        raise SettingError(f"--draws: {path} exists; name a new file.")
    try:
        if not path.parent.is_dir():
            raise SettingError(f"--draws: there is no folder {path.parent}")
        with replacing(path, new=True) as trial:
            trial.write_bytes(b" " * _ROOM)
        path.unlink()
    except OSError as error:
        raise SettingError(f"--draws: {path} cannot be written: {error.strerror}") from None


def write_draws(path: Path, draws: dict[str, np.ndarray]) -> dict[str, Any]:
    """Write draws as columns of a new CSV or Parquet file; returns what a statement says of it.

    Raises:
        OSError: it cannot be written, or is there already.
    """
    with replacing(path, new=True) as temporary:
        if path.suffix == ".csv":
            with temporary.open("w", newline="", encoding="utf-8") as handle:
                writer = csv.writer(handle, lineterminator="\n")
                writer.writerow(draws)
                writer.writerows(zip(*(values.tolist() for values in draws.values()), strict=True))
        else:
            import pyarrow
            from pyarrow import parquet

            parquet.write_table(pyarrow.table(draws), temporary)
        digest = hashlib.sha256(temporary.read_bytes()).hexdigest()
    return {"file": path.name, "rows": len(next(iter(draws.values()))), "sha256": digest}


class Delivery:
    """The one place of a statement: a new file, or standard output with a file beside the ledger until it is written.

    Args:
        output: a new file, or None for standard output.
        spec: the specification.

    Raises:
        SettingError: the file exists, or its folder cannot be used.
    """

    def __init__(self, output: Path | None, spec: Specification):
        self._output = output
        self._held = output
        if output is None and spec.budget:
            ledger = spec.path.parent / spec.budget["ledger"]
            self._held = ledger.with_name(f"{ledger.name}.undelivered.json")
        self._temporary: Path | None = None
        self._stored = False
        if self._held is not None:
            self._check(self._held)

    def _check(self, path: Path) -> None:
        try:
            os.lstat(path)
        except FileNotFoundError:
            pass
        except OSError as error:
            # For instance a name that is too long.
            raise self._unusable(error) from None
        else:
            if self._output is None:
                raise SettingError(f"{path} holds a release that was paid for and not delivered: move it first.")
            raise SettingError(
                f"--output: {path} exists. Another release costs its epsilon again; name a new file if that is meant."
            )
        if not path.parent.is_dir():
            raise SettingError(f"--output: there is no folder {path.parent}")

    def __enter__(self) -> "Delivery":
        return self

    def __exit__(self, *exception) -> None:
        if self._temporary is not None:
            with contextlib.suppress(OSError):
                self._temporary.unlink()

    def prepare(self, terms: str) -> None:
        """Try everything that storing a statement needs, but for its name; nothing is charged yet.

        Raises:
            SettingError: it cannot be written in UTF-8, or not in that place.
        """
        size = len(encoded(terms))
        if self._held is None:
            return
        temporary = self._held.with_name(f".privpost.{secrets.token_hex(8)}")
        try:
            self._write(temporary, b" " * (size + _ROOM), "xb")
        except OSError as error:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise self._unusable(error) from None
        self._temporary = temporary

    def _unusable(self, error: OSError) -> SettingError:
        return SettingError(f"--output: {self._held} cannot be written: {error.strerror}")

    @staticmethod
    def _write(path: Path, content: bytes, mode: str) -> None:
        with path.open(mode) as handle:
            handle.write(content)
            handle.flush()
            os.fsync(handle.fileno())

    def store(self, text: str) -> None:
        """Put a statement on the disk, durably, in its place; a later one replaces it.

        Raises:
            Undelivered: it could not be stored, or another file has taken the name.
        """
        if self._temporary is None:
            return
        try:
            if self._stored:
                with replacing(self._held) as other:
                    other.write_bytes(text.encode("utf-8"))
                return
            self._write(self._temporary, text.encode("utf-8"), "r+b")
            os.truncate(self._temporary, len(text.encode("utf-8")))
            claim(self._temporary, self._held)
            self._stored = True
        except FileExistsError:
            kept, self._temporary = self._temporary, None
            raise Undelivered(f"{self._held} has appeared meanwhile; the statement is in {kept}") from None
        except OSError as error:
            raise Undelivered(f"{self._held} cannot be written: {error.strerror}") from None

    def hand_over(self, text: str) -> None:
        """Store the whole statement, and write it to standard output, as UTF-8, if that is its place.

        Raises:
            Undelivered: it could not be written.
        """
        self.store(text)
        if self._output is not None:
            return
        try:
            sys.stdout.flush()
            sys.stdout.buffer.write(text.encode("utf-8"))
            sys.stdout.buffer.flush()
        except (OSError, ValueError) as error:
            # What is left in the buffer would be tried again, and fail again, when the interpreter ends.
            with contextlib.suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            kept = f"the statement is in {self._held}" if self._stored else "the statement is lost"
            raise Undelivered(
                f"standard output cannot be written: {getattr(error, 'strerror', error)}; {kept}"
            ) from None
        if self._stored:
            self._held.unlink()
