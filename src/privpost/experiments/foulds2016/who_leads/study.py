"""Who leads where: releases of hidden Markov models on events whose states, emissions and density are known (ours).

Regions are chains over months that start uniformly and stay in a state with a given probability, else move to any other
one; a cell's events have fields of equally many levels, whose probabilities have a symmetric Dirichlet law. All methods
of a trial see the same events, and those that read noisy counts the same release.
"""

import itertools
import math
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from privpost.distributions.noise import Common
from privpost.evaluation.summaries import mean_columns
from privpost.experiments.foulds2016.convergence import LIMIT, Diagnosis, verdict
from privpost.experiments.ranges import BURN_IN, CONCENTRATION, EPSILON, METHOD, SHARE, TRUNCATION
from privpost.lab.schema import Choice, Integer, Real, Schema
from privpost.mechanisms.event_counts import EventCountsLaplace, HiddenMarkovSampler, prior_of
from privpost.mechanisms.private_gibbs import PrivateGibbs
from privpost.models.event_counts import EventCounts
from privpost.privacy import count_tables
from privpost.privacy.accounting import Cost
from privpost.samplers.hidden_markov import gibbs
from privpost.samplers.hidden_markov.seeds import Seeding
from privpost.samplers.noise_aware import event_counts

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
    copies=Integer(at_least=1, says="draws of the held-out cells' events that a fit is scored on"),
    iterations=Integer(at_least=5, says="iterations of a chain"),
    burn_in=Integer(at_least=1, under="iterations", says=BURN_IN.says),
    starts=Integer(at_least=1, says="seeded starts of a chain, the best of which continues"),
    start_iterations=Integer(at_least=1, says="iterations of each of these starts"),
    method=Choice("non_private", "laplace", "ops", "private_gibbs", "gibbs", says=METHOD),
    truncation=TRUNCATION,
    epsilon=EPSILON,
)
TABLES = {
    "who_leads": {
        "loss_mean": "log-likelihood of the held-out set per event, how far below the non-private model's; paired [nats]",
        "predictive_loss_mean": "the same, each held-out cell's likelihood averaged over draws by itself; paired [nats]",
    },
    "who_leads_pairs": {
        "less": "method whose loss is subtracted",
        "difference_mean": "loss of one method less another's; paired [nats per event]",
        "predictive_difference_mean": "the same by the predictive score; paired [nats per event]",
        "noise_scales": "events of a level in a cell over the scale of Laplace noise",
        "crossings": "events of a level in a cell, over the number m where noise and tempering blur it equally",
    },
}
# Methods that draw from a posterior given the exact events, and methods that are compared.
SAMPLED = ("ops", "private_gibbs")
PAIRS = (("ops", "laplace"), ("private_gibbs", "laplace"), ("gibbs", "laplace"), ("gibbs", "ops"))
# Chains on the first data set that are compared.
CHAINS = 4


class Row(NamedTuple):
    """One method at one setting; `account` is its release's name in the ledger, which methods may share."""

    method: str
    epsilon: float | None = None
    truncation: float | None = None

    @property
    def account(self) -> str:
        named = f"{self.method}/truncation={self.truncation:g}" if self.truncation else "laplace"
        return f"{named}/epsilon={self.epsilon:g}"


class Data(NamedTuple):
    """Trials: `counts` (trials, cells, levels), `observed` (trials, cells), held-out `sites` (trials, held), and fresh
    draws of their events, `test` (trials, copies, held, levels)."""

    counts: np.ndarray
    observed: np.ndarray
    sites: np.ndarray
    test: np.ndarray


def rows(config) -> list[Row]:
    """Return the methods at all their settings."""
    axes = {"non_private": ([None], [None]), **dict.fromkeys(SAMPLED, (config.epsilon, config.truncation))}
    of_method = ((name, *axes.get(name, (config.epsilon, [None]))) for name in config.method)
    return [Row(name, *key) for name, *values in of_method for key in itertools.product(*values)]


def critical_count(sizes, truncation: float) -> float:
    """Return the m ε at which noise on cells and tempering blur the count of a level equally.

    m is the number of the level's events in a mean cell. In a state with S cells and n = S m such events, the noise has
    variance 2S(2D/ε)², and a draw at temperature T ≈ 2Δ/ε varies like n T counts: they are equal at m ε = 4D²/Δ.
    """
    return 4 * len(sizes) ** 2 / count_tables.log_likelihood_range(sizes, truncation)


