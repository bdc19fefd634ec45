"""Networks of 14 nodes on Adult, and naive Bayes on one data set."""

import numpy as np
import pytest

from privpost.experiments.zhang2016.adult_network import study as adult_network
from privpost.lab import grid, tables


@pytest.fixture(scope="module")
def shipped():
    return tables.read_tables(grid.load_study("zhang2016/adult_network"))


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
