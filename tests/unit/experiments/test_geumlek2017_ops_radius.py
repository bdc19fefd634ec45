"""OPS against the radius of its ball: privacy of its rows recomputed, and a tiny cell on a synthetic design."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from privpost.datasets import Design
from privpost.experiments.geumlek2017.logistic import radii
from privpost.experiments.geumlek2017.logistic import study as logistic
from privpost.lab import grid, tables
from privpost.lab.streams import Streams
from privpost.mechanisms.draws.logistic_ops import LogisticOps
from privpost.models.regression.binary import BinaryRegression
from privpost.privacy.ledger.gate import Ledger

NAME = "geumlek2017/logistic"
# max x/(1 + e^x), by a grid.
POINTS = np.linspace(0, 5, 5_000_001)
KAPPA = float((POINTS / (1 + np.exp(POINTS))).max())


@pytest.fixture
def cell(monkeypatch):
    """Simulate the smoke grid's cell of several balls on a synthetic task; returns it and its ledger."""
    rng = np.random.default_rng(3)
    features = rng.standard_normal((500, 3))
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    labels = (rng.random(500) < 1 / (1 + np.exp(-6 * features[:, 0]))).astype(np.int8)
    design = Design(features[:300], labels[:300], features[300:], labels[300:])
    monkeypatch.setattr(logistic, "load_design", lambda *args, **options: design)
    # Any data set's cell: the design is made up.
    made, *_ = (each for each in grid.expand(grid.load_study(NAME, "smoke")) if logistic.on_balls(each.config))
    ledger = Ledger()
    arrays = logistic.simulate(made.config, Streams.of(made), ledger)
    return SimpleNamespace(config=made.config, arrays=arrays), ledger


def check_privacy(table):
    """Recompute ρ, R and ε of each row (c = 1, β = 1/1000), and the norm that no mode exceeds."""
    epsilon = np.exp(table.log_epsilon)
    assert (table.power <= 1).all() and (table.spent <= epsilon * (1 + 1e-9)).all()
    np.testing.assert_allclose(table.spent, 2 * table.power * table.radius, rtol=1e-12)
    np.testing.assert_allclose(table.power, np.minimum(1, epsilon / (2 * table.radius)), rtol=1e-9)
    smallest = table[table.times_smallest == 1]
    np.testing.assert_allclose(smallest.radius, np.sqrt(1e3 * KAPPA * smallest.power), rtol=1e-9)
    own = np.sqrt(1e3 * KAPPA) * (np.exp(2) / 2 / np.sqrt(1e3 * KAPPA)) ** (1 / 3)
    times = table[table.times_smallest.notna()]
    np.testing.assert_allclose(times.radius, times.times_smallest * own, rtol=1e-9)
    assert (table.radius[table.times_smallest.isna()] == 1000).all()
    np.testing.assert_allclose(table.mode_bound, np.sqrt(1e3 * KAPPA * table.power), rtol=1e-9)
    # Attained by records of the length 1.278/bound, where they may be as long; the paper's ball is larger by far.
    assert (table.mode_farthest <= table.mode_bound * (1 + 1e-9)).all()
    long = table[table.mode_bound > 1.279]
    np.testing.assert_allclose(long.mode_farthest, long.mode_bound, rtol=1e-7)
    assert (table.mode_bound < 17).all()


def test_a_tiny_cell_spends_its_budget_and_is_good_on_the_smallest_ball(cell):
    table = tables.tables_of(grid.load_study(NAME, "smoke"), [cell[0]])["ops_radius"]
    assert len(table) == 3 * 2
    check_privacy(table)
    rows = cell[1].record()
    assert [row["mechanism"] for row in rows] == ["LogisticOps"] * 3
    for row in rows:
        assert (row["budget"]["notion"], row["releases"], row["repeats"]) == ("pure", 1, 10)
    error = table[table.metric == "test_error"].set_index("times_smallest")["mean"]
    assert error[1] < 0.3 < error.iloc[-1]


def test_no_records_have_a_mode_beyond_the_smallest_ball():
    """Against random data, whose modes are found anew by Newton's method."""
    rng, n, beta = np.random.default_rng(4), 40, 1e-3
    farthest = 0.0
    for _ in range(100):
        records = rng.standard_normal((n, 2)) * rng.random(2) + rng.standard_normal(2) * rng.choice([0, 3])
        records *= rng.random() / np.linalg.norm(records, axis=1).max()
        mode = np.zeros(2)
        for _ in range(200):
            share = 1 / (1 + np.exp(records @ mode))
            gradient = records.T @ share - n * beta * mode
            hessian = (records * (share * (1 - share))[:, None]).T @ records + n * beta * np.eye(2)
            step = np.linalg.solve(hessian, gradient)
            mode = mode + step * min(1, 2 / np.linalg.norm(step)) if np.linalg.norm(step) > 0 else mode
        assert np.linalg.norm(gradient) < 1e-6
        farthest = max(farthest, np.linalg.norm(mode))
    assert farthest < radii.farthest_mode(1.0, beta, 1.0) * (1 + 1e-6)
    assert radii.farthest_mode(1.0, beta, 1.0) == pytest.approx(math.sqrt(KAPPA / beta), rel=1e-7)


def test_the_smallest_ball_is_the_one_of_the_charge():
    model = BinaryRegression(2, 1e-3)
    found = radii.mechanism(model, 50, 1.0, 1)
    other = LogisticOps(model, 50, 1.0, charge="smallest_ball", public_time=False)
    assert (found.radius, found.power) == (pytest.approx(other.radius), pytest.approx(other.power))
