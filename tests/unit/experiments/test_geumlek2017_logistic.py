"""The logistic-regression and Dirichlet studies of Geumlek et al. (2017): calibration, simulation, tables, claims.

Simulations run on a synthetic design, so that no data set is needed; tables are the shipped ones.
"""

import functools
import inspect
import math
from types import SimpleNamespace

import mpmath
import numpy as np
import pytest

from privpost.datasets import Design
from privpost.experiments.geumlek2017.dirichlet import study as dirichlet
from privpost.experiments.geumlek2017.logistic import claims as logistic_claims
from privpost.experiments.geumlek2017.logistic import study as logistic
from privpost.lab import claims, grid, tables
from privpost.lab.schema import SettingError
from privpost.lab.streams import Streams
from privpost.mechanisms.draws import logistic_sampling
from privpost.models.regression.binary import BinaryRegression
from privpost.privacy.ledger.gate import Ledger

NAME = "geumlek2017/logistic"
TRAIN, TEST, DIMENSION = 300, 400, 4
SIZES = {"abalone": 2784, "adult": 32561, "mnist": 7988}


@pytest.fixture(scope="module")
def paper_study():
    return grid.load_study(NAME)


@pytest.fixture(scope="module")
def smoke_study():
    return grid.load_study(NAME, "smoke")


@pytest.fixture(scope="module")
def shipped(paper_study):
    return tables.read_tables(paper_study)


@pytest.fixture
def loads(monkeypatch):
    """Replace the data by a synthetic task; returns the list of (bounds, dropped_level, training rows) loaded."""
    rng = np.random.default_rng(5)
    features = rng.standard_normal((TRAIN + TEST, DIMENSION))
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    labels = (rng.random(len(features)) < 1 / (1 + np.exp(-4 * features[:, 0] - features[:, 1]))).astype(np.int8)
    calls = []

    def load_design(name, *, bounds, dropped_level, rng):
        order = rng.permutation(len(features))
        calls.append((bounds, dropped_level, tuple(order[:TRAIN])))
        train, test = order[:TRAIN], order[TRAIN:]
        return Design(features[train], labels[train], features[test], labels[test])

    monkeypatch.setattr(logistic, "load_design", load_design)
    return calls


def run(study, **settings):
    """Simulate one cell; returns it as the store would give it back, and its ledger."""
    cell = grid.make_cell(study, settings)
    ledger = Ledger()
    arrays = logistic.simulate(cell.config, Streams.of(cell), ledger)
    return SimpleNamespace(config=cell.config, arrays=arrays), ledger


# Calibration


def test_calibration_sees_no_data():
    # A coefficient computed from data would need the data; n is public.
    assert set(inspect.signature(logistic.calibrations).parameters) == {"config", "model", "n"}


@functools.cache
def two_point_divergence(pure, order):
    """Rényi divergence of randomised response with the pure cost `pure`."""
    with mpmath.workdps(50):
        pure, order = mpmath.mpf(pure), mpmath.mpf(order)
        if order == 1:
            return float(pure * mpmath.tanh(pure / 2))
        ratio = (mpmath.sinh(order * pure) - mpmath.sinh((order - 1) * pure)) / mpmath.sinh(pure)
        return float(mpmath.log(ratio) / (order - 1))


def smallest_radius(mechanism):
    """√(ρκ/β): κ, the maximum of x/(1 + e^x), is Lambert's W at 1/e."""
    return math.sqrt(mechanism.power * float(mpmath.lambertw(mpmath.exp(-1)).real) / mechanism.precision)


def exact_charge(method, variant, order, mechanism, n):
    """Rényi divergence bound of a calibrated mechanism, in formulas of its own (c = B = 1)."""
    if variant == "smallest_ball":
        # Pure; on the ball a tempered record varies by at most ρR, and so do the numerator and the normaliser.
        return 2 * mechanism.power * smallest_radius(mechanism)
    if (method, variant) == ("ops", "paper"):
        return 4 * mechanism.power / mechanism.precision
    renyi = 2 * mechanism.power**2 * order / (n * mechanism.precision)
    if method == "output_noise":
        # The gradient at the mode is certified up to 1e-8.
        return 2 * (mechanism.power + 1e-8) ** 2 * order / (n * mechanism.precision)
    if method == "langevin":
        # One curvature for both data sets is the worst case: shifts and noise of all steps, each shrunk by later ones.
        eta = 1 / (n * (mechanism.precision + mechanism.power / 4))
        left = (1 - eta * n * mechanism.precision) ** np.arange(mechanism.steps)
        return order / 2 * (2 * mechanism.power * eta * left.sum()) ** 2 / (2 * eta * (left**2).sum())
    if method != "ops":
        return renyi
    pure = two_point_divergence(2 * mechanism.power / mechanism.precision, order)
    return min(renyi, pure) if variant.endswith("own_bound") else pure


