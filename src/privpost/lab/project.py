"""The project's files and folders. All paths are relative to the project's root."""

import os
import re
import shutil
from pathlib import Path

from privpost import configurations

# The root of the published results/ and figures/, which Git tracks and only `privpost publish` writes.
PUBLISHED = Path(".")
LOGS = Path("logs")
RAW = Path("data/raw")
PREPARED = Path("data/prepared")
# Names that studies, tables and figures may have.
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


def built(scale: str) -> Path:
    """Return the folder of everything that is built at a scale: cells, results, figures, documents and report."""
    return Path("build") / scale


class CannotWrite(OSError):
    """Raised if a file cannot be written, for instance on a full disk. The message names the file."""

    def __init__(self, path: Path, error: OSError):
        super().__init__(
            f"cannot write {path}: {error.strerror or error}. Finished results are kept: free space on the disk, "
            "or make the folder writable, and run the same command again."
        )


def enter(*, checkout: bool = False) -> None:
    """Change to the project's root, which is the nearest folder here or above that holds conf/config.yaml.

    If there is no root, an installed package with configurations stays in the current folder. Raises FileNotFoundError
    if the package has no configurations, or if `checkout` requires a checkout.
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
    """Remove a folder if it exists. Raises OSError, naming the folder, if it cannot be removed."""
    if not folder.exists():
        return
    try:
        shutil.rmtree(folder)
    except OSError as error:
        if error.strerror:
            # The system's error names the file, but not the file's folder.
            error.filename = os.fspath(folder)
        raise


def plainly(error: OSError | MemoryError) -> str:
    """Return a message in plain words for an error of the machine, such as a full disk or not enough memory."""
    if isinstance(error, MemoryError):
        reason = str(error) or "an allocation failed"
        return f"not enough memory ({reason}); fewer trials or fewer cores take less"
    if isinstance(error, CannotWrite) or error.filename is None:
        return str(error)
    return f"cannot use {error.filename}: {error.strerror}"
