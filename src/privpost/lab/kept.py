"""What one start worked out for the next ones: JSON under .snakemake, each file beside the digest of its own text.

A file's name says all that its value depends on, so that a value is never out of date; a damaged file counts as none.
"""

import contextlib
import hashlib
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from privpost.lab import store


def digest(*words: str) -> str:
    """Return a digest of some words, for a name."""
    return hashlib.sha256(json.dumps(words).encode()).hexdigest()[:20]


def read(path: Path) -> Any:
    """Return the value that a file keeps; None where there is no such file, or a damaged one."""
    # Another process may take the folder away once what it is named after has changed.
    with contextlib.suppress(OSError, ValueError):
        found, text = path.read_text(encoding="utf-8").split("\n")
        if found == digest(text):
            return json.loads(text)
    return None


def write(folder: Path, values: Mapping[str, Any]) -> None:
    """Write values into a folder by their files' names, and forget the folders beside it: those of a former state.

    A folder that cannot be written (a read-only checkout) only makes the next start slower.
    """
    with contextlib.suppress(OSError):
        for other in folder.parent.glob("*"):
            if other != folder:
                shutil.rmtree(other, ignore_errors=True)
        for name, value in values.items():
            write_file(folder / name, value)


def write_file(path: Path, value: Any) -> None:
    """Write one value; raises OSError where that cannot be."""
    text = json.dumps(value)
    # By rename, since several processes may write at once.
    store.write_text(path, f"{digest(text)}\n{text}")
