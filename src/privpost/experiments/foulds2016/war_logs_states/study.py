"""States that private hidden Markov models find in war logs (Foulds et al. 2016, figures 3 to 5 and 7)."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from privpost.datasets import war_logs
from privpost.distributions.noise import Common
from privpost.evaluation.summaries import mean_and_sem, mean_columns
from privpost.experiments.foulds2016 import chain_times, event_methods
from privpost.experiments.foulds2016.chain_checks import ARRAYS, FIRST, Monitor, agree, verdict
from privpost.experiments.foulds2016.chain_settings import CHAINS, COUNTS, N_STATES, TEMPERED
from privpost.experiments.foulds2016.event_methods import Row, Setup
from privpost.experiments.foulds2016.state_labels import Frequencies, align, matched
from privpost.experiments.foulds2016.turning_points import turning_months, turns, without_level
from privpost.experiments.foulds2016.war_logs import uses_private_metadata
from privpost.experiments.foulds2016.war_logs_likelihood.study import guarantee
from privpost.experiments.ranges import EMISSION, EPSILON, METHOD, TRANSITION, TRUNCATION
from privpost.lab.schema import Choice, Integer, Schema, SettingError
from privpost.models.event_counts import EventCounts
from privpost.samplers import hidden_markov_gibbs as gibbs

SETTINGS = Schema(
    **CHAINS,
    **TEMPERED,
    dataset=COUNTS,
    n_states=N_STATES,
    many_states=Integer(at_least=2, says="states of the run that asks how many are used"),
    epsilon=EPSILON,
    transition_concentration=TRANSITION,
    emission_concentration=EMISSION,
    many_rounds=Integer(at_least=2, says="rounds with many states"),
    many_rounds_burn_in=Integer(at_least=1, under="many_rounds", says="first of these rounds, which are left out"),
    many_ops_rounds=Integer(at_least=2, says="rounds of OPS's chain with many states"),
    exact_rounds=Integer(at_least=0, says="rounds on the exact counts, if more; the first half is left out"),
    many_resplits=Integer(at_least=0, says="merges and splits in a round of the burn-in, with many states"),
    without=Choice("none", "IED cleared", says="category of events that is left out"),
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
        "states_over_5_percent": "states with more than 5 % of the cells, mean over repeats [count]",
        "sem": "standard error of `states_over_5_percent` [count]",
        "states_used_at_all": "states with any cell, mean over repeats [count]",
        "used_at_all_sem": "standard error of `states_used_at_all` [count]",
        "states_over_1_percent": "states with more than 1 % of the cells, mean over repeats [count]",
        "over_1_percent_sem": "standard error of `states_over_1_percent` [count]",
    },
    "war_logs_maps": {
        "n_compared": "repeats behind the disagreement [count]",
        "switches_mean": "share of the pairs of successive months between which a region changes its state [share]",
        "disagreement_mean": "share of the cells whose state differs from the non-private map's [share]",
        "misses_mean": "share of the cells whose state did not generate them; empty for real data [share]",
    },
    "war_logs_turns": {},
    "war_logs_operations": {
        "multiplications": "multiplications with counts in a chain [count]",
        "noise_variates": "noise variates drawn for one release [count]",
        "sampling_variates": "random variates that a chain draws [count]",
        "elementary_functions": "exponentials and logarithms in a chain [count]",
    },
    "war_logs_cpu": {
        "seconds": "CPU time of one chain, measured once [seconds]",
    },
}
# A state counts as used when it holds more than the first, or at least a further one, of these shares of cells.
USED = (0.0, 0.01, 0.05)


def rows(config, model: str = "few") -> list[Row]:
    """Return the methods at all their settings, from the within axes; the one ε is a setting."""
    # Few and many states are two experiments with a budget of their own, as in the paper.
    return event_methods.rows(config, f"{model} states", [None])


class Fit(NamedTuple):
    """The result of one method's chains; the leading axis is the repeats.

    `mode` and `final` (repeats, cells): most frequent state after burn-in, and the last one; `frequency`
    (repeats, cells): how often the most frequent one occurred; `parameters` (repeats, K, levels); `variates`: gamma
    and exponential variates drawn for the parameters; `checks`: `chain_checks.ARRAYS` of the first repeat.
    """

    mode: np.ndarray
    frequency: np.ndarray
    final: np.ndarray
    parameters: np.ndarray
    variates: int
    checks: dict


def simulate(config, streams, ledger) -> dict:
    """Return the fits with few states, aligned to the non-private one, and summaries of all repeats.

    `mode`, `frequency` and `final` are (rows, cells) of the first repeat, `parameters` (rows, K, levels);
    `switches_*`, `disagreement_*` and `misses_*` (rows, repeats) describe the maps (of the most frequent and the final
    states); `used_*` (rows, shares, repeats) is the number of states that hold shares `USED` of the cells, of few and
    of many states; `variates_*` (rows,) the random variates that the parameters took; `few_*` and `many_*` the
    `chain_checks.ARRAYS` of the first repeat's chains; `turns` (1 or 2, regions) are `turning_months` of the Laplace
    map of the first repeat, and of one without the level `without`, whose `chain_checks.ARRAYS` are `without_*`.

    States are in the order of their mean month in the non-private fit. For OPS the parameters are the released ones;
    else the posterior means given the final states and the (noisy) counts.
    """
    if "non_private" not in config.method:
        raise SettingError("method lacks non_private, with whose states those of the others are compared")
    logs, all_rows = war_logs.load(config.dataset), rows(config)
    setups = {name: _setup(config, logs, n) for name, n in (("few", config.n_states), ("many", config.many_states))}
    for name, setup in setups.items():
        setup.open(ledger, rows(config, name))
    few, many = [], []
    for block in streams.blocks():
        few.append(_fit(config, logs, setups["few"], rows(config, "few"), streams, block, ledger))
        many.append(_fit(config, logs, setups["many"], rows(config, "many"), streams, block, ledger))
    # The collapsed non-private fit, where there is one.
    plain = [fit for fit, row in zip(few[0], all_rows, strict=True) if row.method == "non_private"]
    reference = plain[-1]
    order = np.argsort([logs.month[reference.mode[0] == k].mean() for k in range(config.n_states)])
    target = reference.parameters[0][order]
    place = align(reference.parameters[0], target, logs.sizes)
    target_map = place[reference.mode[0]]
    arrays: dict[str, list] = {}
    for index in range(len(all_rows)):
        both = [[fits[index] for fits in blocks] for blocks in (few, many)]
        summary = _summarise(config, logs, *both, target, target_map)
        for name, value in summary.items():
            arrays.setdefault(name, []).append(value)
    results = {name: np.array(values) for name, values in arrays.items()}
    shown = [index for index, row in enumerate(all_rows) if _is_shown(row)]
    months = [turning_months(logs, few[0][index].mode[0]) for index in shown]
    if config.without != "none" and shown:
        reduced = without_level(logs, config.without)
        row = all_rows[shown[0]]._replace(model=f"few states without {config.without}")
        setup = _setup(config, reduced, config.n_states)
        setup.open(ledger, [row])
        block = next(iter(streams.blocks()))
        (fit,) = _fit(config, reduced, setup, [row], streams, block, ledger, without=config.without)
        months.append(turning_months(reduced, fit.mode[0]))
        results |= {f"without_{key}": np.array([value]) for key, value in fit.checks.items()}
    return results | {"turns": np.array(months).reshape(-1, len(logs.regions))}


def _is_shown(row: Row) -> bool:
    """Whether the claims on one map read the row: the paper's Laplace HMM, by chains that reach their law."""
    return (row.method, row.variant, row.sampler) == ("laplace", "paper", "collapsed")


