"""`privpost list` and `privpost mechanisms`: print all studies, and all mechanisms."""

from argparse import Namespace

from privpost import discovery
from privpost.lab import grid, published
from privpost.mechanisms.base import Mechanism
from privpost.progress import counted, minutes

COLUMNS = ("method", "class", "neighbours", "notion", "RDP curve", "norm", "releases", "exact", "public")


def studies(given: Namespace) -> int:
    """Print every study with its title and the time of its published run."""
    times = published.expected_seconds()
    for study in grid.load_studies(None, given.scale):
        of_study = [seconds for of_slug in times.get(study.name, {}).values() for seconds in of_slug]
        cells = counted(len(of_study), "cell") if of_study else "new"
        print(f"{study.name:<34}{cells:>9}{minutes(sum(of_study)):>10}   {study.text['title']}")
    return 0


def mechanisms(given: Namespace) -> int:
    """Print what each mechanism of the package declares about itself."""
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
    widths = [max(len(row[place]) for row in [COLUMNS, *rows]) for place in range(len(COLUMNS))]
    for row in [COLUMNS, *rows]:
        print("  ".join(word.ljust(width) for word, width in zip(row, widths, strict=True)).rstrip())
    return 0
