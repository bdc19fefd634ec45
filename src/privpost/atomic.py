"""Writes files that are either complete or absent, and holds back signals."""

import contextlib
import errno
import glob
import os
import secrets
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

# The random part of a temporary file's name, as a pattern.
RANDOM = "[a-z0-9_]" * 8
# The age in seconds above which a temporary file cannot belong to a running process.
ABANDONED = 3600.0
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextlib.contextmanager
def replacing(path: Path, *, new: bool = False) -> Iterator[Path]:
    """Yield a temporary path, whose file replaces `path` if the block ends without an error.

    A power failure leaves either the old file or the new file. If several processes write a file, the last one wins.

    Args:
        path: the file. If the file's folder is missing, it is made.
        new: whether to refuse to replace a file.

    Raises:
        FileExistsError: `new` is set and the file exists.
        OSError: the file cannot be written. Its `filename` is `path` if the system names no file.
    """
    stem, suffix = _parts(path)
    temporary = path.with_name(f".{stem}.{secrets.token_hex(4)}{suffix}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.open("xb").close()
        yield temporary
        with temporary.open("rb") as written:
            os.fsync(written.fileno())
        if new:
            claim(temporary, path)
        else:
            os.replace(temporary, path)
    except OSError as error:
        error.filename = error.filename or os.fspath(path)
        raise
    finally:
        # There is nothing to remove after the rename, or if the folder cannot be used.
        with contextlib.suppress(OSError):
            temporary.unlink()


def claim(temporary: Path, path: Path) -> None:
    """Give a temporary file a second name. Raises FileExistsError if this name is taken."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise
    except OSError:
        # If the file system has no links, an empty file claims the name.
        path.open("x").close()
        try:
            os.replace(temporary, path)
        except BaseException:
            path.unlink()
            raise


def sync_folder(path: Path) -> None:
    """Write a file's name to the disk, if the file system can do so."""
    folder = os.open(os.path.dirname(os.path.realpath(path)), os.O_RDONLY)
    try:
        os.fsync(folder)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(folder)


@contextlib.contextmanager
def signals_held() -> Iterator[Callable[[], None]]:
    """Yield a function. After a call of this function, signals wait until the block has ended."""
    waiting: list[int] = []
    before: dict[int, Any] = {}

    def hold():
        if not before and threading.current_thread() is threading.main_thread():
            before.update({number: signal.signal(number, lambda got, _: waiting.append(got)) for number in _SIGNALS})

    try:
        yield hold
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for number in waiting:
            os.kill(os.getpid(), number)


def is_abandoned(path: Path) -> bool:
    """Whether a temporary file is so old that its process must have been killed."""
    try:
        return time.time() - path.stat().st_mtime > ABANDONED
    except FileNotFoundError:
        # A running process has just renamed the temporary file.
        return False


def abandoned_in(folder: Path, pattern: str = f".*.{RANDOM}.*") -> list[Path]:
    """Return the abandoned temporary files in a folder. `pattern` selects files by name."""
    return [path for path in sorted(folder.glob(pattern)) if is_abandoned(path)]


def abandoned(path: Path) -> list[Path]:
    """Return the abandoned temporary files of `path`."""
    stem, suffix = _parts(path)
    return abandoned_in(path.parent, f".{glob.escape(stem)}.{RANDOM}{glob.escape(suffix)}")


def _parts(path: Path) -> tuple[str, str]:
    # Names of these lengths are short enough for any file system.
    return path.stem[:40], path.suffix[:20]