def model_of(config) -> tuple[EventCounts, int]:
    """Return the model and the public number of events."""
    model = EventCounts((config.months,) * config.regions, (config.levels,) * config.n_fields, config.n_states)
    return model, max(1, round(config.events_per_level * config.levels * len(model.regions)))


def draw_data(config, size: int, rng) -> Data:
    """Return trials of events, and fresh draws of the events of their held-out cells."""
    n_cells, trial = config.regions * config.months, np.arange(size)[:, None]
    states = rng.integers(config.n_states, size=(size, n_cells))
    for cell in (cell for cell in range(n_cells) if cell % config.months):
        other = (states[:, cell - 1] + rng.integers(1, config.n_states, size=size)) % config.n_states
        states[:, cell] = np.where(rng.random(size) < config.persistence, states[:, cell - 1], other)
    emissions = rng.dirichlet(np.full(config.levels, config.true_concentration), (size, config.n_states, config.n_fields))
    laws, totals = emissions[trial, states], rng.multinomial(model_of(config)[1], np.full(n_cells, 1 / n_cells), size)
    order = rng.permuted(np.tile(np.arange(n_cells), (size, 1)), axis=1)
    sites = np.sort(order[:, : max(1, round(config.held_out * n_cells))], axis=1)
    observed = (np.arange(n_cells) != sites[..., None]).all(axis=1)
    counts = rng.multinomial(totals[..., None], laws).reshape(size, n_cells, -1).astype(float)
    fresh = totals[trial, sites][:, None, :, None], laws[trial, sites][:, None]
    test = rng.multinomial(*fresh, (size, config.copies, sites.shape[1], config.n_fields))
    return Data(counts, observed, sites, test.reshape(*test.shape[:3], -1).astype(float))


class Watch:
    """Scores draws after burn-in: log-likelihoods of held-out cells, each state's weight that given all other cells."""

    def __init__(self, data: Data, burn_in: int, layout: gibbs.Layout, prior: gibbs.Prior):
        self._data, self._burn_in, self._given, self._scores = data, burn_in, (layout, prior.transition), []

    def __call__(self, iteration: int, state: gibbs.State) -> None:
        if iteration >= self._burn_in:
            trials, copies, held, levels = self._data.test.shape
            weights = gibbs.site_prior(state.states, state.transitions, self._data.sites.T, *self._given)
            fits = state.log_probabilities @ self._data.test.reshape(trials, -1, levels).transpose(0, 2, 1)
            fits = fits.reshape(trials, -1, copies, held) + np.log(weights).transpose(2, 1, 0)[:, :, None]
            self._scores.append(logsumexp(fits, axis=1))

    def values(self) -> np.ndarray:
        """Joint and predictive scores (2, trials): the likelihood averaged over draws as a whole, and by cell."""
        cells = np.array(self._scores)
        both = logsumexp(cells.sum(axis=-1), axis=0), logsumexp(cells, axis=0).sum(axis=-1)
        return np.mean(both, axis=-1) - math.log(len(cells)) * np.array([[1], [cells.shape[-1]]])

    def trace(self) -> np.ndarray:
        """The draws' scores (draws, trials)."""
        return np.array(self._scores).sum(axis=-1).mean(axis=-1)


class Setup:
    """Mechanisms and chains of a cell's rows."""

    def __init__(self, config):
        self.model, self.n = model_of(config)
        self.given, self._config = (gibbs.Layout.of(self.model.regions), prior_of(self.model)), config
        self._seeding = Seeding(config.starts, config.start_iterations)

    def mechanism(self, row: Row) -> EventCountsLaplace | HiddenMarkovSampler | None:
        """The mechanism of a row; None for the non-private reference."""
        given, cut = (self.model, self.n, row.epsilon), {"truncation": row.truncation}
        if row.method == "ops":
            return HiddenMarkovSampler(*given, **cut, iterations=self._config.iterations, seeding=self._seeding)
        if row.method == "private_gibbs":
            return PrivateGibbs(*given, **cut)
        return EventCountsLaplace(*given) if row.epsilon else None

    def law(self, row: Row, counts, observed) -> gibbs.Group:
        """What a row's chains draw from, or, of noise-aware ones, what their states are compared by."""
        exact = row.method in SAMPLED
        return self.mechanism(row).law(counts, observed) if exact else gibbs.Group(count_tables.clip(counts), observed)

    def follow(self, row: Row, counts, observed, rng, watch) -> None:
        """Run chains that release nothing, each from its own starts."""
        sampler = gibbs.Chains([self.law(row, counts, observed)], *self.given, self._seeding)
        if row.method == "gibbs":
            noisy = event_counts.NoisyCounts(counts, observed, self.mechanism(row).scale, self.n)
            sampler = event_counts.Chains(noisy, *self.given, self._seeding)
        gibbs.follow(sampler, [rng], self._config.iterations, [watch])

    def diagnose(self, row: Row, data: Data, counts, rng) -> list[float]:
        """The largest R-hat and the smallest ESS of further chains on the first data set."""
        first = Data(*(np.repeat(part[:1], CHAINS, axis=0) for part in data._replace(counts=counts)))
        scores, law = Watch(first, self._config.burn_in, *self.given), self.law(row, first.counts, first.observed)
        diagnosis = Diagnosis(law, *self.given, range(CHAINS), self._config.burn_in)
        self.follow(row, first.counts, first.observed, rng, lambda *now: (scores(*now), diagnosis(*now)))
        return [diagnosis.summary(scores.trace())[name] for name in ("rhat", "ess")]