def _setup(config, logs, n_states: int) -> Setup:
    concentrations = {"transition": config.transition_concentration, "emission": config.emission_concentration}
    model = EventCounts.of(logs.region, logs.sizes, n_states, **concentrations)
    setup = replace(Setup.of(config, model, int(logs.counts[:, : logs.sizes[0]].sum())), epsilon=config.epsilon)
    if n_states != config.many_states:
        return setup
    budget = {"rounds": config.many_rounds, "rounds_burn_in": config.many_rounds_burn_in}
    budget |= {"ops_rounds": config.many_ops_rounds, "exact_rounds": 0}
    budget["annealing"] = replace(setup.annealing, resplits=config.many_resplits)
    return replace(setup, **budget)


def _fit(config, logs, setup, all_rows, streams, block, ledger, **named) -> list[Fit]:
    """The fits of all rows; chains on the data of the very first repeat are checked, and its first chain counts.

    Repeats on exact counts are chains of one law, and are all checked; on noisy counts more chains run on the first
    release: `FIRST` in all, and `diagnostic_chains` where these agree.
    """
    counts, prior, repeats = logs.counts.astype(float), setup.prior, slice(block.size)
    named = {"states": prior.n_states, **named}
    noise, fits = Common(streams("mechanism", block.index, **named)), []
    for row in all_rows:
        settings = {name: value for name, value in row.key().items() if name != "epsilon"}
        rng = streams("sampler", block.index, **named, method=row.method, **settings)
        checked = list(range(block.size if row.method != "laplace" else 1))
        extra = max(0, min(FIRST, config.diagnostic_chains) - len(checked)) if block.index == 0 else 0
        split = np.concatenate([np.arange(block.size), np.zeros(extra, int)])
        observed = np.ones((len(split), len(counts)), bool)
        chains = setup.chains(ledger, row, counts, noise, block.trials, rng, observed, split, None)
        iterations, burn_in = setup.length(row)
        seen = Frequencies((prior.n_states, len(counts), block.size), burn_in)
        law, given = setup.law(chains), (setup.layout, prior, burn_in)
        monitor = Monitor(law, *given, [*checked, *range(block.size, len(split))])
        watches = [seen, monitor] if block.index == 0 else [seen]
        watch = lambda iteration, state, watches=watches: [watch(iteration, state) for watch in watches]  # noqa: E731
        ((values, end),) = setup.run(ledger, [chains], [watch], block.trials)
        checks = monitor.summary() if block.index == 0 else {}
        more = config.diagnostic_chains - len(checked) - extra
        if checks and more > 0 and agree(checks):
            further = chains.of_first(more)
            second = Monitor(setup.law(further), *given, range(more))
            setup.follow(further, second)
            checks = monitor.summary(others=[second])
        # OPS releases its chain's last sample: emissions and final states. Its most frequent states are diagnosis.
        final, share = end.state.states[:, repeats], seen.shares(iterations)
        if row.method == "ops":
            parameters = values
        else:
            given = chains.counts if chains.counts.ndim == 2 else chains.counts[repeats]
            totals = gibbs.state_totals(given, final, observed[repeats], prior.n_states) + prior.emission
            parameters = np.concatenate(
                [totals[..., field] / totals[..., field].sum(axis=-1, keepdims=True) for field in prior.fields], axis=-1
            )
        mode, frequency = share.argmax(axis=0), share.max(axis=0)
        variates = end.variates * block.size // len(split)
        fits.append(Fit(mode.T.copy(), frequency.T.copy(), final.T.copy(), parameters, variates, checks))
    return fits


