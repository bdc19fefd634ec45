"""Where the bytes of raw files come from: disks and networks, plain or packed."""

import http.client
import sys
import tempfile
import time
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Generator, Iterator
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

from privpost import __version__
from privpost.datasets.catalogue import File
from privpost.progress import Progress

CHUNK = 1 << 16
# Bytes per second below which a transfer is given up once it has lasted longer than the timeout.
SLOWEST_RATE = 1024
# An archive holds other members too, so that its size is not known beforehand.
LARGEST_ARCHIVE = 256 << 20


class Unusable(Exception):
    """One source did not give the file; ``retry`` says whether asking it again may help."""

    def __init__(self, outcome: str, retry: bool = False):
        super().__init__(outcome)
        self.retry = retry


def read(path: Path) -> Generator[bytes, None, None]:
    """Yield a file's bytes."""
    try:
        with open(path, "rb") as handle:
            while chunk := handle.read(CHUNK):
                yield chunk
    except (FileNotFoundError, NotADirectoryError):
        raise Unusable("no such file") from None
    except OSError as error:
        raise Unusable(f"not readable ({error.strerror or error})") from error


def gunzip(chunks: Iterator[bytes]) -> Generator[bytes, None, None]:
    """Yield what the bytes of a gzip file hold."""
    stream = zlib.decompressobj(wbits=31)
    try:
        for chunk in chunks:
            packed = chunk
            while packed:
                # A gzip file may consist of several members.
                if stream.eof:
                    stream = zlib.decompressobj(wbits=31)
                yield stream.decompress(packed)
                packed = stream.unused_data
    except zlib.error as error:
        raise Unusable(f"damaged gzip file ({error})") from error
    if not stream.eof:
        raise Unusable("truncated gzip file")


def _unzip(chunks: Iterator[bytes], member_name: str, folder: Path) -> Generator[bytes, None, None]:
    # Zip archives have their directory at the end, so that the whole archive is needed first.
    with tempfile.TemporaryFile(dir=folder) as packed:
        for chunk in chunks:
            packed.write(chunk)
            if packed.tell() > LARGEST_ARCHIVE:
                raise Unusable(f"archive too long: more than {LARGEST_ARCHIVE} bytes, given up")
        try:
            with zipfile.ZipFile(packed) as archive:
                members = [info for info in archive.infolist() if PurePosixPath(info.filename).name == member_name]
                if len(members) != 1:
                    raise Unusable(f"{len(members)} members called {member_name} in the archive")
                with archive.open(members[0]) as member:
                    while chunk := member.read(CHUNK):
                        yield chunk
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
            raise Unusable(f"damaged or unreadable zip archive ({error})") from error


def from_address(url: str, file: File, folder: Path, timeout: float) -> Generator[bytes, None, None]:
    """Yield a file's bytes from an address, unpacked if it names an archive, which is kept in `folder` meanwhile."""
    chunks = _download(url, file, timeout)
    name = PurePosixPath(urlsplit(url).path).name
    if name == file.name + ".gz":
        return gunzip(chunks)
    if name.endswith(".zip") and not file.name.endswith(".zip"):
        return _unzip(chunks, file.name, folder)
    return chunks


def _download(url: str, file: File, timeout: float) -> Generator[bytes, None, None]:
    headers = {"User-Agent": f"privpost/{__version__}", "Accept-Encoding": "identity"}
    received, progress = 0, Progress(sys.stderr)
    start = time.monotonic()
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=timeout) as response:
            declared = response.headers.get("Content-Length", "")
            total = int(declared) if declared.isdecimal() else None
            # read1 returns after each packet, so that a trickle cannot go on for ever unnoticed.
            while chunk := response.read1(CHUNK):
                received += len(chunk)
                progress.received(file.name, received, total)
                yield chunk
                elapsed = time.monotonic() - start
                if elapsed > timeout and received < SLOWEST_RATE * elapsed:
                    raise Unusable(f"too slow: {received} bytes in {elapsed:.1f} s", retry=True)
        if total is not None and received < total:
            raise Unusable(f"short read: {received} of {total} bytes", retry=True)
    except urllib.error.HTTPError as error:
        passing = error.code in (408, 425, 429) or error.code >= 500
        error.close()
        raise Unusable(f"HTTP status {error.code} {error.reason}", retry=passing) from error
    except (OSError, http.client.HTTPException) as error:
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        if isinstance(reason, TimeoutError):
            raise Unusable(f"no answer within {timeout:g} s after {received} bytes", retry=True) from error
        if received:
            raise Unusable(f"connection lost after {received} bytes ({reason})", retry=True) from error
        raise Unusable(f"no connection; is there a network? ({reason})", retry=True) from error
    finally:
        progress.clear()
