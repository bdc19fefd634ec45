"""Studies on war logs, computed a second time on five cells: held-out scores by enumeration, maps by loops."""

from __future__ import annotations

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from recomputed import log_dirichlet, mean_and_error, recorded, row, run, spied
from scipy.special import betainc

from privpost.datasets import war_logs as data
from privpost.experiments.foulds2016 import held_out
from privpost.lab import grid
from privpost.samplers import hidden_markov_gibbs as gibbs
from privpost.samplers import noise_aware_events

# Two fields of two levels; two regions, of three months and of two.
COUNTS = [[6, 1, 0, 7], [5, 2, 1, 6], [0, 6, 6, 0], [1, 7, 7, 1], [6, 0, 1, 5]]
REGION, MONTH, FIELDS = [0, 0, 0, 1, 1], [0, 1, 2, 0, 1], [(0, 1), (2, 3)]
HMM = {"n_states": 2, "transition_concentration": 1, "emission_concentration": 1, "fields": "all", "replication": 1}


@pytest.fixture(autouse=True)
def toy(monkeypatch):
    levels = {"category": ["a", "b"], "type": ["c", "d"]}
    given = np.array(COUNTS), np.array(REGION), np.array(MONTH), ["north", "south"], ["2004-01", "2004-02", "2004-03"]
    monkeypatch.setattr(data, "load", lambda name: data.WarLogs(name, False, *given, levels, np.array([0, 0, 1, 1, 0])))


def log_joint(states, cells) -> float:
    """Log-probability of states and of the counts of some cells, emissions and moves integrated out."""
    total = -2 * math.log(2)
    moves = np.zeros((2, 2))
    for cell in (1, 2, 4):
        moves[states[cell - 1], states[cell]] += 1
    total += sum(log_dirichlet(own) for own in moves)
    for state, field in itertools.product((0, 1), FIELDS):
        total += log_dirichlet([sum(COUNTS[c][level] for c in cells if states[c] == state) for level in field])
    return total


def held_out_scores(cell: int) -> tuple[float, float]:
    """Log-likelihood of a cell given the others, and of each of its events by itself, by listing all states."""
    train, every = [c for c in range(5) if c != cell], list(itertools.product((0, 1), repeat=5))
    logs = [log_joint(states, train) for states in every]
    joint = np.logaddexp.reduce([log_joint(states, range(5)) for states in every]) - np.logaddexp.reduce(logs)
    weights, predictive = np.exp(logs - np.logaddexp.reduce(logs)), 0.0
    for field in FIELDS:
        for level in field:
            law = 0.0
            for weight, states in zip(weights, every, strict=True):
                own = [c for c in train if states[c] == states[cell]]
                total = sum(COUNTS[c][each] for c in own for each in field)
                law += weight * (1 + sum(COUNTS[c][level] for c in own)) / (2 + total)
            predictive += COUNTS[cell][level] * math.log(law)
    return float(joint), predictive


def shared(cell):
    """The streams of splits and noise: those of the data set, whatever the study."""
    return cell.streams.shared("foulds2016/held_out", dataset=cell.config.dataset)


def held_out_cells(cell, splits: int) -> list[int]:
    rng = shared(cell)("data", 0)
    return [int(rng.permutation(5)[0]) for _ in range(splits)]


def test_a_held_out_cell_is_scored_by_what_the_others_say_of_it():
    settings = HMM | {"held_out": 0.2, "iterations": 700, "burn_in": 50, "diagnostic_chains": 1, "epsilon": [1.0]}
    cell = run(
        "foulds2016/war_logs_likelihood", 2, 2, **settings, model=["hmm"], sampler=["paper"], method=["non_private"],
        variant=["paper"], truncation=[10],
    )  # fmt: skip
    scores = [held_out_scores(c) for c in held_out_cells(cell, 2)]
    kept = row(cell.tables["war_logs_likelihood"], model="hmm", method="non_private")
    # Means of 650 draws of either chain: four standard errors are below 0.2. Trained on, a cell has 1 more.
    assert kept.log_likelihood_mean == pytest.approx(np.mean([joint for joint, _ in scores]), abs=0.2)
    np.testing.assert_allclose(cell.arrays["predictive"][0], [each for _, each in scores], atol=0.2)


