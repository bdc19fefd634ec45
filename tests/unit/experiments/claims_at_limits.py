"""Claims on tables made by hand, whose rows are just inside or just outside a claim's limits."""

from __future__ import annotations

from statistics import NormalDist

import pandas as pd

from privpost.lab.claims import declared


def scored(module, id: str, **tables):
    (claim,) = (each for each in declared(module) if each.id == id)
    return claim.score(tables)


def failed(module, id: str, **tables) -> set[str]:
    return set(scored(module, id, **tables).failed)


def limit(tests: float, sides: int = 1, level: float = 0.05) -> float:
    """Standard errors that a normal difference of 0 exceeds in several tests with 5 % together (Bonferroni)."""
    return NormalDist().inv_cdf(1 - level / sides / tests)


def moved(table, where: dict, **values) -> pd.DataFrame:
    """The table with other values in the rows with the values `where`."""
    here = pd.Series(True, index=table.index)
    for name, value in where.items():
        here &= table[name] == value
    assert here.any()
    return table.assign(**{name: table[name].mask(here, value) for name, value in values.items()})
