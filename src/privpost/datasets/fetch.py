"""Fetching raw files: from what is there, the project's folders, their publishers; nothing unverified stays."""

import contextlib
import hashlib
import os
import sys
import tempfile
from collections.abc import Generator, Sequence
from pathlib import Path

from privpost.atomic import abandoned, replacing
from privpost.datasets import catalogue
from privpost.datasets.catalogue import ORIGINAL, OWN, RAW, Dataset, File
from privpost.datasets.files import checksum
from privpost.datasets.sources import NoNetwork, Unusable, download, likeness, places, read

# Looked in before any download: what the repository has, and what a user puts there.
FOLDERS = (ORIGINAL, OWN)


class FetchError(RuntimeError):
    """Some files of a data set could not be had; ``access`` is the data set's ("public" or "bring-your-own")."""

    def __init__(self, message: str, dataset: Dataset):
        super().__init__(message)
        self.access = dataset.access
        self.dataset = dataset.name


def chosen(
    dataset: Dataset,
    raw: str | os.PathLike[str] = RAW,
    folders: Sequence[str | os.PathLike[str]] = FOLDERS,
) -> tuple[File, ...] | None:
    """Return the files that the data set is made of here: its own, else the first of `instead`; None where none is.

    Only names are looked at: sums are checked when the files are fetched.
    """
    for files in dataset.choices():
        if all(_is_here(file, dataset, Path(raw), folders) for file in files):
            return files
    return None


def _is_here(file: File, dataset: Dataset, raw: Path, folders: Sequence[str | os.PathLike[str]]) -> bool:
    if file in dataset.files and not file.declared:
        # Its sum is part of the data set's identity: it counts once the catalogue has read it.
        return file.sha256 != catalogue.ABSENT
    here = (raw / dataset.name / file.name).is_file()
    return here or any(True for folder in folders for _ in places(Path(folder) / dataset.place, file.name))


def findable(
    dataset: Dataset,
    raw: str | os.PathLike[str] = RAW,
    prepared: str | os.PathLike[str] = "data/prepared",
    folders: Sequence[str | os.PathLike[str]] = FOLDERS,
) -> bool:
    """Whether a data set is here, whatever its access: prepared, raw, or in one of the folders.

    No address is asked: `fetch` does that, and what it brings is then here.
    """
    if dataset.access == "generated" or (Path(prepared) / f"{dataset.name}.npz").is_file():
        return True
    return chosen(dataset, raw, folders) is not None


def fetch(
    dataset: Dataset,
    raw: str | os.PathLike[str] = RAW,
    folders: Sequence[str | os.PathLike[str]] = FOLDERS,
    timeout: float = 20.0,
    retries: int = 2,
) -> list[Path]:
    """Return the paths ``<raw>/<dataset>/<file>`` of all files, verified by size and sha256; fetch what is missing.

    Sources in order: the file itself; in each folder's ``<place>`` the file, plain, with ``.gz`` or in a zip; each
    address of the catalogue, asked ``1 + retries`` times after failures that may pass. ``timeout`` (seconds) limits
    each wait for the network. A file that is there with a wrong sum is renamed to ``<file>.rejected``. Where files
    stand in for the data set's own (`Dataset.instead`), the first that is here is taken, and the last comes with it,
    as what `prepare` compares with. Raises FetchError, one message for all files that could not be had, and ValueError
    for a setting out of range.
    """
    if not timeout > 0:
        raise ValueError(f"timeout = {timeout!r}: must be above 0 seconds")
    if type(retries) is not int or retries < 0:
        raise ValueError(f"retries = {retries!r}: must be an integer of 0 or more")
    search = _Search(dataset, Path(raw) / dataset.name, [Path(folder) / dataset.place for folder in folders])
    files = chosen(dataset, raw, folders) or dataset.files
    complaints = [line for file in files if (line := search.complaint(file, timeout, retries))]
    if complaints:
        raise FetchError("\n".join(complaints), dataset)
    for file in dataset.instead[-1:]:
        if file not in files:
            search.complaint(file, timeout, retries)
    return [search.raw / file.name for file in files]


def main(names: list[str]) -> int:
    """Fetch the named data sets into data/raw, one line per file on standard output.

    Returns 0, or 1 when a name is unknown or a file could not be had; the others are fetched all the same.
    """
    status = 0
    for name in names:
        try:
            dataset = catalogue.load(name)
            declared = {file.name for files in dataset.choices() for file in files if file.declared}
            for path in fetch(dataset):
                verified = "sha256 verified" if path.name in declared else "no sum is declared, so none was verified"
                print(f"{path}  {path.stat().st_size} bytes, {verified}", flush=True)
        except (FetchError, ValueError) as error:
            print(f"error: {error}", file=sys.stderr, flush=True)
            status = 1
    return status


