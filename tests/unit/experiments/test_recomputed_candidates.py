"""Public candidates and the ablation on war logs, computed a second time on five cells by listing all states."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from recomputed import mean_and_error, row, run

from privpost.datasets import war_logs

# Fields of three levels and of two; two regions, of three months and of two.
COUNTS = [[4, 2, 1, 5, 2], [3, 3, 0, 1, 5], [0, 1, 6, 0, 7], [1, 0, 5, 2, 4], [6, 0, 1, 6, 1]]
FIELDS = {"all": [(0, 1, 2), (3, 4)], "no_category": [(3, 4)]}
STARTS = {0, 3}


@pytest.fixture(autouse=True)
def toy(monkeypatch):
    levels = {"category": ["a", "b", "c"], "type": ["d", "e"]}
    regions = np.array([0, 0, 0, 1, 1]), np.array([0, 1, 2, 0, 1]), ["north", "south"]
    given = np.array(COUNTS), *regions, ["2004-01", "2004-02", "2004-03"], levels, None
    monkeypatch.setattr(war_logs, "load", lambda name: war_logs.WarLogs(name, False, *given))


def shared(cell):
    """The streams of splits and noise: those of the data set, whatever the study."""
    return cell.streams.shared("foulds2016/held_out", dataset=cell.config.dataset)


def held_out(cell, blocks: int, size: int, number: int) -> list[list[int]]:
    """The cells of five that each split holds out."""
    found = []
    for block in range(blocks):
        rng = shared(cell)("data", block)
        found += [sorted(rng.permutation(5)[:number].tolist()) for _ in range(size)]
    return found


def totals(cells, levels, times: int) -> list[int]:
    return [times * sum(COUNTS[c][k] for c in cells) for k in levels]


def spread(fields) -> float:
    """Δ: the largest difference of two events' log-likelihoods, every level having at least 1/(10 K)."""
    return sum(math.log((1 - (len(f) - 1) / (10 * len(f))) * 10 * len(f)) for f in fields)


def log_likelihood(cells, emissions, moves, times: int) -> float:
    """Return the log-likelihood of the events of some cells by a sum over all states; regions start uniformly."""
    scores, states = times * np.array(COUNTS) @ np.log(emissions).T, np.array(list(itertools.product((0, 1), repeat=5)))
    logs = np.zeros(32)
    for c in range(5):
        logs += scores[c, states[:, c]] if c in cells else 0.0
        logs += math.log(0.5) if c in STARTS else np.log(moves[states[:, c - 1], states[:, c]])
    return float(np.logaddexp.reduce(logs))


def test_a_candidate_is_chosen_by_what_is_observed_and_scored_on_the_rest():
    """Sums over all states and candidates decide, with the streams' variates; only rounding is left."""
    times, epsilon, number = 2, 2.0, 20
    cell = run(
        "foulds2016/war_logs_candidates", 40, 20, fields="all", replication=times, held_out=0.3, n_states=2,
        truncation=10, transition_concentration=1, emission_concentration=2, candidates=[1, number], epsilon=[epsilon],
    )  # fmt: skip
    outs, fields = held_out(cell, 2, 20, 2), FIELDS["all"]
    t = 2 * spread(fields) / epsilon
    found: dict[str, list[float]] = {name: [] for name in ("non_private", "laplace", "ops", "1", str(number))}
    known: dict[tuple, list[float]] = {}
    for trial, out in enumerate(outs):
        block, place, inside = trial // 20, trial % 20, [c for c in range(5) if c not in out]
        exact, test = totals(inside, range(5), times), totals(out, range(5), times)
        noise = cell.streams("mechanism", block, method="laplace", epsilon=epsilon).laplace(size=(20, 5))[place]
        # Two fields, each of whose counts an event changes by two: Δ = 4.
        request, release = cell.ledger.of(f"laplace/J=None/epsilon={epsilon}")[block]
        np.testing.assert_allclose(release.values[place], np.array(exact) + 4 / epsilon * noise)
        laws = {"non_private": [0.0] * 5, "laplace": [0.0] * 5}
        for name, counts in (("non_private", exact), ("laplace", release.values[place])):
            for field in fields:
                prior = [2 + max(0.0, counts[k]) for k in field]
                for k, value in zip(field, prior, strict=True):
                    laws[name][k] = value / sum(prior)
        request, release = cell.ledger.of(f"ops/J=None/epsilon={epsilon}")[block]
        assert request.statistics[place].tolist() == exact
        assert request.mechanism.temperature == pytest.approx(t)
        laws["ops"] = release.values[place, 0]
        for name, law in laws.items():
            found[name].append(sum(count * math.log(p) for count, p in zip(test, law, strict=True)))
        for size in (1, number):
            request, release = cell.ledger.of(f"candidates/J={size}/epsilon={epsilon}")[block]
            public = request.mechanism.block(0)
            assert public.emissions.shape == (size, 2, 5) and public.emissions[..., :3].min() >= 1 / 30
            scores = known.setdefault(
                (size, *out),
                [log_likelihood(inside, *each, times) for each in zip(*public, strict=True)],
            )
            weights = [math.exp((score - max(scores)) / t) for score in scores]
            stream = cell.streams("sampler", block, method="candidates", candidates=size, epsilon=epsilon)
            uniform = stream.random(20)[place] * sum(weights)
            picked = [j for j in range(size) if sum(weights[:j]) <= uniform < sum(weights[: j + 1])]
            np.testing.assert_array_equal([release.values[place]], public.emissions[picked])
            found[str(size)].append(
                log_likelihood(out, public.emissions[picked[0]], public.transitions[picked[0]], times)
            )
    events = [sum(totals(out, FIELDS["all"][0], times)) for out in outs]
    per_event = {name: [a / b for a, b in zip(own, events, strict=True)] for name, own in found.items()}
    for name, own in per_event.items():
        method, size = ("candidates", int(name)) if name.isdigit() else (name, None)
        kept = row(cell.tables["war_logs_candidates"], method=method, candidates=size)
        loss = mean_and_error([a - b for a, b in zip(per_event["non_private"], own, strict=True)])
        assert kept.per_event_mean == pytest.approx(sum(own) / 40)
        assert (kept.loss_mean, kept.loss_sem) == pytest.approx(loss, abs=1e-12)
        assert (kept.n_splits, kept.n_states) == (40, 2)


