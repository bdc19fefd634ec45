"""Test error of private logistic regression (Geumlek et al. 2017, figure 3)."""

from privpost.experiments.geumlek2017 import panels


def draw(tables):
    """Return test error against ln epsilon in the paper's variant, OPS under each of its charges."""
    return panels.grid(tables["logistic"], "test_error", "paper")
