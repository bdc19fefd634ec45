"""Bayesian networks: graphs and their errors, statistics, exact marginals, and the four mechanisms on them."""

import itertools
import time

import networkx
import numpy as np
import pytest
from scipy.special import logsumexp

from privpost import configurations
from privpost.experiments.zhang2016.bounds import study as bounds
from privpost.experiments.zhang2016.settings import Network
from privpost.mechanisms.choices.map_estimate import (
    GRID,
    MapMechanism,
    choose,
    largest_changes,
    utility,
    utility_sensitivity,
)
from privpost.mechanisms.draws.network import AttributeSampler, RecordSampler
from privpost.mechanisms.noise.fourier import FourierMechanism
from privpost.mechanisms.noise.network import NetworkLaplace
from privpost.models import BetaBernoulli
from privpost.models.networks import graphs
from privpost.models.networks.bayesian_network import BayesianNetwork
from privpost.models.networks.fourier_basis import closure, largest_flips, signed_sums, transforms

CHAIN = {"a": [], "b": ["a"], "c": ["b"]}
COLLIDER = {"a": [], "b": [], "c": ["a", "b"]}
THREE_PARENTS = {"a": [], "b": [], "c": ["a"], "d": ["c", "a", "b"]}
SMALL = [CHAIN, COLLIDER, THREE_PARENTS, {"y": [], "x1": ["y"], "x2": ["y"]}, {"child": ["parent"], "parent": []}]
every_graph = pytest.mark.parametrize("graph", SMALL, ids=str)


# Graphs


@pytest.mark.parametrize(
    "nodes, message",
    [
        ({"a": ["c"], "b": ["a"], "c": ["b"]}, r"node '[abc]' is in a cycle: . -> . -> . -> ."),
        ({"a": ["a"]}, "node 'a' is in a cycle: a -> a"),
        ({"a": [], "b": ["z"]}, "node 'b': unknown parent 'z'; the nodes are a, b"),
        ({"a": [], "b": ["a", "a"]}, "node 'b': parent 'a' is given twice"),
        ({"a": [], "b": "a"}, "node 'b': parents is 'a'; it must be a list"),
        ([("a", []), ("a", [])], "node 'a' is given twice"),
        ({f"x{i}": [] for i in range(1001)}, "nodes are 1001; a network may have at most 1000"),
        (
            {f"x{i}": [f"x{j}" for j in range(17)] if i == 17 else [] for i in range(18)},
            "'x17' has 17 parents; at most 16",
        ),
        ({}, "nodes is empty"),
    ],
)
def test_malformed_graphs_are_errors_that_name_the_node(nodes, message):
    with pytest.raises(ValueError, match=message):
        BayesianNetwork(nodes)


def test_values_other_than_bits_are_errors_that_name_the_node():
    model = BayesianNetwork(CHAIN)
    with pytest.raises(ValueError, match="node 'b': data has values other than 0 and 1"):
        model.sufficient_statistics([[0, 2, 1]])
    with pytest.raises(ValueError, match="node 'c': data has values other than 0 and 1"):
        model.sufficient_statistics([[0, 1, 0.5]])
    with pytest.raises(ValueError, match="data has 2 columns; the network has 3 nodes"):
        model.sufficient_statistics([[0, 1]])
    with pytest.raises(ValueError, match="alpha is 0"):
        BayesianNetwork(CHAIN, 0, 1)


@pytest.mark.parametrize("name", ["chain", "naive_bayes", "collider", "three_parents", "asia"])
def test_example_files_formulas_and_digraphs_agree(name):
    path = configurations.folder() / "network" / f"{name}.yaml"
    model = BayesianNetwork.from_yaml(path)
    assert graphs.named(name) == (name, model.parents) == graphs.named(str(path))
    assert graphs.from_formula(graphs.formula(model.parents)) == model.parents
    assert Network().normalise(Network().normalise(name)) == Network().normalise(name)
    digraph = networkx.DiGraph()
    digraph.add_nodes_from(model.nodes)
    digraph.add_edges_from((parent, node) for node, parents in model.parents for parent in parents)
    assert networkx.is_directed_acyclic_graph(digraph)
    other = BayesianNetwork.from_digraph(digraph)
    assert other.nodes == model.nodes
    assert [set(parents) for _, parents in other.parents] == [set(parents) for _, parents in model.parents]