def _summarise(config, logs, few, many, target, target_map) -> dict:
    aligned = {"mode": [], "final": []}
    first = None
    for fit in few:
        for repeat in range(len(fit.mode)):
            place = align(fit.parameters[repeat], target, logs.sizes)
            aligned["mode"].append(place[fit.mode[repeat]])
            aligned["final"].append(place[fit.final[repeat]])
            if first is None:
                parameters = np.empty_like(fit.parameters[repeat])
                parameters[place] = fit.parameters[repeat]
                first = {"parameters": parameters, "frequency": fit.frequency[repeat]}
    neighbours = logs.region[1:] == logs.region[:-1]
    summary = {**first, "mode": aligned["mode"][0], "final": aligned["final"][0]}
    for kind, repeats in aligned.items():
        maps = np.array(repeats)
        summary[f"switches_{kind}"] = (maps[:, 1:] != maps[:, :-1])[:, neighbours].mean(axis=1)
        summary[f"disagreement_{kind}"] = (maps != target_map).mean(axis=1)
        summary[f"misses_{kind}"] = _misses(maps, logs.truth, config.n_states)
    for name, fits in (("few", few), ("many", many)):
        n_states = config.n_states if name == "few" else config.many_states
        for kind in ("mode", "final"):
            maps = np.concatenate([getattr(fit, kind) for fit in fits])
            shares = np.stack([(maps == k).mean(axis=1) for k in range(n_states)])
            summary[f"used_{name}_{kind}"] = np.array([(shares >= max(used, 1e-12)).sum(axis=0) for used in USED])
        summary |= {f"{name}_{key}": value for key, value in fits[0].checks.items()}
        summary[f"variates_{name}"] = sum(fit.variates for fit in fits) / sum(len(fit.mode) for fit in fits)
    return summary


