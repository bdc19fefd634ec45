"""States that private hidden Markov models find in war logs (Foulds et al. 2016, figures 3 to 5 and 7)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from privpost.datasets import war_logs
from privpost.distributions.noise import Common
from privpost.evaluation.summaries import mean_and_sem, mean_columns
from privpost.models.event_counts import EventCounts
from privpost.pipeline.schema import Choice, DatasetName, Integer, Real, Schema
from privpost.samplers import hidden_markov_gibbs as gibbs
from privpost.studies.foulds2016 import event_methods
from privpost.studies.foulds2016.event_methods import Row, Setup
from privpost.studies.foulds2016.war_logs import uses_private_metadata
from privpost.studies.foulds2016.war_logs_likelihood import guarantee

SETTINGS = Schema(
    dataset=DatasetName(),
    n_states=Integer(at_least=2),
    many_states=Integer(at_least=2),
    epsilon=Real(above=0),
    iterations=Integer(at_least=2),
    burn_in=Integer(at_least=1),
    transition_concentration=Real(above=0),
    emission_concentration=Real(at_least=1),
    method=Choice("non_private", "laplace", "ops"),
    variant=Choice("paper", "corrected"),
    truncation=Real(above=1),
)
NOT_ASSESSED = "not assessed"
# A state counts as used when it holds this share of the cells.
SUBSTANTIAL = 0.05


def rows(config, model: str = "few") -> list[Row]:
    """Return the methods at all their settings, from the within axes; the one ε is a setting."""
    # Few and many states are two experiments with a budget of their own, as in the paper.
    return event_methods.rows(config, f"{model} states", [None])


class Fit(NamedTuple):
    """What the chains of one method give; the leading axis are the repeats.

    `mode` and `final` (repeats, cells): most frequent state after burn-in, and the last one; `frequency`
    (repeats, cells): how often the most frequent one occurred; `parameters` (repeats, K, levels); `variates`: gamma
    and exponential variates drawn for the parameters.
    """

    mode: np.ndarray
    frequency: np.ndarray
    final: np.ndarray
    parameters: np.ndarray
    variates: int


def align(parameters, reference, sizes) -> np.ndarray:
    """Return the permutation p that matches state i of `parameters` with state p[i] of `reference`, both (K, levels).

    Hungarian assignment on the sum over fields of the squared Hellinger distance of the emissions.
    """
    from scipy.optimize import linear_sum_assignment

    ends = np.cumsum(sizes)
    cost = np.zeros((len(parameters), len(reference)))
    for end, size in zip(ends, sizes, strict=True):
        field = slice(end - size, end)
        cost += 1 - np.sqrt(parameters[:, field]) @ np.sqrt(reference[:, field]).T
    return linear_sum_assignment(cost)[1]


def simulate(config, streams, ledger) -> dict:
    """Return the fits with few states, aligned to the non-private one, and summaries of all repeats.

    `mode`, `frequency` and `final` are (rows, cells) of the first repeat, `parameters` (rows, K, levels);
    `switches_*`, `disagreement_*` and `misses_*` (rows, repeats) describe the maps (of the most frequent and the final
    states); `used_*` (rows, repeats) is the number of states that hold 5 % of the cells, of few and of many states;
    `variates` (rows,) the random variates that the parameters took.

    States are in the order of their mean month in the non-private fit. For OPS the parameters are the released ones;
    else the posterior means given the final states and the (noisy) counts.
    """
    logs, listed = war_logs.load(config.dataset), rows(config)
    setups = {name: _setup(config, logs, n) for name, n in (("few", config.n_states), ("many", config.many_states))}
    for name, setup in setups.items():
        setup.open(ledger, rows(config, name))
    few, many = [], []
    for block in streams.blocks():
        few.append(_fit(config, logs, setups["few"], rows(config, "few"), streams, block, ledger))
        many.append(_fit(config, logs, setups["many"], rows(config, "many"), streams, block, ledger))
    reference = next(fits for fits, row in zip(few[0], listed, strict=True) if row.method == "non_private")
    order = np.argsort([logs.month[reference.mode[0] == k].mean() for k in range(config.n_states)])
    target = reference.parameters[0][order]
    place = align(reference.parameters[0], target, logs.sizes)
    target_map = place[reference.mode[0]]
    arrays: dict[str, list] = {}
    for index in range(len(listed)):
        own = [[fits[index] for fits in blocks] for blocks in (few, many)]
        summary = _summarise(config, logs, *own, target, target_map)
        for name, value in summary.items():
            arrays.setdefault(name, []).append(value)
    return {name: np.array(values) for name, values in arrays.items()}


def _setup(config, logs, n_states: int) -> Setup:
    concentrations = {"transition": config.transition_concentration, "emission": config.emission_concentration}
    model = EventCounts.of(logs.region, logs.sizes, n_states, **concentrations)
    return Setup(model, int(logs.counts[:, : logs.sizes[0]].sum()), config.iterations, epsilon=config.epsilon)


def _fit(config, logs, setup, listed, streams, block, ledger) -> list[Fit]:
    counts, prior = logs.counts.astype(float), setup.prior
    observed, every = np.ones((block.size, len(counts)), bool), slice(None)
    named = {"states": prior.n_states}
    noise = Common(streams("mechanism", block.index, **named))
    started, watches = [], []
    for row in listed:
        settings = {"method": row.method, "variant": row.variant, "truncation": row.truncation}
        rng = streams("sampler", block.index, **named, **settings)
        started.append(setup.chains(ledger, row, counts, noise, block.trials, rng, observed, every, None))
        watches.append(_Frequencies((prior.n_states, len(counts), block.size), config.burn_in))
    fits = []
    releases = setup.run(ledger, started, watches, block.trials)
    for chains, watch, (values, end) in zip(started, watches, releases, strict=True):
        # OPS releases its chain's last sample: emissions and final states. Its most frequent states are diagnosis.
        final, share = end.state.states, watch.seen / (config.iterations - config.burn_in)
        if chains.row.method == "ops":
            # Through the logarithm, in which the sampler keeps them: the last digits are those of the shipped table.
            parameters = np.exp(np.log(values))
        else:
            totals = gibbs.state_totals(chains.counts, final, observed, prior.n_states) + prior.emission
            parameters = np.concatenate(
                [totals[..., field] / totals[..., field].sum(axis=-1, keepdims=True) for field in prior.fields], axis=-1
            )
        mode, frequency = share.argmax(axis=0), share.max(axis=0)
        fits.append(Fit(mode.T.copy(), frequency.T.copy(), final.T.copy(), parameters, end.variates))
    return fits


class _Frequencies:
    """Counts how often each cell of each chain is in each state after burn-in: `seen` (K, cells, chains)."""

    def __init__(self, shape: tuple[int, int, int], burn_in: int):
        self.seen, self._burn_in = np.zeros(shape, np.int32), burn_in
        self._states = np.arange(shape[0])[:, None, None]

    def __call__(self, iteration: int, state: gibbs.State) -> None:
        if iteration >= self._burn_in:
            self.seen += state.states == self._states


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
    for kind, listed in aligned.items():
        maps = np.array(listed)
        summary[f"switches_{kind}"] = (maps[:, 1:] != maps[:, :-1])[:, neighbours].mean(axis=1)
        summary[f"disagreement_{kind}"] = (maps != target_map).mean(axis=1)
        summary[f"misses_{kind}"] = _misses(maps, logs.truth, config.n_states)
    for name, fits in (("few", few), ("many", many)):
        n_states = config.n_states if name == "few" else config.many_states
        for kind in ("mode", "final"):
            maps = np.concatenate([getattr(fit, kind) for fit in fits])
            shares = np.stack([(maps == k).mean(axis=1) for k in range(n_states)])
            summary[f"used_{name}_{kind}"] = (shares >= SUBSTANTIAL).sum(axis=0)
        summary[f"variates_{name}"] = sum(fit.variates for fit in fits) / sum(len(fit.mode) for fit in fits)
    return summary


def _misses(maps, truth, n_states) -> np.ndarray:
    """Share of cells whose state did not generate them, under the best matching of labels; nan for real data."""
    if truth is None:
        return np.full(len(maps), np.nan)
    from scipy.optimize import linear_sum_assignment

    missed = []
    for states in maps:
        table = np.zeros((n_states, n_states))
        np.add.at(table, (states, truth), 1)
        missed.append(1 - table[linear_sum_assignment(-table)].sum() / len(truth))
    return np.array(missed)


def tabulate(cells):
    """Return emissions, maps of states, states used, summaries of the maps, and counted operations."""
    import pandas as pd

    names = ("war_logs_emissions", "war_logs_assignments", "war_logs_states_used", "war_logs_maps")
    tables = {name: [] for name in (*names, "war_logs_operations")}
    for cell in cells:
        config, arrays = cell.config, cell.arrays
        logs = war_logs.load(config.dataset)
        for index, row in enumerate(rows(config)):
            held = guarantee(config, row._replace(epsilon=config.epsilon), logs.sizes)
            fixed = {
                "dataset": config.dataset,
                "stand_in": logs.stand_in,
                "variant": row.variant,
                "method": row.method,
                "truncation": row.truncation,
                "epsilon": None if row.method == "non_private" else config.epsilon,
                "guarantee": held["guarantee"],
                "worst_case_epsilon": held["worst_case_epsilon"],
                # Each release has one chain, and no trace of it is kept.
                "rhat_max": NOT_ASSESSED,
                "uses_private_metadata": uses_private_metadata(config.dataset),
            }
            one = {name: array[index] for name, array in arrays.items()}
            tables["war_logs_emissions"].append(pd.DataFrame({**fixed, **_emissions(logs, one["parameters"])}))
            tables["war_logs_assignments"].append(pd.DataFrame({**fixed, **_assignments(logs, row, one)}))
            tables["war_logs_states_used"] += [{**fixed, **used, **_unpaid(row, used)} for used in _used(config, one)]
            tables["war_logs_maps"] += [{**fixed, **summary, **_unpaid(row, summary)} for summary in _maps(row, one)]
            tables["war_logs_operations"] += [{**fixed, **counted} for counted in _operations(config, logs, row, one)]
    return {
        name: pd.concat(parts, ignore_index=True) if isinstance(parts[0], pd.DataFrame) else pd.DataFrame(parts)
        for name, parts in tables.items()
    }


def _unpaid(row: Row, summary: dict) -> dict:
    """What a row says of its guarantee where it summarises all samples of OPS's chain: ε pays for the last one."""
    if row.method == "ops" and summary["summary"] == "mode":
        return {"guarantee": "none", "worst_case_epsilon": None}
    return {}


