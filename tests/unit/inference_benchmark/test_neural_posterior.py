"""Neural posterior estimation: its coordinates, and what it asks of sbi, by a stand-in where sbi is missing."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from scipy.stats import kstest

from privpost.inference_benchmark import scoring
from privpost.inference_benchmark.base import Budget, Refused
from privpost.inference_benchmark.optional import method, names, neural_posterior
from privpost.inference_benchmark.tasks import made

BUDGET = Budget(4, 250, 0)


class Tensor(np.ndarray):
    """An array with the methods of a tensor that are called."""

    def detach(self):
        return self

    def numpy(self):
        return np.asarray(self)


class NearestNeighbours:
    """Stands in for sbi's `NPE` and the flow that it fits: draws are of the simulations whose releases are nearest."""

    order = 1

    def __init__(self, *, show_progress_bars):
        assert show_progress_bars is False

    def append_simulations(self, theta, x):
        self.theta, self.x = np.asarray(theta), np.asarray(x)
        assert len(self.theta) == len(self.x)
        return self

    def train(self, *, stop_after_epochs):
        assert stop_after_epochs > 0
        return self

    def sample(self, shape, condition):
        (size,), rng = shape, np.random.default_rng(0)
        drawn = []
        for observed in np.asarray(condition)[:: self.order]:
            nearest = np.argsort(np.square((self.x - observed) / self.x.std(axis=0)).sum(axis=1))[: len(self.x) // 60]
            drawn.append(self.theta[rng.choice(nearest, size)])
        return np.stack(drawn, axis=1).view(Tensor)


@pytest.fixture
def stand_in(monkeypatch):
    """Modules `torch` and `sbi.inference` with what the method calls, no more."""
    torch = SimpleNamespace(
        manual_seed=lambda seed: None,
        float32=np.float32,
        as_tensor=lambda values, dtype: np.asarray(values, dtype).view(Tensor),
    )
    sbi, inference = ModuleType("sbi"), ModuleType("sbi.inference")
    sbi.inference, inference.NPE = inference, NearestNeighbours
    for name, module in {"torch": torch, "sbi": sbi, "sbi.inference": inference}.items():
        monkeypatch.setitem(sys.modules, name, module)


def scored(task) -> dict[str, float]:
    case = scoring.case(task, 4, 4000)
    outcome = scoring.run(neural_posterior.infer, task, case.releases, np.random.default_rng(1), BUDGET)
    assert outcome.inferred is not None, outcome.reason
    found = scoring.measured(outcome.inferred, case, np.random.default_rng(2))
    return {name: float(np.mean(values)) for name, values in found.items()}


def test_it_is_no_method_of_the_studies():
    from privpost.inference_benchmark import methods

    assert "neural_posterior" in names() and "neural_posterior" not in methods.names()
    assert method("neural_posterior") is neural_posterior.infer


@pytest.mark.parametrize("name", ["binomial", "multinomial"])
@pytest.mark.filterwarnings("ignore::privpost.SimulationNoise")
def test_draws_are_near_the_posterior_at_each_release(name, stand_in, monkeypatch):
    """As near as nearest simulations are; draws for another release are seen, and simulations without noise."""
    assert scored(made(name, epsilon=3.0))["c2st"] < 0.6
    noisy = made(name, epsilon=0.1)
    assert scored(noisy)["c2st"] < 0.55
    with monkeypatch.context() as patch:
        patch.setattr(type(noisy.mechanism), "perturb", lambda self, statistics, rng: self.select(statistics))
        assert scored(noisy)["c2st"] > 0.6
    monkeypatch.setattr(NearestNeighbours, "order", -1)
    assert scored(made(name, epsilon=3.0))["c2st"] > 0.8


@pytest.mark.parametrize("name", ["binomial", "multinomial", "exponential"])
def test_scores_are_standard_normal_and_go_back(name):
    theta = made(name).prior(2000, np.random.default_rng(3))
    scores = neural_posterior.Scores(theta)
    of = scores.of(theta)
    assert of.shape == (2000, 2 if name == "multinomial" else 1)
    assert all(kstest(column, "norm").pvalue > 0.99 for column in of.T)
    np.testing.assert_allclose(scores.theta(of), theta, rtol=1e-9)
    # Beyond all simulations θ stays at the outermost one.
    far = scores.theta(np.full((1, of.shape[1]), 9.0))
    assert np.all(far > 0) and (name != "multinomial" or far.sum() == pytest.approx(1))


def test_without_the_package_it_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "sbi", None)
    with pytest.raises(Refused, match=r"^the package sbi is not installed: pip install 'sbi>=0.27,<0.28', or "):
        neural_posterior.infer(made("binomial"), np.zeros((1, 1)), np.random.default_rng(0), BUDGET)


@pytest.mark.by_hand
@pytest.mark.filterwarnings("ignore")
def test_the_package_itself_comes_near():
    """Where sbi is installed: about half a minute."""
    pytest.importorskip("sbi")
    importlib.import_module("torch").set_num_threads(1)
    found = scored(made("binomial"))
    assert found["c2st"] < 0.54 and abs(found["sd_error"]) < 0.1 and found["distance"] < 0.15
