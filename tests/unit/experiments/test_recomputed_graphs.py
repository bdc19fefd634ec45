"""Studies of released networks, computed a second time: errors of marginals, the networks on Adult, stealth."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from recomputed import mean_and_error, quantile, row, run, spied
from recomputed_graphs import (
    adult_toy,
    agreeing,
    aware,
    chance,
    counted,
    divergence,
    learned,
    naive_bayes,
    posterior_means,
    rebuilt,
    signed,
    simulated,
    trimmed_place,
)

from privpost.experiments.zhang2016.adult_network import study as adult


def fourier_means(release, parents, epsilon: float, t: float, alpha: float = 1, beta: float = 1) -> list[float]:
    """Posterior means from signed sums: that of the empty set is raised by 4t|N|²/ε, negative counts are set to 0."""
    counts, slopes = rebuilt(release, parents)
    raised = [max(c + 4 * t * len(release) ** 2 / epsilon * s, 0.0) for c, s in zip(counts, slopes, strict=True)]
    return posterior_means(raised, alpha, beta)


def check_noise(account, stream, exact, scale: float) -> None:
    """A release is what the records say, and the stream's noise at a scale: rounding apart."""
    (request, release), *_ = account
    noise = stream.laplace(size=np.shape(exact))
    np.testing.assert_allclose(release.values, np.array(exact) + scale * noise, atol=1e-9)
    assert request.mechanism.scale == pytest.approx(scale)


# Networks on Adult: three bits and the class, of 16 records


@pytest.fixture
def toy(monkeypatch):
    return adult_toy(monkeypatch)


def test_networks_on_adult_are_scored_on_test_records_and_told_their_noise(toy, monkeypatch):
    """Loops and lists of all data sets decide; only rounding is left. No chain is run where none is asked for."""
    chains = spied(monkeypatch, adult, "_chained")
    n, epsilon, methods = 3, 4.0, ["non_private", "laplace", "consistent", "exact", "fourier"]
    methods += ["sampler_record", "sampler_attribute"]
    cell = run(
        "zhang2016/adult_network", 4, 2, n=[n], epsilon=[epsilon], method=methods, graph=["naive_bayes", "learned"],
        alpha=1, beta=1, t=0.2, most_parents=2, aware_up_to=n,
    )  # fmt: skip
    assert not chains
    test = [record for record, out in zip(toy["records"], toy["is_test"], strict=True) if out]
    private = [record for record, out in zip(toy["records"], toy["is_test"], strict=True) if not out]
    names = ["male", "white", "married", adult.CLASS]
    graphs = {"naive_bayes": naive_bayes(3), "learned": learned(test[::2], 2)}
    assert any(len(own) == 2 for own in graphs["learned"])
    edges = cell.tables["adult_graphs"].query("graph == 'learned'")
    assert edges.parents.tolist() == [", ".join(names[j] for j in own) for own in graphs["learned"]]
    assert edges.in_degree.tolist() == [len(own) for own in graphs["learned"]]
    subsets = [cell.streams("data", block, n=n) for block in range(2)]
    subsets = [rng.choice(len(private), n, replace=False) for rng in subsets for _ in range(2)]
    for kind, parents in graphs.items():
        order = [3, 0, 1, 2] if kind == "naive_bayes" else [0, 1, 2, 3]
        tests = [[record[i] for i in order] for record in test[1::2]]
        found = {method: [] for method in methods}
        for trial in range(4):
            records = [[private[i][k] for k in order] for i in subsets[trial]]
            counts, block = counted(records, parents), trial // 2
            truth = posterior_means(counts)
            releases = {
                name: cell.ledger.of(f"{name}/{kind}/n={n}/epsilon=4")[block] for name in ("laplace", *methods[4:])
            }
            assert all(request.statistics[trial % 2].tolist() == counts for request, _ in releases.values())
            values = {name: release.values[trial % 2] for name, (_, release) in releases.items()}
            # Four nodes: Δ = 8. All subsets of families change their sign at most.
            sums = signed(records, parents)
            for name, exact, scale in (("laplace", counts, 8 / epsilon), ("fourier", sums, 2 * len(sums) / epsilon)):
                noise = cell.streams("mechanism", block, graph=kind, n=n).laplace(size=(2, len(exact)))[trial % 2]
                np.testing.assert_allclose(values[name], np.array(exact) + scale * noise, atol=1e-9)
            uniform = cell.streams("mechanism", block, graph=kind, n=n).random((2, len(truth)))[trial % 2]
            for name, exponent in (("sampler_record", epsilon / 8), ("sampler_attribute", epsilon / 2)):
                omega = 1 / (1 + math.exp(exponent))
                draws = zip(values[name], counts[::2], counts[1::2], strict=True)
                places = [trimmed_place(x, 1 + a, 1 + b, omega) for x, a, b in draws]
                np.testing.assert_allclose(places, uniform, atol=1e-7)
            theta = {"non_private": truth, "fourier": fourier_means(values["fourier"], parents, epsilon, 0.2)}
            theta["laplace"] = posterior_means([min(max(value, 0.0), n) for value in values["laplace"]])
            theta["consistent"] = posterior_means(agreeing(values["laplace"], n, parents))
            theta |= {name: values[name] for name in methods[5:]}
            if kind == "naive_bayes":
                theta["exact"] = aware(values["laplace"], n, parents, 8 / epsilon)
            for method, own in theta.items():
                right = 0
                for record in tests:
                    both = [list(record), list(record)]
                    for label in (0, 1):
                        both[label][order.index(3)] = label
                    zero, one = (chance(each, own, parents) for each in both)
                    right += (one > zero) == (record[order.index(3)] == 1)
                found[method].append((right / len(tests), divergence(truth, own, parents)))
        check_rows(cell.tables["adult_network"].query("graph == @kind"), found, epsilon)


