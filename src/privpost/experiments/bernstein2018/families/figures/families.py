"""Calibration of noise-aware posteriors of further families (ours)."""

from privpost.experiments.bernstein2018.calibration.figures.fig1a_ks import first_parameter, ks_panels


def draw(tables):
    """Return the figure: KS statistic of U against n, one column per family, one row per ε of ε-DP; lines as figure 1a.

    Public bounds; of categories the first.
    """
    return ks_panels(first_parameter(tables["families"].replace({"model": {"multinomial": "10 categories"}})))
