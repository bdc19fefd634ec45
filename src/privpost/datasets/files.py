"""Checksums of files, and files that are read or refused."""

from __future__ import annotations

import csv
import hashlib
import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import yaml


def parsed(path: Path) -> Any:
    """Return what a YAML file holds, by libyaml where it is there; raises YAMLError for text that is no YAML."""
    return yaml.load(path.read_text(encoding="utf-8"), getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def checksum(path: Path) -> tuple[int, str]:
    """Return size in bytes and sha256 of a file; raises OSError when it cannot be read."""
    with open(path, "rb") as handle:
        sha256 = hashlib.file_digest(handle, "sha256").hexdigest()
        return handle.tell(), sha256


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
