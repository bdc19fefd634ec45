"""Whether chains on war logs count as converged: by the log joint of the law that they sample from."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from war_log_toys import project, run  # noqa: F401  the project is a fixture

from privpost.experiments.foulds2016 import chain_checks, event_methods, held_out
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
        "joint_lowest": np.array([-100.2, -130.2, -100.2, -130.0]),
        "joint_range": np.array([0.2, 0.2, 0.2, 30.0]),
        "n_chains": np.array([4, 8, 8, 8]),
        "islands": np.array([np.nan, 24, 3, 5]),
        "met": np.array([np.nan, 0.5, 1, 1]),
        "joint_deviation": np.array([2.0, 2.0, 2.0, 0.0]),
        "joint_best": np.array([-95.0, -126.0, -96.0, -100.0]),
    }
    found = [chain_checks.verdict(arrays, index, range(4)) for index in range(4)]
    assert [row["converged"] for row in found] == [True, False, False, False]
    assert {row["best_log_joint"] for row in found} == {-95.0}
    # What is near but has an R-hat above the limit is told from what is far below.
    assert all(row["near"] for row in found if row["converged"])
    assert [row["below_best"] for row in found] == list(-95.0 - arrays["joint_lowest"])
    assert [(row["n_chains"], row["islands"], row["met"]) for row in found[:2]] == [(4, None, None), (8, 24.0, 0.5)]
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


@pytest.mark.parametrize("together", [True, False])
def test_further_chains_are_run_where_the_first_agree(monkeypatch, together) -> None:
    """By their own traces and by those of all, of the first split's chains."""
    monkeypatch.setattr(held_out, "agree", lambda checks: together)
    changes = {"model": ["hmm"], "method": ["laplace", "private_gibbs"], "variant": ["paper"], "epsilon": [1.0]}
    changes |= {"sampler": ["collapsed"], "diagnostic_chains": 5, "truncation": [10.0]}
    _, (cell,) = run("foulds2016/war_logs_likelihood", **changes)
    arrays = cell.arrays
    assert arrays["n_chains"][0] == (5 if together else 4)
    assert arrays["islands"][0] == 1 and arrays["met"][0] == 1
    # A chain that pays for its updates is not judged.
    assert np.isnan([arrays[name][1] for name in chain_checks.ARRAYS]).all()
    assert len(arrays["log_likelihood"][0]) == cell.config.trials


def test_only_the_first_split_of_all_has_several_chains() -> None:
    for index, expected in ((0, [0, 1, 2, 0, 0, 0]), (1, [0, 1, 2])):
        assert held_out._chains(SimpleNamespace(size=3, index=index), 4).tolist() == expected


def test_what_monitors_saw_is_put_together() -> None:
    counts, layout, prior = np.eye(3)[[0, 1, 2, 0, 1, 2]] * 5, gibbs.Layout.of([0, 0, 0, 1, 1, 1]), gibbs.Prior(2, (3,))
    states = np.random.default_rng(3).integers(2, size=(9, 6, 4))
    search, monitors = np.array([[3, 1], [9, 0], [4, 1], [5, 1]]), []
    for chains in ([0, 1, 2, 3], [0, 1], [2, 3]):
        group = gibbs.Group(counts, np.ones((4, 6), bool))
        monitors.append(chain_checks.Monitor(group, layout, prior, 1, chains))
        for turn, own in enumerate(states):
            monitors[-1](turn, gibbs.State(own, (counts,), search=search))
    whole, parts = monitors[0].summary(), monitors[1].summary(others=monitors[2:])
    assert whole == pytest.approx(parts, nan_ok=True)
    assert (whole["n_chains"], whole["islands"], whole["met"]) == (4, 9, 0.75)


