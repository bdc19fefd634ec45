"""The places of files; all paths are relative to the project's root."""

import os
import re
import shutil
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
    return Path("build") / scale


class CannotWrite(OSError):
    """A file that could not be written (a full disk, a folder without permission); the message names it."""

    def __init__(self, path: Path, error: OSError):
        super().__init__(
            f"cannot write {path}: {error.strerror or error}. Finished results are kept: make room, or the folder "
            "writable, and run the same command again."
        )


def enter(*, checkout: bool = False) -> None:
    """Change to the project's root: the nearest folder here or above that holds conf/config.yaml.

    Where there is none, an installed package that brings configurations stays where it is. Raises FileNotFoundError
    where it brings none, or `checkout` asks for a checkout.
    """
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / configurations.CHECKOUT / "config.yaml").is_file():
            os.chdir(folder)
            return
    if checkout or not configurations.PACKAGED.is_dir():
        raise FileNotFoundError(
            f"no conf/config.yaml at or above {here}: run privpost inside a checkout of the project"
        )


def remove(folder: Path) -> None:
    """Remove a folder, if there is one; raises OSError, naming it, where it cannot be removed."""
    if not folder.exists():
        return
    try:
        shutil.rmtree(folder)
    except OSError as error:
        if error.strerror:
            # The system names a file in the folder, without the folder.
            error.filename = os.fspath(folder)
        raise


def plainly(error: OSError | MemoryError) -> str:
    """Return an error of the machine, not of the settings, in words for the terminal."""
    if isinstance(error, MemoryError):
        reason = str(error) or "an allocation failed"
        return f"not enough memory ({reason}); fewer trials or fewer cores take less"
    if isinstance(error, CannotWrite) or error.filename is None:
        return str(error)
    return f"cannot use {error.filename}: {error.strerror}"