def test_asia_is_the_chest_clinic():
    _, graph = graphs.named("asia")
    assert len(graph) == 8
    assert sum(len(parents) for _, parents in graph) == 8
    assert dict(graph)["either"] == ("tuberculosis", "lung_cancer")
    assert len(closure(BayesianNetwork(graph))) == 21


def test_wrong_descriptions_are_named(tmp_path):
    bad = tmp_path / "bad.yaml"
    bad.write_text("nodes:\n  a: [b]\n")
    with pytest.raises(ValueError, match=r"bad\.yaml: node 'a': unknown parent 'b'"):
        graphs.named(str(bad))
    # One of the two was lost.
    bad.write_text("nodes:\n  a: []\n  b: []\n  b: [a]\n")
    with pytest.raises(ValueError, match=r"bad\.yaml: not valid YAML: line 4: 'b' is given twice"):
        graphs.from_yaml(bad)
    bad.write_text("edges: []\n")
    with pytest.raises(ValueError, match="must hold one key, nodes"):
        graphs.from_yaml(bad)
    with pytest.raises(ValueError, match=r"no such file"):
        graphs.from_yaml(tmp_path / "none.yaml")
    with pytest.raises(ValueError, match="graph 'nothing' is unknown; known are asia, chain"):
        graphs.named("nothing")
    with pytest.raises(ValueError, match="is not a formula"):
        graphs.named("pair [a][b|]")
    with pytest.raises(ValueError, match="takes another number of sizes"):
        graphs.named("chain_3_4")


def test_families():
    assert graphs.chain(3) == (("x0", ()), ("x1", ("x0",)), ("x2", ("x1",)))
    assert dict(graphs.naive_bayes(2)) == {"y": (), "x1": ("y",), "x2": ("y",)}
    assert dict(graphs.collider(2)) == {"x1": (), "x2": (), "y": ("x1", "x2")}
    assert dict(graphs.banded(4, 2))["x3"] == ("x1", "x2")


# Model


@every_graph
def test_statistics_are_counts_of_the_families(graph):
    model = BayesianNetwork(graph)
    data = np.random.default_rng(1).integers(0, 2, (5, 40, len(graph)))
    counts = model.pairs(model.sufficient_statistics(data))
    assert counts.shape == (5, *model.theta_shape, 2)
    place = 0
    for node, parents in graph.items():
        for configuration in itertools.product((0, 1), repeat=len(parents)):
            columns = [model.nodes.index(parent) for parent in parents]
            governed = np.all(data[..., columns] == configuration, axis=-1)
            ones = data[..., model.nodes.index(node)] == 1
            assert np.array_equal(counts[:, place, 0], (governed & ones).sum(axis=-1))
            assert np.array_equal(counts[:, place, 1], (governed & ~ones).sum(axis=-1))
            place += 1
    assert place == model.theta_shape[0]


@every_graph
def test_cell_probabilities_are_expected_statistics(graph):
    model = BayesianNetwork(graph)
    theta = np.random.default_rng(2).uniform(size=model.theta_shape)
    exact = np.zeros(2 * model.theta_shape[0])
    for record in model.records:
        statistics = model.sufficient_statistics(record[None])
        exact += np.exp(model.log_likelihood(theta, statistics)) * statistics
    # 1e-12: sums of at most 16 products.
    assert np.allclose(model.cell_probabilities(theta), exact, rtol=0, atol=1e-12)


