"""Who leads where, computed a second time: simulated events, scores of every chain, losses and pairs."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
from recomputed import log_dirichlet, mean_and_error, recorded, row, run, spied

from privpost.experiments.foulds2016.who_leads import study
from privpost.lab import grid

# Two regions of four months, of which two cells are held out; two fields of two levels.
TINY = {
    "regions": 2, "months": 4, "levels": 2, "n_fields": 2, "held_out": 0.25, "events_per_level": 6.0, "n_states": 2,
    "true_concentration": 1, "persistence": 0.8, "epsilon": [3.0], "truncation": [10], "iterations": 8, "burn_in": 4,
    "aware_iterations": 8, "aware_burn_in": 4, "starts": 1, "start_iterations": 1, "chains": 4,
    "method": ["non_private", "laplace", "ops", "private_gibbs", "gibbs"],
}  # fmt: skip
METHODS = TINY["method"]


def moves(states) -> np.ndarray:
    found = np.zeros((2, 2))
    for c in range(8):
        if c % 4:
            found[states[c - 1], states[c]] += 1
    return found


def cell_scores(states, laws, data) -> list[float]:
    """Log-likelihood of each held-out cell's events, its state summed out given the other cells' states."""
    found = []
    for place, site in enumerate(data.sites[0]):
        both = []
        for state in (0, 1):
            own = [*states[:site], state, *states[site + 1 :]]
            events = zip(data.counts[data.sites[0][place]], laws[state], strict=True)
            both.append(sum(map(log_dirichlet, moves(own))) + sum(n * math.log(p) for n, p in events))
        # The weights are shares: what both states have in common goes out.
        weights = [sum(map(log_dirichlet, moves([*states[:site], s, *states[site + 1 :]]))) for s in (0, 1)]
        found.append(float(np.logaddexp(*both) - np.logaddexp(*weights)))
    return found


def log_mean(values) -> float:
    return float(np.logaddexp.reduce(values)) - math.log(len(values))


def first_chain(state) -> tuple:
    """States and probabilities of the chain that is scored, the number of chains, and whether these are draws."""
    probabilities = None if state.probabilities is None else state.probabilities[0].copy()
    return state.states[:, 0].tolist(), probabilities, state.states.shape[1]


def test_chains_are_scored_after_burn_in_on_the_events_of_held_out_cells(monkeypatch):
    """Loops over the recorded chains' samples decide; only rounding is left."""
    runs, drawn = recorded(monkeypatch, first_chain), spied(monkeypatch, study, "split_cells")
    cell = run("foulds2016/who_leads", 2, 1, **TINY)
    longest = [run for run in runs if len(run) in (8, 2)]
    # The first data set has three further chains.
    assert [(len(samples), samples[0][2]) for samples in longest] == [
        (2 if method == "private_gibbs" else 8, number) for number in (4, 1) for method in METHODS
    ]
    scores = {}
    for trial in range(2):
        data = drawn[trial].result
        events = sum(data.counts[c, :2].sum() for c in data.sites[0])
        for index, method in enumerate(METHODS):
            samples = longest[trial * len(METHODS) + index]
            samples = samples[-1:] if method in ("ops", "private_gibbs") else samples[4:]
            cells = np.array([cell_scores(states, laws, data) for states, laws, _ in samples])
            both = log_mean(cells.sum(axis=1)), sum(log_mean(column) for column in cells.T)
            for name, value in zip(("joint", "predictive"), both, strict=True):
                assert cell.arrays[name][index, trial] == pytest.approx(value / events, abs=1e-9), (method, name)
                scores[name, method, trial] = value / events
    table, pairs = cell.tables["who_leads"], cell.tables["who_leads_pairs"]
    for method in METHODS:
        kept = row(table, method=method)
        for name, column in (("joint", "loss"), ("predictive", "predictive_loss")):
            own = [scores[name, "non_private", trial] - scores[name, method, trial] for trial in range(2)]
            assert (kept[f"{column}_mean"], kept[f"{column}_sem"]) == pytest.approx(mean_and_error(own), abs=1e-9)
    assert len(pairs) == 4
    for method, less in (("ops", "laplace"), ("private_gibbs", "laplace"), ("gibbs", "laplace"), ("gibbs", "ops")):
        kept = row(pairs, method=method, less=less)
        for name, column in (("joint", "difference"), ("predictive", "predictive_difference")):
            own = [scores[name, less, trial] - scores[name, method, trial] for trial in range(2)]
            assert (kept[f"{column}_mean"], kept[f"{column}_sem"]) == pytest.approx(mean_and_error(own), abs=1e-9)


def test_all_methods_of_a_data_set_see_its_counts_with_the_same_noise(monkeypatch):
    """Releases against the data set's stream of noise, at scale 2D/ε with two fields."""
    drawn = spied(monkeypatch, study, "split_cells")
    cell = run("foulds2016/who_leads", 2, 1, **TINY)
    for trial in range(2):
        counts, noise = drawn[trial].result.counts, cell.streams("mechanism", trial).laplace(size=(1, 32))
        noisy = [release.values for request, release in cell.ledger.seen
                 if request.repeats.start == trial and request.mechanism.method == "laplace"]  # fmt: skip
        assert len(noisy) == 2
        for values in noisy:
            np.testing.assert_allclose(values, counts.reshape(1, 32) + noise * 2 * 2 / 3.0)
        for request, _ in cell.ledger.seen:
            if request.repeats.start == trial:
                assert request.statistics.ravel().tolist() == counts.ravel().tolist()


