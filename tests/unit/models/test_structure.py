"""The K2 search: its score against the marginal likelihood, its graph against exhaustive search."""

import itertools

import numpy as np
import pytest
from scipy.integrate import quad

from privpost.models.networks import graphs
from privpost.models.networks.bayesian_network import BayesianNetwork
from privpost.models.networks.structure import family_score, k2


def test_the_score_is_the_marginal_likelihood():
    child, parents = np.array([1, 0, 1, 1]), np.array([[0], [0], [1], [1]])
    # Per configuration: one of two is 1, and two of two; quadrature's own tolerance.
    exact = quad(lambda x: x * (1 - x), 0, 1)[0] * quad(lambda x: x**2, 0, 1)[0]
    assert family_score(child, parents) == pytest.approx(np.log(exact), rel=1e-10)


def test_the_graph_of_the_data_is_found():
    model = BayesianNetwork({"a": [], "b": [], "c": ["a", "b"], "d": ["c"]})
    theta = np.array([0.4, 0.6, 0.1, 0.5, 0.6, 0.95, 0.2, 0.9])
    records = model.sample_data(theta, 20_000, np.random.default_rng(1))
    assert k2(records, model.nodes, 2) == model.parents
    assert max(len(parents) for _, parents in k2(records, model.nodes, 1)) == 1


def test_each_family_is_the_best_of_all_small_ones():
    model = BayesianNetwork(graphs.banded(5, 2))
    rng = np.random.default_rng(2)
    records = model.sample_data(rng.uniform(0.05, 0.95, model.theta_shape), 5000, rng)
    for i, (_, parents) in enumerate(k2(records, model.nodes, 2)):
        best = max(
            (subset for size in range(3) for subset in itertools.combinations(range(i), size)),
            key=lambda subset: family_score(records[:, i], records[:, list(subset)]),
        )
        assert tuple(model.nodes[j] for j in best) == parents