def test_networks_on_adult_have_a_graph_for_all_n_and_no_difference_without_laplace(toy):
    cell = run(
        "zhang2016/adult_network", 2, 2, n=[2, 3], epsilon=[4.0], method=["non_private", "fourier"], graph=["learned"],
        alpha=1, beta=1, t=0.2, most_parents=2, aware_up_to=3,
    )  # fmt: skip
    assert cell.tables["adult_graphs"].node.tolist() == ["male", "white", "married", adult.CLASS]
    assert not [name for name in cell.tables["adult_network"] if "less_laplace" in name]
    assert set(cell.tables["adult_network"].sampling) == {"exact"}


def check_rows(table, found, epsilon: float) -> None:
    """Means over a method's trials, and differences from Laplace in the same trials."""
    assert set(table.method) == {method for method, values in found.items() if values}
    for method, values in found.items():
        for place, name in enumerate(("accuracy", "divergence") if values else ()):
            own, kept = [value[place] for value in values], row(table, method=method)
            assert kept.n_repeats == 4
            assert (kept[f"{name}_mean"], kept[f"{name}_sem"]) == pytest.approx(mean_and_error(own), abs=1e-9)
            if method != "non_private":
                less = mean_and_error([a - b[place] for a, b in zip(own, found["laplace"], strict=True)])
                assert (kept[f"{name}_less_laplace_mean"], kept[f"{name}_less_laplace_sem"]) == pytest.approx(less)
                # At the attribute level a record of four attributes may lose 4ε.
                assert kept.epsilon_record == epsilon * (4 if method == "sampler_attribute" else 1)


# Stealth of naive Bayes


def needed(sums, parents, epsilon: float) -> float:
    """The least t at which no count is negative, the sum of the empty set being raised by 4t|N|²/ε."""
    counts, slopes = rebuilt(sums, parents)
    unit = 4 * len(sums) ** 2 / epsilon
    return max(0.0, *(-count / (unit * slope) for count, slope in zip(counts, slopes, strict=True)))


def stealthy_means(differences, stealthy) -> tuple[float, float]:
    """Mean over ε of means over stealthy runs, and the error from each run's part in it."""
    runs, parts = len(differences[0]), [0.0] * len(differences[0])
    for own, chosen in zip(differences, stealthy, strict=True):
        level = sum(d for d, c in zip(own, chosen, strict=True) if c) / sum(chosen)
        for i, (d, c) in enumerate(zip(own, chosen, strict=True)):
            parts[i] += (level + c * (d - level) * runs / sum(chosen)) / len(differences)
    return mean_and_error(parts)


def pilot_records(rng, parents) -> list:
    """Six data sets of five records of two attributes, under a prior Beta(2, 1)."""
    theta = rng.beta(2, 1, (6, 5))
    return [simulated(*each, parents) for each in zip(theta, rng.random((6, 5, 3)), strict=True)]


