"""Posterior sampling on data chosen by an adversary: known values, enumeration, and the claim."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad

from privpost.experiments.foulds2016 import stopped_chains
from privpost.experiments.foulds2016.adversary import claims as adversary_claims
from privpost.experiments.foulds2016.adversary import study as adversary
from privpost.lab import grid, tables
from privpost.lab.claims import score
from privpost.mechanisms.exponential import ExponentialMechanism
from privpost.models import BetaBernoulli
from privpost.privacy.ledger import Ledger

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
    config = SimpleNamespace(**vars(config), records=2, states=3, epsilons=[1.0], steps=[1])
    config = SimpleNamespace(**vars(config), cells=1, events=1, truncation=10.0, probabilities=2, sweeps=[1])
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


def test_stopped_chains_against_chains_that_are_run():
    """The law after five steps against half a million Metropolis chains; five standard errors of a share."""
    rng, n = np.random.default_rng(3), 500_000
    laws = stopped_chains.posteriors(ExponentialMechanism(UNIFORM, 4, 2.0, a0=0.2), 5)
    law = laws[1]
    assert np.log(law[2] / law[0]) == pytest.approx(
        2.0 / (2 * math.log(4)) * (math.log(0.5 / 0.2) + 3 * math.log(0.5 / 0.8))
    )
    for chain in stopped_chains.CHAINS:
        state = np.full(n, law.argmax())
        for _ in range(5):
            jump = rng.integers(0, 5, n) if chain == "independence" else state + rng.choice([-1, 1], n)
            inside = (jump >= 0) & (jump < 5)
            jump = np.where(inside, jump, state)
            state = np.where(rng.random(n) < law[jump] / law[state], jump, state)
        kernel = stopped_chains.kernels(law, chain)
        assert np.allclose(law @ kernel, law, atol=1e-12)
        computed = np.linalg.matrix_power(kernel, 5)[law.argmax()]
        found = np.bincount(state, minlength=5) / n
        assert (abs(found - computed) <= 5 * np.sqrt(computed * (1 - computed) / n)).all()


def test_the_proposition_needs_its_delta():
    """After one step from the mode neighbours are told apart; after many the law is the posterior's."""
    laws = stopped_chains.posteriors(ExponentialMechanism(UNIFORM, 2, 10.0, a0=0.2), 3)
    _, distance, delta, *_ = stopped_chains.losses(laws, "random walk", "mode", 1)
    assert delta > 0.1 and distance > 0.1
    _, distance, delta, *_ = stopped_chains.losses(laws, "random walk", "mode", 1000)
    assert max(distance, delta) < 1e-12


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
