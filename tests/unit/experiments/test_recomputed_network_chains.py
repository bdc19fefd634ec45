"""Noise-aware networks, a second time: scores of every posterior by listing records, and of chains by their states."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from recomputed import mean_and_error, row, run, spied
from recomputed_graphs import agreeing, chance, counted, every_record, mmd2, posterior_means
from scipy.special import betainc

from privpost.evaluation.diagnostics import assess
from privpost.experiments.noise_aware.networks import study
from privpost.models.bayesian_network import BayesianNetwork

COLLIDER = [(), (), (0, 1)]
LINES = [("non_private", "paper"), ("naive", "paper"), ("naive", "consistent"), ("gibbs", "paper")]
RECORDS = every_record(COLLIDER)


def accuracy(law, predictive) -> float:
    """Chance to predict a node from the others, mean over nodes; what is likelier by less than 1e-9 is a tie, and 0."""
    right = 0.0
    for node in range(3):
        for record in RECORDS:
            zero, one = (predictive[RECORDS.index((*record[:node], bit, *record[node + 1 :]))] for bit in (0, 1))
            right += law[RECORDS.index(record)] * ((one > zero * (1 + 1e-9)) == record[node])
    return right / 3


def mixed(counts) -> list[tuple]:
    """A mixture of conjugate posteriors as [(weight, counts)]."""
    return [(times / len(counts), each) for each, times in Counter(map(tuple, counts)).items()]


def predicted(law) -> np.ndarray:
    """Probabilities of a new record."""
    return sum(w * np.array([chance(each, posterior_means(counts), COLLIDER) for each in RECORDS]) for w, counts in law)


def watched_counts(monkeypatch) -> list[list[np.ndarray]]:
    """Counts (chains, 12) of each run of chains from here on, ones and zeros in turn."""
    runs, original = [], study.run

    def watched(*given, **settings):
        runs.append([])
        for state, cost in original(*given, **settings):
            runs[-1].append(state.counts.reshape(-1, 12).tolist())
            yield state, cost

    monkeypatch.setattr(study, "run", watched)
    return runs


def test_scores_of_every_posterior_of_a_network(monkeypatch):
    """Sums over all records and over the chains' states; only rounding is left, of an MMD 1e-3 by midpoints."""
    runs, sampled = watched_counts(monkeypatch), spied(monkeypatch, BayesianNetwork, "sample")
    made = spied(monkeypatch, BayesianNetwork, "sample_data")
    cell = run(
        "noise_aware/networks", 6, 3, graph="collider_2", n=3, epsilon=[2.0, 9.0], burn_in=5, draws=200, thin=1,
        diagnosed=2,
    )  # fmt: skip
    found = {(*line, e): [] for line in LINES for e in range(2)}
    # Chains start from records that they sample themselves.
    for block, e, trial in np.ndindex(2, 2, 3):
        theta, counts = made[2 * block].given[1][trial], counted(made[2 * block].result[trial].tolist(), COLLIDER)
        release = cell.ledger.of(f"counts/epsilon={[2, 9][e]}")[block][1].values[trial]
        # The first two trials have three more chains each, behind those of every trial.
        states = [each[9 * e + trial] for each in runs[block]]
        clipped = [min(max(value, 0.0), 3.0) for value in release]
        laws = [[counts], [clipped], [agreeing(release, 3, COLLIDER)], states]
        true = np.array([chance(each, theta, COLLIDER) for each in RECORDS])
        for line, law in zip(LINES, map(mixed, laws), strict=True):
            quantiles = sum(w * betainc(1 + np.array(c[::2]), 1 + np.array(c[1::2]), theta) for w, c in law)
            place = LINES.index(line), e, slice(None), 3 * block + trial
            np.testing.assert_allclose(cell.arrays["quantile"][place], quantiles, atol=1e-9)
            other = predicted(law)
            found[*line, e].append((accuracy(true, other), true @ np.log(other), mmd2(law, mixed([counts]))))
    for (method, variant, e), values in found.items():
        place = {"method": method, "variant": variant, "epsilon": [2.0, 9.0][e]}
        if method == "non_private":
            place["epsilon"] = None
        for metric, column in zip(("accuracy", "log_likelihood", "mmd2"), np.transpose(values), strict=True):
            if (method, metric) != ("non_private", "mmd2"):
                kept = row(cell.tables["networks"], metric=metric, **place)
                assert (kept["mean"], kept["sem"]) == pytest.approx(mean_and_error(column), rel=1e-3, abs=1e-7)
    for e in range(2):
        worst = []
        for block in range(2):
            # A block draws its parameters, those that chains start from, and after a sweep those of eight chains.
            draws = np.stack([call.result for call in sampled[202 * block + 2 : 202 * (block + 1)]])
            worst.append(assess(np.stack([draws[:, e, trial::2] for trial in range(2)], axis=2)))
        kept = row(cell.tables["networks_chains"], epsilon=[2.0, 9.0][e])
        assert kept.rhat_max == pytest.approx(max(each.rhat_max for each in worst))
        assert kept.ess_min == pytest.approx(min(each.ess_min for each in worst))
