"""States of war logs, computed a second time: tables from arrays by hand, and summaries of fits by loops."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from recomputed import mean_and_error, row, run, spied
from test_recomputed_war_logs import COUNTS, FIELDS, HMM, toy  # noqa: F401  the toy is a fixture

from privpost.datasets import war_logs as data
from privpost.experiments.foulds2016.event_methods import Setup
from privpost.experiments.foulds2016.war_logs_states import study as states
from privpost.lab import grid
from privpost.samplers import hidden_markov_gibbs as gibbs

# Method, sampler, variant and truncation, in the order of the arrays.
LISTED = [("non_private", sampler, None, None) for sampler in ("paper", "collapsed")]
LISTED += [("laplace", sampler, kind, None) for sampler in ("paper", "collapsed") for kind in ("paper", "corrected")]
LISTED += [("ops", sampler, None, 10) for sampler in ("paper", "collapsed")]
EPSILON, ITERATIONS, STATES = 2.0, 7, {"few": 2, "many": 3}
MONTHS, REGIONS = ["2004-01", "2004-02", "2004-03"], ["north", "south"]


def checks_by_hand(rng, shape) -> dict[str, np.ndarray]:
    """What is known of chains: every third row has not mixed; the log joint's range decides nothing."""
    names = ("ess", "joint_range", "joint_deviation", "moved", "acceptance", "islands", "met")
    checks = {name: rng.uniform(0.1, 0.9, shape) for name in names}
    checks["rhat"] = np.where(np.arange(shape) % 3 == 1, 1.5, 1.0001)
    checks["n_chains"] = np.arange(2.0, 2 + shape)
    checks["joint_best"] = -rng.uniform(100, 200, shape)
    # Of two rows of one law, one is below the other's best.
    checks["joint_lowest"] = checks["joint_best"] - 0.3
    return checks


def arrays_by_hand() -> dict[str, np.ndarray]:
    rng, many = np.random.default_rng(8), len(LISTED)
    arrays = {name: rng.integers(0, 2, (many, 5)) for name in ("mode", "final")}
    arrays["frequency"] = rng.uniform(0.5, 1, (many, 5))
    arrays["parameters"] = rng.uniform(0, 1, (many, 2, 4))
    for kind in ("mode", "final"):
        arrays |= {f"{name}_{kind}": rng.uniform(0, 1, (many, 3)) for name in ("switches", "disagreement", "misses")}
        arrays |= {f"used_{name}_{kind}": rng.integers(1, 4, (many, 3, 3)) for name in STATES}
    for name in STATES:
        arrays[f"variates_{name}"] = rng.uniform(20, 40, many)
        arrays |= {f"{name}_{key}": value for key, value in checks_by_hand(rng, many).items()}
    arrays |= {f"without_{key}": value for key, value in checks_by_hand(rng, 2).items()}
    arrays = {name: value[1:] if name.startswith("without_") else value for name, value in arrays.items()}
    return arrays | {"turns": np.array([[1.0, np.nan], [2.0, 0.0]])}


@pytest.fixture
def tabulated() -> tuple[dict, dict]:
    """Arrays by hand and their tables."""
    study = grid.load_study("foulds2016/war_logs_states", "smoke")
    changes = {"n_states": 2, "many_states": 3, "epsilon": EPSILON, "iterations": ITERATIONS, "without": "d"}
    changes |= {"method": ["non_private", "laplace", "ops"], "variant": ["paper", "corrected"], "truncation": [10]}
    changes |= {"sampler": ["paper", "collapsed"], "ops_rounds": 12}
    config = SimpleNamespace(**{**vars(grid.expand(study)[0].config), **changes})
    arrays = arrays_by_hand()
    return arrays, study.module().tabulate([SimpleNamespace(config=config, arrays=arrays)])


def of(table, index: int, **more):
    method, sampler, variant, truncation = LISTED[index]
    return row(table, method=method, sampler=sampler, variant=variant, truncation=truncation, **more)