PUBLISHED = HMM | {"held_out": 0.2, "diagnostic_chains": 1, "epsilon": [2.0], "truncation": [10], "sampler": ["paper"]}
PUBLISHED |= {"model": ["hmm"], "method": ["non_private", "laplace", "ops"], "variant": ["paper"]}


def of_one_chain(state) -> tuple:
    # In the burn-in of collapsed chains there are no emissions.
    return state.states[:, 0].tolist(), [] if state.probabilities is None else state.probabilities[0].copy()


def held_out_likelihood(cell: int, states, law) -> float:
    """Probability of a cell's counts given the other cells' states and the emissions, by listing its own state."""
    weights = []
    for state in (0, 1):
        own, moves = [*states[:cell], state, *states[cell + 1 :]], np.zeros((2, 2))
        for later in (1, 2, 4):
            moves[own[later - 1], own[later]] += 1
        weights.append(math.exp(sum(log_dirichlet(row) for row in moves)))
    likelihoods = [math.prod(law[state][k] ** COUNTS[cell][k] for k in range(4)) for state in (0, 1)]
    return sum(w * p for w, p in zip(weights, likelihoods, strict=True)) / sum(weights)


def test_the_papers_chains_are_scored_after_burn_in_and_one_sample_by_itself(monkeypatch):
    runs = recorded(monkeypatch, of_one_chain)
    cell = run("foulds2016/war_logs_likelihood", 1, 1, **PUBLISHED | {"held_out": 0.4}, iterations=12, burn_in=7)
    held = shared(cell)("data", 0).permutation(5)[:2].tolist()
    assert [len(states) for states in runs] == [12, 12, 12]
    for index, (method, states) in enumerate(zip(PUBLISHED["method"], runs, strict=True)):
        kept = states[-1:] if method == "ops" else states[7:]
        mean = np.mean([math.prod(held_out_likelihood(c, *state) for c in held) for state in kept])
        assert cell.arrays["log_likelihood"][index, 0] == pytest.approx(math.log(mean), abs=1e-9)
        kept = row(cell.tables["war_logs_likelihood"], method=method)
        assert kept["sampler"] == "paper"
        # Only OPS's chain spends on iterations; Laplace noise is added once.
        assert kept.iterations == 12 if method == "ops" else math.isnan(kept.iterations)


@pytest.mark.parametrize("sampler", ["paper", "collapsed"])
def test_no_chain_sees_the_events_of_a_held_out_cell(sampler, monkeypatch):
    """Other events in it change no state and no emission; each run of chains starts anew from its stream."""
    runs = recorded(monkeypatch, of_one_chain)
    settings = PUBLISHED | {"sampler": [sampler], "iterations": 12, "burn_in": 7}
    cell = run("foulds2016/war_logs_likelihood", 1, 1, **settings)
    (held,) = held_out_cells(cell, 1)
    before, scores = list(runs), cell.arrays["log_likelihood"]
    # No chain pays for its updates.
    assert cell.tables["war_logs_likelihood"].ops_minus_paid_mean.isna().all()
    a, b, c, d = COUNTS[held]
    changed = [*COUNTS[:held], [b, a, d, c], *COUNTS[held + 1 :]]
    monkeypatch.setattr(data, "load", lambda name, load=data.load: load(name)._replace(counts=np.array(changed)))
    del runs[:]
    other = run("foulds2016/war_logs_likelihood", 1, 1, **settings).arrays["log_likelihood"]
    assert (other != scores).all()
    for one, two in zip(before, runs, strict=True):
        for (states, law), (again, same) in zip(one, two, strict=True):
            assert states == again
            np.testing.assert_allclose(law, same, rtol=1e-9)


@pytest.mark.parametrize("prior", ["tempered", "untempered"])
def test_the_chain_of_one_sample_has_the_temperatures_and_bounds_that_the_study_states(prior, monkeypatch):
    chains = spied(monkeypatch, gibbs, "Chains")
    run("foulds2016/war_logs_likelihood", 1, 1, **PUBLISHED | {"method": ["ops"]}, prior=prior, iterations=2, burn_in=1)
    ((group,), *_) = chains[0].given
    t = 2 * 2 * math.log(0.95 / 0.05) / 2.0
    assert (group.temperature, list(group.lows)) == (pytest.approx(t), [0.05, 0.05])
    assert group.prior_temperature == pytest.approx(t if prior == "tempered" else 1)