class _Search:
    """The search for a data set's files: where they go, where they are looked for, and what became of it."""

    def __init__(self, dataset: Dataset, raw: Path, folders: list[Path]):
        self.dataset, self.raw, self.folders = dataset, raw, folders

    def complaint(self, file: File, timeout: float, retries: int) -> str:
        """Return nothing once the verified file is in the raw folder, else why it could not be had."""
        target = self.raw / file.name
        try:
            tried = self._tried(file, target, timeout, retries)
        except OSError as error:
            # Sources report through Unusable, so this is the raw folder itself: a full disk, a missing permission.
            place = error.filename or target
            return f"{file.name} ({self.dataset.title}): cannot use {place}: {error.strerror or error}"
        return "" if tried is None else self._message(file, tried)

    def _tried(self, file: File, target: Path, timeout: float, retries: int) -> list[tuple[str, Exception]] | None:
        """Return None once the verified file is at ``target``, else what was tried: (source, outcome)."""
        tried: list[tuple[str, Exception]] = []
        target.parent.mkdir(parents=True, exist_ok=True)
        for temporary in abandoned(target):
            temporary.unlink(missing_ok=True)
        if target.exists():
            try:
                _check_present(file, target)
            except Unusable as failure:
                tried.append((str(target), failure))
            else:
                return None
        for source in (path for folder in self.folders for path in places(folder, file.name)):
            try:
                _store(read(source, file.name), file, target)
            except Unusable as failure:
                tried.append((str(source), failure))
            else:
                _say(f"{target}: {'copied' if source.name == file.name else 'unpacked'} from {source}")
                return None
        for url in file.urls:
            try:
                with tempfile.TemporaryDirectory(dir=target.parent, prefix=".") as folder:
                    path = download(url, file.name, file.sha256, Path(folder), timeout, retries)
                    _store(read(path, file.name), file, target)
            except Unusable as failure:
                tried.append((url, failure))
            else:
                _say(f"{target}: fetched from {url}")
                return None
        return tried

    def _message(self, file: File, tried: list[tuple[str, Exception]]) -> str:
        own = self.folders[-1] if self.folders else self.raw
        wrong = [(source, outcome) for source, outcome in tried if source not in file.urls]
        if wrong:
            source, outcome = wrong[-1]
            reason = f"{source} is not it: {outcome}"
        elif file.urls and all(isinstance(outcome, NoNetwork) for _, outcome in tried):
            reason = "it is not here, and there is no connection to its publisher"
        else:
            reason = "it is not here, and no address gave it" if file.urls else "it is not here"
        lines = [f"{file.name} ({self.dataset.title}) could not be had: {reason}"]
        if file.declared:
            lines.append(f"  expected: {file.bytes} bytes, sha256 {file.sha256}")
        else:
            lines.append(f"  expected: your own file, as conf/dataset/{self.dataset.name}.yaml describes it")
        lines += [f"  tried:    {source}: {outcome}" for source, outcome in tried]
        if self.dataset.access == "bring-your-own":
            lines.append(f"  licence:  {self.dataset.licence}; it is not downloaded, each user has to obtain it")
        else:
            lines.append(f"  clone:    the repository has it in {ORIGINAL}/{self.dataset.place}/, no wheel does")
        packed = f" (plain, as {file.name}.gz or in a zip)"
        lines.append(f"  by hand:  get it from {self.dataset.origin} and put it into {own}/{packed}; then run again")
        return "\n".join(lines)


def _check_present(file: File, target: Path) -> None:
    """Raise Unusable, after moving it aside, when the file that is there is not the right one."""
    if file.sha256 == catalogue.ABSENT:
        return
    actual = checksum(target)
    if actual == (file.bytes, file.sha256):
        return
    head = _head(target)
    rejected = target.with_name(target.name + ".rejected")
    number = 1
    while os.path.lexists(rejected):
        number += 1
        rejected = target.with_name(f"{target.name}.rejected.{number}")
    try:
        os.rename(target, rejected)
    except FileNotFoundError:
        raise Unusable("moved aside by another process") from None
    # Another process may have put the right file there between the check and the move.
    if checksum(rejected) == (file.bytes, file.sha256):
        os.replace(rejected, target)
        return
    outcome = f"{_difference(file, *actual, head)}; moved aside to {rejected.name}"
    _say(f"{target}: {outcome}")
    raise Unusable(outcome)


def _head(path: Path) -> bytes:
    with path.open("rb") as handle:
        return handle.read(1 << 12)


def _store(chunks: Generator[bytes, None, None], file: File, target: Path) -> None:
    """Write the chunks to ``target`` if they are the file; raises Unusable, leaving nothing, if they are not."""
    # Somewhat more than expected is read, so that the message can give the sum of a slightly different file.
    limit = 2 * file.bytes + (1 << 20)
    digest = hashlib.sha256()
    size, head = 0, b""
    with contextlib.closing(chunks), replacing(target) as path, path.open("wb") as handle:
        for chunk in chunks:
            size += len(chunk)
            head = head or chunk[: 1 << 12]
            if file.declared and size > limit:
                raise Unusable(f"too long: more than {limit} bytes instead of {file.bytes}{likeness(head, file.name)}")
            digest.update(chunk)
            handle.write(chunk)
        if file.declared and (size, digest.hexdigest()) != (file.bytes, file.sha256):
            raise Unusable(_difference(file, size, digest.hexdigest(), head))


def _difference(file: File, size: int, sha256: str, head: bytes) -> str:
    if size < file.bytes:
        kind = "too short"
    elif size > file.bytes:
        kind = "too long"
    else:
        kind = "wrong content"
    return f"{kind}: found {size} bytes, sha256 {sha256}{likeness(head, file.name)}"


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
