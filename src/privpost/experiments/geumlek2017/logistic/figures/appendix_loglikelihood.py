"""Test log-likelihood of private logistic regression (Geumlek et al. 2017, appendix)."""

from privpost.experiments.geumlek2017 import panels


def draw(tables):
    """Return test log-likelihood against ln epsilon in the paper's variant, OPS under each of its charges."""
    return panels.grid(tables["logistic"], "test_log_likelihood", "paper")
