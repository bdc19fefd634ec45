"""Files that are whole or absent: checksums and replacement in one step."""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

# A live temporary file is written to far more often than this, so that an older one belongs to a killed process.
STALE_SECONDS = 3600.0


def checksum(path: Path) -> tuple[int, str]:
    """Return size in bytes and sha256 of a file; raises OSError when it cannot be read."""
    with open(path, "rb") as handle:
        sha256 = hashlib.file_digest(handle, "sha256").hexdigest()
        return handle.tell(), sha256


@contextlib.contextmanager
def replacing(target: Path) -> Iterator[BinaryIO]:
    """Open a temporary file beside ``target`` and rename it to ``target`` when the block ends well.

    After any exception, KeyboardInterrupt included, the temporary file is deleted and ``target`` is as it was. Every
    caller has its own temporary file, so that several processes can write the same target; the last one to finish wins.
    """
    temporary = target.with_name(f".{target.name}.{os.getpid()}-{secrets.token_hex(4)}.part")
    try:
        with open(temporary, "xb") as handle:
            yield handle
            handle.flush()
            os.fsync(handle.fileno())
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


def remove_stale(target: Path) -> None:
    """Delete temporary files of ``target`` that a killed process left more than an hour ago."""
    for path in target.parent.glob(f".{target.name}.*.part"):
        # Another process may delete it at the same moment.
        with contextlib.suppress(FileNotFoundError):
            if time.time() - path.stat().st_mtime > STALE_SECONDS:
                path.unlink()
