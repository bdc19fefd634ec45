"""Which private hidden Markov model leads on events whose states, emissions and density are known (ours).

A region is a Markov chain over months with a uniform first state. Each month it stays in its state with a given
probability, or else moves to any other state. All fields have equally many levels, with probabilities from a symmetric
Dirichlet law.
"""

import itertools
import math

import numpy as np

from privpost.distributions.noise import Common
from privpost.evaluation.summaries import mean_columns
from privpost.experiments.foulds2016 import event_methods
from privpost.experiments.foulds2016.convergence import LIMIT, verdict
from privpost.experiments.foulds2016.held_out import chain_draws, scored, split_cells
from privpost.experiments.ranges import CONCENTRATION, EPSILON, METHOD, SHARE, TRUNCATION
from privpost.lab.schema import Choice, Integer, Real, Schema
from privpost.models.events import EventCounts
from privpost.privacy import count_tables

SETTINGS = Schema(
    regions=Integer(at_least=1, says="regions of the simulated events"),
    months=Integer(at_least=2, says="months of the simulated events"),
    n_fields=Integer(at_least=1, says="D, fields of an event"),
    levels=Integer(at_least=2, says="levels of each field"),
    events_per_level=Real(above=0, at_most=1e4, says="m, mean number of events of a level in a cell", unit="events"),
    true_concentration=CONCENTRATION.means("Dirichlet concentration that true emissions are drawn from"),
    persistence=SHARE.means("probability that a region stays in its state from a month to the next"),
    n_states=Integer(at_least=2, says="states that generate the events, and states of the model"),
    held_out=SHARE.means("share of the cells that is held out", "share"),
    **event_methods.CHAINS,
    method=Choice("non_private", "laplace", "ops", "private_gibbs", "gibbs", says=METHOD),
    truncation=TRUNCATION,
    epsilon=EPSILON,
)
TABLES = {
    "who_leads": {
        "loss_mean": "how far the held-out log-likelihood per event is below the non-private model's [nats]",
        "predictive_loss_mean": "the same loss, with each cell's likelihood averaged over draws separately [nats]",
    },
    "who_leads_pairs": {
        "less": "method whose loss is subtracted",
        "difference_mean": "loss of one method less another's; paired [nats per event]",
        "predictive_difference_mean": "the same by the predictive score; paired [nats per event]",
        "noise_scales": "events of a level in a cell over the scale of Laplace noise",
        "crossings": "events of a level in a cell, over the number at which noise and tempering blur it equally",
    },
}
# Scores in `held_out`, and the prefixes of these scores' columns.
SCORES = {"joint": "", "predictive": "predictive_"}
PAIRS = (("ops", "laplace"), ("private_gibbs", "laplace"), ("gibbs", "laplace"), ("gibbs", "ops"))


def rows(config) -> list[event_methods.Row]:
    """Return the rows of the study: the methods at all their settings, from seeded starts."""
    return event_methods.rows(config.n_states, "seeded", config.epsilon, config.method, truncation=config.truncation)


def critical_count(sizes, truncation: float) -> float:
    """Return the product m ε at which noise on cells and tempering give a level's count the same variance.

    Here m is the mean number of the level's events in a cell, D the number of fields, and Δ the range of an event's
    log-likelihood. Summed over S cells of a state, the noise has variance 2S(2D/ε)². A draw at temperature T ≈ 2Δ/ε has
    variance S m T. The variances are equal at m ε = 4D²/Δ.
    """
    return 4 * len(sizes) ** 2 / count_tables.log_likelihood_range(sizes, truncation)


def setup_of(config) -> event_methods.Setup:
    """Return the `Setup` of the study's model."""
    model = EventCounts((config.months,) * config.regions, (config.levels,) * config.n_fields, config.n_states)
    n = round(config.events_per_level * config.levels * len(model.regions))
    return event_methods.Setup.of(model, max(1, n), config)


def draw_counts(config, n: int, rng) -> np.ndarray:
    """Return simulated counts (cells, levels of all fields) of n events."""
    n_cells, many = config.regions * config.months, config.n_states
    states = rng.integers(many, size=n_cells)
    for cell in range(n_cells):
        if cell % config.months:
            other = (states[cell - 1] + rng.integers(1, many)) % many
            states[cell] = states[cell - 1] if rng.random() < config.persistence else other
    laws = rng.dirichlet(np.full(config.levels, config.true_concentration), (many, config.n_fields))
    totals = rng.multinomial(n, np.full(n_cells, 1 / n_cells))
    return rng.multinomial(totals[:, None], laws[states]).reshape(n_cells, -1).astype(float)


def simulate(config, streams, ledger) -> dict:
    """Return joint and predictive scores per held-out event (rows, trials), and R-hat and ESS on the first data set."""
    listed, setup = rows(config), setup_of(config)
    scores = {name: np.empty((len(listed), config.trials)) for name in SCORES}
    checks = {name: np.full(len(listed), np.nan) for name in ("rhat", "ess")}
    setup.open(ledger, listed)
    for trial in range(config.trials):
        rng, noise, more = (
            streams("data", trial),
            Common(streams("mechanism", trial)),
            0 if trial else config.chains - 1,
        )
        data = split_cells(draw_counts(config, setup.n, rng), config.held_out, 1, rng)
        events = max(1.0, data.test[..., : config.levels].sum())
        for place, row in enumerate(listed):
            rng, repeat = streams("sampler", trial, **row._asdict()), slice(trial, trial + 1)
            logs, seen = chain_draws(setup, row, data, np.zeros(1, int), more, noise, repeat, rng, ledger)
            for name, values in scores.items():
                values[place, trial] = scored(logs)[name][0] / events
            for name in checks.keys() & seen.keys():
                checks[name][place] = seen[name]
    return {**scores, **checks}


def tabulate(cells):
    """Return two tables: losses against the non-private model, and differences of methods paired over data sets."""
    import pandas as pd

    table, pairs = [], []
    for cell in cells:
        config, listed, arrays = cell.config, rows(cell.config), cell.arrays
        named = {name: getattr(config, name) for name in ("events_per_level", "true_concentration")}
        named["n_repeats"] = config.trials
        best = next((place for place, row in enumerate(listed) if row.method == "non_private"), None)
        for place, row in enumerate(listed):
            line = named | {name: getattr(row, name) for name in ("method", "truncation", "epsilon")}
            for name, prefix in SCORES.items():
                less = arrays[name][best] if best is not None else np.nan
                line |= mean_columns(f"{prefix}loss", less - arrays[name][place])
            table.append(line | verdict(*(float(arrays[name][place]) for name in ("rhat", "ess"))))
        for (i, row), (j, other) in itertools.permutations(enumerate(listed), 2):
            if (row.method, other.method) in PAIRS and row.epsilon == other.epsilon:
                truncation, expected = row.truncation or other.truncation, config.events_per_level * row.epsilon
                critical = critical_count((config.levels,) * config.n_fields, truncation) if truncation else math.nan
                key = {"method": row.method, "less": other.method, "truncation": truncation, "epsilon": row.epsilon}
                key |= {"noise_scales": expected / (2 * config.n_fields), "crossings": expected / critical}
                for name, prefix in SCORES.items():
                    key |= mean_columns(f"{prefix}difference", arrays[name][j] - arrays[name][i])
                worst = float(np.fmax(*arrays["rhat"][[i, j]]))
                pairs.append(named | key | {"rhat_max": worst, "converged": worst < LIMIT})
    return {"who_leads": pd.DataFrame(table), "who_leads_pairs": pd.DataFrame(pairs)}
