"""Studies on war logs, computed a second time on five cells: held-out scores by enumeration, tables by loops."""

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
from privpost.lab import grid
from privpost.samplers.hidden_markov import gibbs
from privpost.samplers.noise_aware import event_counts, exact_counts

# Two fields of two levels; two regions, of three months and of two.
COUNTS = [[6, 1, 0, 7], [5, 2, 1, 6], [0, 6, 6, 0], [1, 7, 7, 1], [6, 0, 1, 5]]
REGION, MONTH, FIELDS = [0, 0, 0, 1, 1], [0, 1, 2, 0, 1], [(0, 1), (2, 3)]
LIKELIHOOD = "foulds2016/war_logs_likelihood"
HMM = {"n_states": 2, "start": "random", "transition_concentration": 1, "emission_concentration": 1, "releases": 1}
HMM |= {"splits": 2, "chains": 1, "variant": ["paper"], "truncation": [10], "prior": ["tempered"], "held_out": 0.2}


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


def held_out_score(cell: int) -> float:
    """Log-likelihood of a cell given the others, by listing all states."""
    train, every = [c for c in range(5) if c != cell], list(itertools.product((0, 1), repeat=5))
    logs = [log_joint(states, train) for states in every]
    return float(np.logaddexp.reduce([log_joint(states, range(5)) for states in every]) - np.logaddexp.reduce(logs))


def held_out_cells(cell, splits: int) -> list[int]:
    """The cell that each split holds out, by the streams of the data set, whatever the study and its settings."""
    rng = cell.streams.shared("foulds2016/held_out", dataset=cell.config.dataset)("data", 0)
    return [int(rng.permutation(5)[0]) for _ in range(splits)]


def measured(**changes):
    return run(LIKELIHOOD, None, None, **HMM | changes)


@pytest.mark.parametrize("start", ["random", "seeded"])
def test_a_held_out_cell_is_scored_by_what_the_others_say_of_it(start):
    cell = measured(start=start, iterations=700, burn_in=50, epsilon=[1.0], method=["non_private"])
    scores = [held_out_score(c) for c in held_out_cells(cell, 2)]
    kept = row(cell.tables["war_logs_likelihood"], method="non_private")
    # Means of 650 draws of either chain: four standard errors are below 0.2. Trained on, a cell has 1 more.
    assert kept.log_likelihood_mean == pytest.approx(np.mean(scores), abs=0.2)


def of_one_chain(state) -> tuple:
    return state.states[:, 0].tolist(), state.probabilities[0].copy()


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


PAPER = {"splits": 1, "epsilon": [2.0], "method": ["non_private", "laplace", "ops"]}


def test_chains_are_scored_after_burn_in_together_and_by_cell_and_one_sample_by_itself(monkeypatch):
    """Two held-out cells: the mean of products, the product of means, and the last draw's product, to rounding."""
    runs = recorded(monkeypatch, of_one_chain)
    cell = measured(**PAPER, held_out=0.4, iterations=12, burn_in=7)
    rng = cell.streams.shared("foulds2016/held_out", dataset=cell.config.dataset)("data", 0)
    held = rng.permutation(5)[:2].tolist()
    assert [len(states) for states in runs] == [12, 12, 12]
    for index, (method, states) in enumerate(zip(PAPER["method"], runs, strict=True)):
        kept = states[-1:] if method == "ops" else states[7:]
        likelihoods = np.array([[held_out_likelihood(c, *state) for c in held] for state in kept])
        expected = np.log(np.mean(likelihoods.prod(axis=1))), np.log(likelihoods.mean(axis=0)).sum()
        for name, value in zip(
            ("joint", "predictive", "one_draw"), (*expected, np.log(likelihoods[-1]).sum()), strict=True
        ):
            assert cell.arrays[name][index, 0] == pytest.approx(value, abs=1e-9)


@pytest.mark.parametrize("start", ["random", "seeded"])
def test_no_chain_sees_the_events_of_a_held_out_cell(start, monkeypatch):
    """Other events in it change no state and no emission; each run of chains starts anew from its stream."""
    runs = recorded(monkeypatch, of_one_chain)
    settings = PAPER | {"start": start, "method": ["non_private", "laplace", "ops", "gibbs"]}
    settings |= {"iterations": 12, "burn_in": 7, "aware_iterations": 12, "aware_burn_in": 7}
    cell = measured(**settings)
    (held,) = held_out_cells(cell, 1)
    before, scores = list(runs), cell.arrays["joint"]
    a, b, c, d = COUNTS[held]
    changed = [*COUNTS[:held], [b, a, d, c], *COUNTS[held + 1 :]]
    monkeypatch.setattr(data, "load", lambda name, load=data.load: load(name)._replace(counts=np.array(changed)))
    del runs[:]
    assert (measured(**settings).arrays["joint"] != scores).all()
    for one, two in zip(before, runs, strict=True):
        for (states, law), (again, same) in zip(one, two, strict=True):
            assert states == again
            np.testing.assert_allclose(law, same, rtol=1e-9)


