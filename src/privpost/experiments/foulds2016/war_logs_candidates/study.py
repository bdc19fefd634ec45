"""Held-out likelihood of a hidden Markov model that is chosen among public candidates (ours).

Its guarantee does not depend on a chain. Held-out cells are predicted from the released parameters alone.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import xlogy

from privpost.datasets import war_logs
from privpost.evaluation.summaries import mean_columns
from privpost.experiments.foulds2016.held_out import SPLIT, Data, split_cells
from privpost.experiments.foulds2016.war_logs import uses_private_metadata
from privpost.experiments.ranges import EMISSION, TRUNCATION
from privpost.lab.schema import Integer, Schema
from privpost.mechanisms.event_counts import EventCountsLaplace, HiddenMarkovSampler
from privpost.mechanisms.public_candidates import Candidates, PublicCandidates
from privpost.models.event_counts import EventCounts
from privpost.privacy import count_tables
from privpost.privacy.accounting import Cost
from privpost.privacy.ledger import Request

SETTINGS = Schema(
    **SPLIT,
    truncation=TRUNCATION,
    emission_concentration=EMISSION,
    candidates=Integer(at_least=1, at_most=10**6, says="public candidates, one of which is chosen"),
)
TABLES = {
    "war_logs_candidates": {
        "loss_mean": "log-likelihood per held-out event, below non-private naive Bayes; paired [nats per event]",
    },
}


class Row(NamedTuple):
    """One method at one setting: J candidates of the hidden Markov model, or naive Bayes by a noise or sample."""

    method: str
    candidates: int | None
    epsilon: float | None

    @property
    def account(self) -> str:
        return f"{self.method}/J={self.candidates}/epsilon={self.epsilon}"


def rows(config) -> list[Row]:
    """Return the methods at all their settings; the non-private reference is naive Bayes."""
    result = [Row("non_private", None, None)]
    for epsilon in config.epsilon:
        result += [Row("laplace", None, epsilon), Row("ops", None, epsilon)]
        result += [Row("candidates", number, epsilon) for number in config.candidates]
    return result


def simulate(config, streams, ledger) -> dict:
    """Return `log_likelihood` (rows, splits) of the held-out events given the release, and `events` (splits,)."""
    logs = war_logs.load(config.dataset)
    all_rows, scored = rows(config), []
    concentrations = {"transition": config.transition_concentration, "emission": config.emission_concentration}
    for block in streams.blocks():
        data = split_cells(config, logs, streams, block)
        n = int(data.counts[:, : data.sizes[0]].sum())
        bayes = EventCounts((1,), data.sizes, 1, **concentrations)
        hidden = EventCounts.of(logs.region, data.sizes, config.n_states, **concentrations)
        scores = np.empty((len(all_rows), block.size))
        deferred = []
        for index, row in enumerate(all_rows):
            if row.method == "candidates":
                mechanism = PublicCandidates(
                    hidden, n, row.epsilon, candidates=row.candidates, truncation=config.truncation
                )
                if block.index == 0:
                    ledger.open(row.account, Cost("pure", row.epsilon), mechanism)
                rng = streams("sampler", block.index, method=row.method, candidates=row.candidates, epsilon=row.epsilon)
                statistics = np.broadcast_to(data.counts.ravel(), (block.size, data.counts.size))
                observed = {"observed": data.observed}
                deferred.append((index, Request(row.account, mechanism, statistics, rng, None, block.trials, observed)))
            else:
                scores[index] = _naive_bayes(config, row, bayes, n, data, streams, block, ledger)
        releases = ledger.release_all([request for _, request in deferred])
        for (index, request), release in zip(deferred, releases, strict=True):
            scores[index] = _predicted(request.mechanism, release, data)
        scored.append((scores, data.test_events))
    return {
        "log_likelihood": np.concatenate([scores for scores, _ in scored], axis=1),
        "events": np.concatenate([events for _, events in scored]),
    }


def _predicted(mechanism: PublicCandidates, release, data: Data) -> np.ndarray:
    """Return the log-likelihood (splits,) of the held-out cells under the chosen parameters, without other cells."""
    _, moves = release.info
    scores = []
    for emissions, move, observed in zip(release.values, moves, data.observed, strict=True):
        released = Candidates(emissions[None], move[None])
        scores.append(mechanism.score(released, data.counts, ~observed[None])[0, 0])
    return np.array(scores)


def _naive_bayes(config, row: Row, model: EventCounts, n: int, data: Data, streams, block, ledger) -> np.ndarray:
    """Return the log-likelihood (splits,) of the held-out events under a posterior mean, or one sample, of the law."""
    totals = data.observed @ data.counts
    if row.method == "ops":
        mechanism = HiddenMarkovSampler(model, n, row.epsilon, truncation=config.truncation, iterations=1)
    else:
        mechanism = None if row.method == "non_private" else EventCountsLaplace(model, n, row.epsilon)
    released = totals
    if mechanism is not None:
        if block.index == 0:
            ledger.open(row.account, Cost("pure", row.epsilon), mechanism)
        rng = streams("mechanism", block.index, method=row.method, epsilon=row.epsilon)
        released = ledger.release(row.account, mechanism, totals, rng, repeats=block.trials).values
    if row.method == "ops":
        law = released[:, 0]
    else:
        law = np.empty_like(released)
        for size, start in zip(data.sizes, np.cumsum([0, *data.sizes[:-1]]), strict=True):
            counts = count_tables.clip(released[:, start : start + size]) + config.emission_concentration
            law[:, start : start + size] = counts / counts.sum(axis=1, keepdims=True)
    return xlogy(data.test_counts.sum(axis=1), law).sum(axis=1)


def tabulate(cells):
    """Yield the held-out log-likelihood per event and its loss, by method and setting."""
    for cell in cells:
        config = cell.config
        fixed = {"dataset": config.dataset, "stand_in": war_logs.load(config.dataset).stand_in}
        per_event = cell.arrays["log_likelihood"] / cell.arrays["events"]
        for index, row in enumerate(rows(config)):
            yield {
                **fixed,
                "n_states": config.n_states,
                **row._asdict(),
                # No chain runs.
                "sampler": "exact",
                "per_event_mean": mean_columns("per_event", per_event[index])["per_event_mean"],
                **mean_columns("loss", per_event[0] - per_event[index]),
                "n_splits": per_event.shape[1],
                "uses_private_metadata": uses_private_metadata(config.dataset),
            }
