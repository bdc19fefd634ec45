"""The studies of Zhang et al. (2016): known numbers, the restored bounds, claims that turn, accounts."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import log_softmax

from privpost.distributions import truncated_beta
from privpost.experiments.zhang2016 import guarantees
from privpost.experiments.zhang2016.bounds import study as bounds
from privpost.lab import grid, store, tables
from privpost.lab.streams import Streams
from privpost.mechanisms.choices.map_estimate import MapMechanism, utility_sensitivity
from privpost.mechanisms.draws.network import RecordSampler
from privpost.models.networks.bayesian_network import BayesianNetwork
from privpost.privacy.ledger.gate import Ledger


def shipped(name):
    return tables.read_tables(grid.load_study(f"zhang2016/{name}"))


def smoke(name):
    """The study's smoke cells, computed here, as results."""
    study = grid.load_study(f"zhang2016/{name}", "smoke")
    results = []
    for cell in grid.expand(study):
        ledger = Ledger()
        arrays = study.module().simulate(cell.config, Streams.of(cell), ledger)
        results.append(store.Result(cell.config, arrays, {"ledger": ledger.record()}))
    return results


@pytest.fixture(scope="module")
def bayes():
    return shipped("naive_bayes")


@pytest.fixture(scope="module")
def bound_tables():
    return shipped("bounds")


# Naive Bayes


@pytest.mark.parametrize(
    "method, variant, expected",
    [
        ("laplace", "paper", (0.71, 0.94)),
        ("fourier", "paper", (0.65, 0.94)),
        ("sampler_record", "paper", (0.59, 0.90)),
        ("sampler_attribute", "paper", (0.93, 0.96)),
    ],
)
def test_accuracies_are_near_an_independent_draft(bayes, method, variant, expected):
    table = bayes["naive_bayes"]
    rows = table[(table.method == method) & (table.variant == variant) & (table.runs == "all")]
    rows = rows.set_index("epsilon").accuracy_mean
    # 0.04: 4 standard errors of the draft's 400 repeats at ε = 1 (0.009), and its digits.
    assert rows[[1.0, 10.0]].tolist() == pytest.approx(expected, abs=0.04)


def test_non_private_accuracy_and_shape_of_the_tables(bayes):
    table = bayes["naive_bayes"]
    truth = table[table.method == "non_private"]
    assert len(truth) == 1
    assert truth.epsilon.isna().all()
    assert 0.95 < truth.accuracy_mean.item() < 0.98
    shared = {"epsilon", "accuracy_mean", "accuracy_sem", "stealth_rate", "t", "n_repeats"}
    assert {"method", "variant", "runs", *shared} <= set(table)
    assert {"t", "epsilon", "stealth_rate", "bound"} <= set(bayes["stealth"])


def test_accounts_of_naive_bayes_and_of_its_pilots():
    (result,) = smoke("naive_bayes")
    accounts = {row["account"]: row for row in result.record["ledger"]}
    # 3 budgets of 9 lines, the true posterior having none; the attribute-level reading is charged for a record.
    # The pilots of two variants of Fourier are about data of their own.
    assert len(accounts) == 3 * 8 + 3 * 2
    assert {name for name in accounts if name.startswith("pilot/")} == {
        f"pilot/fourier/{variant}/epsilon={epsilon}" for variant in ("paper", "corrected") for epsilon in ("0.1", 1, 10)
    }
    assert accounts["laplace/paper/epsilon=10"]["spent"]["epsilon"] == 10
    assert accounts["sampler_attribute/paper/epsilon=10"]["spent"]["epsilon"] == 170


# Bounds


def test_quantiles_of_proposition_1_have_their_closed_form(bound_tables):
    table = bound_tables["bounds"]
    rows = table[(table.statement == "proposition_1") & (table.graph == "chain_5") & (table.epsilon == 1)]
    for row in rows.itertuples():
        delta = float(row.parameter.split("=")[1])
        # The largest of 2m = 18 absolute Laplace variates of scale 2|I|/ε = 10.
        exact = -10 * np.log1p(-((1 - delta) ** (1 / 18)))
        # 5 standard errors of a quantile of 10,000, density about δ/10 there.
        assert row.empirical == pytest.approx(exact, abs=5 * 10 * np.sqrt((1 - delta) / delta / 1e4))


def test_loss_of_the_trimmed_sampler_is_that_of_its_density():
    node, n = BayesianNetwork({"a": []}), 6
    for epsilon in (0.5, 3.0):
        mechanism = RecordSampler(node, n, epsilon)
        counts = np.array([[a, n - a] for a in range(n + 1)], float)
        ends = np.array([mechanism.omega, 1 - mechanism.omega])
        log_density = mechanism.log_density(ends[:, None, None], counts)
        # 1e-9: the density's incomplete beta functions against quadrature that is exact.
        assert guarantees.sampler_loss(mechanism) == pytest.approx(np.abs(np.diff(log_density)).max(), rel=1e-9)


