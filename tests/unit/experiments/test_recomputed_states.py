"""States of war logs, computed a second time: tables from arrays by hand, and summaries of fits by loops."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from recomputed import mean_and_error, row, run, spied
from test_recomputed_war_logs import COUNTS, FIELDS, toy  # noqa: F401  the toy is a fixture

from privpost.datasets import war_logs as data
from privpost.experiments.foulds2016.event_methods import Row
from privpost.experiments.foulds2016.war_logs_states import study as states
from privpost.lab import grid
from privpost.samplers.hidden_markov import gibbs

# Method, start and truncation, in the order of the arrays.
LISTED = [
    (method, start, 10.0 if method == "ops" else None)
    for start in ("random", "seeded")
    for method in ("non_private", "laplace", "ops")
]
EPSILON, ITERATIONS, STATES = 2.0, 7, {"few": 2, "many": 3}
MONTHS, REGIONS = ["2004-01", "2004-02", "2004-03"], ["north", "south"]
KINDS = ("mode", "final")


def arrays_by_hand() -> dict[str, np.ndarray]:
    """What chains of all rows gave; every third row has not mixed."""
    rng, many = np.random.default_rng(8), len(LISTED)
    arrays = {name: rng.integers(0, 2, (many, 5)) for name in KINDS}
    arrays["frequency"] = rng.uniform(0.5, 1, (many, 5))
    arrays["parameters"] = rng.uniform(0, 1, (many, 2, 4))
    arrays["turns"] = np.array([[index % 3, np.nan] for index in range(many)])
    for kind in KINDS:
        arrays |= {f"{name}_{kind}": rng.uniform(0, 1, (many, 3)) for name in ("switches", "disagreement", "misses")}
        arrays |= {f"{name}_used_{kind}": rng.integers(1, 4, (many, 3, 3)) for name in STATES}
    for name in STATES:
        arrays[f"{name}_variates"] = rng.uniform(20, 40, many)
        arrays[f"{name}_ess"] = rng.uniform(10, 90, many)
        arrays[f"{name}_rhat"] = np.where(np.arange(many) % 3 == 1, 1.06, 1.0001)
    return arrays


def cell_by_hand(without: str, arrays) -> SimpleNamespace:
    study = grid.load_study("foulds2016/war_logs_states", "smoke")
    changes = {"n_states": 2, "many_states": 3, "epsilon": EPSILON, "iterations": ITERATIONS, "without": without}
    changes |= {"method": ["non_private", "laplace", "ops"], "start": ["random", "seeded"], "truncation": [10.0]}
    config = SimpleNamespace(**{**vars(grid.expand(study)[0].config), **changes})
    return SimpleNamespace(config=config, arrays=arrays)


@pytest.fixture
def tabulated() -> tuple[dict, dict]:
    """Arrays by hand and their tables, of all levels and of all but one."""
    arrays = arrays_by_hand()
    few = {name: value for name, value in arrays.items() if not name.startswith("many")}
    return arrays, states.tabulate([cell_by_hand("none", arrays), cell_by_hand("z", few)])


def of(table, index: int, **more):
    method, start, truncation = LISTED[index]
    # A table without a private draw has no column of its truncation.
    more |= {"truncation": truncation} if "truncation" in table else {}
    return row(table, method=method, start=start, **more)


def check_row(kept, arrays, index: int, name: str, unpaid: bool = False) -> None:
    """What every table says of a row: its convergence, its guarantee and worst case by counting."""
    method, start, _ = LISTED[index]
    assert (kept.rhat_max, kept.ess_bulk) == (arrays[f"{name}_rhat"][index], arrays[f"{name}_ess"][index])
    assert kept.converged == (index % 3 != 1)
    if method == "non_private":
        assert pd.isna(kept.epsilon) and pd.isna(kept.guarantee) and pd.isna(kept.worst_case_epsilon)
    elif unpaid:
        assert kept.guarantee == "none" and pd.isna(kept.worst_case_epsilon)
    else:
        # The paper's chain samples states and emissions in each iteration; nothing bounds one that read its start.
        worst = {"laplace": EPSILON, "ops": 2 * ITERATIONS * EPSILON if start == "random" else np.inf}[method]
        assert (kept.epsilon, kept.guarantee) == (EPSILON, "unconditional" if method == "laplace" else "if_converged")
        assert kept.worst_case_epsilon == pytest.approx(worst)
    assert (kept.dataset, kept.stand_in, kept.uses_private_metadata) == ("iraq_simulated", False, False)
    assert kept.n_states == STATES[name]


def test_states_used_and_maps_are_tabulated_beside_what_is_known_of_each_chain(tabulated):
    """Arrays by hand in place of chains: every number of three tables by a loop, to rounding."""
    arrays, made = tabulated
    used, maps, done = (made[f"war_logs_{name}"] for name in ("states_used", "maps", "operations"))
    assert (len(used), len(maps), len(done)) == (4 * len(LISTED), 2 * len(LISTED), 2 * len(LISTED))
    for index, (method, *_) in enumerate(LISTED):
        for kind in KINDS:
            unpaid = method == "ops" and kind == "mode"
            kept = of(maps, index, summary=kind)
            check_row(kept, arrays, index, "few", unpaid)
            for name in ("switches", "misses"):
                found = kept[f"{name}_mean"], kept[f"{name}_sem"]
                assert found == pytest.approx(mean_and_error(arrays[f"{name}_{kind}"][index]))
            # The first map of a chain on exact counts is the reference.
            compared = arrays[f"disagreement_{kind}"][index][1 if method == "non_private" else 0 :]
            assert (kept.disagreement_mean, kept.disagreement_sem) == pytest.approx(mean_and_error(compared))
            assert (kept.n_repeats, kept.n_compared) == (3, len(compared))
            for name, number in STATES.items():
                kept = of(used, index, summary=kind, n_states=number)
                check_row(kept, arrays, index, name, unpaid)
                counts = arrays[f"{name}_used_{kind}"][index]
                for place, column, error in (
                    (0, "states_over_5_percent", "states_over_5_percent_sem"),
                    (1, "states_used_at_all", "states_used_at_all_sem"),
                    (2, "states_over_1_percent", "states_over_1_percent_sem"),
                ):
                    assert (kept[column], kept[error]) == pytest.approx(mean_and_error(counts[place]))
                assert kept.n_repeats == 3
        for name, number in STATES.items():
            kept, sites = of(done, index, n_states=number), ITERATIONS * 5
            check_row(kept, arrays, index, name)
            # A product with four counts and a sum for each state of each cell.
            assert kept.multiplications == 2 * sites * number * 4
            assert kept.noise_variates == (5 * 4 if method == "laplace" else 0)
            assert kept.elementary_functions == sites * number * (3 if method == "ops" else 1)
            assert kept.sampling_variates == round(arrays[f"{name}_variates"][index]) + sites


def test_emissions_assignments_and_turns_are_those_of_the_first_repeat(tabulated):
    """As above; of OPS neither emissions nor turns."""
    arrays, made = tabulated
    emissions, assigned, turns = (made[f"war_logs_{name}"] for name in ("emissions", "assignments", "turns"))
    assert (len(emissions), len(assigned), len(turns)) == (4 * 8, 8 * 5, 2 * 2 * 2)
    for index, (method, *_) in enumerate(LISTED):
        for kind in KINDS if method == "ops" else KINDS[:1]:
            for cell, (region, month) in enumerate(zip([0, 0, 0, 1, 1], [0, 1, 2, 0, 1], strict=True)):
                kept = of(assigned, index, summary=kind, region=REGIONS[region], month=MONTHS[month])
                check_row(kept, arrays, index, "few", method == "ops" and kind == "mode")
                assert kept.state == arrays[kind][index][cell] + 1
                assert kept.frequency == (arrays["frequency"][index][cell] if kind == "mode" else 1)
        if method != "ops":
            for state, (name, field, letters) in itertools.product(
                (1, 2), zip(("category", "type"), FIELDS, ("ab", "cd"), strict=True)
            ):
                for level, letter in zip(field, letters, strict=True):
                    kept = of(emissions, index, state=state, field=name, level=letter)
                    check_row(kept, arrays, index, "few")
                    assert kept.probability == arrays["parameters"][index][state - 1][level]
        if method == "laplace":
            for without in ("none", "z"):
                # The index of the first region's month is that of the row, modulo 3; the second has one state only.
                for region, month in zip(REGIONS, (MONTHS[index % 3], None), strict=True):
                    kept = of(turns, index, without=without, region=region)
                    check_row(kept, arrays, index, "few")
                    assert kept.month == month if month else pd.isna(kept.month)


def fit(rng, n_states: int, cells: int, repeats: int) -> states.Fit:
    """A fit at random, in whose maps the last state has a cell or three."""
    maps = rng.integers(0, n_states - 1, (2, repeats, cells))
    for kind, repeat in itertools.product(range(2), range(repeats)):
        maps[kind, repeat, rng.permutation(cells)[: rng.choice([1, 3])]] = n_states - 1
    parameters = rng.dirichlet([0.3, 0.3], (repeats, n_states, 2)).reshape(repeats, n_states, 4)
    return states.Fit(maps[0], rng.uniform(0.5, 1, (repeats, cells)), maps[1], parameters, 60.0, {})


def apart(one, two) -> float:
    """Squared Hellinger distances of two states' emissions, summed over fields."""
    return sum(1 - sum(np.sqrt(one[k] * two[k]) for k in field) for field in FIELDS)


