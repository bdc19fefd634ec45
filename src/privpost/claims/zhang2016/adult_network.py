"""Private Bayesian networks of 14 nodes on Adult."""

from __future__ import annotations


def claims(tables) -> list:
    """Return no claim: the paper has no such experiment."""
    return []
