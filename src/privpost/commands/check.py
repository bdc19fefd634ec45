"""`privpost check`: looks for damage in what is published and, with --read-data, in the store; changes nothing."""

import argparse
from collections.abc import Iterator
from pathlib import Path

from privpost.datasets import catalogue, files, prepared
from privpost.lab import published, store
from privpost.lab.project import PREPARED, RAW, built
from privpost.progress import counted


def main(argv: list[str]) -> int:
    """Print a line per damaged file and a summary; returns 1 where something is damaged."""
    parser = argparse.ArgumentParser(
        prog="privpost check",
        description="Compare results/ and figures/ with results/SHA256SUMS; change nothing.",
    )
    parser.add_argument(
        "--read-data", action="store_true", help="also read every stored cell, and data/raw and data/prepared"
    )
    given = parser.parse_args(argv)
    results = [*_published(), *(_stored() if given.read_data else ())]
    damaged = [" ".join(line.split()) for line in results if line]
    for line in damaged:
        print(line)
    print(f"{counted(len(results), 'file')} read, {len(damaged) or 'none'} damaged")
    return 1 if damaged else 0


def _published() -> Iterator[str]:
    """Yield what is wrong with each published file, or ""."""
    sums = published.sums()
    if published.covered() and not sums:
        yield f"{published.SUMS} is not there, or names no file"
    for path in sorted({*sums, *published.covered()}):
        try:
            yield f"{path} does not have the sha256 that {published.SUMS} names" * published.altered(path)
        except OSError as error:
            yield f"{path} cannot be read: {error.strerror}"


def _stored() -> Iterator[str]:
    for path in sorted(built("paper").parent.glob("*/cells/**/*.npz")):
        # A name that begins with a dot is a file that is being written.
        if not path.name.startswith("."):
            yield _refusal(path, store.read, path, path.stem.rpartition("_")[2])
    for name in catalogue.names():
        dataset = catalogue.load(name)
        for file in (file for chosen in dataset.choices() for file in chosen if file.sha256 != catalogue.ABSENT):
            if (path := RAW / name / file.name).is_file():
                yield _refusal(path, _check_raw, path, file)
        if (path := PREPARED / f"{name}.npz").is_file():
            yield _refusal(path, prepared.read, name, dataset, PREPARED)


def _check_raw(path: Path, file: catalogue.File) -> None:
    if files.checksum(path) != (file.bytes, file.sha256):
        raise ValueError(f"{path} does not have the size and sha256 that the catalogue names")


def _refusal(path: Path, read, *arguments) -> str:
    """Return why the reader of a file refuses it, or ""."""
    try:
        read(*arguments)
    except ValueError as error:
        return str(error)
    except OSError as error:
        return f"{path} cannot be read: {error.strerror}"
    return ""
