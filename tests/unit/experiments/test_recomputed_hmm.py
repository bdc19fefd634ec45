"""Gibbs chains on a hidden Markov model that stop early (Foulds et al. 2016, proposition 3), computed a second time."""

from __future__ import annotations

import itertools
import math

import pytest
from recomputed import row, run

CELLS, EVENTS, GRID, M = 3, 2, 2, 4.0
LOW = 1 / (2 * M)
DELTA = math.log((1 - LOW) / LOW)
PATHS = list(itertools.product((0, 1), repeat=CELLS))
VALUES = [LOW + (1 - 2 * LOW) * k / (GRID - 1) for k in range(GRID)]
EMISSIONS = list(itertools.product(VALUES, repeat=2))


def path_probability(path) -> float:
    """Uniform start, then Pólya urns of moves that begin with one ball of each colour."""
    urns, probability = [[1, 1], [1, 1]], 0.5
    for before, after in itertools.pairwise(path):
        probability *= urns[before][after] / sum(urns[before])
        urns[before][after] += 1
    return probability


def posterior(events, temperature: float) -> dict:
    """Law of (path, emissions) given events (cell, level), at a temperature."""
    weights = {}
    for path, emissions in itertools.product(PATHS, EMISSIONS):
        joint = path_probability(path)
        for cell, level in events:
            joint *= emissions[path[cell]] if level == 0 else 1 - emissions[path[cell]]
        weights[path, emissions] = joint ** (1 / temperature)
    total = sum(weights.values())
    return {key: weight / total for key, weight in weights.items()}


def swept(law: dict, paths: dict) -> dict:
    """Law of (path, emissions) after a sweep from a law of the path: emissions first, then cell after cell."""
    state = {}
    for path, share in paths.items():
        here = sum(law[path, emissions] for emissions in EMISSIONS)
        state |= {(path, emissions): share * law[path, emissions] / here for emissions in EMISSIONS}
    for cell in range(CELLS):
        moved = dict.fromkeys(state, 0.0)
        for (path, emissions), share in state.items():
            options = [(*path[:cell], k, *path[cell + 1 :]) for k in (0, 1)]
            weights = [law[option, emissions] for option in options]
            for option, weight in zip(options, weights, strict=True):
                moved[option, emissions] += share * weight / sum(weights)
        state = moved
    return state


def of_paths(state: dict) -> dict:
    return {path: sum(state[path, emissions] for emissions in EMISSIONS) for path in PATHS}


def begin(law: dict, start: str) -> dict:
    marginal = of_paths(law)
    best = [path for path in PATHS if start == "uniform" or marginal[path] > max(marginal.values()) * (1 - 1e-9)]
    return {path: (path in best) / len(best) for path in PATHS}


def log_ratio(p: dict, q: dict) -> float:
    return max(abs(math.log(p[key] / q[key])) for key in p)


def variation(p: dict, q: dict) -> float:
    return sum(abs(p[key] - q[key]) for key in p) / 2


def test_stopped_gibbs_chains_lose_what_loops_over_their_states_say():
    """Two events in three cells, two values of each emission: all laws by loops; to rounding of products."""
    sweeps = [1, 3]
    cell = run(
        "foulds2016/adversary", 1, 1, largest_n=2, epsilons=[0.5, 50.0], cells=CELLS, events=EVENTS, truncation=M,
        probabilities=GRID, sweeps=sweeps,
    )  # fmt: skip
    table = cell.tables["stopped_hmm"]
    assert len(table) == 2 * 2 * len(sweeps)
    kinds = list(itertools.product(range(CELLS), (0, 1)))
    data = list(itertools.combinations_with_replacement(kinds, EVENTS))
    neighbours = [
        (one, tuple(sorted((*one[:place], other, *one[place + 1 :]))))
        for one in data for place in range(EVENTS) for other in kinds if other != one[place]
    ]  # fmt: skip
    for epsilon in (0.5, 50.0):
        temperature = max(1.0, 2 * DELTA / epsilon)
        nominal = 2 * DELTA / temperature
        laws = {one: posterior(one, temperature) for one in data}
        exact = max(log_ratio(laws[one], laws[other]) for one, other in neighbours)
        least = min(
            state[key] / law[key]
            for law in laws.values() for path in PATHS
            for state in [swept(law, {each: float(each == path) for each in PATHS})] for key in law
        )  # fmt: skip
        for start in ("uniform", "mode"):
            paths = {one: begin(laws[one], start) for one in data}
            height = max(share / of_paths(laws[one])[path] for one in data for path, share in paths[one].items())
            for k in range(1, max(sweeps) + 1):
                states = {one: swept(laws[one], paths[one]) for one in data}
                paths = {one: of_paths(state) for one, state in states.items()}
                if k not in sweeps:
                    continue
                lost = {pair: log_ratio(states[pair[0]], states[pair[1]]) for pair in neighbours}
                distances = {one: variation(states[one], laws[one]) for one in data}
                delta = max(
                    sum(max(states[one][key] - math.exp(exact) * states[other][key], 0.0) for key in laws[one])
                    for one, other in neighbours
                )
                worst = [pair for pair in neighbours if lost[pair] > max(lost.values()) - 1e-12]
                there = [max(distances[one] for one in pair) for pair in worst]
                found = row(table, epsilon=epsilon, start=start, sweeps=k)
                expected = nominal, exact, max(distances.values()), delta, max(lost.values())
                shown = found[["nominal_cost", "exact_cost", "distance", "delta", "cost"]].to_list()
                assert shown == pytest.approx(expected, abs=1e-12, rel=1e-9), (epsilon, start, k)
                # Which of the pairs that lose the same comes first is left to rounding.
                assert min(abs(found.distance_there - each) for each in there) < 1e-12
                a = (1 - least) ** k
                minorised = nominal + math.log((1 + a * (height - 1)) / (1 - a))
                assert found.minorised_bound == pytest.approx(minorised, rel=1e-9)
                assert found.composed_bound == pytest.approx(
                    2 * k * nominal if start == "uniform" else math.nan, rel=1e-12, nan_ok=True
                )