def _emissions(logs, parameters) -> dict:
    n_states = len(parameters)
    fields = [field for field, levels in logs.levels.items() for _ in levels]
    levels = [level for levels in logs.levels.values() for level in levels]
    return {
        "state": np.repeat(np.arange(1, n_states + 1), len(levels)),
        "field": fields * n_states,
        "level": levels * n_states,
        "probability": parameters.ravel(),
    }


def _assignments(logs, row: Row, one) -> dict:
    # OPS releases its final sample only; the others' maps show the most frequent state after burn-in.
    kind = "final" if row.method == "ops" else "mode"
    return {
        "region": [logs.regions[region] for region in logs.region],
        "month": [logs.months[month] for month in logs.month],
        "state": one[kind] + 1,
        "frequency": 1.0 if kind == "final" else one["frequency"],
    }


def _used(config, one):
    for name, n_states in (("few", config.n_states), ("many", config.many_states)):
        for kind in ("mode", "final"):
            mean, error = mean_and_sem(one[f"used_{name}_{kind}"])
            yield {
                "n_states": n_states,
                "summary": kind,
                "states_over_5_percent": mean,
                "sem": error,
                "n_repeats": len(one[f"used_{name}_{kind}"]),
            }


def _maps(row: Row, one):
    for kind in ("mode", "final"):
        # The map of reference is the first non-private chain's: compared with itself it would count as agreement.
        own = 1 if row.method == "non_private" else 0
        values = {name: one[f"{name}_{kind}"] for name in ("switches", "disagreement", "misses")}
        values["disagreement"] = values["disagreement"][own:]
        summary = {"summary": kind, "n_repeats": len(values["switches"]), "n_compared": len(values["disagreement"])}
        for name, repeats in values.items():
            summary |= mean_columns(name, repeats)
        yield summary


def _operations(config, logs, row: Row, one):
    """Count what a chain of all iterations does: multiplications with counts, random variates, evaluations of exp."""
    n_cells, n_levels = logs.counts.shape
    for name, n_states in (("few", config.n_states), ("many", config.many_states)):
        sites = config.iterations * n_cells
        noise = n_cells * n_levels if row.method == "laplace" else 0
        # A tempered update takes a logarithm and an exponential more per state.
        elementary = sites * n_states * (3 if row.method == "ops" else 1)
        yield {
            "n_states": n_states,
            "multiplications": 2 * sites * n_states * n_levels,
            "noise_variates": noise,
            "sampling_variates": round(float(one[f"variates_{name}"])) + sites,
            "elementary_functions": elementary,
        }
