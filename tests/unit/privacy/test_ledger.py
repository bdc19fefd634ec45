"""The ledger: accounts and budgets, and the gate that draws, charges and records."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pytest

from privpost import discovery
from privpost.distributions.noise import Common
from privpost.mechanisms.draws.logistic_sampling import LogisticDraw
from privpost.mechanisms.draws.posterior import PosteriorDraw
from privpost.mechanisms.noise.laplace import LaplaceMechanism
from privpost.mechanisms.noise.redacted import RedactedLaplace, RedactedSum
from privpost.models.conjugate.beta_bernoulli import BetaBernoulli
from privpost.models.conjugate.gamma_exponential import GammaExponential
from privpost.models.regression.binary import BinaryRegression
from privpost.privacy.accounting.costs import Cost, pure_to_rdp
from privpost.privacy.ledger.described import describe, key_of
from privpost.privacy.ledger.gate import BudgetExceeded, Ledger, Request

BITS = BetaBernoulli(6, 12)
COUNTS = np.array([3.0, 5.0])
EXAMPLES = [example for kind in discovery.kinds() for example in kind.examples]


@dataclass(frozen=True)
class Untouchable(LaplaceMechanism):
    """A mechanism that must not be run."""

    method = "untouchable"

    def _perturb(self, statistics, rng):
        raise AssertionError("it was run")


def test_ledger_composes_sequentially_and_refuses_to_overspend():
    ledger = Ledger()
    ledger.open("ops/epsilon=0.1", Cost("pure", 0.1))
    ledger.charge("ops/epsilon=0.1", Cost("pure", 0.001), releases=60)
    ledger.charge("ops/epsilon=0.1", Cost("pure", 0.001), releases=40)
    assert ledger.spent("ops/epsilon=0.1").epsilon == pytest.approx(0.1, rel=1e-12)
    with pytest.raises(BudgetExceeded) as error:
        ledger.charge("ops/epsilon=0.1", Cost("pure", 1e-8))
    for part in (
        "ops/epsilon=0.1",
        "budget pure(epsilon=0.1)",
        "spent pure(epsilon=0.1)",
        "asked 1 x pure(epsilon=1e-08)",
    ):
        assert part in str(error.value)


def test_a_refused_charge_leaves_the_account_as_it_was():
    ledger = Ledger()
    ledger.open("a", Cost("pure", 1.0))
    ledger.charge("a", Cost("pure", 0.75))
    before = ledger.record()
    with pytest.raises(BudgetExceeded):
        ledger.charge("a", Cost("pure", 0.1), releases=3)
    assert ledger.record() == before
    ledger.charge("a", Cost("pure", 0.25))


@pytest.mark.parametrize("parts", [3, 7, 100, 1000])
def test_equal_parts_of_a_budget_fit_in_spite_of_rounding(parts):
    ledger = Ledger()
    ledger.open("a", Cost("pure", 0.1))
    for _ in range(parts):
        ledger.charge("a", Cost("pure", 0.1 / parts))
    with pytest.raises(BudgetExceeded):
        ledger.charge("a", Cost("pure", 0.1 / parts))


def test_tolerance_is_a_relative_1e_9():
    ledger = Ledger()
    ledger.open("a", Cost("pure", 10.0))
    with pytest.raises(BudgetExceeded):
        ledger.charge("a", Cost("pure", 10.0 * (1 + 3e-9)))
    ledger.charge("a", Cost("pure", 10.0 * (1 + 5e-10)))


def test_rdp_accounts_add_at_their_order_and_convert_pure_costs():
    ledger = Ledger()
    ledger.open("a", Cost("rdp", 1.0, order=2))
    ledger.charge("a", Cost("rdp", 0.25, order=2), releases=2)
    ledger.charge("a", Cost("pure", 0.5))
    assert ledger.spent("a").epsilon == pytest.approx(0.5 + float(pure_to_rdp(0.5, 2)), rel=1e-12)
    with pytest.raises(ValueError, match=r"account 'a'.*order 3\.0 does not convert"):
        ledger.charge("a", Cost("rdp", 0.1, order=3.0))
    with pytest.raises(ValueError, match="does not convert"):
        ledger.charge("a", Cost("approximate", 0.1, delta=0.0))


def test_pure_accounts_refuse_rdp_costs():
    ledger = Ledger()
    ledger.open("a", Cost("pure", 1.0))
    with pytest.raises(ValueError, match="notion: a cost of notion 'rdp' does not convert to 'pure'"):
        ledger.charge("a", Cost("rdp", 0.1, order=2))


def test_approximate_accounts_watch_epsilon_and_delta():
    ledger = Ledger()
    ledger.open("a", Cost("approximate", 10.0, delta=1e-5))
    ledger.charge("a", Cost("pure", 1.0))
    ledger.charge("a", Cost("approximate", 1.0, delta=6e-6))
    with pytest.raises(BudgetExceeded, match="delta=6e-06"):
        ledger.charge("a", Cost("approximate", 1.0, delta=6e-6))
    assert ledger.spent("a") == Cost("approximate", 2.0, delta=6e-6)


def test_ledger_errors_name_the_account():
    ledger = Ledger()
    ledger.open("a", Cost("pure", 1.0))
    with pytest.raises(ValueError, match="account 'a' is already open"):
        ledger.open("a", Cost("pure", 2.0))
    with pytest.raises(ValueError, match="account 'b' is not open; open accounts: a"):
        ledger.charge("b", Cost("pure", 1.0))
    for releases in (0, -1, 1.5):
        with pytest.raises(ValueError, match="releases is"):
            ledger.charge("a", Cost("pure", 0.1), releases=releases)


def test_record_is_json_with_one_row_per_account_and_cost():
    ledger = Ledger()
    ledger.open("ops", Cost("pure", 1.0))
    ledger.open("non_private", Cost("pure", math.inf))
    ledger.open("unused", Cost("approximate", 1.0, delta=1e-5))
    for _ in range(3):
        ledger.charge("ops", Cost("pure", 0.125))
    ledger.charge("ops", Cost("pure", 0.25), releases=2)
    ledger.charge("non_private", Cost("pure", math.inf))
    rows = json.loads(json.dumps(ledger.record(), allow_nan=False))
    assert [(row["account"], row["epsilon"], row["releases"]) for row in rows] == [
        ("ops", 0.125, 3),
        ("ops", 0.25, 2),
        ("non_private", "inf", 1),
        ("unused", 0.0, 0),
    ]
    fields = {"account", "mechanism", "settings", "notion", "epsilon", "order", "delta", "releases", "repeats"}
    assert set(rows[0]) == fields | {"spent", "budget", "accounting", "data", "published"}
    assert rows[0]["spent"] == {"notion": "pure", "epsilon": 0.875, "order": None, "delta": None}
    assert rows[0]["budget"]["epsilon"] == 1.0
    assert float(rows[2]["budget"]["epsilon"]) == math.inf


# The gate


def test_a_release_is_drawn_by_the_mechanism_charged_and_recorded():
    ledger, mechanism = Ledger(), LaplaceMechanism(BITS, 8, 0.5)
    ledger.open("laplace", Cost("pure", 0.5), mechanism)
    found = ledger.release("laplace", mechanism, COUNTS, np.random.default_rng(1))
    assert np.array_equal(found.values, mechanism.perturb(COUNTS, np.random.default_rng(1)))
    (row,) = ledger.record()
    assert (row["mechanism"], row["settings"], row["releases"], row["repeats"]) == ("LaplaceMechanism", 0, 1, 1)
    assert row["spent"] == row["budget"]
    assert discovery.rebuild(ledger.mechanisms()[0]) == mechanism
    assert ledger.modules() == ["privpost.mechanisms.noise.laplace", "privpost.models.conjugate.beta_bernoulli"]


def test_nothing_is_drawn_that_the_account_cannot_pay():
    mechanism = Untouchable(BITS, 8, 0.5)
    ledger = Ledger()
    with pytest.raises(
        BudgetExceeded, match=r"account 'early': budget pure\(epsilon=0.4\), .* asked 1 x pure\(epsilon=0.5\)"
    ):
        ledger.open("early", Cost("pure", 0.4), mechanism)
    ledger.open("a", Cost("pure", 0.4))
    with pytest.raises(BudgetExceeded, match="account 'a'"):
        ledger.release("a", mechanism, COUNTS, np.random.default_rng(1))
    # 1e-9 is rounding, 1e-8 is not.
    ledger.open("rounded", Cost("pure", 0.5 * (1 - 5e-10)), mechanism)
    with pytest.raises(BudgetExceeded):
        ledger.open("above", Cost("pure", 0.5 * (1 - 1e-8)), mechanism)
    with pytest.raises(ValueError, match=r"account 'rdp'.*does not convert to 'pure'"):
        ledger.open("pure", Cost("pure", 1.0), LaplaceMechanism(BITS, 8, 0.5))
        ledger.open("rdp", Cost("pure", 100.0), PosteriorDraw(BITS, 8, 2.0, 0.1, weighting="diffused"))


def test_a_budget_refused_in_calibration_names_the_account_the_target_and_the_cost():
    ledger, budget = Ledger(), Cost("rdp", 0.1, order=2.0)
    account = r"account 'a' with budget rdp\(epsilon=0\.1, order=2\): "
    with pytest.raises(ValueError, match=account + r".*the direct posterior costs rdp\(epsilon=") as error:
        ledger.open("a", budget, partial(PosteriorDraw.calibrate, BITS, 8, budget, weighting="direct"))
    assert "\n" not in str(error.value)
    # What was refused is not open, and what is calibrated is handed back.
    made = ledger.open("a", budget, partial(PosteriorDraw.calibrate, BITS, 8, budget, weighting="diffused"))
    assert made == PosteriorDraw.calibrate(BITS, 8, budget, weighting="diffused")
    for epsilon in (1e-101, 1e101):
        with pytest.raises(
            ValueError, match=r"account 'b' with budget pure.*epsilon must be 0, inf or in \[1e-100, 1e"
        ):
            ledger.open("b", Cost("pure", epsilon))
    with pytest.raises(ValueError, match="mechanism is <class"):
        ledger.open("b", budget, PosteriorDraw)


def test_statistics_that_a_mechanism_cannot_prepare_are_refused_uncharged():
    ledger, mechanism = Ledger(), LogisticDraw(BinaryRegression(1, 0.1), 2, 2.0, 0.3, weighting="diffused")
    ledger.open("a", mechanism.cost(), mechanism)
    with pytest.raises(ValueError, match=r"^account 'a' with budget rdp\(.*\): "):
        ledger.release("a", mechanism, np.array([5.0, 0.0]), np.random.default_rng(1), size=1)
    assert ledger.spent("a").epsilon == 0


def test_releases_about_the_same_people_add_up():
    ledger, mechanism = Ledger(), LaplaceMechanism(BITS, 8, 0.5)
    rng = np.random.default_rng(2)
    ledger.open("a", Cost("pure", 1.0), mechanism)
    with pytest.raises(BudgetExceeded, match=r"asked 3 x pure\(epsilon=0.5\)"):
        ledger.release("a", mechanism, np.broadcast_to(COUNTS, (3, 2)), rng)
    with pytest.raises(BudgetExceeded):
        ledger.release("a", mechanism, COUNTS, rng, size=3)
    assert ledger.spent("a").epsilon == 0
    ledger.release("a", mechanism, COUNTS, rng)
    ledger.release("a", mechanism, COUNTS, rng)
    with pytest.raises(BudgetExceeded):
        ledger.release("a", mechanism, COUNTS, rng)
    assert [row["releases"] for row in ledger.record()] == [2]


def test_repeats_have_a_budget_each_and_cannot_spend_it_twice():
    ledger, mechanism = Ledger(), LaplaceMechanism(BITS, 8, 0.5)
    rng, trials = np.random.default_rng(3), np.broadcast_to(COUNTS, (4, 2))
    ledger.open("a", Cost("pure", 0.5), mechanism)
    ledger.release("a", mechanism, trials, rng, repeats=slice(0, 4))
    ledger.release("a", mechanism, COUNTS, rng, size=2, repeats=slice(4, 6))
    (row,) = ledger.record()
    assert (row["releases"], row["repeats"], row["spent"]["epsilon"]) == (1, 6, 0.5)
    with pytest.raises(BudgetExceeded):
        ledger.release("a", mechanism, COUNTS, rng, size=2, repeats=slice(5, 7))
    ledger.open("b", Cost("pure", 0.5), mechanism)
    with pytest.raises(BudgetExceeded, match="asked 2 x"):
        ledger.release("b", mechanism, np.broadcast_to(COUNTS, (4, 2, 2)), rng, repeats=slice(0, 4))
    with pytest.raises(ValueError, match="repeats are 3"):
        ledger.release("b", mechanism, trials, rng, repeats=slice(0, 3))


def test_several_releases_in_each_of_several_blocks_are_counted_by_repeat():
    ledger, mechanism = Ledger(), LaplaceMechanism(BITS, 8, 0.25)
    rng, trials = np.random.default_rng(3), np.broadcast_to(COUNTS, (4, 2))
    ledger.open("a", Cost("pure", 0.75), mechanism)
    for start in (4, 0):
        for _ in range(2):
            ledger.release("a", mechanism, trials, rng, repeats=slice(start, start + 4))
    ledger.release("a", mechanism, trials, rng, repeats=slice(2, 6))
    (row,) = ledger.record()
    assert (row["releases"], row["repeats"], row["spent"]["epsilon"]) == (3, 8, 0.75)
    with pytest.raises(BudgetExceeded, match=r"account 'a'.* spent pure\(epsilon=0.75\), asked 1 x"):
        ledger.release("a", mechanism, trials, rng, repeats=slice(5, 9))
    ledger.release("a", mechanism, trials, rng, repeats=slice(6, 10))
    assert [(row["releases"], row["repeats"]) for row in ledger.record()] == [(3, 10)]


def test_a_mechanism_that_gives_out_more_than_it_was_asked_for_is_stopped(monkeypatch):
    ledger, mechanism = Ledger(), PosteriorDraw(BITS, 8, 2.0, weighting="direct")
    ledger.open("a", Cost("rdp", 1.0, order=2.0), mechanism)
    twice = PosteriorDraw.perturb
    monkeypatch.setattr(PosteriorDraw, "perturb", lambda self, s, rng: np.stack([twice(self, s, rng)] * 2))
    with pytest.raises(ValueError, match=r"PosteriorDraw was asked for releases of shape \(\), but gave \(2,\)"):
        ledger.release("a", mechanism, COUNTS, np.random.default_rng(4))


def test_no_shape_hides_a_release():
    ledger, mechanism = Ledger(), LaplaceMechanism(BITS, 8, 0.5)
    rng = np.random.default_rng(5)
    ledger.open("a", Cost("pure", 0.5), mechanism)
    with pytest.raises(ValueError, match="statistics have a last axis of 200; those of one data set have 2"):
        ledger.release("a", mechanism, np.zeros(200), rng)
    with pytest.raises(ValueError, match=r"the releases have the shape \(2, 0\)"):
        ledger.release("a", mechanism, np.zeros((2, 0, 2)), rng, repeats=slice(0, 2))
    for repeats in (slice(-2, 0), slice(3, 3)):
        with pytest.raises(ValueError, match="repeats are slice"):
            ledger.release("a", mechanism, np.zeros((2, 2)), rng, repeats=repeats)
    assert ledger.spent("a").epsilon == 0


def test_an_infinite_cost_is_refused_by_every_finite_budget_and_counted_without_limit():
    ledger, mechanism = Ledger(), PosteriorDraw(BITS, 8, 20.0, weighting="direct")
    assert mechanism.cost().epsilon == math.inf
    with pytest.raises(BudgetExceeded):
        ledger.open("a", Cost("rdp", 1.0, order=20.0), mechanism)
    # What was refused is not open.
    ledger.open("a", Cost("rdp", 1.0, order=20.0))
    with pytest.raises(BudgetExceeded):
        ledger.release("a", mechanism, np.broadcast_to(COUNTS, (2, 2)), np.random.default_rng(6), repeats=slice(1, 3))
    ledger.open("non_private", Cost("rdp", math.inf, order=20.0), mechanism)
    for _ in range(2):
        ledger.release(
            "non_private", mechanism, np.broadcast_to(COUNTS, (2, 2)), np.random.default_rng(6), repeats=slice(1, 3)
        )
    assert ledger.spent("non_private").epsilon == math.inf


def test_requests_together_are_refused_together():
    ledger = Ledger()
    paid, unpaid = Untouchable(BITS, 8, 0.5), Untouchable(BITS, 8, 0.7)
    for name in ("a", "b"):
        ledger.open(name, Cost("pure", 0.5))
    rng = np.random.default_rng(1)
    with pytest.raises(BudgetExceeded, match="account 'b'"):
        ledger.release_all([Request("a", paid, COUNTS, rng), Request("b", unpaid, COUNTS, rng)])
    assert ledger.spent("a").epsilon == 0


def test_requests_of_several_classes_are_answered_in_their_order():
    mechanisms = [
        LaplaceMechanism(BITS, 8, 0.5),
        PosteriorDraw(BITS, 8, 2.0, 0.1, weighting="diffused"),
        LaplaceMechanism(BITS, 8, 2.0),
    ]
    single, together = Ledger(), Ledger()
    for ledger in (single, together):
        for place in range(3):
            ledger.open(f"{place}", Cost("rdp", 9.0, order=2.0), mechanisms[place])
    rngs = [np.random.default_rng(place) for place in range(3)]
    found = together.release_all([Request(f"{i}", mechanisms[i], COUNTS, rngs[i]) for i in range(3)])
    for place in range(3):
        alone = single.release(f"{place}", mechanisms[place], COUNTS, np.random.default_rng(place))
        assert np.array_equal(found[place].values, alone.values)
    assert single.record() == together.record()


def test_approximate_accounts_convert_guarantees_or_take_exact_curves():
    target = Cost("approximate", 1.0, delta=1e-5)
    ledger = Ledger()
    ledger.open("pure", target, LaplaceMechanism(BITS, 8, 1.0))
    # Randomised response of ε0 = 1.00001 has δ(1) = 7.3e-6, that of 1.00002 has 1.46e-5.
    ledger.open("slightly more", target, LaplaceMechanism(BITS, 8, 1.00001))
    with pytest.raises(BudgetExceeded):
        ledger.open("more", target, LaplaceMechanism(BITS, 8, 1.00002))
    with pytest.raises(ValueError, match="accounting is 'sloppy'; allowed: stated, exact"):
        ledger.open("sloppy", target, accounting="sloppy")


@pytest.mark.parametrize("mechanism", EXAMPLES, ids=repr)
def test_a_description_is_json_and_makes_the_same_mechanism(mechanism):
    described = json.loads(json.dumps(describe(mechanism), allow_nan=False))
    assert discovery.rebuild(described) == mechanism


@pytest.mark.parametrize("mechanism", EXAMPLES, ids=repr)
def test_a_mechanism_is_within_its_own_cost_and_not_within_less(mechanism):
    cost = mechanism.cost()
    if not math.isfinite(cost.epsilon):
        pytest.skip("no finite guarantee")
    ledger = Ledger()
    ledger.open("own", cost, mechanism)
    with pytest.raises(BudgetExceeded):
        ledger.open("less", replace(cost, epsilon=0.99 * cost.epsilon), mechanism)


def test_repeats_about_the_same_people_show_what_all_of_them_would_cost():
    mechanism = LaplaceMechanism(BITS, 8, 0.25)
    for data, expected in (("adult", "adult"), (None, None)):
        ledger, rng = Ledger(data), np.random.default_rng(1)
        ledger.open("a", Cost("pure", 0.5), mechanism)
        for start in (0, 10):
            for _ in range(2):
                statistics = np.broadcast_to(COUNTS, (10, 2))
                ledger.release("a", mechanism, statistics, rng, repeats=slice(start, start + 10))
        (row,) = ledger.record()
        assert (row["data"], row["repeats"], row["spent"]["epsilon"]) == (expected, 20, 0.5)
        assert row["published"] == {"notion": "pure", "epsilon": 10.0, "order": None, "delta": None}


def test_repeats_end_with_the_experiments_trials():
    ledger, mechanism, rng = Ledger(trials=4), LaplaceMechanism(BITS, 8, 0.5), np.random.default_rng(2)
    ledger.open("a", Cost("pure", 0.5), mechanism)
    ledger.open("chains", Cost("pure", 0.5), mechanism, repeats=8)
    with pytest.raises(ValueError, match=r"account 'a': repeats are slice\(2, 6, None\), but there are 4"):
        ledger.release("a", mechanism, COUNTS, rng, size=4, repeats=slice(2, 6))
    ledger.release("chains", mechanism, COUNTS, rng, size=8, repeats=slice(0, 8))
    assert [row["repeats"] for row in ledger.record()] == [0, 8]


def test_one_noise_for_two_releases_of_an_account_is_refused_before_anything_is_drawn():
    # s + z and s' + z tell s − s', s + z and s + 2z tell s: neither costs only the sum.
    ledger, mechanism = Ledger(), LaplaceMechanism(BITS, 8, 0.25)
    noise, trials = Common(np.random.default_rng(1)), np.broadcast_to(COUNTS, (4, 2))
    for name in ("a", "b"):
        ledger.open(name, Cost("pure", 1.0), mechanism)
    first = ledger.release("a", mechanism, trials, noise, repeats=slice(0, 4))
    for statistics, repeats in ((trials[:, ::-1], slice(0, 4)), (trials, slice(3, 7))):
        with pytest.raises(ValueError, match=r"account 'a': two releases in repeats .* share their noise"):
            ledger.release("a", mechanism, statistics, noise, repeats=repeats)
    assert ledger.spent("a").epsilon == 0.25
    # Other people, and another experiment with a target of its own.
    ledger.release("a", mechanism, trials, noise, repeats=slice(4, 8))
    assert np.array_equal(ledger.release("b", mechanism, trials, noise, repeats=slice(0, 4)).values, first.values)


def test_a_generator_in_a_state_that_made_a_release_of_the_account_is_refused():
    ledger, mechanism = Ledger(), LaplaceMechanism(BITS, 8, 0.25)
    ledger.open("a", Cost("pure", 1.0), mechanism)
    rng = np.random.default_rng(1)
    ledger.release("a", mechanism, COUNTS, rng)
    with pytest.raises(ValueError, match=r"account 'a': two releases in repeats .* share their noise"):
        ledger.release("a", mechanism, COUNTS[::-1], np.random.default_rng(1))
    same = [Request("a", mechanism, COUNTS, np.random.default_rng(2)) for _ in range(2)]
    with pytest.raises(ValueError, match=r"account 'a': two releases in repeats .* share their noise"):
        ledger.release_all(same)
    assert ledger.spent("a").epsilon == 0.25
    # One that moves on from release to release, in one call too, and what was refused has left nothing behind.
    ledger.release("a", mechanism, COUNTS, rng)
    ledger.release_all([same[0], same[0]])
    assert ledger.spent("a").epsilon == 1.0
    # One that moves on by its children, as exact samplers' do.
    logistic = LogisticDraw(BinaryRegression(1, 0.1), 2, 2.0, 0.3, weighting="diffused")
    ledger.open("children", Cost("rdp", 2 * logistic.cost().epsilon, order=2.0), logistic)
    for _ in range(2):
        ledger.release("children", logistic, np.ones(2), rng, size=1)


def test_settings_that_differ_far_inside_an_array_are_told_apart():
    low = np.zeros(5000)
    for place in (0, 2500):
        # numpy prints neither.
        other = low.copy()
        other[place] = -1.0
        kinds = [
            RedactedLaplace(RedactedSum(GammaExponential(8, 2), values, np.ones(5000)), 4, 1.0)
            for values in (low, other, low.copy())
        ]
        assert key_of(kinds[0]) != key_of(kinds[1])
        assert key_of(kinds[0]) == key_of(kinds[2])
