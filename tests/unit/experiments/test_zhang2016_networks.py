"""Networks of 14 nodes on Adult, and naive Bayes on one data set."""

import numpy as np
import pytest

from privpost.experiments.zhang2016.adult_network import study as adult_network
from privpost.experiments.zhang2016.naive_bayes import study as naive_bayes
from privpost.lab import grid, store, tables
from privpost.lab.streams import Streams
from privpost.models import graphs
from privpost.models.bayesian_network import BayesianNetwork
from privpost.privacy.ledger import Ledger


@pytest.fixture(scope="module")
def shipped():
    return tables.read_tables(grid.load_study("zhang2016/adult_network"))


def test_predictions_are_those_of_the_joint_probabilities():
    nodes = ("x", adult_network.CLASS, "z")
    model = BayesianNetwork(graphs.checked([("x", []), (nodes[1], ["x"]), ("z", ["x", nodes[1]])]))
    rng = np.random.default_rng(3)
    theta, tests = rng.uniform(0.05, 0.95, model.theta_shape), rng.integers(0, 2, (60, 3))
    difference, ones, total = adult_network.contrasts(model, tests)
    found = np.where(adult_network._log(theta) @ difference.T > 0, ones, total - ones).sum() / total.sum()
    joint = model.record_probabilities(theta).reshape(2, 2, 2)
    predicted = joint[tests[:, 0], 1, tests[:, 2]] > joint[tests[:, 0], 0, tests[:, 2]]
    assert found == np.mean(predicted == tests[:, 1])


def test_bits_are_few_levels_of_the_columns():
    columns = {name: np.array([0, 1]) for name in ("sex", "race", "native_country", "marital_status", "relationship")}
    columns |= {name: np.array([0, 1]) for name in ("workclass", "occupation", "capital_gain", "capital_loss")}
    columns |= {"age": np.array([39, 40]), "education_num": np.array([12, 13]), "hours_per_week": np.array([40, 41])}
    columns |= {"over_50k": np.array([False, True])}
    levels = {
        "sex": ["Female", "Male"], "race": ["Other", "White"], "native_country": ["?", "United-States"],
        "marital_status": ["Divorced", *adult_network.MARRIED], "relationship": ["Husband", "Own-child"],
        "workclass": ["?", "Private"], "occupation": ["?", *adult_network.PROFESSIONAL, *adult_network.MANUAL],
    }  # fmt: skip
    found = adult_network.bits(columns, levels)
    assert len(found) == 14
    assert all(bit.tolist() == [0, 1] for name, bit in found.items() if name != "manual")


def test_what_holds_on_adult(shipped):
    table, edges = shipped["adult_network"], shipped["adult_graphs"]
    learned = edges[edges.graph == "learned"]
    assert len(learned) == 14
    assert learned.in_degree.max() == 3
    aware = table[table.method.isin(["exact", "gibbs"])]
    assert set(aware.graph) == {"naive_bayes", "learned"}
    assert aware.n.max() == 250
    truth = table[table.method == "non_private"]
    assert (truth.divergence_mean == 0).all()
    assert truth.accuracy_mean.between(0.8, 0.85).all()


def test_one_data_set_is_split_anew_in_each_repeat():
    study = grid.load_study("zhang2016/naive_bayes", "smoke")
    cell = grid.make_cell(study, {"data": "one"})
    arrays = naive_bayes.simulate(cell.config, Streams.of(cell), Ledger())
    assert np.bincount(arrays["data_set"]).tolist() == [20, 20]
    found = naive_bayes.tabulate([store.Result(cell.config, arrays, {})])["naive_bayes_spread"]
    assert (found.data_sets == 2).all()
    own = arrays["accuracy"][0, 0]
    assert found.accuracy_mean[0] == pytest.approx(own.mean())
    assert found.accuracy_spread[0] == pytest.approx(np.std([own[:20].mean(), own[20:].mean()], ddof=1))
    model = BayesianNetwork(graphs.naive_bayes(3))
    config = type("Config", (), {"model_alpha": 1, "model_beta": 1, "n": 40, "n_train": 10, "data": "one"})
    counts, tests = naive_bayes._data(model, config, np.random.default_rng(1), 5)
    # Training and test parts of every repeat are the same 40 records.
    whole = counts + model.sufficient_statistics(tests)
    assert (whole == whole[0]).all()
    assert not (counts == counts[0]).all()