def test_maps_are_summarised_under_the_labels_that_fit_the_reference_best():
    """Random fits on 50 cells: labels by trying all, shares and counts by loops, to rounding."""
    rng, cells = np.random.default_rng(2), 50
    region, truth, month = np.repeat([0, 1, 2], [20, 10, 20]), rng.integers(0, 3, cells), rng.integers(0, 99, cells)
    levels = {"category": ["a", "b"], "type": ["c", "d"]}
    logs = data.WarLogs("toy", False, np.ones((cells, 4)), region, month, ["n", "s", "e"], [], levels, truth)
    fits = [fit(rng, 3, cells, 4) for _ in range(3)]
    all_rows = [Row(3, "non_private", "random"), Row(3, "laplace", "seeded"), Row(3, "non_private", "seeded")]
    found = states.maps_of(fits, all_rows, logs)
    # The last non-private fit is the reference; its states in the order of their mean months.
    reference, turned = fits[2], False
    means = [np.mean([month[c] for c in range(cells) if reference.mode[0][c] == k]) for k in range(3)]
    order = sorted(range(3), key=means.__getitem__)
    target = [reference.parameters[0][k] for k in order]
    target_map, labels = [order.index(k) for k in reference.mode[0]], list(itertools.permutations(range(3)))
    for index, repeat in itertools.product(range(3), range(4)):
        own = fits[index]
        law = own.parameters[repeat]
        p = min(labels, key=lambda p, law=law: sum(apart(law[k], target[p[k]]) for k in range(3)))
        turned |= any(p[p[k]] != k for k in range(3))
        for kind, maps in (("mode", own.mode), ("final", own.final)):
            named = [p[k] for k in maps[repeat]]
            pairs = [i for i in range(1, cells) if region[i] == region[i - 1]]
            switched = sum(named[i] != named[i - 1] for i in pairs) / len(pairs)
            assert found[f"switches_{kind}"][index, repeat] == pytest.approx(switched)
            differ = sum(a != b for a, b in zip(named, target_map, strict=True)) / cells
            assert found[f"disagreement_{kind}"][index, repeat] == pytest.approx(differ)
            missed = min(sum(q[a] != b for a, b in zip(named, truth, strict=True)) for q in labels) / cells
            assert found[f"misses_{kind}"][index, repeat] == pytest.approx(missed)
            if repeat == 0:
                assert found[kind][index].tolist() == named
        if repeat == 0:
            assert found["frequency"][index].tolist() == own.frequency[0].tolist()
            assert [found["parameters"][index][p[k]].tolist() for k in range(3)] == law.tolist()
    # Some labels are no pairs that change places: the matching and its inverse differ.
    assert turned
    assert np.isnan(states.maps_of(fits, all_rows, logs._replace(truth=None))["misses_mode"]).all()