@every_graph
def test_sampled_records_follow_the_network(graph):
    model = BayesianNetwork(graph)
    theta = np.random.default_rng(3).uniform(0.1, 0.9, model.theta_shape)
    n = 40_000
    frequencies = model.sufficient_statistics(model.sample_data(theta, n, np.random.default_rng(4))) / n
    expected = model.cell_probabilities(theta)
    # 5 standard errors: 6e-7 for each of about 70 cells in all.
    assert np.all(np.abs(frequencies - expected) < 5 * np.sqrt(expected * (1 - expected) / n))


def test_one_node_is_beta_bernoulli():
    one, other = BayesianNetwork({"a": []}, 2, 3), BetaBernoulli(2, 3)
    data = np.array([1, 0, 1, 1])
    assert np.array_equal(one.sufficient_statistics(data[:, None]), other.sufficient_statistics(data))
    theta = np.array([0.3])
    assert one.log_density(theta, one.prior) == pytest.approx(float(other.log_density(0.3, other.prior)), rel=1e-12)


def test_exact_marginals_need_a_small_network():
    model = BayesianNetwork(graphs.chain(17))
    with pytest.raises(ValueError, match="17 nodes; exact marginals need at most 16"):
        model.cell_probabilities(np.full(model.theta_shape, 0.5))


# Laplace


def test_laplace_truncates_to_the_number_of_records():
    mechanism = NetworkLaplace(BayesianNetwork({"a": []}), 10, 1.0)
    assert mechanism.project([-3.0, 12.0]).tolist() == [0, 10]
    with pytest.raises(ValueError, match="allowed: BayesianNetwork"):
        NetworkLaplace(BetaBernoulli(), 10, 1.0)


# Fourier


@every_graph
def test_coefficients_are_those_of_the_contingency_table(graph):
    model = BayesianNetwork(graph)
    size = len(graph)
    data = np.random.default_rng(5).integers(0, 2, (30, size))
    cells = np.array(list(itertools.product((0, 1), repeat=size)))
    table = np.array([(data == cell).all(axis=1).sum() for cell in cells])
    for subset, value in zip(closure(model), signed_sums(data, closure(model)), strict=True):
        gamma = np.isin(np.arange(size), subset)
        basis = (-1.0) ** (cells @ gamma) / 2 ** (size / 2)
        assert value == pytest.approx(2 ** (size / 2) * basis @ table, abs=1e-9)
    assert set(closure(model)) == {
        tuple(sorted(subset))
        for family in model.families
        for k in range(len(family) + 1)
        for subset in itertools.combinations(family, k)
    }


@every_graph
def test_counts_and_coefficients_determine_each_other(graph):
    model = BayesianNetwork(graph)
    data = np.random.default_rng(6).integers(0, 2, (30, len(graph)))
    statistics = model.sufficient_statistics(data)
    forward, backward = transforms(model)
    assert np.array_equal(forward @ statistics, signed_sums(data, closure(model)))
    assert np.allclose(backward @ forward @ statistics, statistics, rtol=0, atol=1e-12)


@pytest.mark.parametrize("attributes", [1, 4, 16])
def test_naive_bayes_flips_two_signs_per_attribute(attributes):
    model = BayesianNetwork(graphs.naive_bayes(attributes))
    assert len(closure(model)) == 2 * attributes + 2
    assert largest_flips(model) == 2 * attributes
    assert largest_flips(BayesianNetwork(graphs.chain(30))) == 59


@every_graph
@pytest.mark.parametrize("variant", ["paper", "corrected"])
def test_overlapping_marginals_agree(graph, variant):
    model = BayesianNetwork(graph)
    data = np.random.default_rng(7).integers(0, 2, (50, 20, len(graph)))
    mechanism = FourierMechanism(model, 20, 1.0, t=0.3, variant=variant)
    statistics = model.sufficient_statistics(data)
    release = mechanism.perturb(statistics, np.random.default_rng(8))
    size = np.abs(mechanism.counts(release)).max()
    assert bounds.largest_disagreement(model, mechanism.counts(release)) < 1e-12 * max(size, 1)
    # The test can fail: truncation, and Laplace noise, break the agreement.
    without = FourierMechanism(model, 20, 1.0, t=0.0, variant=variant)
    assert bounds.largest_disagreement(model, without.project(release)) > 1e-3
    laplace = NetworkLaplace(model, 20, 1.0)
    assert bounds.largest_disagreement(model, laplace.perturb(statistics, np.random.default_rng(9))) > 1e-3


