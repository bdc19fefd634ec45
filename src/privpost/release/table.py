"""Reads the CSV file of the data. Error messages never show the content of a cell."""

import csv
import itertools
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from privpost.lab.schema import SettingError
from privpost.release.models.base import Kind
from privpost.release.specification import Specification

# Number of rows that are read and summed at a time.
CHUNK = 5000


def statistics(path: Path, spec: Specification, kind: Kind, model) -> np.ndarray:
    """Return the exact sufficient statistics (d,) of the records in a CSV file.

    Raises:
        SettingError: the file cannot be read, a column is missing or occurs twice, a row has the wrong length, a cell
            holds a value that is not allowed, or the number of rows is not n.
    """
    return kind.summed(_chunks(path, spec, kind), model)


def _chunks(path: Path, spec: Specification, kind: Kind) -> Iterator[np.ndarray]:
    rows, count = _rows(path, spec, kind), 0
    while count <= spec.n and (chunk := list(itertools.islice(rows, CHUNK))):
        count += len(chunk)
        yield np.array(chunk, np.int64)
    if count != spec.n:
        raise SettingError(
            f"{spec.path}: n is {spec.n}, but {path} has another number of records. n is public: correct it only if "
            "the true number may be known."
        )


def _rows(path: Path, spec: Specification, kind: Kind) -> Iterator[list[int]]:
    columns = kind.order(spec)
    _check_bytes(path)
    try:
        with path.open(newline="", encoding="utf-8-sig") as handle:
            reader = csv.reader(handle, strict=True, delimiter=spec.delimiter)
            header = next(reader, [])
            places = [_place(path, header, name) for name in columns]
            codes: list[dict[str, int]] = [{} for _ in columns]
            for number, line in enumerate(reader, start=1):
                # If a file has one column, many programs write an empty cell as an empty line.
                cells = line or [""] * (len(header) == 1)
                if len(cells) != len(header):
                    raise SettingError(
                        f"{path}: row {number} has {len(cells)} cells, but the header has {len(header)}."
                    )
                row = []
                for name, place, known in zip(columns, places, codes, strict=True):
                    text = cells[place]
                    if text not in known:
                        known[text] = _code(path, number, name, text, spec, kind)
                    row.append(known[text])
                yield row
    except FileNotFoundError:
        raise SettingError(f"{path}: there is no such file") from None
    except OSError as error:
        raise SettingError(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise SettingError(f"{path} is not UTF-8 text") from None
    except csv.Error as error:
        raise SettingError(f"{path} is not a CSV file: {error}") from None


def _check_bytes(path: Path) -> None:
    """Raise SettingError if the file's first bytes show that it is not UTF-8 text."""
    try:
        with path.open("rb") as handle:
            start = handle.read(4)
    except OSError:
        # The error is reported when the file is read.
        return
    if start.startswith(b"\x1f\x8b"):
        raise SettingError(f"{path} is compressed with gzip; unpack it first: gunzip --keep FILE")
    if start.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in start:
        raise SettingError(f"{path} is UTF-16 text, but must be UTF-8: iconv -f UTF-16 -t UTF-8 FILE")


def _place(path: Path, header: list[str], name: str) -> int:
    if name not in header:
        # The message does not list the names, since the first line is a private record if there is no header.
        other = next((mark for mark in (";", "\t", "|", ",") if len(header) == 1 and mark in header[0]), None)
        hint = f" It has {other!r} in it: is that the setting delimiter?" if other else ""
        raise SettingError(f"{path}: its first line, the header, has no column {name!r}.{hint}")
    if header.count(name) > 1:
        raise SettingError(f"{path}: the column {name!r} is there {header.count(name)} times")
    return header.index(name)


def _code(path: Path, number: int, name: str, text: str, spec: Specification, kind: Kind) -> int:
    where = f"{path}: row {number}, column {name!r}"
    code = kind.encode(spec, name, text)
    if code is None and (not text.strip() or text in spec.columns[name].get("missing_texts", ())):
        counts_as = spec.counts_as(name)
        if counts_as is None:
            raise SettingError(
                f"{where} is empty, but must hold {kind.allowed(spec, name)}; the column's setting missing says what "
                "else such cells may be."
            )
        code = kind.encode(spec, name, counts_as)
    if code is None:
        blanks = " has blanks around its value, which count, and" * (kind.encode(spec, name, text.strip()) is not None)
        raise SettingError(f"{where}{blanks} must hold {kind.allowed(spec, name)}.")
    return code
