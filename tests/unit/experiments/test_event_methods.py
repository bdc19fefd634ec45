"""Methods on events counted in cells: rows, chains' lengths and searches, releases and clipped shares, by hand."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
from recomputed import Remembering

from privpost.distributions.noise import Common
from privpost.experiments.foulds2016 import event_methods
from privpost.experiments.foulds2016.event_methods import Chains, Row, Setup
from privpost.models.event_counts import EventCounts
from privpost.samplers.hidden_markov_collapsed import Annealing
from privpost.samplers.hidden_markov_sets import Islands

MODEL = EventCounts((2, 1), (2, 3), 2)


def test_rows_are_all_settings_of_each_method() -> None:
    """Listed by hand: naive Bayes has no sampler and pays for no update, and paid and joint chains have one sampler."""
    config = SimpleNamespace(
        method=["non_private", "laplace", "ops", "private_gibbs", "gibbs"], variant=["paper", "corrected"],
        truncation=[10.0], sampler=["paper", "collapsed"],
    )  # fmt: skip
    named = [tuple(row)[1:] for row in event_methods.rows(config, "hmm", [0.5, 2.0])]
    expected = []
    for sampler in ("paper", "collapsed"):
        expected.append(("non_private", None, None, None, sampler))
        for epsilon in (0.5, 2.0):
            expected += [("laplace", variant, None, epsilon, sampler) for variant in ("paper", "corrected")]
            expected.append(("ops", None, 10.0, epsilon, sampler))
    for epsilon in (0.5, 2.0):
        expected.append(("private_gibbs", None, 10.0, epsilon, "paper"))
        expected.append(("gibbs", None, None, epsilon, "paper"))
    assert sorted(named, key=str) == sorted(expected, key=str)
    bayes = event_methods.rows(config, "naive_bayes", [0.5])
    assert [(row.method, row.variant) for row in bayes] == [
        ("non_private", None), ("laplace", "paper"), ("laplace", "corrected"), ("ops", None), ("gibbs", None),
    ]  # fmt: skip
    assert {row.sampler for row in bayes} == {None}
    # A study without samplers has the paper's.
    del config.sampler
    assert {row.sampler for row in event_methods.rows(config, "hmm", [0.5])} == {"paper"}


def test_accounts_name_what_tells_rows_apart() -> None:
    accounts = {
        "hmm/laplace/paper/epsilon=0.5": Row("hmm", "laplace", "paper", None, 0.5),
        "hmm/ops/truncation=10/epsilon=2/collapsed": Row("hmm", "ops", None, 10.0, 2.0, "collapsed"),
        "naive_bayes/non_private": Row("naive_bayes", "non_private", None, None, None, None),
    }
    for account, row in accounts.items():
        assert row.account == account
        named = {"variant": row.variant, "truncation": row.truncation, "epsilon": row.epsilon}
        assert row.key() == ({"sampler": "collapsed"} if row.sampler == "collapsed" else {}) | named


def setup(**changes) -> Setup:
    given = {"iterations": 40, "burn_in": 9, "rounds": 80, "rounds_burn_in": 33, "epsilon": 1.0}
    given |= {"annealing": Annealing(3.0, 2, replicas=2), "islands": Islands(2, 5)}
    return Setup(MODEL, 30, **given | changes)


def test_chains_are_as_long_as_their_method_s() -> None:
    """The paper's sampler, collapsed chains, and settings with other rounds; a draw of islands takes several."""
    one, of = Row("hmm", "laplace", None, None, 0.5, "collapsed"), setup(ops_rounds=10, exact_rounds=81)
    each = of.islands.rounds
    assert of.length(one) == (80, 33)
    for method in ("non_private", "laplace", "ops", "gibbs"):
        assert of.length(one._replace(method=method, sampler="paper")) == (40, 9)
    assert of.length(one._replace(method="private_gibbs", sampler="paper")) == (2, 0)
    assert of.length(one._replace(method="ops")) == (10, 7)
    assert of.length(one._replace(method="non_private")) == (81, 40)
    assert setup(exact_rounds=80, ops_rounds=None).length(one._replace(method="non_private")) == (80, 33)
    assert setup().length(one._replace(method="ops")) == (80, 33)
    remembered = setup(remembered=("laplace",))
    assert remembered.length(one) == (80 // each, 33 // each)
    # At least one draw comes after burn-in.
    assert setup(remembered=("laplace",), rounds=33, rounds_burn_in=33).length(one) == (33 // each + 1, 33 // each)


def test_searches_start_hotter_where_noise_is_wider() -> None:
    """Hotter by 1/ε where ε (the row's, else the setup's) is below 1; the paper's chains do not search."""
    row, of = Row("hmm", "laplace", "paper", None, 0.25, "collapsed"), setup()
    assert of.search(row).hottest == 12.0
    assert of.search(row._replace(epsilon=4.0)).hottest == 3.0
    assert setup(epsilon=0.5).search(row._replace(epsilon=None)).hottest == 6.0
    assert of.search(row._replace(method="non_private")).hottest == 3.0
    assert of.search(row._replace(sampler="paper")) is None and setup(annealing=None).search(row) is None
    assert setup(remembered=("laplace",)).search(row) == Islands(2, 5)


def test_a_study_s_settings_are_the_setup_s() -> None:
    numbers = {"iterations": 7, "burn_in": 3, "rounds": 9, "rounds_burn_in": 4, "ops_rounds": 5, "search_limit": 6.0}
    numbers |= {"exact_rounds": 11, "private_iterations": 13}
    config = SimpleNamespace(**numbers, hottest=2.5, resplits=1, replicas=4, remembered="all", agree=2, islands=5)
    made = Setup.of(config, MODEL, 30)
    assert {name: getattr(made, name) for name in numbers} == numbers
    assert made.annealing == Annealing(2.5, 1, replicas=4) and made.islands == Islands(2, 5)
    assert made.remembered == ("laplace", "non_private") and made.tempered_prior
    plain = Setup.of(SimpleNamespace(prior="untempered", iterations=7), MODEL, 30)
    assert (plain.tempered_prior, plain.iterations, plain.burn_in, plain.annealing) == (False, 7, 0, None)
    del config.replicas
    assert Setup.of(config, MODEL, 30).annealing.replicas == 1


COUNTS = np.array([[3, 0, 1, 1, 1], [0, 4, 0, 2, 2], [5, 1, 0, 0, 6]], float)


@pytest.mark.parametrize("several", [False, True])
def test_noisy_counts_are_released_processed_and_told_by_how_much_is_clipped(several) -> None:
    """Noise of scale 4/ε on each count, two repeats of one data set or of two; observed counts below 0 are clipped."""
    of, ledger, row = setup(), Remembering(), Row("hmm", "laplace", "paper", None, 0.5)
    of.open(ledger, [row, row._replace(method="non_private")])
    counts = np.stack([COUNTS, 2 * COUNTS]) if several else COUNTS
    observed, split = np.ones((3, 3), bool), np.array([0, 1, 1])
    observed[0, 2] = False
    chains = of.chains(ledger, row, counts, Common(np.random.default_rng(5)), slice(0, 2), None, observed, split)
    (asked, released), *_ = ledger.of(row.account)
    assert np.array_equal(asked.statistics, counts.reshape((2, 15) if several else 15))
    # Two fields, each of whose counts an event changes by two.
    noise = np.random.default_rng(5).laplace(size=(2, 15)) * 4 / 0.5
    noisy = (counts + noise.reshape(2, 3, 5)).reshape(2, 3, 5)
    np.testing.assert_allclose(released.values, noisy.reshape(2, -1))
    np.testing.assert_allclose(chains.counts, np.maximum(noisy, 0)[[0, 1, 1]])
    cells = [(repeat, cell) for repeat in (0, 1) for cell in (0, 1, 2) if observed[repeat, cell]]
    seen = [value for place in cells for value in noisy[place]]
    assert chains.clipped == pytest.approx(np.mean(np.array(seen) < 0))
    projected = event_methods.post_process(noisy, MODEL.sizes, "corrected")
    for field in (slice(0, 2), slice(2, 5)):
        sums = np.maximum(noisy[..., field].sum(axis=-1), 0)
        np.testing.assert_allclose(projected[..., field].sum(axis=-1), sums, atol=1e-9)
    assert (projected >= 0).all()


def test_joint_chains_are_told_the_release_and_start_at_the_public_number_of_events() -> None:
    """Each field of each chain's counts holds all 30 events, as no cell is held out."""
    of, ledger, row = setup(), Remembering(), Row("hmm", "gibbs", None, None, 0.5)
    of.open(ledger, [row])
    given = Common(np.random.default_rng(5)), slice(0, 2), None, np.ones((3, 3), bool), np.array([0, 1, 1])
    chains = of.chains(ledger, row, COUNTS, *given)
    noisy = ledger.released(row.account).reshape(2, 3, 5)
    np.testing.assert_allclose(chains.latent.noisy, noisy[[0, 1, 1]])
    assert (chains.latent.scale, chains.latent.n_events, chains.counts.shape) == (8.0, 30, (3, 3, 5))
    for field in (slice(0, 2), slice(2, 5)):
        assert chains.counts[..., field].sum(axis=(1, 2)).tolist() == [30, 30, 30]


def test_further_chains_have_the_data_of_the_first() -> None:
    observed = np.array([[True, False, True], [True, True, True]])
    each, one = np.stack([COUNTS, 2 * COUNTS]), COUNTS
    for counts, expected in ((each, np.stack([COUNTS] * 3)), (one, one)):
        more = Chains(Row("hmm", "laplace", "paper", None, 1.0), counts, observed, None).of_first(3)
        assert np.array_equal(more.counts, expected) and more.observed.tolist() == [[True, False, True]] * 3
        assert more.latent is None and math.isnan(more.clipped)
    latent = SimpleNamespace(of_first=lambda number: ["latent"] * number)
    assert (
        Chains(Row("hmm", "gibbs", None, None, 1.0), one, observed, None, latent).of_first(3).latent == ["latent"] * 3
    )