def test_held_out_cells_of_naive_bayes_are_scored_by_what_the_others_say(monkeypatch):
    drawn = spied(monkeypatch, gibbs, "draw_emissions")
    settings = HMM | {"held_out": 0.2, "iterations": 4000, "burn_in": 100, "diagnostic_chains": 1, "epsilon": [1.0]}
    cell = run(
        "foulds2016/war_logs_likelihood", 2, 2, **settings, model=["naive_bayes"], sampler=["paper"],
        method=["non_private", "laplace", "ops"], variant=["paper"], truncation=[10],
    )  # fmt: skip
    # As many draws as chains have after burn-in, and one sample of OPS. Without latent counts no partition is compared.
    assert [call.result[0].shape[:2] for call in drawn] == [(2, 3900), (2, 3900), (2, 1)]
    assert "partition_distance" not in cell.arrays
    chosen, table = held_out_cells(cell, 2), cell.tables["war_logs_likelihood"]
    events = [COUNTS[c][0] + COUNTS[c][1] for c in chosen]
    assert cell.arrays["events"].tolist() == events
    naive, training = [], []
    for c in chosen:
        train = [sum(COUNTS[i][level] for i in range(5) if i != c) for level in range(4)]
        training.append(train)
        both = [train[level] + COUNTS[c][level] for level in range(4)]
        naive.append(sum(log_dirichlet([both[k] for k in f]) - log_dirichlet([train[k] for k in f]) for f in FIELDS))
    plain = row(table, model="naive_bayes", method="non_private")
    # Logarithms of means over 3900 draws: four standard errors are below 0.1.
    assert plain.log_likelihood_mean == pytest.approx(np.mean(naive), abs=0.1)
    # Two fields, each of whose counts an event changes by two: Δ = 4.
    (asked, released), *_ = cell.ledger.of("naive_bayes/laplace/paper/epsilon=1")
    assert asked.statistics.tolist() == training
    noise = shared(cell)("mechanism", 0, model="naive_bayes").laplace(size=(2, 4))
    np.testing.assert_allclose(released.values, np.array(training) + 4 * noise)
    (asked, released), *_ = cell.ledger.of("naive_bayes/ops/truncation=10/epsilon=1")
    assert asked.statistics.tolist() == training
    scores = [
        sum(COUNTS[c][k] * math.log(x) for k, x in enumerate(law[0]))
        for c, law in zip(chosen, released.values, strict=True)
    ]
    kept = row(table, model="naive_bayes", method="ops")
    per_event = [score / number for score, number in zip(scores, events, strict=True)]
    assert (kept.per_event_mean, kept.per_event_sem) == pytest.approx(mean_and_error(per_event))
    # Its law is drawn exactly, so that nothing has to converge.
    assert (kept.guarantee, kept.worst_case_epsilon, kept.converged) == ("unconditional", 1.0, True)
    best = cell.arrays["log_likelihood"][0] / events
    assert kept.per_event_loss_mean == pytest.approx(np.mean(best - per_event))
    noisy = cell.arrays["log_likelihood"][list(table.method).index("laplace")] / events
    differences = row(cell.tables["war_logs_differences"], model="naive_bayes")
    assert differences.laplace_minus_ops_mean == pytest.approx(np.mean(noisy - per_event))


