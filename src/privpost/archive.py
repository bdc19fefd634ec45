"""Reads archives of arrays (.npz) either completely or not at all, and computes checksums of arrays."""

import hashlib
import os
import stat
import zipfile
import zlib
from collections.abc import Callable, Mapping

import numpy as np

# Errors of numpy and zipfile on damaged or foreign files: AttributeError and TypeError come from a plain .npy file,
# RuntimeError and OSError from a flipped bit that claims encryption, another compression or an impossible offset.
_UNREADABLE = (
    zipfile.BadZipFile, zlib.error, EOFError, KeyError, ValueError, TypeError, AttributeError, RuntimeError,
    MemoryError, OSError,
)  # fmt: skip


class Damaged(ValueError):
    """Raised if a file is damaged, is no archive, or lacks a text that the caller asked for."""


def read(path: str | os.PathLike[str], *texts: str) -> tuple[dict[str, np.ndarray], list[str]]:
    """Return an archive's arrays by name, and a list of texts: the entries with the names in `texts`.

    Raises Damaged if the file is no archive with these texts, and PermissionError if the file may not be read.
    """
    try:
        # Opening a pipe would wait for a writer.
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise Damaged("no regular file")
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        return arrays, [str(arrays.pop(name)) for name in texts]
    except (PermissionError, Damaged):
        raise
    except _UNREADABLE as error:
        raise Damaged(f"{type(error).__name__}: {error}") from error


def checksum(arrays: Mapping[str, np.ndarray], head: Callable[[str, np.ndarray], str]) -> str:
    """Return the sha256 of arrays in the order of their names. Before each array, the text from `head` is hashed."""
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(head(name, array).encode())
        digest.update(array.tobytes())
    return digest.hexdigest()
