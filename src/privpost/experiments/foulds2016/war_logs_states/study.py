"""States that private hidden Markov models find in war logs (Foulds et al. 2016, figures 3 to 5 and 7)."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from privpost.datasets import war_logs
from privpost.distributions.noise import Common
from privpost.evaluation.summaries import mean_and_sem, mean_columns
from privpost.experiments.foulds2016.convergence import ARRAYS, Diagnosis, verdict
from privpost.experiments.foulds2016.event_methods import (
    CHAINS,
    COUNTS,
    START,
    Row,
    Setup,
    guarantee,
    rows,
    setup_of,
    uses_private_metadata,
    without_level,
)  # fmt: skip
from privpost.experiments.foulds2016.war_logs_states.maps import KINDS, USED, Frequencies, maps_of, turns, used
from privpost.experiments.ranges import EMISSION, EPSILON, METHOD, TRANSITION, TRUNCATION
from privpost.lab.schema import Choice, Integer, Schema
from privpost.samplers.hidden_markov import gibbs

SETTINGS = Schema(
    **{name: CHAINS[name] for name in ("iterations", "burn_in", "starts", "start_iterations", "chains")},
    dataset=COUNTS,
    repeats=Integer(at_least=1, says="releases, or chains without a release; figures show the first, tables the mean"),
    n_states=Integer(at_least=2, says="states of the hidden Markov model"),
    many_states=Integer(at_least=2, says="states of the larger model, to see how many are used"),
    epsilon=EPSILON,
    transition_concentration=TRANSITION,
    emission_concentration=EMISSION,
    without=Choice("none", "IED cleared", says="category of events that one more fit leaves out"),
    start=START,
    method=Choice("non_private", "laplace", "ops", says=METHOD),
    truncation=TRUNCATION,
)
TABLES = {
    "war_logs_emissions": {
        "state": "hidden state, aligned to the non-private fit",
        "field": "field of the events",
        "level": "level of the field",
        "probability": "emission probability of the level in the state [probability]",
    },
    "war_logs_assignments": {
        "summary": "summary of a cell's states: the `final` one, or the `mode` over the chain",
        "region": "region of the war logs",
        "month": "month of the war logs [year-month]",
        "frequency": "share of the chain's iterations in which the cell has the state [share]",
    },
    "war_logs_states_used": {
        "states_over_5_percent": "states with at least 5 % of the cells, mean over repeats [count]",
        "states_used_at_all": "states with any cell, mean over repeats [count]",
        "states_over_1_percent": "states with at least 1 % of the cells, mean over repeats [count]",
    },
    "war_logs_maps": {
        "n_compared": "repeats behind the disagreement [count]",
        "switches_mean": "share of the pairs of successive months between which a region changes its state [share]",
        "disagreement_mean": "share of the cells whose state differs from the non-private map's [share]",
        "misses_mean": "share of the cells with another state than the true one; empty for real data [share]",
    },
    "war_logs_turns": {},
    "war_logs_operations": {
        "multiplications": "multiplications with counts in a chain [count]",
        "noise_variates": "noise variates drawn for one release [count]",
        "sampling_variates": "random variates that a chain draws [count]",
        "elementary_functions": "exponentials and logarithms in a chain [count]",
    },
    "war_logs_cpu": {"ratio": "CPU time of a release and a chain, by benchmark, over that of a chain without privacy"},
}
# Written by benchmarks/run.py.
BENCHMARKS = Path("results/benchmarks.csv")


def of(config, n_states: int) -> list[Row]:
    """Return a cell's rows with `n_states` states. Fits with few and with many states have separate budgets."""
    axes = [config.epsilon], config.method, ["paper"], config.truncation
    return [row for start in config.start for row in rows(n_states, start, *axes)]


class Fit(NamedTuple):
    """The result of one row's chains. A repeat is a release or, without a release, a chain."""

    mode: np.ndarray  # most frequent state after burn-in (repeats, cells)
    frequency: np.ndarray  # share of iterations in the most frequent state (repeats, cells)
    final: np.ndarray  # last state (repeats, cells)
    parameters: np.ndarray  # emissions (repeats, K, levels)
    variates: float  # number of random variates that a chain draws for its emissions
    checks: dict[str, float]  # `convergence.ARRAYS`