def simulate(config, streams, ledger) -> dict:
    """Return `scores` (2, rows, trials) per event that is expected in held-out cells, and `rhat`, `ess` (rows,).

    The scores of a sampled row are those of the one draw that is released.
    """
    listed, setup = rows(config), Setup(config)
    scores, checks = np.full((2, len(listed), config.trials), np.nan), np.full((2, len(listed)), np.nan)
    for row in {row.account: row for row in listed if row.epsilon}.values():
        ledger.open(row.account, Cost("pure", row.epsilon), setup.mechanism(row))
    for block in streams.blocks():
        data, noisy = draw_data(config, block.size, streams("data", block.index)), {}
        noise, exact = Common(streams("mechanism", block.index)), data.counts.reshape(block.size, -1)
        for place, row in enumerate(listed):
            rng, request = streams("sampler", block.index, **row._asdict()), (setup.mechanism(row), exact)
            watch, counts = Watch(data, 0 if row.method in SAMPLED else config.burn_in, *setup.given), data.counts
            if row.method in SAMPLED:
                release = ledger.release(row.account, *request, rng, repeats=block.trials, observed=data.observed)
                watch(0, release.info.state)
            else:
                if row.epsilon and row.account not in noisy:
                    release = ledger.release(row.account, *request, noise, repeats=block.trials)
                    noisy[row.account] = setup.model.tables(release.values)
                counts = noisy[row.account] if row.epsilon else counts
                setup.follow(row, counts, data.observed, rng, watch)
            scores[:, place, block.trials] = watch.values() / (setup.n * (~data.observed).mean())
            if block.index == 0 and row.method != "private_gibbs":
                checks[:, place] = setup.diagnose(row, data, counts, rng)
    return {"scores": scores, "rhat": checks[0], "ess": checks[1]}


def tabulate(cells):
    """Return losses against the non-private model by method and setting, and differences paired over data sets."""
    import pandas as pd

    table, pairs = [], []
    for cell in cells:
        config, listed, (scores, rhat, ess) = cell.config, rows(cell.config), cell.arrays.values()
        named = {name: getattr(config, name) for name in ("events_per_level", "true_concentration")}
        best = scores[:, [row.method == "non_private" for row in listed]]
        losses = best - scores if best.size else np.full_like(scores, np.nan)
        for row, (joint, predictive), *checks in zip(listed, losses.swapaxes(0, 1), rhat, ess, strict=True):
            means = mean_columns("loss", joint) | mean_columns("predictive_loss", predictive)
            more = verdict(dict(zip(("rhat", "ess"), checks, strict=True))) | {"n_repeats": config.trials}
            table.append({**named, **row._asdict(), **means, **more})
        for (i, row), (j, other) in itertools.permutations(enumerate(listed), 2):
            if (row.method, other.method) in PAIRS and row.epsilon == other.epsilon:
                joint, predictive = scores[:, j] - scores[:, i]
                both = mean_columns("difference", joint) | mean_columns("predictive_difference", predictive)
                truncation, expected = row.truncation or other.truncation, config.events_per_level * row.epsilon
                critical = critical_count((config.levels,) * config.n_fields, truncation) if truncation else math.nan
                key = {"method": row.method, "less": other.method, "truncation": truncation, "epsilon": row.epsilon}
                key |= {"noise_scales": expected / (2 * config.n_fields), "crossings": expected / critical}
                worst = {"rhat_max": np.fmax(rhat[i], rhat[j]), "converged": bool(np.fmax(rhat[i], rhat[j]) < LIMIT)}
                pairs.append({**named, **key, **both, **worst, "n_repeats": config.trials})
    return {"who_leads": pd.DataFrame(table), "who_leads_pairs": pd.DataFrame(pairs)}
