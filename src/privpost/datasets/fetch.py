"""Fetching raw files: from what is there, from mirrors on disk, from their publishers; nothing unverified stays."""

import contextlib
import hashlib
import os
import sys
import time
from collections.abc import Generator, Sequence
from pathlib import Path

from privpost import configurations
from privpost.atomic import abandoned, replacing
from privpost.datasets import catalogue
from privpost.datasets.catalogue import Dataset, File
from privpost.datasets.files import checksum, parsed
from privpost.datasets.sources import Unusable, from_address, gunzip, read

RAW = catalogue.RAW
MIRRORS = ("data/mirror", "../shared/data")
MIRRORS_VARIABLE = "PRIVPOST_MIRRORS"


class FetchError(RuntimeError):
    """Some files of a data set could not be had; ``access`` is the data set's ("public" or "bring-your-own")."""

    def __init__(self, message: str, dataset: Dataset):
        super().__init__(message)
        self.access = dataset.access
        self.dataset = dataset.name


def fetch(
    dataset: Dataset,
    raw: str | os.PathLike[str] = RAW,
    mirrors: Sequence[str | os.PathLike[str]] | None = None,
    timeout: float = 20.0,
    retries: int = 2,
    backoff: float = 1.0,
) -> list[Path]:
    """Return the paths ``<raw>/<dataset>/<file>`` of all files, verified by size and sha256; fetch what is missing.

    Sources in order: the file itself; each mirror's ``<folder>/<file>``, plain or with ``.gz`` (the folder is the
    data set's name unless its declaration names another); each address of the catalogue, asked ``1 + retries`` times
    with pauses of ``backoff``, 2 ``backoff``, ... seconds after failures that may pass. ``timeout`` (seconds) limits
    each wait for the network. ``mirrors`` defaults to the folders in the environment variable PRIVPOST_MIRRORS
    (separated as PATH is), else to ``mirrors`` in conf/config.yaml (data/mirror and ../shared/data), relative to the
    working directory. A file that is there with a wrong sum is renamed to ``<file>.rejected``. Raises FetchError, one
    message for all files that could not be had, and ValueError for a setting out of range.
    """
    if not timeout > 0:
        raise ValueError(f"timeout = {timeout!r}: must be above 0 seconds")
    if type(retries) is not int or retries < 0:
        raise ValueError(f"retries = {retries!r}: must be an integer of 0 or more")
    if not backoff >= 0:
        raise ValueError(f"backoff = {backoff!r}: must be 0 seconds or more")
    folders = _default_mirrors() if mirrors is None else [Path(mirror) for mirror in mirrors]
    paths, complaints = [], []
    for file in dataset.files:
        target = Path(raw) / dataset.name / file.name
        paths.append(target)
        try:
            tried = _fetch_file(file, target, dataset.mirror_folder, folders, timeout, retries, backoff)
        except OSError as error:
            # Sources report through Unusable, so this is the raw folder itself: a full disk, a missing permission.
            place = error.filename or target
            complaints.append(f"{file.name} ({dataset.title}): cannot use {place}: {error.strerror or error}")
            continue
        if tried is not None:
            complaints.append(_complaint(dataset, file, target, folders, tried))
    if complaints:
        raise FetchError("\n".join(complaints), dataset)
    return paths


def findable(
    dataset: Dataset,
    raw: str | os.PathLike[str] = RAW,
    prepared: str | os.PathLike[str] = "data/prepared",
    mirrors: Sequence[str | os.PathLike[str]] | None = None,
) -> bool:
    """Whether a data set can be had without its owner: only a bring-your-own one that is nowhere here cannot.

    Looks for ``<prepared>/<dataset>.npz``, ``<raw>/<dataset>/<file>`` and the mirrors' files; their sums are checked
    when they are fetched. ``mirrors`` as in `fetch`.
    """
    if dataset.access != "bring-your-own" or (Path(prepared) / f"{dataset.name}.npz").is_file():
        return True
    folders = _default_mirrors() if mirrors is None else [Path(mirror) for mirror in mirrors]
    for file in dataset.files:
        places = [Path(raw) / dataset.name / file.name]
        for folder in folders:
            places += [folder / dataset.mirror_folder / name for name in (file.name, file.name + ".gz")]
        if not any(place.is_file() for place in places):
            return False
    return True


def main(names: list[str]) -> int:
    """Fetch the named data sets into data/raw, one line per file on standard output.

    Returns 0, or 1 when a name is unknown or a file could not be had; the others are fetched all the same.
    """
    status = 0
    for name in names:
        try:
            for path in fetch(catalogue.load(name)):
                print(f"{path}  {path.stat().st_size} bytes, sha256 verified", flush=True)
        except (FetchError, ValueError) as error:
            print(f"error: {error}", file=sys.stderr, flush=True)
            status = 1
    return status


def _configured_mirrors() -> Sequence[str]:
    """Return the key `mirrors` of the project's configuration, or the built-in list where there is none."""
    configuration = configurations.folder() / "config.yaml"
    if not configuration.is_file():
        return MIRRORS
    mirrors = parsed(configuration).get("mirrors", MIRRORS)
    if not isinstance(mirrors, list | tuple) or not all(isinstance(mirror, str) for mirror in mirrors):
        raise ValueError(f"{configuration}: mirrors = {mirrors!r}: must be a list of folders")
    return mirrors