def test_a_split_s_releases_of_one_sample_are_averaged_and_each_has_its_own_budget():
    """Two splits of two releases each: the mean of both draws' scores, from what the ledger saw."""
    cell = measured(epsilon=[2.0], method=["non_private", "ops"], releases=2, iterations=4, burn_in=2)
    ((asked, released),) = cell.ledger.of("ops/n_states=2/random/truncation=10/tempered/epsilon=2")
    assert asked.repeats == slice(0, 4) and released.values.shape == (4, 2, 4)
    states, held = released.info.state.states[:, :4].T.tolist(), held_out_cells(cell, 2)
    draws = zip([held[0]] * 2 + [held[1]] * 2, states, released.values, strict=True)
    logs = [math.log(held_out_likelihood(c, own, law)) for c, own, law in draws]
    assert cell.arrays["joint"][1] == pytest.approx([np.mean(logs[:2]), np.mean(logs[2:])])


def test_held_out_cells_of_naive_bayes_are_scored_by_what_the_others_say(monkeypatch):
    drawn = spied(monkeypatch, gibbs, "draw_emissions")
    cell = measured(n_states=1, iterations=4000, burn_in=100, epsilon=[1.0], method=["non_private", "laplace", "ops"])
    # As many draws as chains have after burn-in.
    assert [call.result[0].shape[:2] for call in drawn[:2]] == [(3900, 2), (3900, 2)]
    chosen, table = held_out_cells(cell, 2), cell.tables["war_logs_likelihood"]
    events = [COUNTS[c][0] + COUNTS[c][1] for c in chosen]
    assert cell.arrays["events"].tolist() == events
    naive, training = [], []
    for c in chosen:
        train = [sum(COUNTS[i][level] for i in range(5) if i != c) for level in range(4)]
        training.append(train)
        both = [train[level] + COUNTS[c][level] for level in range(4)]
        naive.append(sum(log_dirichlet([both[k] for k in f]) - log_dirichlet([train[k] for k in f]) for f in FIELDS))
    plain = row(table, method="non_private")
    # Logarithms of means over 3900 draws: four standard errors are below 0.1.
    assert plain.log_likelihood_mean == pytest.approx(np.mean(naive), abs=0.1)
    # Two fields, each of whose counts an event changes by two: Δ = 4.
    (asked, released), *_ = cell.ledger.of("laplace/n_states=1/paper/epsilon=1")
    assert asked.statistics.tolist() == training
    streams = cell.streams.shared("foulds2016/held_out", dataset=cell.config.dataset)
    noise = streams("mechanism", 0, model="naive_bayes").laplace(size=(2, 4))
    np.testing.assert_allclose(released.values, np.array(training) + 4 * noise)
    (asked, released), *_ = cell.ledger.of("ops/n_states=1/truncation=10/tempered/epsilon=1")
    assert asked.statistics.tolist() == training
    scores = [
        sum(COUNTS[c][k] * math.log(x) for k, x in enumerate(law[0]))
        for c, law in zip(chosen, released.values, strict=True)
    ]
    kept = row(table, method="ops")
    per_event = [score / number for score, number in zip(scores, events, strict=True)]
    for name in ("per_event", "joint", "predictive", "one_draw"):
        assert (kept[f"{name}_mean"], kept[f"{name}_sem"]) == pytest.approx(mean_and_error(per_event))
    # Its law is drawn exactly, so that nothing has to converge.
    assert (kept.guarantee, kept.worst_case_epsilon, kept.converged) == ("unconditional", 1.0, True)


