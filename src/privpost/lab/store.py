"""Stores results: one .npz file per cell, written atomically, with a checksum and a record of its origin."""

import contextlib
import hashlib
import itertools
import json
import os
import secrets
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from privpost import archive, atomic
from privpost.lab.project import CannotWrite

RECORD = "record"
CORRUPT, STARTED = ".corrupt", ".started"
# Names that a cell's arrays may not have: the name of the record, and the names of arguments of numpy's savez.
RESERVED = (RECORD, "file", "allow_pickle")


class CorruptCell(ValueError):
    """Raised if a file of the store is missing, damaged or altered, or is no result of this project."""


class Result(NamedTuple):
    """A stored cell: its settings as attributes, its arrays by name, and its record."""

    config: SimpleNamespace
    arrays: dict[str, np.ndarray]
    record: dict[str, Any]


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Do as `atomic.replacing`, but raise CannotWrite, naming `path`, for an error of the operating system."""
    try:
        with atomic.replacing(path) as temporary:
            yield temporary
            # Everyone may read results, whatever the umask.
            temporary.chmod(0o644)
    except CannotWrite:
        raise
    except OSError as error:
        raise CannotWrite(path, error) from error


def write_text(path: Path, text: str) -> None:
    """Write a text file atomically."""
    write_texts({path: text})


def write_texts(texts: Mapping[Path, str]) -> None:
    """Write text files in UTF-8. Old files are replaced after all new files are written."""
    with contextlib.ExitStack() as stack:
        for path, text in texts.items():
            stack.enter_context(replacing(path)).write_text(text, encoding="utf-8")


def checksum(arrays: Mapping[str, np.ndarray]) -> str:
    """Return the sha256 of the arrays' names, types, shapes and bytes, in the order of the names."""
    return archive.checksum(arrays, lambda name, array: f"{name}:{array.dtype.str}:{array.shape};")


def seal(record: Mapping[str, Any]) -> str:
    """Return the sha256 of a record as JSON text, without the entry `seal`."""
    text = json.dumps({key: value for key, value in record.items() if key != "seal"}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def write(path: Path, arrays: Mapping[str, np.ndarray], record: Mapping[str, Any]) -> None:
    """Write a cell's arrays and record, and the checksums of both. The record must be convertible to JSON."""
    # Convert the record to the form that is read back, since JSON turns tuples into lists, and keys into texts.
    record = json.loads(json.dumps({**record, "checksum": checksum(arrays)}))
    record["seal"] = seal(record)
    with replacing(path) as temporary, temporary.open("wb") as handle:
        np.savez(handle, **arrays, **{RECORD: np.array(json.dumps(record, sort_keys=True))})


def read(path: Path, digest: str | None = None) -> Result:
    """Return a stored cell after checking it.

    Raises CorruptCell if the file is missing, damaged or foreign, or does not hold the cell with the given `digest`.
    Raises PermissionError if the file may not be read.
    """
    arrays, record = _load(path)
    if checksum(arrays) != record["checksum"]:
        raise CorruptCell(f"{path}: the arrays do not match their checksum")
    if record["seal"] != seal(record):
        raise CorruptCell(f"{path}: the record does not match its checksum")
    if digest is not None and record["digest"] != digest:
        raise CorruptCell(f"{path} holds the cell {record['digest']}, not {digest}")
    return Result(SimpleNamespace(**record["config"]), arrays, record)


def _load(path: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    try:
        arrays, (text,) = archive.read(path, RECORD)
        record = json.loads(text)
        lacking = [key for key in ("study", "digest", "config", "source", "checksum", "seal") if key not in record]
        if lacking:
            raise ValueError(f"its record has no {', '.join(lacking)}")
    except (ValueError, TypeError) as error:
        raise CorruptCell(f"{path} is not a readable result ({error})") from error
    return arrays, record


@contextlib.contextmanager
def under_way(path: Path, digest: str) -> Iterator[None]:
    """Until the block ends, mark a cell as being computed, with a file next to the cell's own file."""
    # The mark is named like a temporary file, so that a mark left by a killed process is found and removed.
    mark = path.with_name(f".{digest}.{secrets.token_hex(4)}{STARTED}")
    with contextlib.suppress(OSError):
        mark.parent.mkdir(parents=True, exist_ok=True)
        mark.touch()
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            mark.unlink()


def seconds(path: Path) -> float | None:
    """Return the seconds that a stored cell took, or None if its record cannot be read."""
    with contextlib.suppress(OSError, ValueError, KeyError, EOFError), np.load(path) as stored:
        return float(json.loads(str(stored[RECORD]))["wall_seconds"])
    return None


def set_aside(path: Path) -> Path:
    """Rename a damaged file to <name>.corrupt and return the new path. An earlier file of this name is replaced."""
    names = itertools.chain([path.name], (f"{path.name}.{number}" for number in itertools.count(1)))
    aside = next(place for name in names if not (place := path.with_name(name + CORRUPT)).is_dir())
    os.replace(path, aside)
    return aside
