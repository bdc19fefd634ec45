"""Tables of scores of noise-aware networks, from arrays by hand, and which parameters count together."""

from __future__ import annotations

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest
from recomputed import ks, mean_and_error
from scipy.stats import kstwobign, norm

from privpost.experiments.noise_aware import scores
from privpost.models.networks import graphs
from privpost.models.networks.bayesian_network import BayesianNetwork

LINES = [
    ("non_private", "paper"),
    ("naive", "paper"),
    ("naive", "consistent"),
    ("exact", "paper"),
    ("exact", "families"),
]
EPSILON, NAMES, LABELS = [0.2, 2.0, 30.0], ["a", "b", "c", "d"], ["x", "y", "x", "y"]


@pytest.mark.parametrize(
    ("graph", "prior", "roles"),
    [
        # A class with two attributes: swapping the classes swaps an attribute's parameters.
        (graphs.naive_bayes(2), (1, 1), "abbbb"),
        (graphs.naive_bayes(2), (1, 2), "abcbc"),
        # Two causes of one node, whose own parameters are told apart by the causes' values.
        (graphs.collider(2), (1, 1), "aabbbb"),
        (graphs.collider(2), (1, 2), "aabcde"),
        # Of two nodes without parents only one has a child.
        (graphs.checked({"u": [], "v": ["u"], "w": []}), (1, 1), "abbc"),
    ],
)
def test_parameters_of_one_role_are_alike(graph, prior, roles):
    labels = scores.alike(BayesianNetwork(graph, *prior))
    assert [labels.index(label) for label in labels] == [roles.index(role) for role in roles]


@pytest.fixture
def made(monkeypatch):
    """The tables of arrays at random, and these; some scores and the first trial of a parameter are not known."""
    rng = np.random.default_rng(8)
    arrays = {name: rng.normal(size=(5, 3, 3)) for name in ("accuracy", "mmd2")} | {"truncated": rng.random((5, 3, 3))}
    arrays |= {
        "quantile": rng.random((5, 3, 3, 3)),
        "others": rng.random((5, 3, 1, 3)),
        "sd_of_prior": rng.random((3, 3)),
    }
    arrays["mmd2"][2, 0, 0] = arrays["mmd2"][4] = arrays["others"][3, :, :, 0] = np.nan
    config = SimpleNamespace(method=["non_private", "naive", "exact"], epsilon=EPSILON, trials=3)
    cell = SimpleNamespace(config=config, arrays=arrays)
    monkeypatch.setattr(scores, "names", lambda model: NAMES)
    monkeypatch.setattr(scores, "alike", lambda model: LABELS)
    tables = scores.tabulate([cell], lambda config: {"n": 7}, lambda config: None)
    return SimpleNamespace(**arrays, tables={name: list(rows) for name, rows in tables.items()})


def points():
    """Every line and ε as it stands in the tables: the true posterior once."""
    for (i, (method, variant)), (j, epsilon) in itertools.product(enumerate(LINES), enumerate(EPSILON)):
        if method != "non_private" or j == 0:
            yield i, j, {"n": 7, "method": method, "variant": variant, "epsilon": epsilon if i else None}


def test_scores_are_tabulated_where_all_trials_have_one(made):
    """Means and standard errors of scores and of their differences by loops, to rounding."""
    expected = [
        (named | {"metric": metric}, values[i, j], made.truncated[i, j].mean() if i in (1, 2) else None)
        for i, j, named in points()
        for metric, values in (("accuracy", made.accuracy), ("mmd2", made.mmd2))
        # The true posterior has no distance from itself.
        if metric == "accuracy" or (i in (1, 2, 3) and (i, j) != (2, 0))
    ]
    assert len(made.tables[""]) == len(expected) == 13 + 8
    for kept, (named, values, share) in zip(made.tables[""], expected, strict=True):
        assert {name: kept[name] for name in named} == named and kept["n_repeats"] == 3
        assert (kept["mean"], kept["sem"]) == pytest.approx(mean_and_error(values))
        assert kept["truncated_share"] == (None if share is None else pytest.approx(share))
    pairs = [
        ((*LINES[i], *LINES[k], epsilon, metric), values[i, j] - values[k, j])
        for i, k in itertools.combinations(range(5), 2)
        for j, epsilon in enumerate(EPSILON)
        for metric, values in (("accuracy", made.accuracy), ("mmd2", made.mmd2))
        if metric == "accuracy" or (4 not in (i, k) and (2 not in (i, k) or j > 0))
    ]
    names = "first", "first_variant", "second", "second_variant", "epsilon", "metric"
    for kept, (named, values) in zip(made.tables["pairs"], pairs, strict=True):
        assert (kept["n"], *(kept[name] for name in names), kept["n_repeats"]) == (7, *named, 3)
        assert (kept["difference_mean"], kept["difference_sem"]) == pytest.approx(mean_and_error(values))


def test_quantiles_of_parameters_that_are_alike_are_tested_together(made):
    """z² of all values with one label, by inverse normal laws; one whose quantiles are not all known has no part.

    p-values of KS tests are by the law of many values.
    """
    rows = iter(made.tables["calibration"])
    for i, j, named in points():
        every = np.concatenate([made.quantile[i, j], made.others[i, j]])
        for k in range(3):
            members = [m for m in range(4) if LABELS[m] == LABELS[k] and (m < 3 or i != 3)]
            kept = next(rows)
            assert {name: kept[name] for name in named} == named and kept["parameter"] == NAMES[k]
            assert (kept["ks"], kept["n_trials"]) == (pytest.approx(ks(every[k])), 3)
            assert kept["p_value"] == pytest.approx(kstwobign.sf(math.sqrt(3) * ks(every[k])))
            z2 = np.square(norm.ppf(every[members])).mean()
            # What correlated values are worth is less than their number.
            assert kept["z2"] == pytest.approx(z2) and kept["z2_values"] <= 3 * len(members) + 1e-9
            both = f"{NAMES[members[0]]} to {NAMES[members[-1]]}"
            assert kept["z2_of"] == (both if len(members) > 1 else NAMES[k])
            # Noise-naive posteriors and the true one have no such deviation.
            assert kept["sd_of_prior"] == (made.sd_of_prior[j, k] if i > 2 else None)
    assert next(rows, None) is None


def test_distribution_functions_are_those_at_the_epsilon_nearest_to_one(made):
    """By their ratio 2 is nearer to 1 than 0.2 and 30 are; shares by counting."""
    rows = iter(made.tables["ecdf"])
    for (i, (method, variant)), k, step in itertools.product(enumerate(LINES), range(3), range(41)):
        kept = next(rows)
        named = {"n": 7, "method": method, "variant": variant, "epsilon": 2.0, "parameter": NAMES[k]}
        assert {name: kept[name] for name in named} == named and kept["u"] == pytest.approx(step / 40)
        assert kept["ecdf"] == pytest.approx(sum(made.quantile[i, 1, k] <= step / 40) / 3)
    assert next(rows, None) is None


def test_parameters_are_named_in_the_order_of_the_network_s_configurations():
    model = BayesianNetwork({"a": [], "b": [], "c": ["a", "b"]})
    names = scores.names(model)
    assert len(names) == model.theta_shape[0]
    for a, b in itertools.product((0, 1), repeat=2):
        places = model.configurations(np.array([[a, b, 0]]))[0]
        assert [names[place] for place in places] == ["a", "b", f"c | a = {a}, b = {b}"]
