"""Where things are: all paths are relative to the project's root."""

import os
import re
from pathlib import Path

from privpost import configurations

# What is published: results/ and figures/ at the root, tracked, written by `privpost publish` alone.
PUBLISHED = Path(".")
LOGS = Path("logs")
RAW = Path("data/raw")
PREPARED = Path("data/prepared")
# What a study, a table or a figure may be called.
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


def built(scale: str) -> Path:
    """Return the folder of all that this machine makes at a scale: cells, results, figures, documents, report."""
    return Path("build") if scale == "paper" else Path("build") / scale


class CannotWrite(OSError):
    """A file that could not be written (a full disk, a folder without permission); the message names it."""

    def __init__(self, path: Path, error: OSError):
        super().__init__(
            f"cannot write {path}: {error.strerror or error}. Finished results are kept: make room, or the folder "
            "writable, and run the same command again."
        )


def find_root(start: Path | None = None, *, checkout: bool = False) -> Path:
    """Return the project's root: the nearest folder at or above `start` that holds conf/config.yaml.

    Where there is none, an installed package that brings configurations takes `start` itself. Raises FileNotFoundError
    where it brings none, or `checkout` asks for a checkout.
    """
    start = Path.cwd() if start is None else start
    for folder in (start, *start.parents):
        if (folder / configurations.CHECKOUT / "config.yaml").is_file():
            return folder
    if configurations.PACKAGED.is_dir() and not checkout:
        return start
    raise FileNotFoundError(f"no conf/config.yaml at or above {start}: run privpost inside a checkout of the project")


def enter(*, checkout: bool = False) -> Path:
    """Change to the project's root and return it; errors as `find_root`."""
    root = find_root(checkout=checkout)
    os.chdir(root)
    return root


def plainly(error: OSError | MemoryError) -> str:
    """Return an error of the machine, not of the settings, in words for the terminal."""
    if isinstance(error, MemoryError):
        reason = str(error) or "an allocation failed"
        return f"not enough memory ({reason}); fewer trials or fewer cores take less"
    if isinstance(error, CannotWrite) or error.filename is None:
        return str(error)
    return f"cannot use {error.filename}: {error.strerror}"