def _misses(maps, truth, n_states) -> np.ndarray:
    """Share of cells whose state did not generate them, under the best matching of labels; nan for real data."""
    if truth is None:
        return np.full(len(maps), np.nan)
    return np.array([(matched(states, truth, n_states)[states] != truth).mean() for states in maps])


def tabulate(cells):
    """Return emissions, maps of states, states used, summaries of the maps, turns, and the costs of a chain.

    Emissions are of the paper's Laplace HMM and the non-private one, maps of clipped counts; both from chains that
    reach their law.
    """
    import pandas as pd

    names = ("emissions", "assignments", "states_used", "maps", "turns", "operations")
    tables = {f"war_logs_{name}": [] for name in names}
    for cell in cells:
        config, arrays = cell.config, cell.arrays
        logs = war_logs.load(config.dataset)
        for index, row in enumerate(rows(config)):
            few, many = (_fixed(config, logs, arrays, index, name) for name in ("few", "many"))
            fit = {name: array[index] for name, array in arrays.items() if len(array) > index}
            if row.sampler == "collapsed" and row.variant != "corrected":
                if row.method != "ops":
                    tables["war_logs_emissions"].append(pd.DataFrame({**few, **_emissions(logs, fit["parameters"])}))
                for kind in ("mode", "final") if row.method == "ops" else ("mode",):
                    line = {"summary": kind, **_assignments(logs, kind, fit)}
                    tables["war_logs_assignments"].append(pd.DataFrame({**few, **line, **_unpaid(row, line)}))
            if _is_shown(row):
                checked = {}
                if config.without != "none":
                    checked = verdict({key: arrays[f"without_{key}"] for key in ARRAYS}, 0, [0])
                for without, months in zip(("none", config.without), arrays["turns"], strict=False):
                    said = {**few, **({} if without == "none" else checked), "without": without}
                    tables["war_logs_turns"] += [{**said, **turn} for turn in turns(logs, months)]
            tables["war_logs_maps"] += [{**few, **summary, **_unpaid(row, summary)} for summary in _maps(row, fit)]
            for fixed, name, n_states in ((few, "few", config.n_states), (many, "many", config.many_states)):
                used = _used(n_states, name, fit)
                tables["war_logs_states_used"] += [{**fixed, **line, **_unpaid(row, line)} for line in used]
                tables["war_logs_operations"].append({**fixed, **_operations(config, logs, row, n_states, name, fit)})
    joined = {}
    for name, parts in tables.items():
        frames = parts and isinstance(parts[0], pd.DataFrame)
        joined[name] = pd.concat(parts, ignore_index=True) if frames else pd.DataFrame(parts)
    for name in ("war_logs_emissions", "war_logs_turns"):
        joined[name] = joined[name].drop(columns="truncation", errors="ignore")
    return {**joined, "war_logs_cpu": chain_times.recorded()}


