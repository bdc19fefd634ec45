"""Checksums of files, and readers that refuse malformed files."""

import csv
import hashlib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml


def parsed(path: Path) -> Any:
    """Return the content of a YAML file. Raises YAMLError for text that is no YAML."""
    return yaml.load(path.read_text(encoding="utf-8"), getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def checksum(path: Path) -> tuple[int, str]:
    """Return size in bytes and sha256 of a file. Raises OSError if the file cannot be read."""
    with open(path, "rb") as handle:
        sha256 = hashlib.file_digest(handle, "sha256").hexdigest()
        return handle.tell(), sha256


def records(lines: Iterable[str], columns: Iterable[str], where: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the rows of CSV text with a header: each row's last line number, and its fields in the named columns.

    Raises ValueError naming `where`, and the missing columns or the line at fault.
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


def lines(path: Path) -> list[str]:
    """Return the lines of a text file."""
    return path.read_text(encoding="ascii", errors="backslashreplace").removesuffix("\n").split("\n")


def rows(
    texts: Iterable[str], columns: Mapping[str, Callable[[str], float]], separator: str, where: Path, first: int = 1
) -> list[list[float]]:
    """Return lines without a header as rows of numbers. `columns` has each column's function from text to number.

    Raises ValueError naming `where`, the line and the column at fault. The number of the first line is `first`.
    """
    table = []
    for line, text in enumerate(texts, start=first):
        fields = text.split(separator)
        if len(fields) != len(columns):
            raise ValueError(f"{where} line {line}: {len(fields)} fields, expected {len(columns)}: {text!r}")
        row = []
        for (name, read), field in zip(columns.items(), fields, strict=True):
            try:
                row.append(read(field))
            except ValueError as error:
                raise ValueError(f"{where} line {line}: {name} = {field!r}: {error}") from error
        table.append(row)
    return table


def check_rows(path: Path, found: int, expected: int, what: str = "rows") -> None:
    """Raise ValueError unless a file has the expected number of rows."""
    if found != expected:
        raise ValueError(f"{path}: {found} {what}, expected {expected}")


def code(levels: Iterable[str]) -> Callable[[str], int]:
    """Return a function from a level to the level's number. The function raises ValueError for any other text."""
    codes = {level: place for place, level in enumerate(levels)}

    def read(field: str) -> int:
        if field not in codes:
            raise ValueError(f"must be one of {', '.join(codes)}")
        return codes[field]

    return read


def count(field: str, at_least: int = 0) -> int:
    """Return the whole number that a field spells in at most 15 digits. Raises ValueError for any other field."""
    if not (field.isascii() and field.isdigit() and len(field) <= 15 and int(field) >= at_least):
        raise ValueError(f"{field!r} is not a whole number of at least {at_least}")
    return int(field)


def number(field: str, at_least: float = -math.inf) -> float:
    """Return the finite number that a field spells. Raises ValueError for any other field."""
    value = float(field)
    # Python's own conversion also accepts 1_000 and digits of other scripts.
    if "_" in field or not field.isascii() or not math.isfinite(value):
        raise ValueError(f"{field!r} is not a finite number")
    if value < at_least:
        raise ValueError(f"{field!r} is below {at_least:g}")
    return value
