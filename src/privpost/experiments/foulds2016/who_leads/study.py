"""Who leads where: releases of hidden Markov models on events whose states, emissions and density are known (ours).

Regions are chains over months that start uniformly and stay in a state with a given probability, else move to any other
one; a cell's events have fields of equally many levels, whose probabilities have a symmetric Dirichlet law. All methods
of a trial see the same events and held-out cells and, where they read noisy counts, the same release.
"""

import itertools
import math

import numpy as np

from privpost.distributions.noise import Common
from privpost.evaluation.summaries import mean_columns
from privpost.experiments.foulds2016.convergence import LIMIT, verdict
from privpost.experiments.foulds2016.event_methods import CHAINS, Row, Setup
from privpost.experiments.foulds2016.event_methods import rows as method_rows
from privpost.experiments.foulds2016.held_out import chain_draws, scored, split_cells
from privpost.experiments.ranges import CONCENTRATION, EPSILON, METHOD, SHARE, TRUNCATION
from privpost.lab.schema import Choice, Integer, Real, Schema
from privpost.models.event_counts import EventCounts
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
    **CHAINS,
    method=Choice("non_private", "laplace", "ops", "private_gibbs", "gibbs", says=METHOD),
    truncation=TRUNCATION,
    epsilon=EPSILON,
)
TABLES = {
    "who_leads": {
        "loss_mean": "log-likelihood of the held-out set per event, how far below the non-private model's [nats]",
        "predictive_loss_mean": "the same, each held-out cell's likelihood averaged over draws by itself [nats]",
    },
    "who_leads_pairs": {
        "less": "method whose loss is subtracted",
        "difference_mean": "loss of one method less another's; paired [nats per event]",
        "predictive_difference_mean": "the same by the predictive score; paired [nats per event]",
        "noise_scales": "events of a level in a cell over the scale of Laplace noise",
        "crossings": "events of a level in a cell, over the number m where noise and tempering blur it equally",
    },
}
PAIRS = (("ops", "laplace"), ("private_gibbs", "laplace"), ("gibbs", "laplace"), ("gibbs", "ops"))


def rows(config) -> list[Row]:
    """Return the methods at all their settings, from seeded starts."""
    return method_rows(config.n_states, "seeded", config.epsilon, config.method, truncation=config.truncation)


def critical_count(sizes, truncation: float) -> float:
    """Return the m ε at which noise on cells and tempering blur the count of a level equally.

    m is the number of the level's events in a mean cell. In a state with S cells and n = S m such events, the noise has
    variance 2S(2D/ε)², and a draw at temperature T ≈ 2Δ/ε varies like n T counts: they are equal at m ε = 4D²/Δ.
    """
    return 4 * len(sizes) ** 2 / count_tables.log_likelihood_range(sizes, truncation)


def setup_of(config) -> Setup:
    """Return what releases and samples the rows."""
    model = EventCounts((config.months,) * config.regions, (config.levels,) * config.n_fields, config.n_states)
    return Setup.of(model, max(1, round(config.events_per_level * config.levels * len(model.regions))), config)


def draw_counts(config, n: int, rng) -> np.ndarray:
    """Return the counts (cells, levels) of n events."""
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
    """Return joint and predictive scores per held-out event (rows, trials), and R-hat and ESS on the first data set.

    A trial is a data set with a split of its own. Chains on exact events are scored by the draw that they release.
    """
    listed, setup = rows(config), setup_of(config)
    joint, predictive = np.empty((2, len(listed), config.trials))
    checks = np.full((2, len(listed)), np.nan)
    setup.open(ledger, listed)
    for trial in range(config.trials):
        rng, noise = streams("data", trial), Common(streams("mechanism", trial))
        data = split_cells(draw_counts(config, setup.n, rng), config.held_out, 1, rng)
        events = data.test[..., : config.levels].sum()
        for place, row in enumerate(listed):
            rng, repeat = streams("sampler", trial, **row._asdict()), slice(trial, trial + 1)
            more = 0 if trial else config.chains - 1
            logs, seen = chain_draws(setup, row, data, np.zeros(1, int), more, noise, repeat, rng, ledger)
            scores = scored(logs)
            joint[place, trial], predictive[place, trial] = (
                scores["joint"][0] / events,
                scores["predictive"][0] / events,
            )
            if "rhat" in seen:
                checks[:, place] = seen["rhat"], seen["ess"]
    return {"joint": joint, "predictive": predictive, "rhat": checks[0], "ess": checks[1]}


def tabulate(cells):
    """Return losses against the non-private model by method and setting, and differences paired over data sets."""
    import pandas as pd

    table, pairs = [], []
    for cell in cells:
        config, listed, arrays = cell.config, rows(cell.config), cell.arrays
        named = {name: getattr(config, name) for name in ("events_per_level", "true_concentration")}
        scores, best = (arrays["joint"], arrays["predictive"]), [row.method == "non_private" for row in listed]
        losses = [own[best][0] - own if any(best) else np.full_like(own, np.nan) for own in scores]
        for place, row in enumerate(listed):
            means = mean_columns("loss", losses[0][place]) | mean_columns("predictive_loss", losses[1][place])
            more = verdict(*(float(arrays[name][place]) for name in ("rhat", "ess")))
            key = {name: getattr(row, name) for name in ("method", "truncation", "epsilon")}
            table.append({**named, **key, **means, **more, "n_repeats": config.trials})
        for (i, row), (j, other) in itertools.permutations(enumerate(listed), 2):
            if (row.method, other.method) in PAIRS and row.epsilon == other.epsilon:
                truncation, expected = row.truncation or other.truncation, config.events_per_level * row.epsilon
                critical = critical_count((config.levels,) * config.n_fields, truncation) if truncation else math.nan
                key = {"method": row.method, "less": other.method, "truncation": truncation, "epsilon": row.epsilon}
                key |= {"noise_scales": expected / (2 * config.n_fields), "crossings": expected / critical}
                for name, own in zip(("difference", "predictive_difference"), scores, strict=True):
                    key |= mean_columns(name, own[j] - own[i])
                worst = float(np.fmax(*arrays["rhat"][[i, j]]))
                key |= {"rhat_max": worst, "converged": worst < LIMIT, "n_repeats": config.trials}
                pairs.append({**named, **key})
    return {"who_leads": pd.DataFrame(table), "who_leads_pairs": pd.DataFrame(pairs)}