def test_every_grid_point_meets_its_budget_and_no_less(paper_study):
    points = 0
    for cell in grid.expand(paper_study):
        config = cell.config
        if config.method == "non_private":
            continue
        n = SIZES[config.dataset]
        for budget, make in logistic.calibrations(config, BinaryRegression(DIMENSION, config.beta0), n):
            found = make()
            assert found.cost_in(budget).within(budget)
            if logistic.on_balls(config):
                # Their costs are recomputed with the test of their rows.
                continue
            charge = exact_charge(config.method, config.variant, config.order, found, n)
            assert found.cost_in(budget).epsilon == pytest.approx(charge, rel=1e-9)
            # The budget is spent unless the true posterior already meets it.
            at_limit = found.power == 1 and found.precision == config.beta0
            # The number of Langevin steps is an integer that grows with the power.
            wasted = 0.02 if config.method == "langevin" else 1e-9
            assert at_limit or charge == pytest.approx(budget.epsilon, rel=wasted)
            assert found.coefficient == (found.precision if config.method == "concentrated" else found.power)
            radius = smallest_radius(found) if config.variant == "smallest_ball" else 1000
            assert found.radius == (pytest.approx(radius) if config.method == "ops" else None)
            points += 1
    assert points > 9 * 3 * 3 * 3


# Simulation


def test_ledger_has_one_release_a_repeat_for_every_budget(smoke_study, loads):
    for method, variant, name in (
        ("concentrated", "paper", "LogisticConcentrated"),
        ("diffused", "paper", "LogisticDiffused"),
        ("ops", "corrected_charge", "LogisticOps"),
        ("ops", "own_bound", "LogisticOpsRenyi"),
    ):
        _, ledger = run(smoke_study, method=method, variant=variant)
        rows = ledger.record()
        assert len(rows) == 3
        for row in rows:
            assert (row["budget"]["order"], row["releases"], row["repeats"]) == (10, 1, 10)
            assert row["mechanism"] == name
            assert 0 < row["spent"]["epsilon"] <= row["budget"]["epsilon"] * (1 + 1e-9)
    _, ledger = run(smoke_study, method="ops", variant="smallest_ball", order=None)
    budgets = [(row["budget"]["notion"], row["budget"]["epsilon"]) for row in ledger.record()]
    assert budgets == [("pure", pytest.approx(math.exp(value), rel=1e-5)) for value in (-5, 0, 3)]
    _, ledger = run(smoke_study, method="non_private", order=None, log_epsilon=[None])
    assert [(row["mechanism"], row["budget"]["epsilon"]) for row in ledger.record()] == [("LogisticDirect", "inf")]


def test_an_overcharging_mechanism_fails(smoke_study, loads, monkeypatch):
    from privpost.privacy.ledger.gate import BudgetExceeded

    monkeypatch.setattr(logistic_sampling, "diffused_power", lambda *args: 1.0)
    monkeypatch.setattr(logistic_sampling.LogisticSampling, "draw", None)
    with pytest.raises(BudgetExceeded, match=r"account 'diffused/epsilon=0.00673795/splits=1': budget rdp"):
        run(smoke_study, method="diffused", log_epsilon=[-5])


def test_one_split_is_shared_by_chains_methods_and_orders(smoke_study, loads, monkeypatch):
    for method, order in [("diffused", 1), ("concentrated", 100), ("ops", 10)]:
        run(smoke_study, method=method, order=order, n_splits=[1])
    assert len(loads) == 3 and len({rows for _, _, rows in loads}) == 1
    used, resplit = [], Design.resplit
    monkeypatch.setattr(Design, "resplit", lambda *args: used.append(resplit(*args)) or used[-1])
    run(smoke_study, method="diffused", n_splits=[1, 5])
    # The first of several splits is the single one.
    assert loads[3] == loads[0] and len(loads) == 4
    assert len({data.train_features.tobytes() for data in used}) == len(used) == 4


def test_only_the_corrected_variants_scale_by_public_bounds(smoke_study, loads):
    for variant in logistic.VARIANTS:
        run(smoke_study, method="ops", variant=variant, log_epsilon=[0])
    assert [call[0] for call in loads] == ["data", "data", "data", "data", "public", "public"]
    assert {call[1] for call in loads} == {"first"}


def test_number_of_splits_must_divide_the_trials(smoke_study, loads):
    with pytest.raises(ValueError, match="n_splits is 3, but must divide trials, which is 10"):
        run(smoke_study, method="diffused", n_splits=[3])


def test_settings_out_of_range_are_named(paper_study):
    for key, value in [("n_splits", 0), ("draws", 0), ("order", 0.5), ("variant", "gibbs"), ("beta0", 0)]:
        with pytest.raises(SettingError, match=key):
            grid.make_cell(paper_study, {key: value})


