"""Emissions of the private HMM on Afghanistan (Foulds et al. 2016, supplement)."""

from privpost.experiments.foulds2016 import emission_bars


def draw(tables):
    """Return the bars of all five regional commands and of the dense part; see `emission_bars.draw`."""
    return emission_bars.draw(tables, ("afghanistan", "afghanistan_dense"))
