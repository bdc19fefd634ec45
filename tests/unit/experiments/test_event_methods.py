"""Methods on events counted in cells: rows, chains' lengths and starts, releases and clipped shares, by hand."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from recomputed import Remembering

from privpost.distributions.noise import Common
from privpost.experiments.foulds2016 import event_methods
from privpost.experiments.foulds2016.event_methods import Row, Setup
from privpost.models.events import EventCounts
from privpost.samplers.hidden_markov.seeds import Seeding

MODEL = EventCounts((2, 1), (2, 3), 2)
METHODS = ["non_private", "laplace", "ops", "private_gibbs", "gibbs"]
AXES = {"variant": ["paper", "corrected", "sums"], "truncation": [10.0, 100.0], "prior": ["tempered", "untempered"]}


def test_rows_are_all_settings_of_each_method() -> None:
    """Listed by hand: one state has no start, pays for no update and clips its sum in one way."""
    expected = [Row(3, "non_private", "seeded")]
    for epsilon in (0.5, 2.0):
        expected += [Row(3, "laplace", "seeded", variant, epsilon=epsilon) for variant in AXES["variant"]]
        for m in (10.0, 100.0):
            expected += [Row(3, "ops", "seeded", None, m, prior, epsilon) for prior in AXES["prior"]]
            expected.append(Row(3, "private_gibbs", None, None, m, "tempered", epsilon))
        expected.append(Row(3, "gibbs", "seeded", epsilon=epsilon))
    made = event_methods.rows(3, "seeded", [0.5, 2.0], METHODS, **AXES)
    assert sorted(made, key=str) == sorted(expected, key=str)
    bayes = event_methods.rows(1, "seeded", [0.5], METHODS, **{**AXES, "truncation": [10.0], "prior": ["tempered"]})
    assert [(row.method, row.variant) for row in bayes] == [
        ("non_private", None), ("laplace", "paper"), ("laplace", "corrected"), ("ops", None), ("gibbs", None),
    ]  # fmt: skip
    assert {row.start for row in bayes} == {None} and {row.model for row in bayes} == {"naive_bayes"}


def test_accounts_name_what_tells_rows_apart() -> None:
    accounts = {
        "laplace/n_states=2/seeded/paper/epsilon=0.5": Row(2, "laplace", "seeded", "paper", epsilon=0.5),
        "ops/n_states=10/random/truncation=10/tempered/epsilon=2": Row(10, "ops", "random", None, 10.0, "tempered", 2),
    }
    for account, row in accounts.items():
        assert row.account == account


LENGTHS = {"iterations": 40, "burn_in": 9, "aware_iterations": 30, "aware_burn_in": 8, "private_iterations": 3}


def setup(**changes) -> Setup:
    return Setup(MODEL, 30, Seeding(4, 5), **LENGTHS | changes)


def test_chains_have_the_lengths_and_the_starts_of_their_rows() -> None:
    of = setup()
    for method, expected in (("laplace", (40, 9)), ("gibbs", (30, 8)), ("private_gibbs", (3, 0))):
        assert of.length(Row(2, method)) == expected
    for start, seeding in (("seeded", Seeding(4, 5)), ("random", None), (None, None)):
        row = Row(2, "ops", start, None, 10.0, "untempered", 1.0)
        assert of.start(row) == of.mechanism(row).seeding == seeding
        assert not of.mechanism(row).tempered_prior and of.mechanism(row._replace(prior="tempered")).tempered_prior
    # What it is paid with must not have been looked at before.
    assert of.mechanism(Row(2, "private_gibbs", None, None, 10.0, "tempered", 1.0)).seeding is None
    made = Setup.of(MODEL, 30, SimpleNamespace(**LENGTHS, starts=4, start_iterations=5))
    assert made == of


def test_an_epsilon_holds_by_what_the_chain_did() -> None:
    """By hand: two updates an iteration without convergence; a seeded chain that did not converge has none."""
    at = (None, 10.0, "tempered", 0.5)
    cases = {
        (Row(2, "laplace", "seeded", "paper", epsilon=0.5), False): ("unconditional", 0.5),
        (Row(2, "gibbs", "seeded", epsilon=0.5), False): ("unconditional", 0.5),
        (Row(2, "private_gibbs", None, *at), True): ("unconditional", 0.5),
        (Row(1, "ops", None, *at), True): ("unconditional", 0.5),
        (Row(2, "ops", "random", *at), False): ("if_converged", 2 * 40 * 0.5),
        (Row(2, "ops", "seeded", *at), True): ("if_converged", np.inf),
        (Row(2, "ops", "seeded", *at), False): ("none", None),
        (Row(2, "non_private", "seeded"), False): (None, None),
    }
    for (row, converged), expected in cases.items():
        model = EventCounts((1,), (2, 3), 1) if row.n_states == 1 else MODEL
        made = event_methods.guarantee(Setup(model, 30, Seeding(4, 5), **LENGTHS), row, converged)
        assert (made["guarantee"], made["worst_case_epsilon"]) == pytest.approx(expected), row


COUNTS = np.array([[3, 0, 1, 1, 1], [0, 4, 0, 2, 2], [5, 1, 0, 0, 6]], float)


@pytest.mark.parametrize("several", [False, True])
def test_noisy_counts_are_released_processed_and_told_by_how_much_is_clipped(several) -> None:
    """Noise of scale 4/ε on each count, two repeats of one data set or of two; observed counts below 0 are clipped."""
    of, ledger, row = setup(), Remembering(), Row(2, "laplace", "seeded", "paper", epsilon=0.5)
    rows = [
        row,
        row._replace(variant="sums"),
        row._replace(variant="corrected"),
        Row(2, "gibbs", "seeded", epsilon=0.5),
    ]
    of.open(ledger, [*rows, Row(2, "non_private", "seeded")])
    counts = np.stack([COUNTS, 2 * COUNTS]) if several else COUNTS
    observed, split, common = np.ones((3, 3), bool), np.array([0, 1, 1]), Common(np.random.default_rng(5))
    observed[0, 2] = False
    made = [of.given(ledger, each, counts, common, slice(0, 2), observed, split) for each in rows]
    (asked, released), *_ = ledger.of(row.account)
    assert np.array_equal(asked.statistics, counts.reshape((2, 15) if several else 15))
    # Two fields, each of whose counts an event changes by two.
    noise = np.random.default_rng(5).laplace(size=(2, 15)) * 4 / 0.5
    noisy = (counts + noise.reshape(2, 3, 5)).reshape(2, 3, 5)
    np.testing.assert_allclose(released.values, noisy.reshape(2, -1))
    clipped, sums, projected, aware = made
    np.testing.assert_allclose(clipped.law.counts, np.maximum(noisy, 0)[split])
    np.testing.assert_allclose(sums.law.counts, noisy[split])
    cells = [(repeat, cell) for repeat in (0, 1) for cell in (0, 1, 2) if observed[repeat, cell]]
    assert clipped.clipped == pytest.approx(np.mean(np.array([value for place in cells for value in noisy[place]]) < 0))
    assert np.isnan(sums.clipped)
    for field in (slice(0, 2), slice(2, 5)):
        totals = np.maximum(noisy[..., field].sum(axis=-1), 0)[split]
        np.testing.assert_allclose(projected.law.counts[..., field].sum(axis=-1), totals, atol=1e-9)
    assert (projected.law.counts >= 0).all()
    # The noise-aware chain is told the noise that was added; its traces are of projected counts.
    assert (aware.law.scale, aware.law.n) == (8.0, 30)
    np.testing.assert_allclose(aware.law.noisy[observed], noisy[split][observed])
    np.testing.assert_allclose(aware.traced.counts[1:], projected.law.counts[1:])


def test_more_chains_than_releases_are_not_charged() -> None:
    """Two draws of OPS on one data set and a third chain: each repeat's budget pays for one."""
    of, row = setup(), Row(2, "ops", "seeded", None, 10.0, "tempered", 0.5)
    ledger = Remembering()
    of.open(ledger, [row])
    run = of.given(ledger, row, COUNTS, None, slice(0, 2), np.ones((3, 3), bool), np.array([0, 1, 0]))
    end = of.follow(ledger, run, np.random.default_rng(1), slice(0, 2), None)
    assert len(ledger.released(row.account)) == 2 and end.state.states.shape == (3, 3)
    np.testing.assert_array_equal(ledger.released(row.account), end.state.probabilities[:2])
