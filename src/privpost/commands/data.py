"""`privpost fetch` and `privpost prepare`: raw data files, and the arrays parsed from them."""

import argparse
from pathlib import Path

from privpost.atomic import replacing
from privpost.datasets import catalogue, prepared, war_logs
from privpost.datasets import fetch as fetching
from privpost.lab import provenance
from privpost.lab.project import RAW
from privpost.lab.schema import SettingError, suggest


def fetch(argv: list[str]) -> int:
    """Fetch raw data files."""
    parser = argparse.ArgumentParser(prog="privpost fetch", description="Fetch and verify raw data files.")
    parser.add_argument("dataset", nargs="+", help=f"one or more of {', '.join(catalogue.names())}")
    names = parser.parse_args(argv).dataset
    for name in names:
        if name not in catalogue.names():
            raise _unknown(name)
        # Also of a data set that is simulated: it has no raw file.
        (RAW / name).mkdir(parents=True, exist_ok=True)
    return fetching.main(names)


def prepare(argv: list[str]) -> int:
    """Parse raw files into arrays."""
    parser = argparse.ArgumentParser(prog="privpost prepare", description="Parse a fetched data set into arrays.")
    parser.add_argument("dataset", help=f"one of {', '.join(catalogue.names())}")
    parser.add_argument("--counts", metavar="FILE", help="write the counts of war logs as CSV too, without any event")
    given = parser.parse_args(argv)
    name = given.dataset
    if name not in catalogue.names():
        raise _unknown(name)
    # Verifies the raw files: one that changed since it was fetched is set aside, and fetched again.
    if status := fetching.main([name]):
        return status
    dataset = catalogue.load(name)
    if given.counts and "counts" not in dataset.serves:
        raise SettingError(f"--counts is of war logs, but {name} serves {', '.join(dataset.serves) or 'no study'}.")
    try:
        print(prepared.prepare(dataset, code=provenance.loader_digest(name)))
    except ValueError as error:
        raise SettingError(str(error)) from error
    if given.counts:
        lines = war_logs.count_lines(prepared.read(name, dataset), dataset)
        with replacing(Path(given.counts)) as path:
            path.write_text("".join(f"{line}\n" for line in lines), encoding="ascii", newline="\n")
        print(given.counts)
    return 0


def _unknown(name: str) -> SettingError:
    known = catalogue.names()
    return SettingError(f"dataset is {name!r}, but must be one of {', '.join(known)}.{suggest(name, known)}")
