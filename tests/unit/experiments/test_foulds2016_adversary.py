"""Posterior sampling on data chosen by an adversary: known values, enumeration, and the claim."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privpost.experiments.foulds2016.adversary import claims as adversary_claims
from privpost.experiments.foulds2016.adversary import study as adversary
from privpost.lab import grid, tables
from privpost.lab.claims import score
from privpost.models import BetaBernoulli


@pytest.fixture(scope="module")
def shipped():
    return tables.read_tables(grid.load_study("foulds2016/adversary"))


def verdict(claims, key):
    return next(claim.verdict for claim in claims if claim.id == key)


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


def test_adversary_claims_hold_and_can_fail(shipped):
    table, chains = shipped["adversary"], shipped["stopped_chains"]
    own = score(adversary_claims, shipped)
    assert [(claim.id, claim.verdict) for claim in own] == [(id, "holds") for id in ("F6", "F14", "F22", "F28")]
    above = table.copy()
    above.loc[above.n == 50, "local_epsilon"] = 6.0
    stuck = table.copy()
    stuck["local_epsilon"] = np.minimum(stuck.local_epsilon, 2.0)
    lies = [({"adversary": above}, "below 2Δ"), ({"adversary": stuck}, "the gap vanishes")]
    lies += [({"stopped_chains": chains.assign(distance=0.1 * chains.distance)}, "delta within")]
    lies += [({"stopped_chains": chains.assign(cost_bound=chains.exact_cost)}, "cost within the bound")]
    gibbs = shipped["stopped_hmm"]
    slow = gibbs.cost.mask((gibbs.start == "uniform") & (gibbs.sweeps == 2), 1.1 * gibbs.exact_cost)
    lies += [({"stopped_hmm": gibbs.assign(cost=slow)}, "near an exact draw's")]
    lies += [({"stopped_hmm": gibbs.assign(composed_bound=0.9 * gibbs.cost)}, "within every bound")]
    lies += [({"stopped_hmm": gibbs.assign(distance_there=gibbs.distance)}, "other data sets' chains")]
    for place, (lie, word) in zip((0, 0, 1, 2, 3, 3, 3), lies, strict=True):
        claim = score(adversary_claims, {**shipped, **lie})[place]
        assert claim.verdict != "holds"
        assert word in claim.reason
