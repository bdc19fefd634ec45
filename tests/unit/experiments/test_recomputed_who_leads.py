"""Who leads where, computed a second time: simulated events, scores and errors of every chain, and the exponents."""

from __future__ import annotations

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest
from recomputed import log_dirichlet, mean_and_error, recorded, row, run, spied

from privpost.experiments.foulds2016.who_leads import study
from privpost.lab import grid

# Two regions of four months, of which two cells are held out; two fields of two levels.
TINY = {
    "regions": 2, "months": 4, "levels": 2, "n_fields": 2, "copies": 2, "checked": 1, "held_out": 0.25,
    "events_per_level": 6.0, "n_states": 2, "true_states": 2, "true_concentration": 1, "persistence": 0.8,
    "epsilon": [3.0], "truncation": [10], "aware": "none", "variant": ["paper", "corrected"], "rounds": 16,
    "rounds_burn_in": 12, "ops_rounds": 16, "private_iterations": 2, "remembered": "none", "resplits": 1,
    "replicas": 1, "agree": 1, "islands": 1, "hottest": 100, "search_limit": 40, "transition_concentration": 1,
    "emission_concentration": 1,
}  # fmt: skip
FIELDS = [(0, 1), (2, 3)]
# Events that are expected in the two held-out cells: 6 of a level in a cell, of two levels.
EXPECTED = 2 * 12


def moves(states) -> np.ndarray:
    found = np.zeros((2, 2))
    for c in range(8):
        if c % 4:
            found[states[c - 1], states[c]] += 1
    return found


def score(states, laws, data, trial: int, copy: int) -> float:
    """Log-likelihood of a copy of the held-out cells, each state summed out given the other cells' states."""
    total = 0.0
    for place, site in enumerate(data.sites[trial]):
        both = []
        for state in (0, 1):
            own = [*states[:site], state, *states[site + 1 :]]
            events = zip(data.test[trial, copy, place], laws[state], strict=True)
            both.append(sum(map(log_dirichlet, moves(own))) + sum(n * math.log(p) for n, p in events))
        # The weights are shares: what both states have in common goes out.
        weights = [sum(map(log_dirichlet, moves([*states[:site], s, *states[site + 1 :]]))) for s in (0, 1)]
        total += np.logaddexp(*both) - np.logaddexp(*weights)
    return float(total)


def average_score(samples, data, trial: int) -> float:
    """Log of the likelihood's mean over samples, mean over copies, per event that is expected."""
    logs = [[score(*sample, data, trial, copy) for sample in samples] for copy in range(2)]
    return float(np.mean([np.logaddexp.reduce(own) - math.log(len(own)) for own in logs])) / EXPECTED


def emission_error(fitted, data, trial: int) -> float:
    """KL of the true laws from fitted ones, mean over observed cells."""
    total = 0.0
    for c in set(range(8)) - set(data.sites[trial].tolist()):
        total += sum(p * math.log(p / q) for p, q in zip(data.laws[trial, c], fitted[c], strict=True))
    return total / (8 - len(data.sites[trial]))


def of_all_chains(state) -> tuple:
    return state.states.T.tolist(), None if state.probabilities is None else state.probabilities.copy()


def log_joint(states, counts, data, trial: int) -> float:
    """Log-probability of states and observed counts, emissions and moves integrated out."""
    total = sum(map(log_dirichlet, moves(states)))
    for state, field in itertools.product((0, 1), FIELDS):
        own = [c for c in range(8) if states[c] == state and c not in data.sites[trial]]
        total += log_dirichlet([sum(counts[c][k] for c in own) for k in field])
    return total


