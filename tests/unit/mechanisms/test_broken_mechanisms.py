"""The contract's checks catch broken mechanisms."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
import test_mechanisms as contract

from privpost.mechanisms.choices.exponential import ExponentialMechanism
from privpost.mechanisms.draws.posterior import PosteriorDraw
from privpost.mechanisms.noise.laplace import LaplaceMechanism
from privpost.models.conjugate.beta_bernoulli import BetaBernoulli
from privpost.models.conjugate.dirichlet_categorical import DirichletCategorical


@dataclass(frozen=True)
class SharedNoise(LaplaceMechanism):
    """One noise variate for all coordinates."""

    def noise(self, shape, rng):
        return np.broadcast_to(super().noise((*shape[:-1], 1), rng), shape)


@dataclass(frozen=True)
class SensitivityTooSmall(LaplaceMechanism):
    """The L1 sensitivity of counts taken as 1."""

    @property
    def sensitivity(self):
        return 1.0


@dataclass(frozen=True)
class WrongScale(LaplaceMechanism):
    """Noise of half the scale that the density states."""

    def noise(self, shape, rng):
        return super().noise(shape, rng) / 2


@dataclass(frozen=True)
class SensitivityTooLarge(LaplaceMechanism):
    """A bound that no pair of neighbours attains."""

    @property
    def sensitivity(self):
        return 3.0


@dataclass(frozen=True)
class TooCold(ExponentialMechanism):
    """A temperature of 1 whatever the ε."""

    @property
    def temperature(self):
        return 1.0


@dataclass(frozen=True)
class Undercharged(PosteriorDraw):
    """Charged half of its Rényi divergence."""

    def rdp(self, orders):
        return super().rdp(orders) / 2


COUNTS = DirichletCategorical((5, 5, 5))


@pytest.mark.parametrize(
    "broken, check",
    [
        (SharedNoise(COUNTS, 4, 1.0), contract.check_noise_is_independent),
        (SharedNoise(BetaBernoulli(), 8, 1.0, coordinates="all"), contract.check_noise_is_independent),
        (SensitivityTooSmall(COUNTS, 4, 1.0), contract.check_sensitivity),
        (SensitivityTooSmall(COUNTS, 4, 1.0), contract.check_replay),
        (SensitivityTooSmall(COUNTS, 4, 1.0), contract.check_cost_covers_the_exact_divergence),
        (WrongScale(COUNTS, 4, 1.0), contract.test_releases_follow_the_stated_density),
        (SensitivityTooLarge(COUNTS, 4, 1.0), contract.check_sensitivity),
        (TooCold(BetaBernoulli(), 8, 1.0, a0=0.2), contract.check_cost_covers_the_exact_divergence),
        (
            Undercharged(BetaBernoulli(6, 12), 8, 2.0, 0.3, weighting="diffused"),
            contract.check_cost_covers_the_exact_divergence,
        ),
    ],
)
def test_broken_mechanisms_are_caught(broken, check):
    with pytest.raises(AssertionError):
        check(broken)
