"""Says what became of the names of version 0.1.0: studies, claims, tables, figures, commands and public names.

`moved.csv` has a row for each name. The entry `now` is empty if the name has kept its meaning.
"""

import csv
import functools
from pathlib import Path

VERSION = "0.1.0"
KINDS = ("study", "claim", "table", "figure", "name", "command")


@functools.cache
def names() -> dict[tuple[str, str], str]:
    """Return, by kind and name, what became of each name of version 0.1.0, with "" for unchanged names."""
    with Path(__file__).with_suffix(".csv").open(encoding="utf-8", newline="") as file:
        return {(row["kind"], row["name"]): row["now"] for row in csv.DictReader(file)}


def told(kind: str, name: str) -> str:
    """Return a sentence on what replaced a retired or renamed name, after a space; "" for any other name."""
    now = names().get((kind, name), "")
    return f" {name} was a {kind} of version {VERSION}: {now}." if now else ""
