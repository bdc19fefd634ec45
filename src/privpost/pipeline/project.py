"""Where the project is: all paths of the pipeline are relative to its root."""

from __future__ import annotations

import os
from pathlib import Path

CONF = Path("conf")
LOGS = Path("logs")
STATE = Path(".snakemake/privpost")


def find_root(start: Path | None = None) -> Path:
    """Return the project's root: the nearest folder at or above `start` that holds conf/config.yaml.

    Raises FileNotFoundError when there is none.
    """
    start = Path.cwd() if start is None else start
    for folder in (start, *start.parents):
        if (folder / CONF / "config.yaml").is_file():
            return folder
    raise FileNotFoundError(f"no conf/config.yaml at or above {start}: run privpost inside a checkout of the project")


def enter() -> Path:
    """Change to the project's root and return it."""
    root = find_root()
    os.chdir(root)
    return root
