"""`privpost fetch` and `privpost prepare`: raw data files, and the arrays parsed from them."""

from argparse import Namespace
from pathlib import Path

from privpost.atomic import replacing
from privpost.datasets import catalogue, prepared, war_logs
from privpost.datasets import fetch as fetching
from privpost.lab import provenance
from privpost.lab.project import RAW
from privpost.lab.schema import SettingError, suggest


def fetch(given: Namespace) -> int:
    """Fetch the raw files of the named data sets, and return the exit status."""
    for name in given.dataset:
        _check_known(name)
        # A simulated data set gets a folder too, although it has no raw file.
        (RAW / name).mkdir(parents=True, exist_ok=True)
    return fetching.main(given.dataset)


def prepare(given: Namespace) -> int:
    """Parse the raw files of a data set into arrays, and return the exit status."""
    name = given.dataset
    _check_known(name)
    # Fetching also verifies raw files: a file that changed since it was fetched is renamed, and fetched again.
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


def _check_known(name: str) -> None:
    if name not in (known := catalogue.names()):
        raise SettingError(f"dataset is {name!r}, but must be one of {', '.join(known)}.{suggest(name, known)}")
