"""`privpost list` and `privpost mechanisms`: what there is."""

import argparse

from privpost import discovery
from privpost.lab import grid
from privpost.mechanisms.base import Mechanism
from privpost.progress import counted


def studies(argv: list[str]) -> int:
    """Print every study with its number of cells."""
    argparse.ArgumentParser(prog="privpost list", description="List the studies.").parse_args(argv)
    for study in grid.load_studies():
        print(f"{study.name:<36} {counted(len(grid.expand(study)), 'cell'):>10}   {study.config['title']}")
    return 0


def mechanisms(argv: list[str]) -> int:
    """Print what each mechanism of the package declares about itself."""
    argparse.ArgumentParser(prog="privpost mechanisms", description="List the mechanisms.").parse_args(argv)
    columns = ("method", "class", "neighbours", "notion", "RDP curve", "norm", "releases", "exact", "public")
    inherited = {"pure": "from its pure ε", "rdp": "none", "approximate": "none"}
    rows = [
        (
            kind.method,
            kind.__name__,
            kind.neighbours,
            kind.notion,
            inherited[kind.notion] if kind.rdp is Mechanism.rdp else "its own",
            kind.norm,
            kind.releases,
            "exact" if kind.exact else "mcmc",
            ", ".join(kind.public_inputs),
        )
        for kinds in discovery.mechanisms().values()
        for kind in kinds
    ]
    widths = [max(len(row[place]) for row in [columns, *rows]) for place in range(len(columns))]
    for row in [columns, *rows]:
        print("  ".join(word.ljust(width) for word, width in zip(row, widths, strict=True)).rstrip())
    return 0
