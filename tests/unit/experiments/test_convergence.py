"""Whether chains on war logs count as converged: traces of the law that they sample from, and R-hat by hand."""

from __future__ import annotations

import numpy as np
import pytest
from war_log_toys import project, run  # noqa: F401  the project is a fixture

from privpost.experiments.foulds2016 import convergence, event_methods
from privpost.lab import grid
from privpost.lab.schema import SettingError
from privpost.models.events import EventCounts
from privpost.privacy.ledger.gate import Ledger
from privpost.samplers.hidden_markov import gibbs
from privpost.samplers.hidden_markov.joint import log_joint
from privpost.samplers.hidden_markov.seeds import Seeding

MODEL = EventCounts((3, 3), (3, 2), 2)


@pytest.mark.parametrize("prior", ["tempered", "untempered"])
@pytest.mark.parametrize(("method", "start"), [("ops", "random"), ("ops", "seeded"), ("non_private", "random")])
def test_a_diagnosis_traces_the_law_of_its_chains(method, start, prior) -> None:
    """OPS's at its temperatures and truncation, from whatever start; else the posterior's; entropies by a loop."""
    setup = event_methods.Setup(MODEL, 90, Seeding(2, 2), iterations=6, burn_in=2)
    private = method == "ops"
    row = event_methods.Row(2, method, start, None, *((10.0, prior, 1.0) if private else (None, None, None)))
    counts, observed = np.random.default_rng(1).poisson(6, (6, 5)).astype(float), np.ones((4, 6), bool)
    observed[:, 2] = False
    given = setup.given(Ledger(), row, counts, None, slice(0, 4), observed, np.arange(4))
    diagnosis, seen = convergence.Diagnosis(given.traced, setup.layout, setup.prior, [0, 3], 2), []

    def watch(iteration, state):
        diagnosis(iteration, state)
        seen.append((state.states[:, [0, 3]].copy(), state.log_probabilities[[0, 3]].copy()))

    ledger = Ledger(trials=4)
    setup.open(ledger, [row])
    setup.follow(ledger, given, np.random.default_rng(2), slice(0, 4), watch)
    mechanism = setup.mechanism(row)
    temperature, lows = (mechanism.temperature, mechanism.lows) if private else (1.0, None)
    own = gibbs.Law(counts, observed[:2], temperature, temperature if prior == "tempered" else 1.0, lows)
    traced = np.stack(diagnosis._traces)
    assert len(traced) == 4
    for (states, logs), (joint, likelihood, entropy) in zip(seen[2:], traced, strict=True):
        of_states = gibbs.State(states, None, logs)
        expected = log_joint(of_states, own, setup.layout, setup.prior)
        np.testing.assert_allclose((joint, likelihood), (sum(expected), expected[0]), rtol=1e-12)
        for chain in (0, 1):
            shares = [np.mean(states[:, chain] == k) for k in set(states[:, chain])]
            assert entropy[chain] == pytest.approx(-sum(share * np.log(share) for share in shares))
    assert diagnosis.summary()["log_joint"] == pytest.approx(traced[:, 0].mean())
    assert (temperature > 1) == private


def test_chains_in_two_equal_modes_have_not_converged() -> None:
    """Two fields part the cells in halves, each its own way, equally well: two states can follow only one of them."""
    cells = np.array([[400, 0, 400, 0], [400, 0, 0, 400]] * 6 + [[0, 400, 400, 0], [0, 400, 0, 400]] * 6, float)
    setup = event_methods.Setup(EventCounts((24,), (2, 2), 2), 400 * 24, iterations=200, burn_in=100)
    row, number = event_methods.Row(2, "non_private", "random"), 16
    given = setup.given(Ledger(), row, cells, None, slice(0, number), np.ones((number, 24), bool), np.arange(number))
    end = setup.follow(None, given, np.random.default_rng(3), slice(0, number), None)
    # States have no names: the first cell's is called 0.
    partitions = [tuple((states != states[0]).astype(int)) for states in end.state.states.T]
    first, second = (tuple(np.repeat([0, 1], 12)), tuple(np.tile([0, 1], 12)))
    one, other, *_ = [chain for chain in range(number) if partitions[chain] == first]
    for chains, converged in (((one, other), True), ((one, partitions.index(second)), False)):
        diagnosis = convergence.Diagnosis(given.traced, setup.layout, setup.prior, chains, 100)
        setup.follow(None, given, np.random.default_rng(3), slice(0, number), diagnosis)
        seen = diagnosis.summary()
        assert (seen["rhat"] < convergence.LIMIT) == converged
        assert convergence.verdict(seen["rhat"], seen["ess"])["converged"] == converged


def test_traces_that_stand_still_are_judged_by_their_places() -> None:
    """Positive traces are judged so, too; one chain that does not move is diagnosed together with others that do."""
    still, moving = np.full((10, 3), 5.0), np.random.default_rng(6).standard_normal((400, 3))
    assert convergence.diagnosed([still]) == pytest.approx((1.0, np.nan), nan_ok=True)
    assert convergence.diagnosed([still + np.array([0, 0, 1])])[0] == np.inf
    # Sums of a million have rounding errors.
    assert convergence.diagnosed([still * 2e5 + np.array([0, 0, 1e-4])])[0] == 1.0
    hat, effective = convergence.diagnosed([moving])
    assert hat < 1.02 and 600 < effective < 2400
    # The larger R-hat and the smaller number of draws of two traces count.
    moving[:, 2] = 0.3
    worse, fewer = convergence.diagnosed([moving])
    assert hat < worse < np.inf and fewer < effective
    other = np.random.default_rng(7).standard_normal((400, 3))
    assert convergence.diagnosed([moving, other]) == convergence.diagnosed([other, moving]) == (worse, fewer)
    for length, known in ((3, False), (4, True)):
        assert np.isfinite(convergence.diagnosed([moving[:length]])).all() == known


def test_a_verdict_follows_r_hat_and_says_what_is_not_known() -> None:
    for rhat, converged in ((1.049, True), (1.05, False), (np.inf, False)):
        assert convergence.verdict(rhat, 90.0) == {"rhat_max": rhat, "ess_bulk": 90.0, "converged": converged}
    assert convergence.verdict(np.nan, np.nan) == {"rhat_max": None, "ess_bulk": None, "converged": False}


@pytest.mark.parametrize("name", ["foulds2016/war_logs_states", "foulds2016/war_logs_likelihood"])
def test_a_burn_in_as_long_as_its_chain_is_refused(name) -> None:
    study = grid.load_study(name)
    pairs = [("iterations", "burn_in"), ("aware_iterations", "aware_burn_in")]
    for length, burn_in in (pair for pair in pairs if pair[1] in study.schema):
        grid.make_cell(study, {length: 20, burn_in: 19})
        for value in (20, 21):
            said = f"{burn_in} is {value}, but must be below {length}, which is 20"
            with pytest.raises(SettingError, match=said):
                grid.make_cell(study, {length: 20, burn_in: value})