def test_chains_are_scored_after_burn_in_on_fresh_events_of_held_out_cells(monkeypatch):
    """Loops over the recorded chains' samples decide; only rounding is left."""
    runs, drawn = recorded(monkeypatch, of_all_chains), spied(monkeypatch, study, "draw_data")
    joints = spied(monkeypatch, study._Watch, "joints")
    methods = ["non_private", "laplace", "ops", "private_gibbs"]
    cell = run("foulds2016/who_leads", 2, 2, **TINY, model=["hmm"], method=methods)
    data, table = drawn[0].result, cell.tables["who_leads"]
    variants = {"laplace": ("paper", "corrected")}
    lines = [(method, variant) for method in methods for variant in variants.get(method, (None,))]
    # All but the chain that pays for its updates have a second one, on the first trial.
    assert [(len(states), len(states[0][0])) for states in runs] == [(16, 2), (16, 1)] * 4 + [(2, 2)]
    losses, reference = {}, None
    for index, (method, variant) in enumerate(lines):
        chain, kept = runs[2 * index], row(table, method=method, variant=variant)
        sampled = chain[-1:] if method in ("ops", "private_gibbs") else chain[12:]
        values = []
        for trial in range(2):
            samples = [(states[trial], laws[trial]) for states, laws in sampled]
            fitted = np.mean([[laws[k] for k in states] for states, laws in samples], axis=0)
            last = chain[-1][0][trial]
            wrong = np.mean([a != b for a, b in zip(last, data.states[trial], strict=True)])
            used = sum(last.count(k) >= 0.05 * 8 for k in (0, 1))
            values.append((average_score(samples, data, trial), emission_error(fitted, data, trial),
                           min(wrong, 1 - wrong), used))  # fmt: skip
            for name, value in zip(("score", "emission_error", "state_error", "states_used"), values[-1], strict=True):
                assert cell.arrays[name][index, trial] == pytest.approx(value, abs=1e-9)
        own = [value[0] for value in values]
        reference = reference or own
        losses[method, variant] = [a - b for a, b in zip(reference, own, strict=True)]
        assert (kept.loss_mean, kept.loss_sem) == pytest.approx(mean_and_error(losses[method, variant]), abs=1e-12)
        for place, name in enumerate(("emission_error", "state_error", "states_used"), start=1):
            expected = mean_and_error([float(value[place]) for value in values])
            assert (kept[f"{name}_mean"], kept[f"{name}_sem"]) == pytest.approx(expected, abs=1e-12)
        if method == "private_gibbs":
            assert math.isnan(kept.chain_gap) and math.isnan(kept.agree)
            continue
        again = runs[2 * index + 1]
        second = again[-1:] if method == "ops" else again[12:]
        gap = average_score([(states[0], laws[0]) for states, laws in second], data, 0) - own[0]
        assert kept.chain_gap == pytest.approx(abs(gap), abs=1e-9)
        if method == "non_private":
            both = ([states[0] for states, _ in one[12:]] for one in (chain, again))
            traces = [[log_joint(states, data.counts[0], data, 0) for states in one] for one in both]
            apart, spread = abs(np.mean(traces[0]) - np.mean(traces[1])), np.mean([np.std(one) for one in traces])
            assert kept.agree == (apart <= max(1, 5 * spread))
            # Both regions start in either state as likely.
            np.testing.assert_allclose([call.result[:, 0] + 2 * math.log(2) for call in joints[:2]], traces)
        # 4D²/Δ: Δ = 2 ln 19 at levels of at least 1/20.
        crossover = 16 / (2 * math.log(19)) / 3 if method == "ops" else math.nan
        assert kept.crossover == pytest.approx(crossover, nan_ok=True)
    gaps = {name: row(table, method="laplace", variant=name).chain_gap for name in ("paper", "corrected")}
    gaps["ops"] = row(table, method="ops").chain_gap
    pairs = cell.tables["who_leads_pairs"]
    for first, method in (("paper", "ops"), ("corrected", "private_gibbs"), ("ops", "private_gibbs")):
        base = losses["ops", None] if first == "ops" else losses["laplace", first]
        less = mean_and_error([a - b for a, b in zip(losses[method, None], base, strict=True)])
        kept = row(pairs, first=first, method=method)
        assert (kept.difference_mean, kept.difference_sem) == pytest.approx(less, abs=1e-12)
        assert kept.chain_gap == pytest.approx(gaps[first] + (gaps["ops"] if method == "ops" else 0))
    assert len(pairs) == 5


def test_chains_agree_whose_mean_log_joints_are_within_1_or_five_of_their_spreads(monkeypatch):
    """Made log joints: means 0 and 3, 0 and 6 at a mean spread of 1, and 0 and 0.9 at one of 0.01."""
    for apart, one, other, verdict in (
        (3.0, 1.0, 1.0, 1),
        (6.0, 1.0, 1.0, 0),
        (6.0, 0.2, 1.8, 0),
        (0.9, 0.01, 0.01, 1),
    ):
        made = [np.array([[-one], [one]]), np.array([[apart - other], [apart + other]])]
        monkeypatch.setattr(study._Watch, "joints", lambda *given, made=made: made.pop())
        cell = run("foulds2016/who_leads", 1, 1, **TINY, model=["hmm"], method=["non_private"])
        assert row(cell.tables["who_leads"], method="non_private").agree == verdict


def test_wrong_states_are_counted_after_the_best_of_all_relabellings():
    """All permutations of three labels decide; the best one is not its own inverse."""
    truth, states = np.array([0, 0, 1, 1, 2, 2, 2]), np.array([1, 1, 2, 2, 0, 0, 1])
    shares = [np.mean(np.array(order)[states] != truth) for order in itertools.permutations(range(3))]
    assert study._wrong(states, truth) == pytest.approx(min(shares)) == pytest.approx(1 / 7)


