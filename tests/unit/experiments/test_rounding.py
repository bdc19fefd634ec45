"""Masses of the cells of rounded posterior draws, by interval arithmetic."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from privpost.distributions import exact_draws
from privpost.experiments.geumlek2017 import rounded


def test_masses_of_cells_are_those_of_interval_arithmetic():
    """In the middle, where cells are narrow, and at an end, where the mass is 2e-578."""
    masses = rounded.log_masses(np.array([[6.0, 112.0]]), 16)[0]
    with exact_draws.flint().ctx.workprec(4000):
        for cell in (0, 63, 64, 3000, 40_000, 65_000, 65_535):
            low, high = (exact_draws.ball(Fraction(k, 2**16)) for k in (cell, cell + 1))
            mass = high.beta_lower(6, 112, regularized=1) - low.beta_lower(6, 112, regularized=1)
            # Log-masses down to -1300; their own rounding is 1e-13 of that.
            assert masses[cell] == pytest.approx(float(mass.log()), abs=1e-8)
    assert np.exp(masses).sum() == pytest.approx(1, abs=1e-9)
