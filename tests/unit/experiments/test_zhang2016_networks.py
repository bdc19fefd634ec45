"""Networks of 14 nodes on Adult, and naive Bayes on one data set."""

import numpy as np

from privpost.experiments.zhang2016.adult_network import study as adult_network


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