def _default_mirrors() -> list[Path]:
    folders = os.environ.get(MIRRORS_VARIABLE)
    if folders is None:
        return [Path(mirror) for mirror in _configured_mirrors()]
    return [Path(mirror) for mirror in folders.split(os.pathsep) if mirror]


def _fetch_file(
    file: File,
    target: Path,
    mirror_folder: str,
    mirrors: Sequence[Path],
    timeout: float,
    retries: int,
    backoff: float,
) -> list[tuple[str, str]] | None:
    """Return None once the verified file is at ``target``, else what was tried: (source, outcome)."""
    tried: list[tuple[str, str]] = []
    target.parent.mkdir(parents=True, exist_ok=True)
    for temporary in abandoned(target):
        temporary.unlink(missing_ok=True)
    if target.exists():
        outcome = _verdict_on_present(file, target)
        if outcome is None:
            return None
        tried.append((str(target), outcome))

    for mirror in mirrors:
        plain = mirror / mirror_folder / file.name
        zipped = plain.with_name(plain.name + ".gz")
        for source, chunks in ((plain, read(plain)), (zipped, gunzip(read(zipped)))):
            try:
                _store(chunks, file, target)
            except Unusable as failure:
                tried.append((str(source), str(failure)))
            else:
                _say(f"{target}: copied from {source}")
                return None

    for url in file.urls:
        for attempt in range(1, retries + 2):
            try:
                _store(from_address(url, file, target.parent, timeout), file, target)
            except Unusable as failure:
                if failure.retry and attempt <= retries:
                    pause = backoff * 2 ** (attempt - 1)
                    _say(f"{file.name}: {failure} at {url}; asking again in {pause:g} s")
                    time.sleep(pause)
                    continue
                times = f" (asked {attempt} times)" if attempt > 1 else ""
                tried.append((url, f"{failure}{times}"))
                break
            else:
                _say(f"{target}: fetched from {url}")
                return None
    return tried


def _verdict_on_present(file: File, target: Path) -> str | None:
    """Return None when the file that is there is right; otherwise move it aside and return what is wrong."""
    actual = checksum(target)
    if actual == (file.bytes, file.sha256):
        return None
    rejected = target.with_name(target.name + ".rejected")
    number = 1
    while os.path.lexists(rejected):
        number += 1
        rejected = target.with_name(f"{target.name}.rejected.{number}")
    try:
        os.rename(target, rejected)
    except FileNotFoundError:
        return "moved aside by another process"
    # Another process may have put the right file there between the check and the move.
    if checksum(rejected) == (file.bytes, file.sha256):
        os.replace(rejected, target)
        return None
    outcome = f"{_difference(file, *actual)}; moved aside to {rejected.name}"
    _say(f"{target}: {outcome}")
    return outcome


def _store(chunks: Generator[bytes, None, None], file: File, target: Path) -> None:
    """Write the chunks to ``target`` if they are the file; raises Unusable, leaving nothing, if they are not."""
    # Somewhat more than expected is read, so that the message can give the sum of a slightly different file.
    limit = 2 * file.bytes + (1 << 20)
    digest = hashlib.sha256()
    size = 0
    with contextlib.closing(chunks), replacing(target) as path, path.open("wb") as handle:
        for chunk in chunks:
            size += len(chunk)
            if size > limit:
                raise Unusable(f"too long: more than {limit} bytes instead of {file.bytes}, given up")
            digest.update(chunk)
            handle.write(chunk)
        if (size, digest.hexdigest()) != (file.bytes, file.sha256):
            raise Unusable(_difference(file, size, digest.hexdigest()))


def _difference(file: File, size: int, sha256: str) -> str:
    if size < file.bytes:
        kind = "too short"
    elif size > file.bytes:
        kind = "too long"
    else:
        kind = "wrong content"
    return f"{kind}: found {size} bytes, sha256 {sha256}"


def _complaint(
    dataset: Dataset, file: File, target: Path, mirrors: Sequence[Path], tried: Sequence[tuple[str, str]]
) -> str:
    lines = [f"{file.name} ({dataset.title}) could not be had"]
    if file.sha256 == catalogue.ABSENT:
        lines.append(f"  expected: your own extract, as conf/dataset/{dataset.name}.yaml describes it")
    else:
        lines.append(f"  expected: {file.bytes} bytes, sha256 {file.sha256}")
    lines += [f"  tried:    {source}: {outcome}" for source, outcome in tried] or ["  tried:    nothing, no mirrors"]
    if dataset.access == "bring-your-own":
        lines.append(f"  licence:  {dataset.licence}; it is not downloaded, each user has to obtain it")
    places = [str(target)]
    if file.sha256 != catalogue.ABSENT:
        folders = [mirror / dataset.mirror_folder for mirror in mirrors[:1]]
        places += [f"{folder}{os.sep} (plain or as {file.name}.gz)" for folder in folders]
    lines.append(f"  by hand:  get it from {dataset.origin} and put it at {' or into '.join(places)}; then run again")
    return "\n".join(lines)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