@pytest.mark.parametrize("prior", [(1.0, 1.0), (6.0, 12.0), (0.05, 9.0)])
@pytest.mark.parametrize("n", [1, 4])
def test_loss_with_edges_lets_a_record_move_between_configurations(n, prior):
    """The parent loses what a flip costs; the child that, or what leaving one configuration and entering another do."""
    mechanism = RecordSampler(BayesianNetwork({"a": [], "b": ["a"]}, *prior), n, 2.0)
    ends = np.array([mechanism.omega, 1 - mechanism.omega])

    def change(one, other):
        laws = [truncated_beta.log_density(ends, np.array(prior) + counts, *ends) for counts in (one, other)]
        return np.abs(laws[0] - laws[1]).max()

    common = [[(ones, total - ones) for ones in range(total + 1)] for total in range(n)]
    flips = [max(change((a + 1, b), (a, b + 1)) for a, b in counts) for counts in common]
    enters = [max(change((a + one, b + 1 - one), (a, b)) for a, b in counts for one in (0, 1)) for counts in common]
    moves = [enters[t] + enters[s] for t in range(n) for s in range(n - t)]
    # 1e-9: incomplete beta functions against quadrature that is exact.
    assert guarantees.sampler_loss(mechanism) == pytest.approx(flips[-1] + max(*flips, *moves), rel=1e-9)


def test_loss_of_algorithm_3_is_that_of_the_mechanism_with_its_sensitivity(bound_tables):
    n, node = 20, BayesianNetwork({"a": []})
    mechanism = MapMechanism(node, n, 1.0, utility="density")
    counts = np.array([[a, n - a] for a in range(n + 1)], float)
    log_chance = log_softmax(mechanism.scores(counts)[:, 0], axis=-1)
    own = utility_sensitivity(1.0, 1.0, n, "density", has_parents=False)
    assert guarantees.map_loss(n, 1.0, own) == pytest.approx(np.abs(np.diff(log_chance, axis=0)).max(), rel=1e-12)
    table = bound_tables["bounds"]
    losses = table[table.statement == "corollary 4"].set_index("n").empirical
    # Independent: beta densities of scipy on the grid, with ln 199 as their sensitivity.
    assert losses[[20, 50]].tolist() == pytest.approx([1.57, 2.55], abs=0.005)


def test_corollary_4_is_of_the_score_that_the_settings_name():
    config = SimpleNamespace(map_sizes=[50], utility="mass")
    rows = {row["statement"]: row["empirical"] for row in guarantees._map_rows(config)}
    assert rows["corollary 4"] == guarantees.map_loss(50, 1.0, np.log(199), "mass") < 0.1
    assert rows["corollary 4 with the density"] == guarantees.map_loss(50, 1.0, np.log(199)) > 2


def test_bounds_take_a_graph_of_ones_own(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("nodes:\n  rain: []\n  sprinkler: [rain]\n  wet: [rain, sprinkler]\n")
    study = grid.load_study("zhang2016/bounds", "smoke")
    cell = grid.make_cell(study, {"graph": str(path)})
    before = cell.digest
    arrays = bounds.simulate(cell.config, Streams.of(cell), Ledger())
    rows = bounds.tabulate([store.Result(cell.config, arrays, {})])["bounds"]
    # The Laplace mechanism's scale is 2|I|/ε, here of three nodes: proposition 1 at δ and m = 1 + 2 + 4 parameters.
    mine = rows[(rows.graph == "mine") & (rows.statement == "proposition_1") & (rows.parameter == "delta=0.1")]
    assert mine.bound.tolist() == pytest.approx([6 * np.log(14 / 0.1)])
    # The graph itself is in the digest, not only its name.
    path.write_text("nodes:\n  rain: []\n  sprinkler: []\n  wet: [rain, sprinkler]\n")
    assert grid.make_cell(study, {"graph": str(path)}).digest != before
    path.write_text("nodes:\n  rain: [wet]\n  wet: [rain]\n")
    with pytest.raises(ValueError, match=r"graph: .*mine\.yaml: node '(rain|wet)' is in a cycle: "):
        grid.make_cell(study, {"graph": str(path)})


def test_the_worst_share_of_a_bound_is_found_beside_bounds_that_underflow():
    missed, limits = np.array([0.0, 0.3, 0.1, 0.0]), np.array([0.0, 0.6, 0.05, 1.0])
    assert bounds._worst(missed, limits) == 2
    assert bounds._worst(np.array([0.5, 0.1]), np.array([0.1, 0.0])) == 1
