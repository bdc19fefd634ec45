"""Helpers of the studies on war logs: settings, models, and whether private metadata were used."""

from privpost.datasets import catalogue
from privpost.experiments.foulds2016.event_methods import Setup
from privpost.experiments.ranges import DATASET
from privpost.lab.schema import Choice, DatasetName
from privpost.models.events import EventCounts

COUNTS = DatasetName(task="counts", says=DATASET)
START = Choice(
    "random", "seeded",
    says="start of the chains: states at `random` (as in the paper), or `seeded`, the best of several by log joint; "
    "empty where no chain runs",
)  # fmt: skip


def setup_of(config, logs, n_states: int) -> Setup:
    """Return the setup that makes releases and samples with `n_states`. Naive Bayes has one cell and one state."""
    concentrations = {"transition": config.transition_concentration, "emission": config.emission_concentration}
    region = logs.region if n_states > 1 else [0]
    model = EventCounts.of(region, tuple(logs.sizes), n_states, **concentrations)
    return Setup.of(model, int(logs.counts[:, : logs.sizes[0]].sum()), config)


def uses_private_metadata(dataset: str) -> bool:
    """Return whether cells, regions or spellings of levels were read off the private records.

    As in the paper, real data sets leave out empty cells. Simulated data sets do not.
    """
    return catalogue.load(dataset).access != "generated"
