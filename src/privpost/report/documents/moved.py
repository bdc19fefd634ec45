"""Tables of docs/moved.md, which say what became of every name of version 0.1.0."""

from collections.abc import Mapping
from typing import Any

from privpost import moved
from privpost.evaluation.rows import markdown

PLURALS = {
    "study": "Studies",
    "claim": "Claims",
    "table": "Tables",
    "figure": "Figures",
    "name": "Names from `privpost`",
}


def values(published) -> Mapping[str, Any]:
    """Return the version, and for each kind of name a table of changed names and a list of unchanged names."""
    parts = {}
    for kind in moved.KINDS:
        of_kind = {name: now for (other, name), now in moved.names().items() if other == kind}
        changed = [(f"`{name}`", now) for name, now in of_kind.items() if now]
        same = ", ".join(f"`{name}`" for name, now in of_kind.items() if not now)
        parts[PLURALS.get(kind, f"{kind.title()}s")] = (
            markdown(("in 0.1.0", "today"), changed) if changed else "",
            same,
        )
    return {"version": moved.VERSION, "parts": parts}
