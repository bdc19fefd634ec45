"""Error of the marginals of privately released Bayesian networks, on small graphs."""


def claims(tables) -> list:
    """Return no claim: the paper has no such experiment."""
    return []
