"""Posterior sampling on data chosen by an adversary: known values, enumeration, and the claim."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privpost.experiments.foulds2016.adversary import study as adversary
from privpost.lab import grid, tables
from privpost.models import BetaBernoulli


@pytest.fixture(scope="module")
def shipped():
    return tables.read_tables(grid.load_study("foulds2016/adversary"))


@pytest.mark.parametrize(
    ("a0", "expected", "limit"), [(0.2, 2.7709, 2.7726), (0.1, 4.3911, 4.3944), (0.05, 5.8822, 5.8889)]
)
def test_adversary_has_the_known_values(shipped, a0, expected, limit):
    path = shipped["adversary"][shipped["adversary"].a0 == a0].set_index("n")
    # The values are given to four decimals.
    assert path.local_epsilon[3000] == pytest.approx(expected, abs=5e-5)
    assert 2 * math.log((1 - a0) / a0) == pytest.approx(limit, abs=5e-5)
    assert (path.local_epsilon < 2 * math.log((1 - a0) / a0)).all()
    assert np.allclose(path.local_epsilon, path.likelihood_term + path.partition_term, atol=2e-12)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(
    n=st.integers(1, 5000),
    share=st.floats(0, 1),
    a0=st.floats(0.001, 0.499),
    alpha=st.floats(0.1, 50),
    beta=st.floats(0.1, 50),
)
def test_local_epsilon_never_exceeds_twice_the_sensitivity(n, share, a0, alpha, beta):
    successes = round(share * n)
    found = adversary.local_epsilon(BetaBernoulli(alpha, beta), [successes, n - successes], a0, 11)
    sensitivity = math.log((1 - a0) / a0)
    # 1e-9: rounding of log-masses, whose size is up to 5000 · ln(1000).
    assert found.epsilon <= 2 * sensitivity + 1e-9
    assert found.likelihood == pytest.approx(sensitivity, abs=1e-12)
    assert -1e-9 <= found.partition <= sensitivity + 1e-9
    assert found.epsilon == pytest.approx(float(found.likelihood + found.partition), abs=1e-12)
