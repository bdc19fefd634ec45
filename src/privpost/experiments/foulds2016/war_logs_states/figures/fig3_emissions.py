"""Emissions of the private HMM on the Iraq stand-ins (Foulds et al. 2016, figure 3)."""

from privpost.experiments.foulds2016 import emission_bars


def draw(tables):
    """Return the bars of both stand-ins for Iraq; see `emission_bars.draw`."""
    return emission_bars.draw(tables, ("iraq_sigact", "iraq_simulated"))
