"""US extract of IPUMS-International, made by each user under IPUMS' licence (Zhang et al. 2016, figure 2)."""

from pathlib import Path

import numpy as np

from privpost.datasets import census
from privpost.datasets.catalogue import Dataset


def parse(paths: dict[str, Path], dataset: Dataset) -> dict[str, np.ndarray]:
    """Read the CSV into float64 arrays of shape (n,), one per column with declared bounds.

    Raises ValueError naming the file, and the line or the columns at fault.
    """
    (path,) = paths.values()
    columns = {name: name for name in dataset.public["bounds"]}
    with path.open(encoding="utf-8-sig", newline="") as lines:
        arrays = census.rows(lines, columns, str(path))
    census.check(arrays, dataset, str(path))
    return arrays
