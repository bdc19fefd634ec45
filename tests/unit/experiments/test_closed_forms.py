"""Studies in closed form against other computations: theorem 15 of Geumlek et al., theorem 1 of Zhang et al."""

from types import SimpleNamespace

import numpy as np
import pytest

from privpost.experiments.geumlek2017.theorem15 import study as theorem15
from privpost.experiments.zhang2016.theorem1 import study as theorem1
from privpost.mechanisms.posterior_sampling import PosteriorDraw
from privpost.models.beta_bernoulli import BetaBernoulli
from privpost.privacy.renyi import dirichlet_divergence


@pytest.mark.parametrize("coefficient, order", [(1.0, 2.0), (0.3, 5.0)])
def test_neighbours_at_the_ends_have_the_mechanisms_cost(coefficient, order):
    config = SimpleNamespace(alpha=6, beta=12, n=20, coefficient=coefficient, order=order, points=3)
    ends, inside = theorem15.neighbours(config)
    weighting = "direct" if coefficient == 1 else "diffused"
    mechanism = PosteriorDraw(BetaBernoulli(6, 12), 20, order, coefficient, weighting=weighting, supremum="exact")
    assert ends == pytest.approx(mechanism.cost().epsilon, rel=1e-9)
    assert inside < ends


def test_a_concave_divergence_is_told(monkeypatch):
    config = SimpleNamespace(alpha=6, beta=12, n=10, coefficient=0.5, order=1.5, points=4)
    excess, pairs = theorem15.convexity(config)
    assert excess > 0 and pairs == 16 * 15 / 2
    monkeypatch.setattr(
        theorem15, "dirichlet_divergence", lambda p, q, order: dirichlet_divergence(p, q, order) ** 0.25
    )
    assert theorem15.convexity(config)[0] < 0


@pytest.mark.parametrize("epsilon", [0.5, 1e-3])
def test_the_mean_loss_is_that_of_simulated_releases(epsilon):
    config = SimpleNamespace(alpha=1, beta=1, n=40, nodes=40)
    rng = np.random.default_rng(7)
    released = np.clip(20 + rng.laplace(scale=2 / epsilon, size=(200_000, 2)), 0, 40)
    losses = dirichlet_divergence(np.array([21.0, 21.0]), 1 + released, 1.0)
    error = losses.std() / np.sqrt(losses.size)
    assert theorem1.mean_loss(config, epsilon) == pytest.approx(losses.mean(), abs=4.5 * error)