def test_held_out_counts_change_nothing_but_the_score(monkeypatch):
    """The counts of held-out cells are replaced: every chain stays what it is."""
    draw, settings = study.split_cells, TINY | {"starts": 2, "start_iterations": 2}
    states, scores = [], []
    for factor in (1, 7):

        def altered(counts, *given, factor=factor):
            data = draw(counts, *given)
            return data._replace(counts=np.where(data.observed[0][:, None], counts, factor * counts + factor - 1))

        monkeypatch.setattr(study, "split_cells", altered)
        with monkeypatch.context() as patch:
            runs = recorded(patch, first_chain)
            scores.append(run("foulds2016/who_leads", 1, 1, **settings).arrays["joint"])
        states.append([[sample[0] for sample in samples] for samples in runs])
    assert states[0] == states[1]
    assert (scores[0] != scores[1]).all()


def test_events_have_the_law_that_the_settings_say():
    """3000 data sets of which shares of many events tell states apart: within 4.5 standard errors of their laws."""
    size, many = 3000, 10**6
    config = SimpleNamespace(**TINY | {"n_states": 3})
    counts = np.array([study.draw_counts(config, many, rng) for rng in [np.random.default_rng(9)] for _ in range(size)])
    totals = counts[..., :2].sum(axis=-1)
    assert (totals == counts[..., 2:].sum(axis=-1)).all()
    assert (totals.sum(axis=1) == many).all()
    # A cell has an eighth of the events: binomial.
    assert totals[:, 3].mean() == pytest.approx(many / 8, abs=4.5 * math.sqrt(many / 8 * 7 / 8 / size))
    first, second = counts[..., 0] / totals, counts[..., 2] / totals
    # Other states' shares are that near in both fields in about one of 2,000 pairs.
    same = lambda a, b: (abs(first[:, a] - first[:, b]) < 0.01) & (abs(second[:, a] - second[:, b]) < 0.01)  # noqa: E731
    stays = np.array([same(c, c - 1) for c in (1, 2, 3, 5, 6, 7)])
    assert stays.mean() == pytest.approx(0.8, abs=4.5 * math.sqrt(0.16 / (6 * size)) + 5e-4)
    # The second region starts anew: it has the state in which the first one ends in a third of the data sets.
    assert same(4, 3).mean() == pytest.approx(1 / 3, abs=4.5 * math.sqrt(2 / 9 / size) + 5e-4)
    # Uniform on the simplex: variance 1/12.
    assert first[:, 0].var() == pytest.approx(1 / 12, rel=0.1)
    rare = SimpleNamespace(**TINY | {"true_concentration": 0.1})
    shares = [study.draw_counts(rare, many, rng)[0] for rng in [np.random.default_rng(2)] for _ in range(size)]
    # Of Beta(c, c): 1/(4(2c + 1)).
    assert np.var([s[0] / s[:2].sum() for s in shares if s.sum()]) == pytest.approx(1 / 4 / 1.2, rel=0.05)


def test_pairs_say_how_large_counts_are_and_whether_both_methods_chains_have_converged():
    """Arrays by hand in place of chains, for two ε and two truncations."""
    given = {**vars(grid.expand(grid.load_study("foulds2016/who_leads", "smoke"))[0].config), **TINY, "trials": 3}
    config = SimpleNamespace(**given | {"epsilon": [0.5, 2.0], "truncation": [10, 100], "events_per_level": 7.0})
    listed = study.rows(config)
    keys = [(row.method, row.truncation, row.epsilon) for row in listed]
    rng = np.random.default_rng(4)
    arrays = {name: rng.normal(size=(len(listed), 3)) for name in ("joint", "predictive")}
    arrays |= {"rhat": rng.choice([1.01, 1.2, math.nan], len(listed)), "ess": rng.uniform(9, 99, len(listed))}
    made = study.tabulate([SimpleNamespace(config=config, arrays=arrays)])
    table, pairs = made["who_leads"], made["who_leads_pairs"]
    # Of each of ops and private_gibbs less laplace and gibbs less ops two truncations, of gibbs less laplace one.
    assert (len(table), len(pairs)) == (len(listed), 2 * (2 + 2 + 2 + 1))
    for kept in pairs.itertuples():
        both = [
            next(i for i, key in enumerate(keys)
                 if key[::2] == (name, kept.epsilon) and (key[1] is None or key[1] == kept.truncation))
            for name in (kept.method, kept.less)
        ]  # fmt: skip
        one, other = (arrays["joint"][i] for i in both)
        assert (kept.difference_mean, kept.difference_sem) == pytest.approx(mean_and_error(list(other - one)))
        known = [arrays["rhat"][i] for i in both if not math.isnan(arrays["rhat"][i])]
        assert kept.converged == (bool(known) and max(known) < 1.05)
        # Noise of scale 2D/ε on two fields; levels of at least 1/(2M) in both.
        assert kept.noise_scales == pytest.approx(7 * kept.epsilon / 4)
        if kept.truncation == kept.truncation:
            width = 2 * math.log(2 * kept.truncation - 1)
            assert kept.crossings == pytest.approx(7 * kept.epsilon * width / 16)
        else:
            assert math.isnan(kept.crossings)
