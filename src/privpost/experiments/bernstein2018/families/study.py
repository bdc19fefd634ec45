"""Calibration of both algorithms for families that the paper does not try (ours), by the code of `calibration`.

A family is one file in `models`. Algorithm 1 takes counts of any number of categories, algorithm 2 any univariate
family with one increasing statistic t(x), whose sum is redacted to public bounds.
"""

import numpy as np

from privpost.evaluation.rows import places
from privpost.experiments.bernstein2018.calibration import study as calibration
from privpost.experiments.bernstein2018.trials import CHAINS
from privpost.lab.schema import Schema

SETTINGS = Schema(**CHAINS)
TABLES = {
    "families": {
        "distance_to_exact": "mean distance of the sampler's quantile from the exact posterior's [probability]",
    },
}


def simulate(config, streams, ledger) -> dict:
    """Return the arrays of `calibration.simulate`."""
    return calibration.simulate(config, streams, ledger)


def tabulate(cells):
    """Yield the KS tests, and for Gibbs the mean distance of its quantile from the exact posterior's."""
    gibbs, exact = (calibration.LINES.index(calibration.Line(method)) for method in ("gibbs", "exact"))
    gaps = {}
    for cell in cells:
        distances = np.abs(cell.arrays["quantiles"][gibbs] - cell.arrays["quantiles"][exact]).mean(axis=-1)
        for (i, j), point in places(cell.config, "n", "epsilon"):
            gaps[point.model, point.n, point.epsilon] = distances[:, i, j]
    for row in calibration.statistics_rows(cells):
        # OPS takes no part.
        del row["tempered"]
        place = int(row["parameter"].rpartition("_")[2]) - 1 if "_" in row["parameter"] else 0
        gap = gaps[row["model"], row["n"], row["epsilon"]][place] if row["method"] == "gibbs" else None
        yield {**row, "distance_to_exact": gap}
