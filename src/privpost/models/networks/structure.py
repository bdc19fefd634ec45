"""Learn the graph of a Bayesian network from data, by the K2 search of Cooper and Herskovits (1992)."""

from collections.abc import Sequence

import numpy as np
from scipy.special import betaln

from privpost.models.networks import graphs


def family_score(child, parents) -> float:
    """Return the log marginal likelihood of bits `child` (n,) given the bits of its parents (n, k).

    The prior of θ is uniform for each configuration of the parents.
    """
    code = np.asarray(parents, np.int64).reshape(len(child), -1)
    code = code @ (1 << np.arange(code.shape[1]))
    total = np.bincount(code)
    ones = np.bincount(code, child, minlength=len(total))
    return float(betaln(1 + ones, 1 + total - ones).sum())


def k2(records, nodes: Sequence[str], most_parents: int) -> graphs.Graph:
    """Return the graph that greedy search finds for records of bits (n, nodes).

    Parents come before children in the order of `nodes`. The search adds the parent that raises the score of a node
    most, until no parent raises the score or the node has `most_parents`. It is not private, so the records must be
    public.
    """
    records = np.asarray(records)
    graph = []
    for i, node in enumerate(nodes):
        parents: list[int] = []
        best = family_score(records[:, i], records[:, parents])
        while len(parents) < most_parents:
            left = [j for j in range(i) if j not in parents]
            scores = {j: family_score(records[:, i], records[:, [*parents, j]]) for j in left}
            if not scores or max(scores.values()) <= best:
                break
            best = max(scores.values())
            parents.append(max(scores, key=scores.__getitem__))
        graph.append((node, [nodes[j] for j in sorted(parents)]))
    return graphs.checked(graph)