def projected(noisy) -> list[float]:
    """The non-negative counts next to noisy ones of the same sum, by halving the range of what all lose."""
    low, high = -max(map(abs, noisy)) * 2, max(map(abs, noisy)) * 2
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if sum(max(0, y - middle) for y in noisy) > sum(noisy) else (low, middle)
    return [max(0, y - high) for y in noisy]


@pytest.mark.parametrize("share, held", [(0.01, 1), (0.25, 2)])
def test_naive_bayes_is_scored_by_the_noisy_totals_or_the_sample_that_was_released(monkeypatch, share, held):
    """Dirichlet laws in closed form decide; 1500 draws leave 0.02 of a score, and 0.005 of a divergence. At least one
    cell is held out."""
    drawn = spied(monkeypatch, study, "draw_data")
    cell = run("foulds2016/who_leads", 4, 2, **TINY | {"held_out": share}, model=["naive_bayes"],
               method=["non_private", "laplace", "ops"], iterations=1501, burn_in=1)  # fmt: skip
    lines = ["non_private", "laplace/paper/epsilon=3", "laplace/corrected/epsilon=3", "ops/truncation=10/epsilon=3"]
    for index, name in enumerate(lines):
        for trial in range(4):
            block, place = trial // 2, trial % 2
            data = drawn[block].result
            inside = [c for c in range(8) if c not in data.sites[place]]
            counts = [sum(data.counts[place, c, k] for c in inside) for k in range(4)]
            if index:
                request, release = cell.ledger.of(f"naive_bayes/{name}")[block]
                assert request.statistics.reshape(2, -1)[place].tolist() == counts
                values = release.values.reshape(2, -1)[place]
            if name.startswith("laplace"):
                # Two fields, each of whose counts an event changes by two: Δ = 4; the same noise for either variant.
                noise = cell.streams("mechanism", block, model="naive_bayes").laplace(size=(2, 4))[place]
                np.testing.assert_allclose(values, np.array(counts) + 4 / 3 * noise)
                own = [values[list(field)].tolist() for field in FIELDS]
                own = [[max(0, y) for y in part] if "paper" in name else projected(part) for part in own]
                counts = [y for part in own for y in part]
            if name.startswith("ops"):
                t = max(1, 2 * 2 * math.log(19) / 3)
                assert request.mechanism.temperature == pytest.approx(t)
                law = values.tolist()
                logs = [sum(n * math.log(p) for n, p in zip(data.test[place, copy].sum(axis=0), law, strict=True))
                        for copy in range(2)]  # fmt: skip
            else:
                law, logs = [], []
                for a, b in FIELDS:
                    law += [(1 + counts[k]) / (2 + counts[a] + counts[b]) for k in (a, b)]
                for copy in range(2):
                    both = [x + y for x, y in zip(counts, data.test[place, copy].sum(axis=0), strict=True)]
                    logs.append(sum(log_dirichlet([both[k] for k in f]) - log_dirichlet([counts[k] for k in f])
                                    for f in FIELDS))  # fmt: skip
            allowed = (1e-9, 1e-9) if name.startswith("ops") else (0.02, 0.005)
            assert cell.arrays["score"][index, trial] == pytest.approx(np.mean(logs) / (12 * held), abs=allowed[0])
            error = emission_error([law] * 8, data, place)
            assert cell.arrays["emission_error"][index, trial] == pytest.approx(error, abs=allowed[1])


def test_events_of_one_state_have_one_law_in_all_cells():
    """Exactly: there is one state, and nothing to move to."""
    data = study.draw_data(SimpleNamespace(**TINY | {"true_states": 1}), 5, np.random.default_rng(2))
    assert (data.states == 0).all() and (data.laws == data.laws[:, :1]).all()