@pytest.mark.parametrize("prior", ["tempered", "untempered"])
def test_one_sample_has_the_prior_that_the_row_states(prior):
    settings = {"emission_concentration": 40, "prior": [prior], "method": ["ops"], "epsilon": [0.5], "burn_in": 0}
    cell = measured(n_states=1, splits=400, iterations=1, **settings)
    account = f"ops/n_states=1/truncation=10/{prior}/epsilon=0.5"
    statistics = np.concatenate([asked.statistics for asked, _ in cell.ledger.of(account)])
    t = 2 * 2 * math.log(0.95 / 0.05) / 0.5
    concentration = 1 + 39 / (t if prior == "tempered" else 1)
    a, b = (concentration + statistics[:, k] / t for k in (0, 1))
    low, here, high = (betainc(a, b, x) for x in (0.05, cell.ledger.released(account)[:, 0, 0], 0.95))
    uniform = np.sort((here - low) / (high - low))
    # Exceeded by 400 uniform values once in 3000.
    assert np.abs(uniform - (np.arange(400) + 0.5) / 400).max() < 2.0 / 20


def test_noise_aware_draws_are_told_the_noise_that_was_added(monkeypatch):
    told, counts = spied(monkeypatch, event_counts, "NoisyCounts"), spied(monkeypatch, exact_counts, "class_counts")
    settings = {"method": ["laplace", "gibbs"], "epsilon": [0.5], "start": "seeded", "chains": 3}
    n, lengths = (
        sum(a + b for a, b, _, _ in COUNTS),
        {"iterations": 8, "burn_in": 4, "aware_iterations": 8, "aware_burn_in": 4},
    )
    cell = measured(**settings, **lengths)
    chosen = held_out_cells(cell, 2)
    noisy, observed, scale, events = told[0].given
    assert (scale, events) == (4 / 0.5, n)
    of_laplace, of_aware = (cell.ledger.released(f"{name}/epsilon=0.5") for name in
                            ("laplace/n_states=2/seeded/paper", "gibbs/n_states=2/seeded"))  # fmt: skip
    np.testing.assert_array_equal(of_laplace, of_aware)
    np.testing.assert_array_equal(noisy.ravel(), of_aware[[0, 1, 0, 0]].ravel())
    assert observed.tolist() == [[c != own for c in range(5)] for own in chosen + 2 * chosen[:1]]
    # One state: the counts of all training cells together, of any part of the public number of events.
    cell = measured(**settings, **lengths, n_states=1)
    released = cell.ledger.released("gibbs/n_states=1/epsilon=0.5")
    for call, release in zip(counts, released, strict=True):
        given, sizes, concentration, number, scale, draws, _ = call.given
        np.testing.assert_array_equal(given.ravel(), release)
        assert (sizes, concentration, number, scale, draws) == ((2, 2), 1, n, 8.0, 4) and call.settings["elsewhere"]
        assert call.result.shape == (4, 1, 4)


def columns_by_hand(n_splits: int, rows: int, seed: int) -> dict[str, np.ndarray]:
    """Arrays of `simulate` for some rows; every third has not mixed."""
    rng = np.random.default_rng(seed)
    arrays = {name: -rng.uniform(10, 50, (rows, n_splits)) for name in ("joint", "predictive", "one_draw")}
    arrays |= {name: rng.uniform(0.1, 1, rows) for name in ("clipped", "ess", "log_joint")}
    arrays["rhat"] = np.where(np.arange(rows) % 3 == 0, 1.06, 1.0001)
    return arrays | {"events": np.array([10.0, 16.0, 25.0, 40.0])[:n_splits]}


EVERY = {"variant": ["paper", "corrected", "sums"], "truncation": [10.0], "prior": ["tempered", "untempered"]}
CELLS = [
    ({"n_states": 1, "splits": 4, "method": ["non_private", "laplace", "ops", "gibbs"]}, 6),
    ({"n_states": 3, "splits": 3, "method": ["non_private", "laplace", "ops"], "prior": ["tempered"]}, 5),
    ({"n_states": 3, "splits": 3, "start": "seeded",
      "method": ["non_private", "laplace", "ops", "private_gibbs", "gibbs"]}, 8),
]  # fmt: skip


@pytest.fixture
def tabulated():
    """Cells with arrays by hand: their scores per event by what tells rows apart, and the tables."""
    study, known, made = grid.load_study(LIKELIHOOD, "smoke"), {}, []
    base = vars(grid.expand(study)[0].config) | EVERY | {"epsilon": [0.1], "start": "random"}
    for seed, (changes, number) in enumerate(CELLS):
        config = SimpleNamespace(**{**base, **changes})
        arrays = columns_by_hand(changes["splits"], number, seed)
        made.append(SimpleNamespace(config=config, arrays=arrays))
        for place, each in enumerate(study.module().of(config)):
            key = (each.n_states, each.start, each.method, each.variant, each.prior)
            scores = {name: arrays[name][place] / arrays["events"] for name in ("joint", "predictive", "one_draw")}
            known[key] = scores, {name: arrays[name][place] for name in ("clipped", "ess", "rhat", "log_joint")}
        assert place == number - 1
    return known, study.module().tabulate(made)


