"""Stores in the build what takes long to compute, together with the state of everything that it depends on."""

import contextlib
import json
from pathlib import Path
from typing import Any

from privpost.atomic import replacing


def read(path: Path, state: str) -> Any:
    """Return the value that was stored with this state, or None if there is none or the file is damaged."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        record = json.loads(path.read_text(encoding="utf-8"))
        if record["state"] == state:
            return record["value"]
    return None


def write(path: Path, state: str, value: Any) -> None:
    """Store a value of JSON's types. Where nothing can be written, the value is computed again next time."""
    with contextlib.suppress(OSError), replacing(path) as temporary:
        temporary.write_text(json.dumps({"state": state, "value": value}), encoding="utf-8")