def test_events_have_the_law_that_the_settings_say():
    """3000 data sets: shares are within 4.5 standard errors of theirs; what is exact is compared exactly."""
    config = SimpleNamespace(**TINY | {"true_states": 3, "events_per_level": 2.5})
    data, size = study.draw_data(config, 3000, np.random.default_rng(9)), 3000
    stays = data.states[:, [1, 2, 3, 5, 6, 7]] == data.states[:, [0, 1, 2, 4, 5, 6]]
    assert stays.mean() == pytest.approx(0.8, abs=4.5 * math.sqrt(0.16 / (6 * size)))
    jumps = (data.states[:, [1, 5]] - data.states[:, [0, 4]])[~stays[:, [0, 3]]] % 3
    assert (jumps == 1).mean() == pytest.approx(0.5, abs=4.5 * math.sqrt(0.25 / len(jumps)))
    for c in (0, 4):
        assert (data.states[:, c] == 1).mean() == pytest.approx(1 / 3, abs=4.5 * math.sqrt(2 / 9 / size))
    # The second region starts anew: it has the state in which the first one ends in a third of the data sets.
    assert (data.states[:, 4] == data.states[:, 3]).mean() == pytest.approx(1 / 3, abs=4.5 * math.sqrt(2 / 9 / size))
    totals = data.counts[..., :2].sum(axis=-1)
    assert (totals == data.counts[..., 2:].sum(axis=-1)).all()
    assert (totals.sum(axis=1) == 2.5 * 2 * 8).all()
    assert totals[:, 3].mean() == pytest.approx(5, abs=4.5 * math.sqrt(40 / 8 * 7 / 8 / size))
    # Given its law, a count's excess over the expected one has mean 0; so have the fresh copies'.
    trial = np.arange(size)[:, None]
    held = data.laws[trial, data.sites]
    for counts, laws in ((data.counts, data.laws), (data.test[:, 1], held)):
        excess = counts[..., ::2] - counts.reshape(*counts.shape[:-1], 2, 2).sum(axis=-1) * laws[..., ::2]
        assert excess.mean() == pytest.approx(0, abs=4.5 * excess.std() / math.sqrt(excess.size))
        assert excess.var() == pytest.approx((5 * laws[..., ::2] * laws[..., 1::2]).mean(), rel=0.05)
    assert (data.test[..., :2].sum(axis=-1) == totals[trial, data.sites][:, None]).all()
    assert (data.test[:, 0] != data.test[:, 1]).any(axis=(1, 2)).mean() > 0.9
    # Laws are the states': cells of one state have one, and uniform on the simplex.
    same = data.states[:, 0] == data.states[:, 5]
    assert ((data.laws[:, 0] == data.laws[:, 5]).all(axis=1) == same).all()
    assert data.laws[:, 0, 0].var() == pytest.approx(1 / 12, rel=0.1)
    assert (np.sort(data.sites, axis=1) == data.sites).all() and data.sites.shape == (size, 2)
    assert (data.sites[:, 0] < data.sites[:, 1]).all()
    for one, sites in zip(data.observed[:50], data.sites[:50], strict=True):
        assert [c for c in range(8) if not one[c]] == sites.tolist()


def test_exponents_are_slopes_over_both_axes_with_errors_of_the_jackknife():
    """The normal equations, solved by Cramer's rule, decide on losses that are made by hand; rounding apart."""
    cells, points, trials = [], [], 5
    settings = {**TINY, "epsilon": [1.0, 2.0], "model": ["hmm"], "method": ["non_private", "ops"], "trials": trials}
    names = vars(grid.expand(grid.load_study("foulds2016/who_leads", "smoke"))[0].config)
    for m, seed in ((10.0, 1), (20.0, 2), (0.01, 3)):
        rng = np.random.default_rng(seed)
        losses = [0.9 * m**-1.2 * e**-0.7 * rng.uniform(0.9, 1.1, trials) for e in (1.0, 2.0)]
        scores, blank = np.array([np.zeros(trials), *[-x for x in losses]]), np.zeros((3, trials))
        arrays = {"score": scores - 1, "state_error": blank, "emission_error": blank, "states_used": blank}
        config = SimpleNamespace(**{**names, **settings, "events_per_level": m})
        cells.append(
            SimpleNamespace(config=config, arrays=arrays | {"gap": np.full((3, 0), 0.0), "agree": blank[:, :0]})
        )
        # At 0.01 events the losses are too large to count.
        points += [(math.log(e), math.log(m), loss) for e, loss in zip((1.0, 2.0), losses, strict=True) if m > 1]

    def slopes(left_out: int | None) -> np.ndarray:
        rows = [(x, y, math.log(np.mean([v for i, v in enumerate(loss) if i != left_out]))) for x, y, loss in points]
        x, y, z = (np.array(column) - np.mean(column) for column in zip(*rows, strict=True))
        xx, yy, xy, xz, yz = x @ x, y @ y, x @ y, x @ z, y @ z
        return np.array([xz * yy - yz * xy, yz * xx - xz * xy]) / (xx * yy - xy**2)

    table = study.tabulate(cells)["who_leads_exponents"]
    left = np.array([slopes(i) for i in range(trials)])
    errors = [math.sqrt(4 / 5 * sum((v - np.mean(own)) ** 2 for v in own)) for own in left.T]
    for axis, value, error in zip(("epsilon", "events_per_level"), slopes(None), errors, strict=True):
        kept = row(table, axis=axis)
        assert (kept.exponent, kept.exponent_sem, kept.n_points) == pytest.approx((value, error, 4))