def test_scores_are_tabulated_per_event_beside_what_is_known_of_each_chain(tabulated):
    """Arrays by hand in place of chains: every column of the first table is computed by a loop, to rounding."""
    known, tables = tabulated
    table = tables["war_logs_likelihood"]
    assert len(table) == len(known) == 19
    for (states, start, method, variant, prior), (scores, checks) in known.items():
        kept = row(table, n_states=states, start=start, method=method, variant=variant, prior=prior)
        plain = known[states, "seeded" if method == "private_gibbs" else start, "non_private", None, None][0]
        for name, values in scores.items():
            assert (kept[f"{name}_mean"], kept[f"{name}_sem"]) == pytest.approx(mean_and_error(values))
            lost = plain["joint" if name == "one_draw" else name] - values
            found = kept[f"{name}_loss_mean"], kept[f"{name}_loss_sem"]
            assert found == pytest.approx(mean_and_error(lost))
        chain = states > 1 and method != "private_gibbs"
        assert (kept.n_splits, kept.dataset, kept.clipped_share) == (len(values), "iraq_simulated", checks["clipped"])
        assert (kept.sampling == "mcmc", kept.model) == (chain, "hmm" if states > 1 else "naive_bayes")
        assert kept.log_joint_mean == checks["log_joint"]
        assert kept.converged == (not chain or checks["rhat"] < 1.05)
        if chain:
            assert (kept.rhat_max, kept.ess_bulk) == (checks["rhat"], checks["ess"])
        else:
            assert pd.isna(kept.rhat_max) and pd.isna(kept.ess_bulk)


def test_differences_are_paired_over_the_splits_that_both_have(tabulated):
    """Each difference by what its two rows are, from the splits' scores, to rounding."""
    known, tables = tabulated
    pairs = tables["war_logs_differences"]
    named = ["first", "second", "n_states", "start", "variant", "prior"]
    assert not pairs.duplicated(named).any()
    expected = {}
    for states, start, method, variant, prior in known:
        second, own = (states, start, method, variant, prior), (method, states, start)
        first = {
            "gibbs": (states, "seeded" if method == "private_gibbs" else start, "gibbs", None, None),
            "one_state": (1, None, "laplace", "paper", None),
            "seeded": (states, "seeded", method, variant, prior),
            "non_private": (3, "seeded", "non_private", None, None),
            "ops": (states, "random", "ops", None, prior),
        }
        wanted = ["seeded"] if start == "random" else ["non_private"]
        wanted += ["gibbs"] if method not in ("gibbs", "non_private") else []
        wanted += ["one_state"] if states > 1 and method != "non_private" else []
        wanted += ["ops"] if method == "private_gibbs" else []
        for word in wanted:
            if first[word] in known:
                expected[word, *own, variant, prior] = first[word], second
        for kind in ("paper", "corrected", "sums") if method == "ops" else ():
            if (states, start, "laplace", kind, None) in known:
                expected["laplace", *own, kind, prior] = (states, start, "laplace", kind, None), second
    assert len(pairs) == len(expected)
    for (word, method, states, start, variant, prior), (first, second) in expected.items():
        kept = row(pairs, first=word, second=method, n_states=states, start=start, variant=variant, prior=prior)
        for name in ("joint", "predictive", "one_draw"):
            both = zip(known[first][0][name], known[second][0][name], strict=False)
            found = kept[f"{name}_mean"], kept[f"{name}_sem"]
            assert found == pytest.approx(mean_and_error([a - b for a, b in both]))
        assert kept.n_splits == min(len(known[first][0]["joint"]), len(known[second][0]["joint"]))


def test_maps_are_compared_month_by_month_within_a_region():
    cell = run(
        "foulds2016/war_logs_states", None, None, n_states=2, many_states=3, epsilon=2.0, transition_concentration=1,
        emission_concentration=1, method=["non_private", "laplace", "ops"], truncation=[10], start=["seeded"],
        without="none", chains=1, repeats=1, iterations=64, burn_in=32, starts=4,
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