def test_stealth_is_counted_at_a_t_of_pilot_data_and_differences_are_averaged_over_budgets():
    """Loops over releases decide; accuracies are the study's, whose recomputation is another test."""
    epsilons, target, ts = [2.0, 8.0], 0.7, [0.01, 0.1, 0.5]
    cell = run(
        "zhang2016/naive_bayes", 12, 6, data="many", attributes=2, n=30, n_train=5, epsilon=epsilons, t=ts,
        stealth_target=target, bound_t=0.4, method=["laplace", "fourier", "sampler_record"], model_alpha=2,
    )  # fmt: skip
    parents, table = naive_bayes(2), cell.tables["naive_bayes"]
    assert set(table[table.method != "fourier"].runs) == {"all"}
    pairs = cell.tables["naive_bayes_pairs"]
    assert set(pairs[pairs.runs == "stealthy"].method) == {"fourier"}
    pilot = [pilot_records(cell.streams("pilot", block), parents) for block in range(2)]
    lines = [("laplace", "paper"), *(("fourier", variant) for variant in ("paper", "bound", "corrected"))]
    lines.append(("sampler_record", "paper"))
    stealthy, smallest = {}, {}
    for epsilon, variant in itertools.product(epsilons, ("paper", "bound", "corrected")):
        # Six subsets; of the constant one the corrected variant has no noise, and one record flips four others.
        free, scale = (1, 2 * 4 / epsilon) if variant == "corrected" else (0, 2 * 6 / epsilon)
        account, t = f"fourier/{variant}/epsilon={epsilon:g}", 0.4
        if variant != "bound":
            least = []
            # Both variants' pilots have the stream from its start.
            stream = cell.streams("pilot noise")
            for records in pilot:
                sums = np.array([signed(own, parents) for own in records], float)
                sums[:, free:] += scale * stream.laplace(size=(6, 6 - free))
                least += [needed(own, parents, epsilon) for own in sums]
            t = quantile(least, target)
        releases = cell.ledger.released(account)
        if free:
            releases = np.column_stack([np.full(12, 5.0), releases])
        least = [needed(own, parents, epsilon) for own in releases]
        stealthy[variant, epsilon] = [value <= t for value in least]
        smallest[variant, epsilon] = least
        kept = row(table, method="fourier", variant=variant, runs="all", epsilon=epsilon)
        assert (kept.t, kept.stealth_rate) == pytest.approx((t, sum(stealthy[variant, epsilon]) / 12))
        assert kept.epsilon_record == epsilon
    for epsilon, t in itertools.product(epsilons, ts):
        share = sum(value <= t for value in smallest["paper", epsilon]) / 12
        kept = row(cell.tables["stealth"], epsilon=epsilon, t=t)
        error = math.sqrt(share * (1 - share) / 12)
        assert (kept.stealth_rate, kept.stealth_sem, kept.bound) == pytest.approx((share, error, 1 - math.exp(-t)))
    accuracy = dict(zip(lines, cell.arrays["accuracy"].tolist(), strict=True))
    # No line is compared with itself.
    assert cell.tables["naive_bayes_pairs"].query("method == other and variant == other_variant").empty
    for first, second in itertools.permutations(lines, 2):
        own = [
            [a - b for a, b in zip(*both, strict=True)] for both in zip(accuracy[first], accuracy[second], strict=True)
        ]
        chosen = [stealthy[first[1], epsilon] if first[0] == "fourier" else [True] * 12 for epsilon in epsilons]
        named = {"method": first[0], "variant": first[1], "other": second[0], "other_variant": second[1]}
        for runs, picked in (("all", [[True] * 12] * 2), ("stealthy", chosen)):
            if runs == "stealthy" and first[0] != "fourier":
                continue
            kept = row(cell.tables["naive_bayes_pairs"].query("runs == @runs"), **named, epsilon=None)
            assert (kept.difference_mean, kept.difference_sem) == pytest.approx(stealthy_means(own, picked))
            for place, epsilon in enumerate(epsilons):
                values = [d for d, c in zip(own[place], picked[place], strict=True) if c]
                kept = row(cell.tables["naive_bayes_pairs"].query("runs == @runs"), **named, epsilon=epsilon)
                assert (kept.difference_mean, kept.n_repeats) == pytest.approx((sum(values) / len(values), len(values)))