@pytest.mark.parametrize("prior", ["tempered", "untempered"])
def test_one_sample_has_the_prior_that_the_study_states(prior):
    settings = HMM | {"held_out": 0.2, "iterations": 1, "burn_in": 0, "diagnostic_chains": 1, "epsilon": [0.5]}
    cell = run(
        "foulds2016/war_logs_likelihood", 400, 400, **settings | {"emission_concentration": 40}, prior=prior,
        model=["naive_bayes"], method=["ops"], variant=["paper"], truncation=[10], sampler=["paper"],
    )  # fmt: skip
    (asked, released), *_ = cell.ledger.of("naive_bayes/ops/truncation=10/epsilon=0.5")
    t = 2 * 2 * math.log(0.95 / 0.05) / 0.5
    concentration = 1 + 39 / (t if prior == "tempered" else 1)
    a, b = (concentration + np.array(asked.statistics)[:, k] / t for k in (0, 1))
    low, here, high = (betainc(a, b, x) for x in (0.05, released.values[:, 0, 0], 0.95))
    uniform = np.sort((here - low) / (high - low))
    # Exceeded by 400 uniform values once in 3000.
    assert np.abs(uniform - (np.arange(400) + 0.5) / 400).max() < 2.0 / 20
    cell = run(
        "foulds2016/war_logs_likelihood", 2, 2, **settings, prior=prior, model=["hmm"], method=["ops"],
        variant=["paper"], truncation=[10], sampler=["paper"],
    )  # fmt: skip
    assert [asked.mechanism.tempered_prior for asked, _ in cell.ledger.seen] == [prior == "tempered"]


def test_a_noise_aware_chain_is_told_the_noise_that_was_added(monkeypatch):
    judged = spied(monkeypatch, held_out, "diagnosed")
    told, runs = spied(monkeypatch, noise_aware_events, "LatentCounts"), recorded(monkeypatch, of_one_chain)
    settings = HMM | {"held_out": 0.2, "iterations": 8, "burn_in": 4, "diagnostic_chains": 3, "epsilon": [0.5]}
    cell = run(
        "noise_aware/war_logs", 2, 2, **settings, model=["naive_bayes", "hmm"], sampler=["paper"],
        method=["non_private", "laplace", "gibbs"], variant=["paper"],
    )  # fmt: skip
    chosen = held_out_cells(cell, 2)
    for call, model in zip(told, ("naive_bayes", "hmm"), strict=True):
        noisy, observed, _, scale, n, held = call.given
        assert (scale, n) == (4 / 0.5, sum(a + b for a, b, _, _ in COUNTS))
        # To naive Bayes all held-out cells are one.
        assert held == (1 if model == "naive_bayes" else None)
        (_, released), *_ = cell.ledger.of(f"{model}/gibbs/epsilon=0.5")
        np.testing.assert_array_equal(noisy.ravel(), released.values[[0, 1, 0, 0]].ravel())
        if model == "hmm":
            assert observed.tolist() == [[c != own for c in range(5)] for own in chosen + 2 * chosen[:1]]
    # The chains of naive Bayes run first; of the first split's the last four emissions count. The second has one chain.
    laws, held = np.log([law[0] for _, law in runs[0][4:]]), COUNTS[chosen[0]]
    expected = np.logaddexp.reduce(laws @ held) - math.log(4), np.log(np.exp(laws).mean(axis=0)) @ held
    assert (cell.arrays["log_likelihood"][2, 0], cell.arrays["predictive"][2, 0]) == pytest.approx(expected)
    ((trace,),) = judged[0].given
    assert trace.shape == (4, 3) and trace[:, 0] == pytest.approx(laws @ held)
    for score, name in (("joint", "log_likelihood"), ("predictive", "predictive")):
        per_event = cell.arrays[name] / cell.arrays["events"]
        own = cell.tables["war_logs"].query("score == @score and model == 'naive_bayes'")
        for index, method in enumerate(("non_private", "laplace", "gibbs")):
            kept = row(own, method=method)
            assert (kept.per_event_mean, kept.per_event_sem) == pytest.approx(mean_and_error(per_event[index]))
            assert kept.per_event_loss_mean == pytest.approx(np.mean(per_event[0] - per_event[index]))
        gain = row(cell.tables["war_logs_pairs"], score=score, model="naive_bayes").gain_mean
        assert gain == pytest.approx(np.mean(per_event[2] - per_event[1]))


def without_the_non_private_chain(study, config, listed, arrays):
    """The first table of the same arrays less their non-private rows: a loss is not known."""
    others = [index for index, (_, method, _, _) in enumerate(listed) if method != "non_private"]
    private = SimpleNamespace(**{**vars(config), "method": ["laplace", "gibbs"]})
    fewer = {name: values if name == "events" else values[others] for name, values in arrays.items()}
    (table, _) = study.module().tabulate([SimpleNamespace(config=private, arrays=fewer)]).values()
    assert len(table) == 2 * len(others)
    return table