def simulate(config, streams, ledger) -> dict:
    """Return maps and emissions of the fits with few states, and summaries of all fits."""
    arrays = {}
    for name, n_states in sizes(config):
        all_rows = of(config, n_states)
        logs, fits = fit_all(config, n_states, all_rows, streams, ledger)
        arrays |= maps_of(fits, all_rows, logs) if name == "few" else {}
        arrays |= {f"{name}_{key}": np.array([fit.checks[key] for fit in fits]) for key in ARRAYS}
        arrays[f"{name}_variates"] = np.array([fit.variates for fit in fits])
        for kind in KINDS:
            arrays[f"{name}_used_{kind}"] = np.array([used(getattr(fit, kind), n_states) for fit in fits])
    return arrays


def sizes(config) -> list[tuple[str, int]]:
    """Return a cell's models by name, with their numbers of states."""
    # A cell that leaves out a level has only the small model.
    return [("few", config.n_states), ("many", config.many_states)][: 2 if config.without == "none" else 1]


def fit_all(config, n_states: int, all_rows, streams, ledger) -> tuple[war_logs.WarLogs, list[Fit]]:
    """Return the war logs of a cell, and a `Fit` of each row."""
    logs = war_logs.load(config.dataset)
    logs = without_level(logs, config.without)
    setup, repeats, chains = setup_of(config, logs, n_states), config.repeats, config.chains
    setup.open(ledger, all_rows)
    counts, fits, noise = logs.counts.astype(float), [], Common(streams("mechanism", n_states=n_states))
    for row in all_rows:
        # Convergence is assessed on several chains. For noisy counts, these chains share the first release.
        more = chains - 1 if row.method == "laplace" else max(0, chains - repeats)
        split = np.concatenate([np.arange(repeats), np.zeros(more, int)])
        watched = [0, *range(repeats, repeats + more)] if row.method == "laplace" else range(chains)
        observed, given = np.ones((len(split), len(counts)), bool), slice(0, repeats)
        iterations, burn_in = setup.length(row)
        run = setup.given(ledger, row, counts, noise, given, observed, split)
        seen = Frequencies((n_states, len(counts), repeats), burn_in)
        diagnosis = Diagnosis(run.traced, setup.layout, setup.prior, watched, burn_in)

        def watch(iteration, state, watches=(seen, diagnosis)):
            for one in watches:
                one(iteration, state)

        end = setup.follow(ledger, run, streams("sampler", **row._asdict()), given, watch)
        final, parameters = end.state.states[:, given], end.state.probabilities[given]
        if row.method != "ops":
            # OPS releases its last draw. Other methods use the posterior mean given the last states.
            own = run.law.counts if run.law.counts.ndim == 2 else run.law.counts[given]
            parameters = gibbs.state_totals(own, final, observed[given], n_states) + setup.prior.emission
            for field in setup.prior.fields:
                parameters[..., field] /= parameters[..., field].sum(axis=-1, keepdims=True)
        share = seen.shares(iterations)
        mode, frequency = share.argmax(axis=0).T, share.max(axis=0).T
        fits.append(Fit(mode, frequency, final.T, parameters, end.variates / len(split), diagnosis.summary()))
    return logs, fits


def tabulate(cells):
    """Return all `TABLES`. Emissions, assignments of states and turning months are those of the first repeat."""
    import pandas as pd

    tables: dict[str, list] = {name: [] for name in TABLES if name != "war_logs_cpu"}
    for cell in cells:
        config, arrays = cell.config, cell.arrays
        logs = without_level(war_logs.load(config.dataset), config.without)
        for name, n_states in sizes(config):
            setup = setup_of(config, logs, n_states)
            for index, row in enumerate(of(config, n_states)):
                fit = {key: values[index] for key, values in arrays.items()}
                fixed = _fixed(logs, setup, row, fit[f"{name}_rhat"], fit[f"{name}_ess"])
                if name == "few" and row.method == "laplace":
                    turned = [{**fixed, "without": config.without, **turn} for turn in turns(logs, fit["turns"])]
                    tables["war_logs_turns"] += turned
                if config.without != "none":
                    continue
                if name == "few":
                    if row.method != "ops":
                        tables["war_logs_emissions"] += _emissions(fixed, logs, fit["parameters"])
                    for kind in KINDS if row.method == "ops" else KINDS[:1]:
                        tables["war_logs_assignments"] += _assignments(_paid(fixed, kind), logs, fit)
                    tables["war_logs_maps"] += [_map(_paid(fixed, kind), fit) for kind in KINDS]
                counts = [(kind, fit[f"{name}_used_{kind}"]) for kind in KINDS]
                tables["war_logs_states_used"] += [_used(_paid(fixed, kind), many) for kind, many in counts]
                line = _operations(config.iterations, logs.counts.shape, row, fit[f"{name}_variates"])
                tables["war_logs_operations"].append({**fixed, **line})
    made = {name: pd.DataFrame(lines) for name, lines in tables.items()}
    # These tables have no rows of OPS.
    for name in ("war_logs_emissions", "war_logs_turns"):
        made[name] = made[name].drop(columns="truncation", errors="ignore")
    return {**made, "war_logs_cpu": recorded_times()}