def check_row(kept, arrays, index: int, name: str, unpaid: bool) -> None:
    """What every table says of a row: its convergence by two conditions, its guarantee and worst case by counting."""
    method, sampler, _, _ = LISTED[index]
    known = {key.removeprefix(f"{name}_"): value[index] for key, value in arrays.items() if key.startswith(f"{name}_")}
    alike = [k for k, other in enumerate(LISTED) if (other[0], *other[2:]) == (method, *LISTED[index][2:])]
    best = max(arrays[f"{name}_joint_best"][k] for k in alike)
    assert (kept.best_log_joint, kept.below_best) == pytest.approx((best, best - known["joint_lowest"]))
    assert (kept.rhat_max, kept.n_chains) == (known["rhat"], known["n_chains"])
    assert (kept.islands, kept.met) == (known["islands"], known["met"])
    near = best - known["joint_lowest"] <= max(1.0, 5 * known["joint_deviation"])
    assert (kept.near, kept.converged) == (near, near and index % 3 != 1)
    if method == "non_private":
        assert pd.isna(kept.epsilon) and pd.isna(kept.guarantee) and pd.isna(kept.worst_case_epsilon)
    elif unpaid:
        assert kept.guarantee == "none" and pd.isna(kept.worst_case_epsilon)
    else:
        # The paper's chain samples states and emissions in each iteration; the last round of the collapsed one counts.
        total = sum(a + b for a, b, _, _ in COUNTS)
        worst = {"laplace": 1, "ops": 2 * ITERATIONS if sampler == "paper" else 1 + total}[method] * EPSILON
        held = "unconditional" if method == "laplace" else "if_converged" if kept.converged else "not_converged"
        assert (kept.epsilon, kept.guarantee) == (EPSILON, held)
        assert kept.worst_case_epsilon == pytest.approx(worst)
    assert (kept.dataset, kept.stand_in, kept.uses_private_metadata) == ("iraq_simulated", False, False)


def test_states_used_and_maps_are_tabulated_beside_what_is_known_of_each_chain(tabulated):
    """Arrays by hand in place of chains: every number of four tables by a loop, to rounding."""
    arrays, made = tabulated
    used, maps, done = (made[f"war_logs_{name}"] for name in ("states_used", "maps", "operations"))
    assert (len(used), len(maps), len(done)) == (4 * len(LISTED), 2 * len(LISTED), 2 * len(LISTED))
    for index, (method, *_) in enumerate(LISTED):
        for kind in ("mode", "final"):
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
                counts = arrays[f"used_{name}_{kind}"][index]
                for place, column, error in (
                    (0, "states_used_at_all", "used_at_all_sem"),
                    (1, "states_over_1_percent", "over_1_percent_sem"),
                    (2, "states_over_5_percent", "sem"),
                ):
                    assert (kept[column], kept[error]) == pytest.approx(mean_and_error(counts[place]))
                assert kept.n_repeats == 3
        for name, number in STATES.items():
            kept, sites = of(done, index, n_states=number), ITERATIONS * 5
            check_row(kept, arrays, index, name, False)
            # A product with four counts and a sum for each state of each cell.
            assert kept.multiplications == 2 * sites * number * 4
            assert kept.noise_variates == (5 * 4 if method == "laplace" else 0)
            assert kept.elementary_functions == sites * number * (3 if method == "ops" else 1)
            assert kept.sampling_variates == round(arrays[f"variates_{name}"][index]) + sites


def test_emissions_assignments_and_turns_are_those_of_chains_that_reach_their_law(tabulated):
    """As above; of clipped counts, and of OPS neither emissions nor turns."""
    arrays, made = tabulated
    emissions, assigned, turns = (made[f"war_logs_{name}"] for name in ("emissions", "assignments", "turns"))
    told = [k for k, (_, sampler, variant, _) in enumerate(LISTED) if sampler == "collapsed" and variant != "corrected"]
    assert "truncation" not in [*emissions.columns, *turns.columns]
    assert (len(emissions), len(assigned), len(turns)) == (2 * 8, 4 * 5, 2 * 2)
    for index in told:
        method, _, variant, _ = LISTED[index]
        for kind in ("mode", "final") if method == "ops" else ("mode",):
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
                    kept = row(emissions, method=method, variant=variant, state=state, field=name, level=letter)
                    check_row(kept, arrays, index, "few", False)
                    assert kept.probability == arrays["parameters"][index][state - 1][level]
    laplace = LISTED.index(("laplace", "collapsed", "paper", None))
    for without, months in (("none", ["2004-02", None]), ("d", ["2004-03", "2004-01"])):
        for region, month in zip(REGIONS, months, strict=True):
            kept = row(turns, without=without, region=region)
            assert (kept.method, kept.sampler, kept.variant) == ("laplace", "collapsed", "paper")
            assert kept.month == month if month else pd.isna(kept.month)
            if without == "none":
                check_row(kept, arrays, laplace, "few", False)
            else:
                # By its own chains alone, which have not mixed.
                own = {key: arrays[f"without_{key}"][0] for key in ("joint_best", "joint_lowest", "rhat", "n_chains")}
                assert (kept.best_log_joint, kept.rhat_max, kept.n_chains, kept.converged) == (
                    own["joint_best"], own["rhat"], own["n_chains"], False,
                )  # fmt: skip
                assert kept.below_best == pytest.approx(0.3)