def followed(partition, rng, swap: bool):
    """A watch's summary of four chains on ten cells and noise about one log joint; the last two by `partition`."""
    layout, prior, law = gibbs.Layout.of([0] * 10), gibbs.Prior(3, (2,)), np.ones((4, 10), bool)
    monitor = chain_checks.Monitor(gibbs.Group(np.zeros((10, 2)), law), layout, prior, 1, range(4), partitions=True)
    for turn in range(301):
        states = np.array([[0] * 5 + [1] * 5] * 2 + [partition] * 2)
        # In one draw of ten the first cells of the halves change places; states have other names in chain 1.
        moved = rng.random(4) < 0.1 * swap
        states[np.ix_(moved, [0, 5])] = states[np.ix_(moved, [5, 0])]
        states[1] = np.array([2, 0, 1])[states[1]]
        joint, accepted = -33_000 + 200 * rng.standard_normal(4), np.full(4, 0.9)
        given = {"log_joint": joint, "accepted": accepted, "counts": (np.zeros((10, 2)),)}
        monitor(turn, SimpleNamespace(states=states.T, **given))
    return monitor.summary()


def test_chains_in_two_partitions_of_one_log_joint_have_not_converged() -> None:
    """The log joint of latent counts covers the two; the share of pairs that differ is counted by hand, to rounding."""
    rng, same = np.random.default_rng(5), [0] * 5 + [1] * 5
    assert followed(same, rng, False)["partition_distance"] == 0.0
    # Chains 2 and 3 have cells 4 and 5 in the other halves: 8 of 20 pairs are others.
    apart = followed([0, 0, 0, 0, 1, 0, 1, 1, 1, 1], rng, False)
    assert apart["partition_distance"] == pytest.approx(16 / 40)
    # Equal laws: on 16 of 40 pairs shares of 300 draws differ with a standard error of .024; 4.5 of them.
    moving = followed(same, rng, True)
    assert 0 < moving["partition_distance"] < 16 / 40 * 0.024 * 4.5
    for found, agreed in ((apart, False), (moving, True)):
        assert found["rhat"] < chain_checks.LIMIT
        assert chain_checks.agree(found) == agreed
        told = {name: value for name, value in found.items() if name != "partition_distance"}
        assert chain_checks.agree(told)


def test_cells_are_together_in_a_share_of_the_draws(monkeypatch) -> None:
    """Pairs counted by a loop: in all four draws, and in every second one where at most two are looked at."""
    states = np.array([[0, 0, 1], [1, 0, 1], [2, 2, 2], [0, 1, 1]])
    for most, looked_at in ((4, states), (2, states[[0, 2]])):
        monkeypatch.setattr(chain_checks, "DRAWS", most)
        shares = [[np.mean([draw[i] == draw[j] for draw in looked_at]) for j in range(3)] for i in range(3)]
        np.testing.assert_allclose(chain_checks.together(states, 3), shares, rtol=1e-6)


def test_traces_that_stand_still_are_judged_by_their_places() -> None:
    """Positive traces are judged so, too; one chain that does not move is diagnosed together with others that do."""
    still, moving = np.full((10, 3), 5.0), np.random.default_rng(6).standard_normal((400, 3))
    assert chain_checks.diagnosed([still]) == pytest.approx((1.0, np.nan), nan_ok=True)
    assert chain_checks.diagnosed([still + np.array([0, 0, 1])])[0] == np.inf
    # Sums of a million have rounding errors.
    assert chain_checks.diagnosed([still * 2e5 + np.array([0, 0, 1e-4])])[0] == 1.0
    hat, effective = chain_checks.diagnosed([moving])
    assert hat < 1.02 and 600 < effective < 2400
    # The larger R-hat and the smaller number of draws of two traces count.
    moving[:, 2] = 0.3
    worse, fewer = chain_checks.diagnosed([moving])
    assert hat < worse < np.inf and fewer < effective
    other = np.random.default_rng(7).standard_normal((400, 3))
    assert chain_checks.diagnosed([moving, other]) == chain_checks.diagnosed([other, moving]) == (worse, fewer)
    for length, known in ((3, False), (4, True)):
        assert np.isfinite(chain_checks.diagnosed([moving[:length]])).all() == known


