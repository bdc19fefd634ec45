"""The studies of bits and networks at the gate: budgets are the configuration's, costlier releases draw nothing."""

from __future__ import annotations

import ast
import inspect
import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from privpost.lab import grid
from privpost.lab.schema import DatasetName, SettingError
from privpost.lab.streams import Streams
from privpost.mechanisms.draws.network import RecordSampler
from privpost.mechanisms.draws.posterior import PosteriorDraw
from privpost.privacy.ledger import gate
from privpost.privacy.ledger.gate import BudgetExceeded, Ledger

# It examines mechanisms, and opens accounts as its instances come.
AUDIT = "audit/audit"


def simulations() -> dict[str, bool]:
    """The studies that need no data set, and whether their `simulate` uses the ledger that it is given."""
    releasing = {}
    for study in grid.load_studies(scale="smoke"):
        if study.name == AUDIT or any(isinstance(field, DatasetName) for field in study.schema.fields.values()):
            continue
        body = ast.walk(ast.parse(inspect.getsource(study.module().simulate)))
        releasing[study.name] = any(isinstance(node, ast.Name) and node.id == "ledger" for node in body)
    return releasing


SIMULATIONS = simulations()
RELEASING = [name for name, releases in SIMULATIONS.items() if releases]
SILENT = [name for name, releases in SIMULATIONS.items() if not releases]


def test_most_studies_release():
    assert "geumlek2017/tradeoff" in RELEASING and "geumlek2017/rdp_curves" in SILENT
    assert len(RELEASING) > 10


class Untouched(Streams):
    """Streams that nobody may ask for anything."""

    def __call__(self, role, block=0, **point):
        raise AssertionError(f"the stream {role!r} was used")


def smoke(name, **settings):
    """Module, and config of the first smoke cell with other settings, and the cell."""
    study = grid.load_study(name, "smoke")
    cell = grid.expand(study)[0]
    return study.module(), SimpleNamespace(**{**vars(cell.config), **settings}), cell


def run(name, streams=Streams, **settings):
    module, config, cell = smoke(name, **settings)
    ledger = Ledger(cell.dataset, cell.sizes["trials"])
    return module.simulate(config, streams.of(cell), ledger), ledger


def small(name):
    """Settings at which a study is quick: the calibration to (ε, δ) takes seconds for each pair, as integrals do."""
    quick = {
        "fair_axis/beta_bernoulli": {"epsilon": [1.0], "delta": [1e-4]},
        "noise_aware/regression_calibration": {"oracles": 0},
    }
    return quick.get(name, {})


@pytest.mark.parametrize("name", RELEASING)
def test_a_study_whose_mechanisms_cost_more_than_their_targets_draws_nothing(checkout, name, monkeypatch):
    price = gate._price

    def dearer(*arguments):
        cost = price(*arguments)
        delta = None if cost.delta is None else min(1.0, cost.delta * 1.001)
        return replace(cost, epsilon=cost.epsilon * 1.001, delta=delta)

    monkeypatch.setattr(gate, "_price", dearer)
    with pytest.raises(BudgetExceeded, match=r"account '.+': budget .+, spent .+, asked 1 x .+") as error:
        run(name, Untouched, **small(name))
    assert "\n" not in str(error.value)


# The others calibrate what discovery finds, before there are accounts.
@pytest.mark.parametrize("name", sorted({*RELEASING} - {"fair_axis/beta_bernoulli", "foulds2016/efficiency"}))
def test_a_target_that_no_mechanism_is_calibrated_to_is_refused_by_name(checkout, name):
    config = smoke(name)[1]
    setting = "log_epsilon" if hasattr(config, "log_epsilon") else "epsilon"
    huge = 300 * np.log(10) if setting == "log_epsilon" else 1e300
    # Where the mechanism comes before its account, it refuses its own epsilon.
    refused = (
        r"(^account '.+' with|: ) ?budget .+[:;] .*epsilon must be 0, inf or in|^epsilon is 1e\+300; it must lie in \["
    )
    with pytest.raises(ValueError, match=refused) as error:
        run(name, Untouched, **{setting: [huge] if isinstance(getattr(config, setting), list) else huge})
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", RELEASING)
def test_releases_are_made_by_mechanisms_within_the_target_that_the_account_names(checkout, name):
    _, ledger = run(name, **small(name))
    rows = ledger.record()
    assert rows
    for row in rows:
        # The naive method shifts the release of another account by private records, which is no mechanism.
        assert row["mechanism"] or row["releases"] == 0 or row["account"].startswith("naive/")
        named = re.search(r"(log_)?epsilon=([^/]+)", row["account"])
        if named and not row["account"].startswith(("naive/", "sampler_attribute/")):
            target = np.exp(float(named[2])) if named[1] else float(named[2])
            # Accounts are named with six digits.
            assert float(row["budget"]["epsilon"]) == pytest.approx(target, rel=1e-5)