def test_increment_and_smallest_t():
    model = BayesianNetwork(COLLIDER)
    mechanism = FourierMechanism(model, 5, 2.0, t=0.25, variant="paper")
    size = len(closure(model))
    assert mechanism.increment == 4 * 0.25 * size**2 / 2.0
    data = np.random.default_rng(11).integers(0, 2, (500, 5, 3))
    release = mechanism.perturb(model.sufficient_statistics(data), np.random.default_rng(12))
    difference = mechanism.counts(release) - mechanism.raw_counts(release)
    # Equation of theorem 3: a family's cells gain 4t|N_I|²/ε together.
    assert np.allclose(difference[:, :2].sum(axis=1), mechanism.increment)
    assert np.allclose(difference[:, 4:].sum(axis=1), mechanism.increment)
    needed = mechanism.smallest_t(release)
    assert np.array_equal(needed <= 0.25, mechanism.stealthy(release))
    assert 0 < mechanism.stealthy(release).mean() < 1
    for t, sign in ((1 + 1e-9, 1), (1 - 1e-9, -1)):
        worst = FourierMechanism(model, 5, 2.0, t=t * needed.max(), variant="paper").counts(release).min()
        assert np.sign(worst) == sign


def test_forty_nodes_take_well_under_a_second():
    model = BayesianNetwork(graphs.banded(40, 3))
    data = np.random.default_rng(13).integers(0, 2, (1000, 40))
    start = time.process_time()
    mechanism = FourierMechanism(model, 1000, 1.0, t=0.1)
    release = mechanism.perturb(model.sufficient_statistics(data), np.random.default_rng(14))
    counts = mechanism.counts(release)
    # CPU time; 2^40 cells would take hours and 8 TB.
    assert time.process_time() - start < 1.0
    assert bounds.largest_disagreement(model, counts[None]) < 1e-12 * np.abs(counts).max()
    exact = signed_sums(data, closure(model))[1:]
    noise = (release - exact) / mechanism.scale
    # 5 standard errors of the mean absolute Laplace variate, whose standard deviation is 1.
    assert abs(np.abs(noise).mean() - 1) < 5 / np.sqrt(noise.size)


@pytest.mark.parametrize("t", [-0.1, np.inf])
def test_fourier_refuses_impossible_settings(t):
    with pytest.raises(ValueError, match="t is "):
        FourierMechanism(BayesianNetwork(CHAIN), 5, 1.0, t=t)


# Samplers


def test_omega_of_both_readings():
    model = BayesianNetwork(graphs.naive_bayes(16))
    assert RecordSampler(model, 50, 3.4).omega == pytest.approx(1 / (1 + np.exp(0.1)), rel=1e-12)
    assert AttributeSampler(model, 50, 3.4).omega == pytest.approx(1 / (1 + np.exp(1.7)), rel=1e-12)
    assert RecordSampler(model, 50, 3.4).cost().epsilon == pytest.approx(3.4)
    assert AttributeSampler(model, 50, 3.4).cost().epsilon == pytest.approx(17 * 3.4)


@every_graph
def test_attribute_reading_costs_one_factor_per_child(graph):
    model = BayesianNetwork(graph)
    mechanism = AttributeSampler(model, 1, 0.8)
    theta = np.array(list(itertools.product((mechanism.omega, 1 - mechanism.omega), repeat=model.theta_shape[0])))
    for i, node in enumerate(model.nodes):
        changes = []
        for record in model.records:
            other = record.copy()
            other[i] = 1 - other[i]
            likelihoods = [model.log_likelihood(theta, model.sufficient_statistics(x[None])) for x in (record, other)]
            changes.append(np.abs(likelihoods[0] - likelihoods[1]).max())
        # Half of the cost is the likelihood's change, half the normaliser's.
        children = sum(node in parents for _, parents in model.parents)
        assert 2 * max(changes) == pytest.approx((1 + children) * mechanism.epsilon, rel=1e-12)


