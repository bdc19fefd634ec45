"""Test log-likelihood of private logistic regression (Geumlek et al. 2017, appendix)."""

from privpost.figures.geumlek2017 import panels


def draw(tables):
    """Return test log-likelihood against ln epsilon in the paper's variant, OPS at its exact charge beside it."""
    note = panels.NOTE + "; features scaled by the data's own range, which is private"
    return panels.grid(tables["logistic"], "test_log_likelihood", "paper", compare_ops=True, note=note)