def test_states_are_used_by_the_shares_of_the_cells_that_they_hold():
    """30 states on 50 cells, counted by a loop."""
    maps = fit(np.random.default_rng(2), 30, 50, 4).mode
    for repeat, states_of in enumerate(maps.tolist()):
        held = [states_of.count(k) for k in range(30)]
        expected = [sum(x >= 0.05 * 50 for x in held), sum(x >= 1 for x in held), sum(x >= 0.01 * 50 for x in held)]
        assert states.used(maps, 30)[:, repeat].tolist() == expected


def test_chains_have_the_lengths_of_the_study_and_a_release_of_their_own(monkeypatch):
    """Two repeats: lengths and numbers of chains are counted where they are run, by hand here."""
    runs, judged = spied(monkeypatch, gibbs, "follow"), spied(monkeypatch, states, "Diagnosis")
    # A fifth level, which is left out.
    wide, levels = np.array([[*counts, 2] for counts in COUNTS]), {"category": ["a", "b"], "type": ["c", "d", "e"]}
    monkeypatch.setattr(data, "load", lambda name, load=data.load: load(name)._replace(counts=wide, levels=levels))
    settings = {"transition_concentration": 1, "emission_concentration": 1, "n_states": 2, "many_states": 3}
    settings |= {"epsilon": 2.0, "method": ["non_private", "laplace"], "start": ["random", "seeded"], "repeats": 2}
    settings |= {"iterations": 9, "burn_in": 5, "starts": 2, "start_iterations": 2, "chains": 4, "truncation": [10]}
    cell = run("foulds2016/war_logs_states", None, None, **settings, without="none")
    # With few states and with many, from both starts: four chains on exact counts, five on two noisy tables.
    expected = [(9, number) for number in (4, 5) * 4]
    assert [(call.given[2], call.result.state.states.shape[1]) for call in runs] == expected
    # Chains of one law: all on exact counts, of the noisy ones those on the first release.
    watched = [list(call.given[3]) for call in judged]
    assert watched == [[0, 1, 2, 3], [0, 2, 3, 4]] * 4
    assert cell.arrays["few_rhat"].shape == (4,) and cell.arrays["turns"].shape == (4, 2)
    # Of two states the most frequent one has half of the iterations.
    assert (cell.arrays["frequency"] >= 0.5).all() and cell.arrays["frequency"].max() == 1
    without = run("foulds2016/war_logs_states", None, None, **settings, without="e")
    ((request, _),) = without.ledger.of("laplace/n_states=2/seeded/paper/epsilon=2")
    assert request.statistics.tolist() == [count for counts in COUNTS for count in counts]
    assert "many_rhat" not in without.arrays and set(without.tables["war_logs_turns"].without) == {"e"}
    for name in ("emissions", "maps", "states_used", "operations"):
        assert not len(without.tables[f"war_logs_{name}"])