@pytest.mark.parametrize("fields, small", [("all", 0.3), ("no_category", 0.14)])
def test_an_ablation_counts_the_events_and_levels_that_it_uses(fields, small):
    """Sums over cells and levels decide; of the Laplace mechanism's 4000 draws an error of 0.02 an event is left.

    At the small ε, where some levels are rare, their likelihoods are too unlike for a mean of 4000.
    """
    times, epsilons, chosen = 3, [small, 5.0], FIELDS[fields]
    cell = run(
        "foulds2016/war_logs_ablation", 2, 2, fields=fields, replication=times, held_out=0.2, prior="untempered",
        epsilon=epsilons, model=["naive_bayes"], method=["laplace", "ops"], variant=["paper"], truncation=[10],
        emission_concentration=1, transition_concentration=1, iterations=4100, burn_in=100, diagnostic_chains=1,
        n_states=2,
    )  # fmt: skip
    levels = [k for field in chosen for k in field]
    outs, per_event = held_out(cell, 1, 2, 1), {}
    for epsilon in epsilons:
        for method in ("laplace", "ops"):
            setting = "paper" if method == "laplace" else "truncation=10"
            (request, release), *_ = cell.ledger.of(f"naive_bayes/{method}/{setting}/epsilon={epsilon:g}")
            scores = []
            for trial, out in enumerate(outs):
                exact = totals([c for c in range(5) if c not in out], levels, times)
                test = totals(out, levels, times)
                assert request.statistics.reshape(2, -1)[trial].tolist() == exact
                values, score, start = release.values.reshape(2, -1)[trial], 0.0, 0
                for field in chosen:
                    part = slice(start, start + len(field))
                    start += len(field)
                    if method == "ops":
                        score += sum(c * math.log(p) for c, p in zip(test[part], values[part], strict=True))
                        continue
                    # The mean likelihood under a Dirichlet law.
                    for power, counts in ((1, np.add(test[part], np.maximum(values[part], 0))), (-1, values[part])):
                        total = [1 + max(0.0, count) for count in counts]
                        score += power * (sum(map(math.lgamma, total)) - math.lgamma(sum(total)))
                scores.append(score / sum(totals(out, chosen[0], times)))
            per_event[method, epsilon] = scores
            kept = row(cell.tables["war_logs_ablation"], method=method, epsilon=epsilon)
            if method == "ops" or epsilon == 5:
                assert kept.per_event_mean == pytest.approx(np.mean(scores), abs=1e-9 if method == "ops" else 0.02)
            assert kept.iloc[2:5].to_dict() == {"fields": fields, "prior": "untempered", "replication": times}
            if method == "ops":
                assert request.mechanism.temperature == pytest.approx(max(1, 2 * spread(chosen) / epsilon))
                assert not request.mechanism.tempered_prior
            else:
                assert request.mechanism.scale == 2 * len(chosen) / epsilon
        difference = row(cell.tables["war_logs_ablation_differences"], epsilon=epsilon)
        if epsilon == 5:
            less = np.mean(per_event["laplace", epsilon]) - np.mean(per_event["ops", epsilon])
            assert difference.laplace_minus_ops_mean == pytest.approx(less, abs=0.02)
        # 4D²/Δ such events in a mean cell times ε: noise on cells and tempering blur a level's count alike.
        cells = sum(totals(range(5), chosen[0], times)) / 5
        means = [total / 5 for total in totals(range(5), levels, times)]
        rare = [mean for mean in means if mean * epsilon < 4 * len(chosen) ** 2 / spread(chosen)]
        assert (0 < len(rare) < len(means)) == (epsilon == small)
        for line in (kept, difference):
            assert line.events_per_cell == pytest.approx(cells)
            assert line.rare_levels_per_event == pytest.approx(sum(rare) / cells)
