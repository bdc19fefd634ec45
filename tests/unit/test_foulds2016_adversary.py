"""Posterior sampling on data chosen by an adversary: known values, enumeration, and the claim."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad

from privpost.claims.foulds2016 import adversary as adversary_claims
from privpost.models import BetaBernoulli
from privpost.pipeline import grid, tables
from privpost.privacy.ledger import Ledger
from privpost.studies.foulds2016 import adversary

UNIFORM = BetaBernoulli(1, 1)


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


def enumerated_local_epsilon(data, a0, model):
    """Local ε of a list of bits from densities normalised by adaptive quadrature, over all substituted records."""

    def log_kernel(bits, theta):
        s = sum(bits)
        return (model.alpha - 1 + s) * np.log(theta) + (model.beta - 1 + len(bits) - s) * np.log(1 - theta)

    def log_density(bits, theta):
        total = quad(lambda t: math.exp(log_kernel(bits, t)), a0, 1 - a0, epsabs=0, epsrel=1e-12)[0]
        return log_kernel(bits, theta) - math.log(total)

    theta = np.linspace(a0, 1 - a0, 51)
    return max(
        np.abs(log_density(data, theta) - log_density([*data[:i], 1 - data[i], *data[i + 1 :]], theta)).max()
        for i in range(len(data))
    )


@pytest.mark.parametrize(("a0", "model"), [(0.2, UNIFORM), (0.05, BetaBernoulli(2, 0.7))])
def test_local_epsilon_against_enumeration(a0, model):
    for n in range(1, 9):
        for s in range(n + 1):
            data = [1] * s + [0] * (n - s)
            found = adversary.local_epsilon(model, [s, n - s], a0, 101)
            # 1e-9: the quadrature's accuracy.
            assert found.epsilon == pytest.approx(enumerated_local_epsilon(data, a0, model), abs=1e-9)


def test_adversary_is_greedy_and_breaks_ties_towards_a_success():
    config = SimpleNamespace(alpha=1.0, beta=3.0, grid=21, largest_n=7, a0=[0.3, 0.1])
    found = adversary.simulate(config, None, Ledger())
    model = BetaBernoulli(1, 3)
    for i, a0 in enumerate(config.a0):
        data = []
        for n in range(7):
            options = [enumerated_local_epsilon([*data, outcome], a0, model) for outcome in (0, 1)]
            assert found["epsilon"][i, n] == pytest.approx(max(options), abs=1e-9)
            data.append(int(found["added"][i, n]))
            if abs(options[0] - options[1]) > 1e-9:
                assert data[-1] == int(np.argmax(options))
            else:
                assert data[-1] == 1
    # A prior that favours failures makes the adversary choose them: the path is not simply all successes.
    assert not found["added"].all()


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


def test_local_epsilon_needs_a_record():
    with pytest.raises(ValueError, match="at least one record"):
        adversary.local_epsilon(UNIFORM, [0, 0], 0.2, 11)


def test_adversary_claim_holds_and_can_fail(shipped):
    table = shipped["adversary"]
    (claim,) = adversary_claims.claims({"adversary": table})
    assert (claim.id, claim.verdict) == ("F6", "holds")
    above = table.copy()
    above.loc[above.n == 50, "local_epsilon"] = 6.0
    stuck = table.copy()
    stuck["local_epsilon"] = np.minimum(stuck.local_epsilon, 2.0)
    for falsified, word in ((above, "below 2Δ"), (stuck, "the gap vanishes")):
        (claim,) = adversary_claims.claims({"adversary": falsified})
        assert claim.verdict != "holds"
        assert word in claim.reason
