"""The study of rounded posterior draws: masses against balls, divergences against the ideal draw's, and its claim."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from privpost.distributions import exact_draws
from privpost.experiments.geumlek2017.rounding import study as rounding
from privpost.mechanisms.posterior_sampling import PosteriorDraw
from privpost.models.beta_bernoulli import BetaBernoulli


def test_masses_of_cells_are_those_of_interval_arithmetic():
    """In the middle, where cells are narrow, and at an end, where the mass is 2e-578."""
    masses = rounding.log_masses(np.array([[6.0, 112.0]]), 16)[0]
    with exact_draws.flint().ctx.workprec(4000):
        for cell in (0, 63, 64, 3000, 40_000, 65_000, 65_535):
            low, high = (exact_draws.ball(Fraction(k, 2**16)) for k in (cell, cell + 1))
            mass = high.beta_lower(6, 112, regularized=1) - low.beta_lower(6, 112, regularized=1)
            # Log-masses down to -1300; their own rounding is 1e-13 of that.
            assert masses[cell] == pytest.approx(float(mass.log()), abs=1e-8)
    assert np.exp(masses).sum() == pytest.approx(1, abs=1e-9)


def test_divergences_are_those_of_a_loop_over_all_neighbours():
    mechanism = PosteriorDraw(BetaBernoulli(2, 3), 4, 2.0, weighting="direct")
    successes = np.arange(5.0)
    laws = mechanism.release_law(np.stack([successes, 4 - successes], axis=-1))
    masses = rounding.log_masses(laws, 4)
    p = np.exp(masses)
    pairs = [(p[i], p[j]) for i in range(5) for j in range(5) if abs(i - j) == 1]
    expected = [max(np.log((a**3 / b**2).sum()) / 2 for a, b in pairs), max(np.log(a / b).max() for a, b in pairs)]
    assert rounding.largest_divergences(masses, [3.0, np.inf]) == pytest.approx(expected, rel=1e-10)
    assert rounding.coarser(masses) == pytest.approx(rounding.log_masses(laws, 3), abs=1e-9)
    # With many bits a finite divergence is the ideal draw's.
    fine = rounding.largest_divergences(rounding.log_masses(laws, 12), [2.0])
    assert fine == pytest.approx(mechanism.rdp(2.0), rel=1e-3)