def chains_by_hand(rows: int) -> dict[str, np.ndarray]:
    """Arrays of `simulate` for some rows; every third has not mixed, every fourth has chains of two partitions.

    The log joint's range decides nothing.
    """
    rng, events = np.random.default_rng(4), np.array([10.0, 16.0, 25.0])
    arrays = {name: -rng.uniform(10, 50, (rows, 3)) for name in ("log_likelihood", "predictive")}
    columns = ("clipped_share", "ess", "acceptance", "moved", "joint_range", "joint_deviation", "islands", "met")
    arrays |= {name: rng.uniform(0.1, 1, rows) for name in columns} | {"events": events}
    arrays["n_chains"] = np.arange(3.0, 3 + rows)
    arrays["partition_distance"] = np.where(np.arange(rows) % 4 == 1, 0.07, 0.03)
    arrays["rhat"] = np.where(np.arange(rows) % 3 == 0, 1.5, 1.0001)
    arrays["joint_best"] = -rng.uniform(100, 200, rows)
    arrays["joint_lowest"] = arrays["joint_best"] - np.where(np.arange(rows) % 4 == 2, 7.0, 0.2)
    return arrays


def test_scores_are_tabulated_per_event_beside_what_is_known_of_each_chain():
    """Arrays by hand in place of chains: every column of both tables is computed by a loop, to rounding."""
    study = grid.load_study("noise_aware/war_logs", "smoke")
    changes = {"epsilon": [0.5, 2.0], "variant": ["paper", "corrected"], "sampler": ["paper"], "n_states": 3}
    changes |= {"model": ["naive_bayes", "hmm"], "method": ["non_private", "laplace", "gibbs"]}
    config = SimpleNamespace(**{**vars(grid.expand(study)[0].config), **changes})
    listed = []
    for model in ("naive_bayes", "hmm"):
        listed += [(model, "non_private", None, None)]
        listed += [(model, "laplace", variant, eps) for eps in (0.5, 2.0) for variant in ("paper", "corrected")]
        listed += [(model, "gibbs", None, eps) for eps in (0.5, 2.0)]
    arrays = chains_by_hand(len(listed))
    events = arrays["events"]
    made = study.module().tabulate([SimpleNamespace(config=config, arrays=arrays)])
    table, pairs = made["war_logs"], made["war_logs_pairs"]
    assert (len(table), len(pairs)) == (2 * len(listed), 2 * 2 * 2 * 2)
    assert not {"index", "level_0"} & {*table, *pairs}
    alone = without_the_non_private_chain(study, config, listed, arrays)
    assert alone.per_event_loss_mean.isna().all()
    converged = {}
    for score, name in (("joint", "log_likelihood"), ("predictive", "predictive")):
        for index, (model, method, variant, eps) in enumerate(listed):
            kept = row(table, score=score, model=model, method=method, variant=variant, epsilon=eps)
            mine = arrays[name][index] / events
            assert (kept.per_event_mean, kept.per_event_sem) == pytest.approx(mean_and_error(mine))
            lost = arrays[name][listed.index((model, "non_private", None, None))] / events - mine
            assert (kept.per_event_loss_mean, kept.per_event_loss_sem) == pytest.approx(mean_and_error(lost))
            states = 1 if model == "naive_bayes" else 3
            assert (kept.n_states, kept.n_splits, kept.dataset) == (states, 3, config.dataset)
            assert (kept.clipped_share, kept.ess_min) == (arrays["clipped_share"][index], arrays["ess"][index])
            chain, mixed = model == "hmm" or method == "gibbs", index % 3 != 0
            assert (kept.sampling, kept.n_chains) == (("mcmc", 3 + index) if chain else ("exact", 1))
            sampler = "joint moves" if method == "gibbs" else "paper" if chain else "none"
            assert pd.isna(kept.sampler) if sampler == "none" else kept.sampler == sampler
            converged[index] = not chain or (mixed and (model == "naive_bayes" or index % 4 != 1))
            assert kept.converged == converged[index]
            if model == "hmm":
                assert (kept.acceptance, kept.moved) == (arrays["acceptance"][index], arrays["moved"][index])
                assert kept.below_best == pytest.approx(7 if index % 4 == 2 else 0.2)
                assert kept.partition_distance == arrays["partition_distance"][index]
            else:
                assert kept.rhat_max == arrays["rhat"][index]
                assert pd.isna(kept.acceptance) and pd.isna(kept.near) and pd.isna(kept.partition_distance)
            if method == "laplace":
                aware = listed.index((model, "gibbs", None, eps))
                gained = row(pairs, score=score, model=model, variant=variant, epsilon=eps)
                expected = mean_and_error(arrays[name][aware] / events - mine)
                assert (gained.gain_mean, gained.gain_sem) == pytest.approx(expected)
                assert gained.sampler == "joint moves" and gained.n_splits == 3
    for score, model, variant, eps in itertools.product(
        ("joint", "predictive"), ("naive_bayes", "hmm"), ("paper", "corrected"), (0.5, 2.0)
    ):
        gained = row(pairs, score=score, model=model, variant=variant, epsilon=eps)
        both = [listed.index((model, "gibbs", None, eps)), listed.index((model, "laplace", variant, eps))]
        assert gained.converged == all(converged[index] for index in both)


