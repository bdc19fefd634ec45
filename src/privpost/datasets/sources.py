"""Reads raw files from the project's folders and downloads them from publishers, plain or packed."""

import gzip
import re
import sys
import zipfile
import zlib
from collections.abc import Generator, Iterator
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from privpost import __version__

CHUNK = 1 << 16
# Status codes of a server's temporary failures, after which the server is asked again.
PASSING = (408, 425, 429)


class Unusable(Exception):
    """A source could not give the file."""


class NoNetwork(Unusable):
    """A publisher's server could not be reached."""


def places(folder: Path, name: str) -> Iterator[Path]:
    """Yield a folder's files that a raw file can come from: ``name``, ``name.gz``, and each zip that holds ``name``."""
    for path in (folder / name, folder / f"{name}.gz"):
        if path.exists():
            yield path
    # A zip that cannot be opened is yielded too, as `read` says what is wrong with it.
    for path in sorted(folder.glob("*.zip")):
        if path.name != name and (not zipfile.is_zipfile(path) or _members(path, name)):
            yield path


def _members(path: Path, name: str) -> list[zipfile.ZipInfo]:
    with zipfile.ZipFile(path) as archive:
        return [info for info in archive.infolist() if PurePosixPath(info.filename).name == name]


def read(path: Path, name: str) -> Generator[bytes, None, None]:
    """Yield the bytes of the raw file `name`. `path` is the file, its ``.gz`` or a ``.zip``. Raises Unusable."""
    try:
        if path.suffix == ".zip" and path.name != name:
            members = _members(path, name)
            if len(members) != 1:
                raise Unusable(f"{len(members)} members called {name} in the archive")
            with zipfile.ZipFile(path) as archive, archive.open(members[0]) as handle:
                yield from _chunks(handle)
        else:
            packed = path.name == f"{name}.gz"
            with gzip.open(path) if packed else path.open("rb") as handle:
                yield from _chunks(handle)
    except (zipfile.BadZipFile, gzip.BadGzipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise Unusable(f"damaged archive ({error})") from error
    except OSError as error:
        raise Unusable(f"not readable ({error.strerror or error})") from error


def _chunks(handle: Any) -> Iterator[bytes]:
    while chunk := handle.read(CHUNK):
        yield chunk


def download(url: str, name: str, sha256: str, folder: Path, timeout: float, retries: int) -> Path:
    """Download the raw file `name`, plain or packed, from an address into a folder. Return the path of the download.

    After a temporary failure the download is tried again, up to `retries` times. A file that is not packed must have
    the given sha256. Raises Unusable, saying why, if there is no such file, and NoNetwork if no connection was made.
    """
    import pooch
    import requests

    pooch.get_logger().setLevel("CRITICAL")
    stored = PurePosixPath(urlsplit(url).path).name or name
    known = None if stored == f"{name}.gz" or (stored.endswith(".zip") and stored != name) else f"sha256:{sha256}"
    # Save the download under the raw file's name unless it is packed, so that `read` knows how to read the download.
    stored = stored if known is None else name
    fetcher = pooch.create(folder, base_url="", registry={stored: known}, urls={stored: url}, retry_if_failed=retries)
    headers = {"User-Agent": f"privpost/{__version__}"}
    get = pooch.HTTPDownloader(progressbar=sys.stderr.isatty(), timeout=timeout, headers=headers)

    def once(url: str, output: Any, pooch_: Any) -> None:
        try:
            get(url, output, pooch_)
        except requests.HTTPError as error:
            if error.response.status_code in PASSING or error.response.status_code >= 500:
                raise
            raise Unusable(_status(error)) from error
        except requests.ConnectionError as error:
            if _unreachable(error):
                raise NoNetwork("no connection; is there a network?") from error
            raise
        with open(output, "rb") as handle:
            if strange := likeness(handle.read(1 << 12), stored):
                raise Unusable(f"wrong content{strange}")

    try:
        return Path(fetcher.fetch(stored, downloader=once))
    except requests.HTTPError as error:
        raise Unusable(f"{_status(error)} (asked {retries + 1} times)") from error
    except requests.Timeout as error:
        raise Unusable(f"no answer within {timeout:g} s (asked {retries + 1} times)") from error
    except requests.RequestException as error:
        raise Unusable(f"connection lost ({error}; asked {retries + 1} times)") from error
    except ValueError as error:
        # Pooch has removed the file, and the message of the error ends with advice.
        found = re.search("got ([0-9a-f]{64})", str(error))
        raise Unusable(f"wrong content: found sha256 {found[1]}" if found else f"wrong content ({error})") from error


def _status(error: Any) -> str:
    return f"HTTP status {error.response.status_code} {error.response.reason}"


def _unreachable(error: Exception) -> bool:
    """Whether no connection was made, for instance without a route or with a proxy that does not answer."""
    from urllib3.exceptions import NewConnectionError, ProxyError

    reason = getattr(error.args[0], "reason", None) if error.args else None
    return isinstance(reason, NewConnectionError | ProxyError)


def likeness(head: bytes, name: str) -> str:
    """Return a comma and words for what the first bytes of a wrong file look like, or "" if this is unknown."""
    packed = {b"\x1f\x8b": ".gz", b"PK\x03\x04": ".zip", b"\xfd7zXZ\x00": ".xz"}
    kind = next((ending for magic, ending in packed.items() if head.startswith(magic)), "")
    if head.lstrip()[:300].lower().startswith((b"<!doctype", b"<html", b"<?xml")):
        return ", an HTML page, as a server sends in place of a file"
    twice = kind == ".gz" and zlib.decompressobj(wbits=31).decompress(head, 2) == b"\x1f\x8b"
    if kind and (twice or not name.endswith(kind)):
        return f", itself a packed {kind} file: it was packed twice or has lost its ending"
    if name.endswith(tuple(packed.values())) and not kind:
        return ", unpacked: the archive itself is wanted"
    if b"\r\n" in head and head.isascii():
        return ", a text with Windows line ends (CRLF)"
    return ""
