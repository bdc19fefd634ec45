"""Data sets: fetched from their publishers, verified, parsed and encoded.

A data set is one file ``conf/dataset/<name>.yaml`` and one module ``privpost.datasets.<name>``; both are found by name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import os

    import numpy as np


class Design(NamedTuple):
    """A classification task split into training and test examples.

    Shapes: ``train_features`` (n, d) and ``test_features`` (m, d), float64, each row of L2 norm 1 (or a zero row);
    ``train_labels`` (n,) and ``test_labels`` (m,), int8, 0 or 1.
    """

    train_features: np.ndarray
    train_labels: np.ndarray
    test_features: np.ndarray
    test_labels: np.ndarray

    def resplit(self, rng: np.random.Generator) -> Design:
        """Return the same examples in a new random split of the same sizes."""
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
    """Read a prepared data set, encode it and split it for logistic regression.

    ``bounds`` is "data" (minimum and maximum over all rows, which are private) or "public" (declared bounds, to which
    values are clipped); ``dropped_level`` is "first", "last" or "none". A random split draws one permutation from
    ``rng``; an official split draws nothing. Raises ValueError for an unknown data set or setting and for a prepared
    file that does not match, and FileNotFoundError when there is no prepared file. The encoding is that of Geumlek et
    al. (2017), section 5.
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