def recorded_times():
    """Return the ratio of private to non-private CPU time by method, as the last benchmark measured it."""
    import pandas as pd

    table = pd.read_csv(BENCHMARKS) if BENCHMARKS.is_file() else pd.DataFrame(columns=["what", "ratio"])
    name = r"^HMM release and chain, (?P<n_states>\d+) states: (?P<method>\w+)(?:, M = (?P<truncation>\d+))?$"
    lines = table.what.str.extract(name).astype({"n_states": float, "truncation": float}).assign(ratio=table.ratio)
    return lines[lines.method.notna()].reset_index(drop=True)


def _fixed(logs, setup: Setup, row: Row, rhat: float, ess: float) -> dict:
    """Return the columns that all tables have for a row."""
    checked = verdict(rhat, ess)
    terms = guarantee(setup, row, checked["converged"])
    return {
        "dataset": logs.name,
        "stand_in": logs.stand_in,
        **{name: value for name, value in row._asdict().items() if name != "prior"},
        **{name: terms[name] for name in ("guarantee", "worst_case_epsilon")},
        **checked,
        "uses_private_metadata": uses_private_metadata(logs.name),
    }


def _paid(fixed: dict, kind: str) -> dict:
    """Return the columns `fixed` for a map that is the summary `kind`, with this summary's guarantee."""
    # The ε of OPS covers its last sample only.
    free = {"guarantee": "none", "worst_case_epsilon": None} if (fixed["method"], kind) == ("ops", "mode") else {}
    return {**fixed, "summary": kind, **free}


def _emissions(fixed: dict, logs, parameters) -> list[dict]:
    levels = [(field, level) for field, names in logs.levels.items() for level in names]
    return [
        {**fixed, "state": state, "field": field, "level": level, "probability": probability}
        for state, law in enumerate(parameters, start=1)
        for (field, level), probability in zip(levels, law, strict=True)
    ]


def _assignments(fixed: dict, logs, fit) -> list[dict]:
    kind, often = fixed["summary"], fit["frequency"] if fixed["summary"] == "mode" else np.ones(len(logs.region))
    return [
        {**fixed, "region": logs.regions[region], "month": logs.months[month], "state": state + 1, "frequency": share}
        for region, month, state, share in zip(logs.region, logs.month, fit[kind], often, strict=True)
    ]


def _used(fixed: dict, counts) -> dict:
    line = {**fixed, "n_repeats": counts.shape[1]}
    for name, of_share in zip(USED, counts, strict=True):
        line[name], line[f"{name}_sem"] = mean_and_sem(of_share)
    return line


def _map(fixed: dict, fit) -> dict:
    # The reference is the first non-private chain's map. The reference is not compared with itself.
    first = 1 if fixed["method"] == "non_private" else 0
    values = {name: fit[f"{name}_{fixed['summary']}"] for name in ("switches", "disagreement", "misses")}
    values["disagreement"] = values["disagreement"][first:]
    line = {**fixed, "n_repeats": len(values["switches"]), "n_compared": len(values["disagreement"])}
    for name, repeats in values.items():
        line |= mean_columns(name, repeats)
    return line


def _operations(iterations: int, shape: tuple[int, int], row: Row, variates: float) -> dict:
    """Return how many multiplications, random variates, exponentials and logarithms a whole chain needs."""
    n_cells, n_levels = shape
    sites = iterations * n_cells
    return {
        "multiplications": 2 * sites * row.n_states * n_levels,
        "noise_variates": n_cells * n_levels if row.method == "laplace" else 0,
        "sampling_variates": round(float(variates)) + sites,
        # A tempered update needs one more logarithm and exponential per state.
        "elementary_functions": sites * row.n_states * (3 if row.method == "ops" else 1),
    }
