"""Data sets: fetched from their publishers, verified, parsed and encoded.

A data set is one file ``conf/dataset/<name>.yaml`` and one module ``privpost.datasets.<name>``. Both are found by name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import os

    import numpy as np


class Design(NamedTuple):
    """A classification task that is split into training and test examples.

    Features are (examples, d) float64, with rows of L2 norm 1 or 0. Labels are (examples,) int8, 0 or 1.
    """

    train_features: np.ndarray
    train_labels: np.ndarray
    test_features: np.ndarray
    test_labels: np.ndarray

    def resplit(self, rng: np.random.Generator) -> Design:
        """Return the examples in a new random split. The sizes of both parts stay as they are."""
        import numpy as np

        features = np.concatenate([self.train_features, self.test_features])
        labels = np.concatenate([self.train_labels, self.test_labels])
        train, test = map(np.sort, np.split(rng.permutation(len(labels)), [len(self.train_labels)]))
        return Design(features[train], labels[train], features[test], labels[test])


def load_design(
    name: str,
    *,
    bounds: str,
    dropped_level: str,
    rng: np.random.Generator,
    prepared: str | os.PathLike[str] = "data/prepared",
    conf: str | os.PathLike[str] | None = None,
) -> Design:
    """Read a prepared data set, encode it (`encoding.encode`) and split it for logistic regression.

    A random split draws one permutation from ``rng``. An official split draws nothing. Raises ValueError for an unknown
    data set or setting and for a prepared file that does not match, and FileNotFoundError without a prepared file.
    """
    # Imported here, so that the catalogue and `fetch`, which are in this package, need not load numpy.
    import numpy as np

    from privpost.datasets import catalogue, encoding
    from privpost.datasets import prepared as store

    dataset = catalogue.load(name, conf)
    loader = dataset.loader()
    if not hasattr(loader, "task"):
        raise ValueError(f"dataset = {name!r}: has no classification task (its loader defines no task function)")
    task = loader.task(store.read(name, dataset, prepared=prepared), dataset)
    features = encoding.encode(
        task.numeric, task.categorical, bounds=bounds, dropped_level=dropped_level, dataset=dataset
    )
    train, test = encoding.split(task, dataset, rng)
    labels = task.labels.astype(np.int8)
    return Design(features[train], labels[train], features[test], labels[test])