@pytest.mark.parametrize("name", SILENT)
def test_studies_of_curves_release_nothing(checkout, name):
    _, ledger = run(name, Untouched)
    assert ledger.record() == []


def test_repeats_have_the_budget_each_and_several_releases_share_it(checkout):
    _, ledger = run("foulds2016/posterior_shapes")
    assert [(row["releases"], row["repeats"]) for row in ledger.record()] == [(1, 3), (0, 0)]
    _, ledger = run("bernstein2018/calibration")
    ops = [row for row in ledger.record() if row["account"].startswith("ops/")]
    assert {(row["releases"], row["repeats"]) for row in ops} == {(100, 60)}
    assert all(row["spent"]["epsilon"] == pytest.approx(row["budget"]["epsilon"], rel=1e-9) for row in ops)


@pytest.mark.parametrize("faulty", ["sampler", "power"])
def test_a_sampler_that_spends_more_than_its_setting_is_refused(checkout, monkeypatch, faulty):
    if faulty == "sampler":
        doubled = property(lambda self: self.epsilon / len(self.model.nodes))
        monkeypatch.setattr(RecordSampler, "log_ratio", doubled)
        with pytest.raises(BudgetExceeded, match="account 'sampler_record/"):
            run("zhang2016/naive_bayes", Untouched)
        return
    calibrate = PosteriorDraw.calibrate.__func__

    def strong(cls, *arguments, **options):
        found = calibrate(cls, *arguments, **options)
        return replace(found, coefficient=min(1.0, 2 * found.coefficient))

    monkeypatch.setattr(PosteriorDraw, "calibrate", classmethod(strong))
    with pytest.raises(BudgetExceeded, match=r"account 'diffused/log_epsilon=-15': budget rdp\(epsilon=3.05902e-07"):
        run("geumlek2017/tradeoff", Untouched)


def test_settings_that_cannot_be_met_are_refused_before_anything_is_drawn(checkout):
    study = grid.load_study("geumlek2017/tradeoff", "smoke")
    for impossible in (-1000.0, 1000.0):
        with pytest.raises(SettingError, match=r"log_epsilon is .*1000.0, but must be a number in \[-230, 230\]"):
            grid.make_cell(study, {"log_epsilon": [impossible]})
    for name in ("foulds2016/efficiency", "bernstein2018/calibration", "zhang2016/bounds", "noise_aware/rivals"):
        with pytest.raises(SettingError, match=r"epsilon is .*0.0, but must be a number in \[1e-100, 1e\+100\]"):
            grid.make_cell(grid.load_study(name, "smoke"), {"epsilon": [0.0]})
    with pytest.raises(ValueError, match=r"methods has gaussian; only .*laplace, ops serve BetaBernoulli"):
        run("foulds2016/efficiency", Untouched, methods=["gaussian", "laplace"])


def test_a_ball_above_the_target_of_linear_regression_is_refused(checkout, monkeypatch):
    from privpost.experiments.zhang2016.linear_regression import study as linear_regression

    rng = np.random.default_rng(1)
    features = rng.normal(size=(50, 3)) / 10
    monkeypatch.setattr(linear_regression.prepared, "read", lambda *_: None)
    monkeypatch.setattr(linear_regression.census, "clipped_share", lambda *_: 0.0)
    monkeypatch.setattr(linear_regression.census, "regression", lambda *_: (features, rng.random(50)))
    arrays, ledger = run("zhang2016/linear_regression")
    budgets = {row["budget"]["epsilon"] for row in ledger.record()}
    assert budgets == {6050.0}
    assert arrays["epsilon"].max() == pytest.approx(6050, rel=1e-9)
    with pytest.raises(SettingError, match=r"epsilon_target is 6000, but one draw costs 6050 at noise_variance 0\.02 "):
        run("zhang2016/linear_regression", Untouched, epsilon_target=6000.0)
