"""Files that are whole or absent: checksums, replacement in one step, and tables that are read or refused."""

from __future__ import annotations

import contextlib
import csv
import hashlib
import math
import os
import secrets
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

# A live temporary file is written to far more often than this, so that an older one belongs to a killed process.
STALE_SECONDS = 3600.0


def checksum(path: Path) -> tuple[int, str]:
    """Return size in bytes and sha256 of a file; raises OSError when it cannot be read."""
    with open(path, "rb") as handle:
        sha256 = hashlib.file_digest(handle, "sha256").hexdigest()
        return handle.tell(), sha256


@contextlib.contextmanager
def replacing(target: Path) -> Iterator[BinaryIO]:
    """Open a temporary file beside ``target`` and rename it to ``target`` when the block ends well.

    After any exception, KeyboardInterrupt included, the temporary file is deleted and ``target`` is as it was. Every
    caller has its own temporary file, so that several processes can write the same target; the last one to finish wins.
    """
    temporary = target.with_name(f".{target.name}.{os.getpid()}-{secrets.token_hex(4)}.part")
    try:
        with open(temporary, "xb") as handle:
            yield handle
            handle.flush()
            os.fsync(handle.fileno())
        os.replace(temporary, target)
    except OSError as error:
        # A full disk does not say where.
        error.filename = error.filename or os.fspath(target)
        raise
    finally:
        temporary.unlink(missing_ok=True)


def remove_stale(target: Path) -> None:
    """Delete temporary files of ``target`` that a killed process left more than an hour ago."""
    for path in target.parent.glob(f".{target.name}.*.part"):
        # Another process may delete it at the same moment.
        with contextlib.suppress(FileNotFoundError):
            if time.time() - path.stat().st_mtime > STALE_SECONDS:
                path.unlink()


def records(lines: Iterable[str], columns: Iterable[str], where: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the rows of CSV text with a header: each row's last line number, and its fields in the asked columns.

    Raises ValueError naming `where`, and the missing columns or the line that is at fault.
    """
    columns = list(columns)
    reader = csv.reader(lines, strict=True)
    try:
        header = [name.strip() for name in next(reader, [])]
        missing = [name for name in columns if name not in header]
        if missing:
            raise ValueError(
                f"{where}: missing columns {', '.join(missing)}; needed are {', '.join(columns)}, found "
                f"{', '.join(header) or 'none'}"
            )
        places = [header.index(name) for name in columns]
        for row in reader:
            if len(row) != len(header):
                raise ValueError(f"{where} line {reader.line_num}: {len(row)} fields, expected {len(header)}")
            yield reader.line_num, {name: row[place] for name, place in zip(columns, places, strict=True)}
    except (csv.Error, UnicodeDecodeError) as error:
        raise ValueError(f"{where} line {reader.line_num + 1}: damaged ({error})") from error


def count(field: str) -> int:
    """Return the whole number of at least 0 that a field spells, at most 15 digits; raises ValueError otherwise."""
    if not (field.isascii() and field.isdigit() and len(field) <= 15):
        raise ValueError(f"{field!r} is not a whole number of at least 0")
    return int(field)


def number(field: str) -> float:
    """Return the finite number that a field spells; raises ValueError for anything else."""
    value = float(field)
    # Python also takes 1_000 and digits of other scripts.
    if "_" in field or not field.isascii() or not math.isfinite(value):
        raise ValueError(f"{field!r} is not a finite number")
    return value
