"""Whether chains on war logs count as converged: by the log joint of the law that they sample from."""

from __future__ import annotations

import numpy as np
import pytest

from privpost.experiments.foulds2016 import chain_checks, event_methods
from privpost.lab import grid
from privpost.lab.schema import SettingError
from privpost.models.event_counts import EventCounts
from privpost.samplers import hidden_markov_collapsed as collapsed
from privpost.samplers import hidden_markov_gibbs as gibbs

MODEL = EventCounts((3, 3), (3, 2), 2)


@pytest.mark.parametrize("tempered_prior", [True, False])
@pytest.mark.parametrize(("method", "sampler"), [("ops", "paper"), ("ops", "collapsed"), ("non_private", "paper")])
def test_a_watch_traces_the_law_of_its_chains(method, sampler, tempered_prior) -> None:
    """OPS's at its temperatures and truncation, by whatever sampler; else the posterior's."""
    setup = event_methods.Setup(MODEL, 90, tempered_prior=tempered_prior, annealing=collapsed.Annealing(3.0))
    private = method == "ops"
    row = event_methods.Row("hmm", method, None, 10.0 if private else None, 1.0 if private else None, sampler)
    counts, observed = np.random.default_rng(1).poisson(6, (6, 5)).astype(float), np.ones((4, 6), bool)
    observed[:, 2] = False
    chains = event_methods.Chains(row, counts, observed, np.random.default_rng(2))
    law = setup.law(chains)
    monitor, seen = chain_checks.Monitor(law, setup.layout, setup.prior, 2, [0, 3]), []

    def watch(iteration, state):
        monitor(iteration, state)
        seen.append(state.states[:, [0, 3]].copy())

    mechanism = setup.mechanism(row)
    temperature, lows = (mechanism.temperature, mechanism.lows) if private else (1.0, None)
    own = gibbs.Group(counts, observed[:2], temperature, temperature if tempered_prior else 1.0, lows)
    sampler = event_methods.chains_of(MODEL, [law], setup.search(row), 2)
    gibbs.follow(sampler, [chains.rng], 6, [watch])
    expected = [collapsed.log_joint(states, own, setup.layout, setup.prior) for states in seen[2:]]
    traced = np.stack(monitor.traces)
    np.testing.assert_allclose(traced[:, 0], np.sum(expected, axis=1), rtol=1e-12)
    np.testing.assert_allclose(traced[:, 1], np.stack(expected)[:, 0], rtol=1e-12)
    assert (temperature > 1) == private


def test_agreement_far_below_the_best_log_joint_is_not_convergence() -> None:
    arrays = {
        "rhat": np.array([1.01, 1.01, 1.3, np.inf]),
        "joint_means": np.array([[-100.0, -100.2], [-130.0, -130.2], [-100.0, -100.2], [-100.0, -130.0]]),
        "joint_deviation": np.array([2.0, 2.0, 2.0, 0.0]),
        "joint_best": np.array([-95.0, -126.0, -96.0, -100.0]),
    }
    found = [chain_checks.verdict(arrays, index, range(4)) for index in range(4)]
    assert [row["converged"] for row in found] == [True, False, False, False]
    assert {row["best_log_joint"] for row in found} == {-95.0}
    # What is near but has an R-hat above the limit is told from what is far below.
    assert all(row["near"] for row in found if row["converged"])
    assert [row["below_best"] for row in found] == [-95.0 - min(means) for means in arrays["joint_means"]]
    assert found[3]["range_log_joint"] == 30.0
    # Chains that stand still in one place are the law of a point; in two places they have not met.
    assert chain_checks.diagnosed([np.full((10, 3), -5.0)])[0] == 1.0
    assert chain_checks.diagnosed([np.tile([-5.0, -6.0], (10, 1))])[0] == np.inf


def test_wide_laws_are_cooled_once() -> None:
    """Above the limit on OPS's temperature its chains neither split states nor cross partitions."""
    row = event_methods.Row("hmm", "ops", None, 10.0, 1.0, "collapsed")
    temperature = event_methods.Setup(MODEL, 90).mechanism(row).temperature
    for limit, searches in ((1.01 * temperature, True), (0.99 * temperature, False)):
        setup = event_methods.Setup(MODEL, 90, annealing=collapsed.Annealing(), search_limit=limit)
        found = setup.search(row)
        assert ((found.resplits, found.members) != (0, 1)) == searches
        assert setup.search(row._replace(method="laplace")).members > 1


PAIRS = [("iterations", "burn_in"), ("rounds", "rounds_burn_in"), ("many_rounds", "many_rounds_burn_in")]
WAR_LOGS = ("foulds2016/war_logs_states", "foulds2016/war_logs_likelihood", "foulds2016/war_logs_ablation")


@pytest.mark.parametrize("name", [*WAR_LOGS, "noise_aware/war_logs", "noise_aware/event_calibration"])
def test_a_burn_in_as_long_as_its_chain_is_refused(name) -> None:
    study = grid.load_study(name)
    pairs = [pair for pair in PAIRS if pair[1] in study.schema]
    assert pairs
    for length, burn_in in pairs:
        grid.make_cell(study, {length: 20, burn_in: 19})
        for value in (20, 21):
            said = f"{burn_in} is {value}, but must be below {length}, which is 20"
            with pytest.raises(SettingError, match=said):
                grid.make_cell(study, {length: 20, burn_in: value})


def test_rounds_and_replicas_are_those_of_the_rows_method() -> None:
    """Exact counts may have more rounds; replicas have OPS and the methods that the setup names."""
    annealing = collapsed.Annealing(5.0, replicas=3)
    budget = {"rounds": 20, "rounds_burn_in": 12, "ops_rounds": 16, "exact_rounds": 50}
    setup = event_methods.Setup(MODEL, 90, epsilon=1.0, annealing=annealing, exchanging=("laplace",), **budget)
    found = {}
    for method in ("non_private", "laplace", "ops"):
        row = event_methods.Row("hmm", method, None, 10.0 if method == "ops" else None, None, "collapsed")
        found[method] = setup.length(row), setup.search(row).replicas
    assert found == {"non_private": ((50, 25), 1), "laplace": ((20, 12), 3), "ops": ((16, 12), 3)}