def _fixed(config, logs, arrays, index: int, name: str) -> dict:
    """The columns that all tables have for a row with few or many states, with the checks of its chains."""
    all_rows = rows(config)
    row, setup = all_rows[index], _setup(config, logs, config.n_states if name == "few" else config.many_states)
    checks = verdict({key: arrays[f"{name}_{key}"] for key in ARRAYS}, index, setup.same_law(all_rows, row))
    terms = guarantee(setup, row, checks["converged"])
    return {
        "dataset": config.dataset,
        "stand_in": logs.stand_in,
        "variant": row.variant,
        "method": row.method,
        "sampler": row.sampler,
        "truncation": row.truncation,
        "epsilon": None if row.method == "non_private" else config.epsilon,
        "guarantee": terms["guarantee"],
        "worst_case_epsilon": terms["worst_case_epsilon"],
        **checks,
        "uses_private_metadata": uses_private_metadata(config.dataset),
    }


def _unpaid(row: Row, summary: dict) -> dict:
    """The guarantee of a row that summarises all samples of OPS's chain: none, as ε pays for the last one only."""
    if row.method == "ops" and summary["summary"] == "mode":
        return {"guarantee": "none", "worst_case_epsilon": None}
    return {}


def _emissions(logs, parameters) -> dict:
    n_states = len(parameters)
    fields, levels = zip(*((field, level) for field, names in logs.levels.items() for level in names), strict=True)
    return {
        "state": np.repeat(np.arange(1, n_states + 1), len(levels)),
        "field": fields * n_states,
        "level": levels * n_states,
        "probability": parameters.ravel(),
    }


def _assignments(logs, kind: str, fit) -> dict:
    return {
        "region": [logs.regions[region] for region in logs.region],
        "month": [logs.months[month] for month in logs.month],
        "state": fit[kind] + 1,
        "frequency": 1.0 if kind == "final" else fit["frequency"],
    }


def _used(n_states: int, name: str, fit):
    for kind in ("mode", "final"):
        counts = fit[f"used_{name}_{kind}"]
        line = {"n_states": n_states, "summary": kind}
        for place, column, error in (
            (-1, "states_over_5_percent", "sem"),
            (0, "states_used_at_all", "used_at_all_sem"),
            (1, "states_over_1_percent", "over_1_percent_sem"),
        ):
            line[column], line[error] = mean_and_sem(counts[place])
        yield {**line, "n_repeats": counts.shape[1]}


def _maps(row: Row, fit):
    for kind in ("mode", "final"):
        # The reference map is the first non-private chain's: compared with itself it would count as agreement.
        first = 1 if row.method == "non_private" else 0
        values = {name: fit[f"{name}_{kind}"] for name in ("switches", "disagreement", "misses")}
        values["disagreement"] = values["disagreement"][first:]
        summary = {"summary": kind, "n_repeats": len(values["switches"]), "n_compared": len(values["disagreement"])}
        for name, repeats in values.items():
            summary |= mean_columns(name, repeats)
        yield summary


def _operations(config, logs, row: Row, n_states: int, name: str, fit) -> dict:
    """Count what a chain of all iterations does: multiplications with counts, random variates, evaluations of exp.

    Counted for the paper's sampler; for the collapsed one only the random variates of its emissions.
    """
    n_cells, n_levels = logs.counts.shape
    sites = config.iterations * n_cells
    # A tempered update takes a logarithm and an exponential more per state.
    elementary = sites * n_states * (3 if row.method == "ops" else 1)
    return {
        "n_states": n_states,
        "multiplications": 2 * sites * n_states * n_levels,
        "noise_variates": n_cells * n_levels if row.method == "laplace" else 0,
        "sampling_variates": round(float(fit[f"variates_{name}"])) + sites,
        "elementary_functions": elementary,
    }
