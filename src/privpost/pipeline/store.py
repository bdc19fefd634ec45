"""The store of results: one .npz per cell, written atomically, with its own story and a checksum inside."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

RECORD = "record"


class CorruptCell(ValueError):
    """A file of the store that is not a whole, unchanged result of this project."""


class Result(NamedTuple):
    """A stored cell: its settings as attributes, its arrays by name, and its record."""

    config: SimpleNamespace
    arrays: dict[str, np.ndarray]
    record: dict[str, Any]


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path` that takes its place when the block ends well, and vanishes otherwise."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem}.", suffix=path.suffix)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(0o644)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_text(path: Path, text: str) -> None:
    """Write a text file atomically."""
    with replacing(path) as temporary:
        temporary.write_text(text)


def checksum(arrays: Mapping[str, np.ndarray]) -> str:
    """Return the sha256 of the arrays' names, types, shapes and bytes, in the order of the names."""
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name}:{array.dtype.str}:{array.shape};".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def write(path: Path, arrays: Mapping[str, np.ndarray], record: Mapping[str, Any]) -> None:
    """Write a cell's arrays and record (JSON-able; the checksum is added)."""
    record = {**record, "checksum": checksum(arrays)}
    with replacing(path) as temporary, temporary.open("wb") as handle:
        np.savez(handle, **arrays, **{RECORD: np.array(json.dumps(record, sort_keys=True))})


def read(path: Path, digest: str | None = None) -> Result:
    """Return a stored cell after checking it.

    Raises CorruptCell when the file is damaged, foreign, or (with `digest`) not the cell that was asked for.
    """
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        record = json.loads(str(arrays.pop(RECORD)))
        found = record["checksum"]
    except (OSError, ValueError, KeyError, EOFError, TypeError, zipfile.BadZipFile, NotImplementedError) as error:
        raise CorruptCell(f"{path} is not a readable result ({type(error).__name__}: {error})") from error
    if checksum(arrays) != found:
        raise CorruptCell(f"{path}: the arrays do not match their checksum")
    if digest is not None and record["digest"] != digest:
        raise CorruptCell(f"{path} holds the cell {record['digest']}, not {digest}")
    return Result(SimpleNamespace(**record["config"]), arrays, record)


def read_record(path: Path) -> dict[str, Any]:
    """Return a stored cell's record without reading its arrays; raises CorruptCell when there is none."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            return json.loads(str(archive[RECORD]))
    except (OSError, ValueError, KeyError, EOFError, TypeError, zipfile.BadZipFile, NotImplementedError) as error:
        raise CorruptCell(f"{path} is not a readable result ({type(error).__name__}: {error})") from error


def set_aside(path: Path) -> Path:
    """Rename a damaged file to <name>.corrupt and return its new path."""
    aside = path.with_name(path.name + ".corrupt")
    os.replace(path, aside)
    return aside
