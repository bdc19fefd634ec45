"""Times of this machine: under build/, and in the place of the shipped ones only where they are to be recorded."""

import os
from pathlib import Path

RECORD = "PRIVPOST_RECORD"
_HOMES = {"results": Path("build"), "figures": Path("build/figures")}


def recorded() -> bool:
    """Whether the times of this run are to be shipped (`make reproduce RECORD=1`)."""
    return os.environ.get(RECORD) == "1"


def here(path: Path) -> Path:
    """Return where this machine's version of a shipped file of times is; other files stay where they are."""
    home = _HOMES.get(path.parts[0])
    return path if home is None else home.joinpath(*path.parts[1:])


def latest(path: Path) -> Path:
    """Return this machine's version of a file of times, or the shipped one where there is none."""
    return here(path) if here(path).is_file() else path


def texts(path: Path, text: str) -> dict[Path, str]:
    """Return what is to be written of measured times: the shipped file too where it is recorded, or missing."""
    return {here(path): text} | ({path: text} if recorded() or not path.is_file() else {})