def test_methods_at_full_coefficient_give_the_same_draws(smoke_study, loads):
    # At n = 300 and order 1 the budget e^3 leaves both samplers the true posterior: common random numbers then agree.
    cells = [run(smoke_study, method=m, order=1, log_epsilon=[3], beta0=0.1)[0] for m in ("diffused", "concentrated")]
    assert (cells[0].arrays["metrics"] == cells[1].arrays["metrics"]).all()
    assert [cell.arrays["coefficient"].item() for cell in cells] == [1.0, 0.1]


def test_ops_by_its_own_bound_draws_what_diffused_sampling_draws(smoke_study, loads):
    common = {"order": 10, "log_epsilon": [0], "beta0": 0.01}
    own, _ = run(smoke_study, method="ops", variant="own_bound", **common)
    diffused, _ = run(smoke_study, method="diffused", variant="paper", **common)
    assert own.arrays["coefficient"] == diffused.arrays["coefficient"] < 1
    assert (own.arrays["metrics"] == diffused.arrays["metrics"]).all()


# Tables


@pytest.fixture
def smoke_cells(smoke_study, loads):
    points = grid.points(smoke_study)
    return [run(smoke_study, **point)[0] for point in points]


def tabulated(cells):
    return tables.tables_of(grid.load_study(NAME, "smoke"), cells)


def test_tables_at_smoke_scale_have_every_row_and_can_be_scored(smoke_cells):
    made = tabulated(smoke_cells)
    table = made["logistic"]
    # Three methods at three budgets and the true posterior, in two variants of two data sets; MNIST has no concentrated
    # sampling and no OPS by its own bound; OPS on Abalone's smallest ball; two metrics.
    assert len(table) == 2 * (4 * (3 * 3 + 1) - 3 * 3 + 3)
    # The paper's ball, two metrics.
    assert made["ops_radius"].times_smallest.isna().sum() == 2
    splits = made["logistic_splits"]
    assert set(splits.n_splits) == {1, 5} and set(splits.variant) == {"paper"}
    assert not splits.duplicated(["dataset", "method", "order", "log_epsilon", "metric", "n_splits"]).any()
    scored = claims.score(logistic_claims, made)
    assert sorted(claim.id for claim in scored) == ["G10", "G14", "G25", "G26", "G27", "G28", "G7", "G8", "G9"]


def test_shipped_errors_have_the_known_values(shipped):
    table = shipped["logistic"]
    majority = table.groupby("dataset").majority_error.first()
    # 0.236 is the share of > 50K in adult.test; Abalone's classes are even, its test share has an sd of 0.011.
    assert majority["adult"] == pytest.approx(0.236, abs=5e-4)
    assert majority["abalone"] == pytest.approx(0.498, abs=0.035)
    truth = table[(table.method == "non_private") & (table.metric == "test_error") & (table.variant == "paper")]
    truth = truth.set_index("dataset")["mean"]
    assert 0.24 < truth["abalone"] < 0.29 and 0.17 < truth["adult"] < 0.18 and 0.045 < truth["mnist"] < 0.06


def test_shipped_charges_of_glm_posteriors(shipped):
    table = shipped["rdp_glm"]
    for row in table.itertuples():
        if row.method == "ops":
            limit = {"paper": 4}.get(row.variant, 2) * row.power / 1e-3
            if row.variant == "own_bound":
                limit = min(limit, 2 * row.power**2 * row.order / (row.n * 1e-3) * (1 + 1e-12))
            assert row.epsilon == pytest.approx(limit) if row.variant == "paper" else row.epsilon <= limit
        else:
            assert row.method == ("direct" if row.power == 1 else "diffused")
            assert row.epsilon == pytest.approx(2 * row.power**2 * row.order / (row.n * 1e-3), rel=1e-12)


# The Dirichlet curves


@pytest.fixture(scope="module")
def curves():
    return tables.read_tables(grid.load_study("geumlek2017/dirichlet"))


def test_dirichlet_paper_pairs_never_charge_less(curves):
    wide = curves["dirichlet"].pivot_table(
        index=["categories", "prior", "method", "coefficient", "order"], columns="supremum", values="epsilon"
    )
    finite = np.isfinite(wide.paper) & np.isfinite(wide.exact)
    assert (wide.paper[finite] >= wide.exact[finite] * (1 - 1e-12)).all()
    assert (wide.paper[finite] > wide.exact[finite] * 1.01).any()


def test_dirichlet_priors_add_up():
    for prior in ("symmetric", "asymmetric"):
        for categories in (3, 5, 10):
            alpha = dirichlet.concentration(prior, categories, 18)
            assert alpha.sum() == pytest.approx(18) and len(alpha) == categories
    assert dirichlet.concentration("asymmetric", 3, 18).tolist() == [3, 6, 9]