def test_maps_are_compared_month_by_month_within_a_region():
    cell = run(
        "foulds2016/war_logs_states", 1, 1, n_states=2, many_states=3, epsilon=2.0, transition_concentration=1,
        emission_concentration=1, method=["non_private", "laplace", "ops"], variant=["paper"], truncation=[10],
        sampler=["collapsed"], without="none", diagnostic_chains=1, replicas=1, rounds=64, rounds_burn_in=32,
    )  # fmt: skip
    mode, final, table = cell.arrays["mode"], cell.arrays["final"], cell.tables["war_logs_maps"]
    methods = ["non_private", "laplace", "ops"]
    # The states of these counts are those that made them, in the order of their mean months.
    assert mode[0].tolist() in ([0, 0, 1, 1, 0], [1, 1, 0, 0, 1])
    across = 0
    for index, method in enumerate(methods):
        for summary, maps in (("mode", mode), ("final", final)):
            states, kept = maps[index].tolist(), row(table, method=method, summary=summary)
            pairs = [(0, 1), (1, 2), (3, 4)]
            across += states[2] == states[3]
            assert kept.switches_mean == pytest.approx(sum(states[i] != states[j] for i, j in pairs) / 3)
            if method != "non_private":
                assert kept.disagreement_mean == np.mean(
                    [a != b for a, b in zip(states, mode[0].tolist(), strict=True)]
                )
            missed = sum(a != b for a, b in zip(states, [0, 0, 1, 1, 0], strict=True))
            assert kept.misses_mean == pytest.approx(min(missed, 5 - missed) / 5)
            # No label is lost by counting them.
            used = row(cell.tables["war_logs_states_used"], method=method, summary=summary, n_states=2)
            assert used.states_over_5_percent == used.states_used_at_all == len(set(states))
    # A pair across the regions' border would change the share of switches.
    assert across
    emissions = cell.tables["war_logs_emissions"].query("method == 'non_private'")
    for state in (0, 1):
        own = [COUNTS[c] for c in range(5) if final[0][c] == state]
        for field, (name, levels) in zip(FIELDS, (("category", "ab"), ("type", "cd")), strict=True):
            total = sum(counts[k] for counts in own for k in field)
            for level, letter in zip(field, levels, strict=True):
                kept = row(emissions, state=state + 1, field=name, level=letter).probability
                assert kept == pytest.approx((1 + sum(counts[level] for counts in own)) / (2 + total))
    assigned = cell.tables["war_logs_assignments"].query("method == 'laplace' and summary == 'mode'")
    assert assigned.region.tolist() == ["north"] * 3 + ["south"] * 2
    assert assigned.month.tolist() == ["2004-01", "2004-02", "2004-03", "2004-01", "2004-02"]
    assert (assigned.state - 1).tolist() == mode[1].tolist()
    turns = cell.tables["war_logs_turns"].set_index("region").month
    for region, cells in (("north", [0, 1, 2]), ("south", [3, 4])):
        states = [mode[1][c] for c in cells]
        changes = [k for k in range(1, len(states)) if states[k - 1] != states[-1]]
        months = [["2004-01", "2004-02", "2004-03"][MONTH[cells[k]]] for k in changes]
        assert (turns[region] or None) == (months[-1] if months else None)