def test_chains_that_are_too_short_to_judge_are_not_assessed() -> None:
    lasting = {"joint_lowest": -1.0, "joint_range": 0.0, "joint_deviation": 1.0, "joint_best": -1.0, "n_chains": 4}
    arrays = {name: np.array([value]) for name, value in {**lasting, "islands": np.nan, "met": np.nan}.items()}
    for rhat, told, converged in ((np.nan, "not assessed", False), (1.01, 1.01, True)):
        row = chain_checks.verdict({**arrays, "rhat": np.array([rhat])}, 0, [0])
        assert (row["rhat_max"], row["converged"]) == (told, converged)
    # Chains at one place differ by rounding, which a rebuild elsewhere would not repeat.
    for nats, shown in ((8e-9, 0.0), (-5e-9, 0.0), (2e-6, 2e-6)):
        near = {"joint_lowest": np.array([-1.0 - nats]), "joint_range": np.array([nats]), "rhat": np.array([1.0])}
        row = chain_checks.verdict({**arrays, **near}, 0, [0])
        assert (row["below_best"], row["range_log_joint"]) == pytest.approx((shown, shown), abs=1e-12)


def test_a_monitor_s_summary_is_that_of_the_draws_after_burn_in() -> None:
    """Moves of observed cells, entropies of shares, acceptance, and the chains' log joints, each by a loop."""
    layout, prior, observed = gibbs.Layout.of([0] * 4), gibbs.Prior(3, (2,)), np.ones((3, 4), bool)
    observed[:, 3] = False
    law = gibbs.Group(np.zeros((4, 2)), observed)
    monitor = chain_checks.Monitor(law, layout, prior, 2, [0, 2])
    # Draws of four cells in three chains; the first two are burn-in, chain 1 is not watched.
    chains = {
        0: [[2, 2, 2, 2], [1, 1, 1, 1], [0, 0, 1, 0], [0, 0, 1, 1], [0, 1, 1, 0], [0, 1, 1, 0], [0, 0, 1, 2]],
        2: [[0, 1, 2, 0], [0, 0, 0, 0], [2, 2, 2, 1], [2, 2, 2, 2], [2, 2, 2, 0], [2, 2, 2, 1], [2, 2, 2, 2]],
    }
    joint = np.random.default_rng(8).normal(-50, 2, (7, 3))
    for turn in range(7):
        states = np.array([chains[0][turn], [turn % 3] * 4, chains[2][turn]])
        given = {"log_joint": joint[turn], "accepted": np.array([turn / 10, 1.0, 0.1])}
        monitor(turn, SimpleNamespace(states=states.T, counts=(np.zeros((4, 2)),), **given))
    checks, watched = monitor.summary(), joint[2:, [0, 2]]
    # Of six observed cells one in chain 0 changed its state.
    assert checks["moved"] == pytest.approx(1 / 6)
    assert checks["acceptance"] == pytest.approx(np.mean([(turn / 10 + 0.1) / 2 for turn in range(2, 7)]))
    assert (checks["n_chains"], checks["joint_best"]) == (2, watched.max())
    lowest, highest = sorted([watched[:, 0].mean(), watched[:, 1].mean()])
    assert (checks["joint_lowest"], checks["joint_range"]) == pytest.approx((lowest, highest - lowest))
    assert checks["joint_deviation"] == pytest.approx(np.mean([np.std(watched[:, 0]), np.std(watched[:, 1])]))
    assert np.isnan(checks["islands"]) and np.isnan(checks["met"])
    for place, chain in enumerate((0, 2)):
        for draw, states in enumerate(chains[chain][2:]):
            shares = [states.count(state) / 4 for state in set(states)]
            entropy = -sum(share * np.log(share) for share in shares)
            assert monitor.traces[draw][2, place] == pytest.approx(entropy)