# MAP


def test_node_sensitivity_is_attained_by_neighbouring_counts():
    # A node without parents: counts (a, n−a). With parents: brute force over two configurations of n records.
    n = 6
    for kind in ("density", "mass"):
        values = {
            (a, b): utility(np.array([1.5 + a, 1 + b]), kind) for a in range(n + 1) for b in range(n + 1) if a + b <= n
        }
        moves = [np.abs(values[a, n - a] - values[a + 1, n - a - 1]).max() for a in range(n)]
        assert utility_sensitivity(1.5, 1.0, n, kind, False) == pytest.approx(max(moves), rel=1e-12)
        worst = 0.0
        for a, b, c, d in itertools.product(range(n + 1), repeat=4):
            if a + b + c + d == n and a > 0:
                for target in ((c + 1, d), (c, d + 1)):
                    left = np.abs(values[a, b] - values[a - 1, b]).max()
                    worst = max(worst, left + np.abs(values[target] - values[c, d]).max())
                if a + b <= n:
                    worst = max(worst, np.abs(values[a, b] - values[a - 1, b + 1]).max())
        for a, b, c, d in itertools.product(range(n + 1), repeat=4):
            if a + b + c + d == n and b > 0:
                for target in ((c + 1, d), (c, d + 1)):
                    left = np.abs(values[a, b] - values[a, b - 1]).max()
                    worst = max(worst, left + np.abs(values[target] - values[c, d]).max())
        assert utility_sensitivity(1.5, 1.0, n, kind, True) == pytest.approx(worst, rel=1e-12)


def test_the_papers_sensitivity_of_a_density_is_unsound():
    # L r = ln 199 on this grid, while one record changes the density by 29.7 at n = 50.
    # Independent: beta densities of scipy, here and below.
    assert np.log(GRID[-1] / GRID[0]) == pytest.approx(np.log(199))
    assert utility_sensitivity(1.0, 1.0, 50, "density", False) == pytest.approx(29.7, abs=0.05)
    # On a grid twice as fine the probabilities change half as much.
    assert [round(utility_sensitivity(1.0, 1.0, n, "mass", False), 3) for n in (5, 20, 50)] == [0.056, 0.170, 0.300]
    moved, added = largest_changes(1.0, 1.0, 50, "mass")
    assert moved[0] == added[0] == 0
    assert np.all(moved[1:] < 1)


def test_utilities_are_the_beta_density_and_its_share():
    from scipy.stats import beta

    density = beta.pdf(GRID, 3.5, 2.0)
    assert np.allclose(utility(np.array([3.5, 2.0]), "density"), density, rtol=1e-10)
    assert np.allclose(utility(np.array([3.5, 2.0]), "mass"), density / density.sum(), rtol=1e-10)


def test_both_ways_of_choosing_agree_with_the_probabilities():
    scores = np.random.default_rng(15).normal(0, 2, (3, GRID.size))
    probabilities = np.exp(scores - logsumexp(scores, axis=-1, keepdims=True))
    draws = 40_000
    every = (
        choose(scores, np.random.default_rng(16), draws),
        choose(np.broadcast_to(scores, (draws, 3, GRID.size)), np.random.default_rng(17)),
    )
    for values in every:
        assert values.shape == (draws, 3)
        for place in range(3):
            counts = (values[:, place, None] == GRID).mean(axis=0)
            error = np.sqrt(probabilities[place] * (1 - probabilities[place]) / draws)
            # 6 standard errors, 606 cells; the smallest expected counts are some 10, where tails are Poisson's.
            assert np.all(np.abs(counts - probabilities[place]) < 6 * error + 5 / draws)


def test_map_releases_have_no_density():
    mechanism = MapMechanism(BayesianNetwork({"a": []}), 4, 3.0)
    assert mechanism.log_density(np.array([0.5]), np.array([3.0, 1.0])) is None