def fit(rng, n_states: int, cells: int, repeats: int, checks) -> states.Fit:
    """A fit at random, in whose maps the last state has a cell or three."""
    maps = rng.integers(0, n_states - 1, (2, repeats, cells))
    for kind, repeat in itertools.product(range(2), range(repeats)):
        maps[kind, repeat, rng.permutation(cells)[: rng.choice([1, 3])]] = n_states - 1
    parameters = rng.dirichlet([0.3, 0.3], (repeats, n_states, 2)).reshape(repeats, n_states, 4)
    frequency = rng.uniform(0.5, 1, (repeats, cells))
    return states.Fit(maps[0], frequency, maps[1], parameters, int(rng.integers(50, 90)), checks)


def apart(one, two) -> float:
    """Squared Hellinger distances of two states' emissions, summed over fields."""
    return sum(1 - sum(np.sqrt(one[k] * two[k]) for k in field) for field in FIELDS)


def test_maps_are_summarised_under_the_labels_that_fit_the_reference_best():
    """Two blocks of two random fits on 50 cells: labels by trying all, shares and counts by loops, to rounding."""
    rng, cells = np.random.default_rng(2), 50
    region, truth = np.repeat([0, 1, 2], [20, 10, 20]), rng.integers(0, 3, cells)
    levels = {"category": ["a", "b"], "type": ["c", "d"]}
    logs = data.WarLogs("toy", False, np.ones((cells, 4)), region, np.arange(cells), ["n", "s", "e"], [], levels, truth)
    config = SimpleNamespace(n_states=3, many_states=30)
    few = [fit(rng, 3, cells, 2, {"rhat": block}) for block in range(2)]
    many = [fit(rng, 30, cells, 2, {"rhat": 10 + block}) for block in range(2)]
    target, target_map = rng.dirichlet([0.3, 0.3], (3, 2)).reshape(3, 4), rng.integers(0, 3, cells)
    found = states._summarise(config, logs, few, many, target, target_map)
    labels, turned = list(itertools.permutations(range(3))), False
    for repeat in range(4):
        own, place = few[repeat // 2], repeat % 2
        law = own.parameters[place]
        p = min(labels, key=lambda p, law=law: sum(apart(law[k], target[p[k]]) for k in range(3)))
        turned |= any(p[p[k]] != k for k in range(3))
        for kind, maps in (("mode", own.mode), ("final", own.final)):
            named = [p[k] for k in maps[place]]
            pairs = [i for i in range(1, cells) if region[i] == region[i - 1]]
            switched = sum(named[i] != named[i - 1] for i in pairs) / len(pairs)
            assert found[f"switches_{kind}"][repeat] == pytest.approx(switched)
            differ = sum(a != b for a, b in zip(named, target_map, strict=True)) / cells
            assert found[f"disagreement_{kind}"][repeat] == pytest.approx(differ)
            missed = min(sum(q[a] != b for a, b in zip(named, truth, strict=True)) for q in labels) / cells
            assert found[f"misses_{kind}"][repeat] == pytest.approx(missed)
            if repeat == 0:
                assert found[kind].tolist() == named
            for name, fits, number in (("few", few, 3), ("many", many, 30)):
                held = getattr(fits[repeat // 2], kind)[place].tolist()
                used = [held.count(k) for k in range(number)]
                expected = [sum(x >= 1 for x in used), sum(x >= 0.01 * cells for x in used)]
                expected += [sum(x >= 0.05 * cells for x in used)]
                assert found[f"used_{name}_{kind}"][:, repeat].tolist() == expected
        if repeat == 0:
            assert found["frequency"].tolist() == own.frequency[0].tolist()
            assert [found["parameters"][p[k]].tolist() for k in range(3)] == law.tolist()
    for name, fits in (("few", few), ("many", many)):
        assert found[f"variates_{name}"] == sum(each.variates for each in fits) / 4
        assert found[f"{name}_rhat"] == fits[0].checks["rhat"]
    # Some labels are no pairs that change places: the matching and its inverse differ.
    assert turned
    unknown = states._summarise(config, logs._replace(truth=None), few, many, target, target_map)
    assert np.isnan(unknown["misses_mode"]).all() and len(unknown["misses_mode"]) == 4


@pytest.mark.parametrize("agreed", [True, False])
def test_chains_have_the_rounds_of_their_states_and_more_are_run_where_the_first_agree(agreed, monkeypatch):
    """Two blocks of two repeats: lengths and numbers of chains are counted where they are run, by hand
    here, and all have a stream of their own."""
    runs, setups, streams = spied(monkeypatch, gibbs, "follow"), spied(monkeypatch, states, "_setup"), []
    chains = Setup.chains

    def watched(self, ledger, row, counts, noise, repeats, rng, *rest):
        streams.append(rng.bit_generator.state["state"]["state"])
        return chains(self, ledger, row, counts, noise, repeats, rng, *rest)

    monkeypatch.setattr(Setup, "chains", watched)
    # A fifth level, which is left out at the end.
    wide, levels = np.array([[*counts, 2] for counts in COUNTS]), {"category": ["a", "b"], "type": ["c", "d", "e"]}
    monkeypatch.setattr(data, "load", lambda name, load=data.load: load(name)._replace(counts=wide, levels=levels))
    monkeypatch.setattr(states, "agree", lambda checks: agreed)
    settings = {key: HMM[key] for key in ("transition_concentration", "emission_concentration")}
    cell = run(
        "foulds2016/war_logs_states", 4, 2, **settings, n_states=2, many_states=3, epsilon=2.0, variant=["paper"],
        method=["non_private", "laplace"], truncation=[10], sampler=["paper", "collapsed"], without="e",
        diagnostic_chains=6, replicas=1, iterations=9, burn_in=5, rounds=24, rounds_burn_in=12, many_rounds=30,
        many_rounds_burn_in=16, resplits=1, many_resplits=4, exact_rounds=40, remembered="none",
    )  # fmt: skip
    # By the paper's sampler and the collapsed one, on exact and then on noisy counts, with few and with many states.
    # All fits to exact counts are of one law, of the noisy ones those to the first: four chains, and two if they agree.
    expected, more = [], [2] if agreed else []
    for exact, noisy in (([9, 40], [9, 24]), ([9, 30], [9, 30])):
        expected += [(length, number) for length in exact for number in (4, *more)]
        expected += [(length, number) for length in noisy for number in (5, *more)]
    expected += [(length, 2) for length in (9, 40, 9, 24, 9, 30, 9, 30)]
    # One more fit without a level, by the first repeats.
    expected += [(24, number) for number in (5, *more)]
    assert [(call.given[2], call.result[0].state.states.shape[1]) for call in runs] == expected
    assert len(set(streams)) == len(streams) == 17
    for name in ("few_n_chains", "many_n_chains", "without_n_chains"):
        assert set(cell.arrays[name].tolist()) == {6 if agreed else 4}
    found = [(call.result.prior.n_states, call.result.annealing.resplits) for call in setups[:3]]
    assert found == [(2, 1), (3, 4), (2, 1)]
    assert [call.result.rounds_burn_in for call in setups[:3]] == [12, 16, 12]
    total = sum(a + b for a, b, _, _ in COUNTS)
    assert [call.result.n for call in setups[:3]] == [total] * 3
    ((request, _),) = cell.ledger.of("few states without e/laplace/paper/collapsed")
    assert request.statistics.tolist() == [count for counts in COUNTS for count in counts]
    assert cell.arrays["turns"].shape == (2, 2)
    # Of two states the most frequent one has half of the iterations.
    assert (cell.arrays["frequency"] >= 0.5).all() and cell.arrays["frequency"].max() == 1
