"""`privpost list` and `privpost mechanisms`: what there is."""

from privpost import discovery
from privpost.commands import options
from privpost.lab import grid, published
from privpost.mechanisms.base import Mechanism
from privpost.progress import counted, minutes

COLUMNS = ("method", "class", "neighbours", "notion", "RDP curve", "norm", "releases", "exact", "public")


def studies(argv: list[str]) -> int:
    """Print every study with its title, and what its published run took."""
    parser = options.parser("list", "List the studies.")
    parser.add_argument("--json", action="store_true", help="print JSON")
    given = parser.parse_args(argv)
    times: dict[str, list[float]] = {}
    for row in published.read_times():
        times.setdefault(row["study"], []).append(float(row["wall_seconds"]))
    rows = [
        {
            "study": study.name,
            "cells": len(t := times.get(study.name, [])),
            "seconds": sum(t),
            "title": study.text["title"],
        }
        for study in grid.load_studies(None, given.scale)
    ]
    if given.json:
        return options.as_json(rows)
    for row in rows:
        cells = counted(row["cells"], "cell") if row["cells"] else "new"
        print(f"{row['study']:<34}{cells:>9}{minutes(row['seconds']):>10}   {row['title']}")
    return 0


def mechanisms(argv: list[str]) -> int:
    """Print what each mechanism of the package declares about itself."""
    parser = options.parser("mechanisms", "List the mechanisms.")
    parser.add_argument("--json", action="store_true", help="print JSON")
    given = parser.parse_args(argv)
    inherited = {"pure": "from its pure ε", "rdp": "none", "approximate": "none"}
    rows = [
        (
            kind.method,
            " ".join([kind.mechanism.__name__, *kind.settings.values()]),
            kind.mechanism.neighbours,
            kind.mechanism.notion,
            inherited[kind.mechanism.notion] if kind.mechanism.rdp is Mechanism.rdp else "its own",
            kind.mechanism.norm,
            kind.mechanism.releases,
            "exact" if kind.mechanism.exact else "mcmc",
            ", ".join(kind.mechanism.public_inputs),
        )
        for kinds in discovery.mechanisms().values()
        for kind in kinds
    ]
    if given.json:
        return options.as_json([dict(zip(COLUMNS, row, strict=True)) for row in rows])
    widths = [max(len(row[place]) for row in [COLUMNS, *rows]) for place in range(len(COLUMNS))]
    for row in [COLUMNS, *rows]:
        print("  ".join(word.ljust(width) for word, width in zip(row, widths, strict=True)).rstrip())
    return 0
