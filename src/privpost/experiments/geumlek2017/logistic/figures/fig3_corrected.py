"""Test error of private logistic regression with public feature bounds (ours)."""

from privpost.experiments.geumlek2017 import panels


def draw(tables):
    """Return test error against ln epsilon in the corrected variant; the paper's where there is no other (smoke)."""
    table = tables["logistic"]
    variant = "corrected" if (table.variant == "corrected").any() else "paper"
    return panels.grid(table, "test_error", variant)
