"""What claims on war logs share: words for data sets, and which chains have converged."""

from collections.abc import Iterator

from privpost.datasets import catalogue
from privpost.experiments.claim_helpers import convergence
from privpost.experiments.foulds2016.war_logs import title
from privpost.lab.claims import Part, about, number, word

# Drawn from a model with the published facts: these data have what the model has.
MADE_UP = ("iraq_simulated",)
# Our selection from the paper's data: the paper says nothing about it alone.
OWN_SELECTION = ("afghanistan_dense",)
# Standard errors of a paired difference over splits. The splits overlap in training and their standard error has few
# degrees of freedom; 5 leaves a joint rate of false alarms below 2 % for 14 comparisons even at 9 degrees (t law).
THRESHOLD = 5.0


def described(dataset: str) -> Iterator[Part]:
    """Yield the words `title`, `data` (marked where it is our selection) and `ours`, and whether it is a stand-in."""
    selected = dataset in OWN_SELECTION
    yield word("title", title(dataset))
    yield word("data", title(dataset) + " (our selection)" * selected)
    yield word("ours", "ours, after " * selected)
    yield from about(stand_in=catalogue.load(dataset).stand_in)


def reached(chains) -> Iterator[Part]:
    """Yield at how many of its settings each method's chains have converged: as evidence, and as the word `reached`."""
    counts = {}
    for method, rows in chains.groupby("method"):
        counts[method] = int(rows.converged.astype(bool).sum()), len(rows)
        yield from number(f"settings with chains that converged, {method}", "{} of {}".format(*counts[method]))
    yield word("reached", convergence(counts))
