"""Studies of networks and classifiers, computed a second time: splits, scores, and posteriors by enumeration."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from recomputed import ks, log_beta, mean_and_error, row, run, spied
from recomputed_graphs import adult_toy, aware, chance, counted, divergence, learned, mmd2, naive_bayes, posterior_means
from scipy.special import betainc

from privpost.experiments.noise_aware import scores as noise_aware_scores
from privpost.experiments.zhang2016.adult_network import study as adult
from privpost.experiments.zhang2016.naive_bayes import study as zhang
from privpost.models.networks.bayesian_network import BayesianNetwork
from privpost.samplers.noise_aware import records as noise_aware_records

COLLIDER = [(), (), (0, 1)]


def classify(theta, record, parents) -> bool:
    """Whether the likelier class is the record's; a tie predicts 0."""
    zero, one = (chance([label, *record[1:]], theta, parents) for label in (0, 1))
    return (one > zero) == (record[0] == 1)


# Zhang et al. 2016, figure 1


@pytest.mark.parametrize("data", ["many", "one"])
def test_a_classifier_is_tested_on_the_records_that_did_not_train_it(monkeypatch, data):
    made, tested = spied(monkeypatch, BayesianNetwork, "sample_data"), spied(monkeypatch, zhang, "accuracy")
    cell = run(
        "zhang2016/naive_bayes", 6, 3, data=data, attributes=2, n=13, n_train=5, epsilon=[2.0], model_alpha=2,
        method=["non_private", "laplace", "sampler_record", "sampler_attribute"],
    )  # fmt: skip
    parents, found = naive_bayes(2), {"non_private": [], "laplace": [], "sampler_record": []}
    for block in range(2):
        (request, release), (_, drawn) = (
            cell.ledger.of(f"{method}/paper/epsilon=2")[block] for method in ("laplace", "sampler_record")
        )
        attributes, labels = tested[block].given[1:]
        # Noise is that of the block's stream, at scale 2|I|/ε.
        noise = cell.streams("mechanism", block).laplace(size=(3, 10))
        theta = cell.streams("data", block).beta(2, 1, (1 if data == "one" else 3, 5))
        np.testing.assert_array_equal(made[block].given[1], theta)
        for trial in range(3):
            everybody = made[block].result[0 if data == "one" else trial]
            assert everybody.shape == (13, 3)
            tests = np.column_stack([labels[trial], attributes[trial]]).astype(int)
            train = [list(record) for record in everybody.tolist()]
            for record in tests.tolist():
                train.remove(record)
            assert (len(train), len(tests)) == (5, 8)
            counts = counted(train, parents)
            assert request.statistics[trial].tolist() == counts
            noisy = [count + 3.0 * value for count, value in zip(counts, noise[trial], strict=True)]
            np.testing.assert_allclose(release.values[trial], noisy)
            clipped = [min(max(value, 0.0), 5.0) for value in noisy]
            means = {"non_private": posterior_means(counts), "laplace": posterior_means(clipped)}
            means["sampler_record"] = drawn.values[trial]
            for method, theta in means.items():
                right = [classify(theta, record, parents) for record in tests.tolist()]
                found[method].append(sum(right) / len(right))
    table = cell.tables["naive_bayes"]
    # Stealth is of Fourier releases.
    assert table.stealth_rate.isna().all() and set(table.runs) == {"all"}
    assert set(cell.tables["naive_bayes_pairs"].runs) == {"all"}
    if data == "one":
        # One data set is split anew in each repeat.
        splits = [request.statistics.tolist() for request, _ in cell.ledger.of("laplace/paper/epsilon=2")]
        assert all(any(counts != block[0] for counts in block) for block in splits)
    for method, values in found.items():
        kept = row(table, method=method, runs="all")
        assert (kept.accuracy_mean, kept.accuracy_sem) == pytest.approx(mean_and_error(values))
    # At the attribute level a record of three attributes may lose 3ε.
    for method, spent in (("laplace", 2.0), ("sampler_record", 2.0), ("sampler_attribute", 6.0)):
        assert row(table, method=method).epsilon_record == spent
    pairs = row(cell.tables["naive_bayes_pairs"], method="sampler_record", other="laplace", epsilon=2.0)
    difference = [a - b for a, b in zip(found["sampler_record"], found["laplace"], strict=True)]
    assert (pairs.difference_mean, pairs.difference_sem) == pytest.approx(mean_and_error(difference))


def test_a_tie_between_classes_predicts_0():
    theta, labels = np.full((1, 1, 5), 0.5), np.array([[True, False, False, False]])
    assert zhang.accuracy(theta, np.zeros((1, 4, 2), np.float32), labels) == pytest.approx(0.75)


# Noise-aware naive Bayes: one attribute, so that all counts can be listed


def all_counts(n: int):
    """Counts of the network y → x of n records, each with the number of data sets and their marginal probability."""
    for ones in range(n + 1):
        for first, second in itertools.product(range(n - ones + 1), range(ones + 1)):
            counts = [ones, n - ones, first, n - ones - first, second, ones - second]
            ways = math.comb(n, ones) * math.comb(n - ones, first) * math.comb(ones, second)
            pairs = zip(counts[::2], counts[1::2], strict=True)
            yield counts, ways * math.exp(sum(log_beta(1 + a, 1 + b) for a, b in pairs))


def scores(weighted, theta, tests) -> dict:
    """Quantiles of θ, and predictions of tests, under a mixture of conjugate posteriors [(weight, counts)]."""
    total = sum(weight for weight, _ in weighted)
    quantiles, chances = np.zeros(3), np.zeros((len(tests), 2))
    for weight, counts in weighted:
        a, b = 1 + np.array(counts[::2], float), 1 + np.array(counts[1::2], float)
        quantiles += weight / total * betainc(a, b, theta)
        # The probabilities of class and attribute are independent given the counts.
        means = posterior_means(counts)
        for i, (_, x) in enumerate(tests):
            for label in (0, 1):
                chances[i, label] += weight / total * chance([label, x], means, naive_bayes(1))
    own = np.array([chances[i, label] for i, (label, _) in enumerate(tests)])
    return {
        "quantiles": quantiles,
        "accuracy": np.mean([(one > zero) == label for (zero, one), (label, _) in zip(chances, tests, strict=True)]),
        "log_likelihood": np.log(own).mean(),
        "label_log_likelihood": np.log(own / chances.sum(axis=1)).mean(),
    }


def test_a_noise_aware_classifier_sums_over_all_counts_with_the_noise_that_was_added(monkeypatch):
    made = spied(monkeypatch, BayesianNetwork, "sample_data")
    cell = run("noise_aware/naive_bayes", 4, 2, attributes=1, n=3, n_test=5, epsilon=[1.5], concentration=1)
    found = {line: [] for line in [("non_private", "paper"), ("naive", "paper"), ("exact", "paper")]}
    for trial in range(4):
        theta, records = (each[trial % 2] for each in (made[trial // 2].given[1], made[trial // 2].result))
        records = records.tolist()
        release = cell.ledger.released("counts/epsilon=1.5")[trial]
        counts = counted(records[:3], naive_bayes(1))
        # A record changes two counts of either node by one each: Δ = 4.
        noise = cell.streams("mechanism", trial // 2).laplace(size=(2, 6))[trial % 2]
        np.testing.assert_allclose(release, np.array(counts) + 4 / 1.5 * noise)
        weighted = {
            "non_private": [(1.0, counts)],
            "naive": [(1.0, [min(max(value, 0.0), 3.0) for value in release])],
            "exact": [
                (weight * math.exp(-sum(abs(y - c) for y, c in zip(release, each, strict=True)) * 1.5 / 4), each)
                for each, weight in all_counts(3)
            ],
        }
        for method, law in weighted.items():
            score = scores(law, theta, records[3:])
            score["mmd2"] = mmd2(law, weighted["non_private"])
            score["truncated"] = np.mean([value < 0 or value > 3 for value in release])
            found[method, "paper"].append(score)
    tables = cell.tables
    for (method, variant), values in found.items():
        named = {"method": method, "variant": variant, "epsilon": None if method == "non_private" else 1.5}
        for metric in ("accuracy", "log_likelihood", "label_log_likelihood", "mmd2"):
            if (method, metric) != ("non_private", "mmd2"):
                kept = row(tables["naive_bayes"], metric=metric, **named)
                expected = mean_and_error([value[metric] for value in values])
                # Midpoints of 200 cells leave 1e-4 of an MMD.
                assert (kept["mean"], kept["sem"]) == pytest.approx(expected, rel=1e-3 if metric == "mmd2" else 1e-9)
                if method == "naive":
                    assert kept.truncated_share == pytest.approx(np.mean([value["truncated"] for value in values]))
        for place, parameter in enumerate(("y", "x1 | y = 0", "x1 | y = 1")):
            quantiles = [value["quantiles"][place] for value in values]
            assert row(tables["naive_bayes_calibration"], parameter=parameter, **named).ks == pytest.approx(
                ks(quantiles)
            )
            own = tables["naive_bayes_ecdf"].query("method == @method and variant == @variant")
            for u in (0.25, 0.75):
                share = sum(quantile <= u for quantile in quantiles) / 4
                assert row(own, parameter=parameter, u=u).ecdf == pytest.approx(share)
    # Nothing of the exact counts is truncated.
    assert not cell.arrays["truncated"][0].any()
    pair = row(
        tables["naive_bayes_pairs"], first="naive", first_variant="paper", second="exact", second_variant="paper",
        metric="log_likelihood",
    )  # fmt: skip
    both = [[value["log_likelihood"] for value in found[method, "paper"]] for method in ("naive", "exact")]
    assert pair.difference_mean == pytest.approx(np.mean(both[0]) - np.mean(both[1]))


def test_all_attributes_have_their_quantiles_and_the_class_and_first_one_their_spread(monkeypatch):
    """Two attributes: sums over all counts of three records, to rounding; the prior's variance is that of a uniform."""
    made, parents = spied(monkeypatch, BayesianNetwork, "sample_data"), naive_bayes(2)
    cell = run("noise_aware/naive_bayes", 4, 2, attributes=2, n=3, n_test=1, epsilon=[1.5, 9.0], concentration=1)
    ones = range(4)
    tables = [
        ([y, 3 - y, a, 3 - y - a, b, y - b, c, 3 - y - c, d, y - d],
         math.comb(3, y) * math.comb(3 - y, a) * math.comb(y, b) * math.comb(3 - y, c) * math.comb(y, d))
        for y, a, b, c, d in itertools.product(ones, repeat=5) if max(a, c) <= 3 - y and max(b, d) <= y
    ]  # fmt: skip
    laws = [
        (counts, ways * math.exp(sum(log_beta(1 + counts[k], 1 + counts[k + 1]) for k in range(0, 10, 2))))
        for counts, ways in tables
    ]
    lines = noise_aware_scores.lines(cell.config.method)
    aware_line, plain = lines.index(("exact", "paper")), lines.index(("non_private", "paper"))
    for e, epsilon in enumerate((1.5, 9.0)):
        variances = []
        for trial in range(4):
            theta, records = (each[trial % 2] for each in (made[trial // 2].given[1], made[trial // 2].result))
            release = cell.ledger.released(f"counts/epsilon={epsilon:g}")[trial]
            # A record changes two counts of each of three nodes: Δ = 6.
            weights = np.array([
                weight * math.exp(-sum(abs(r - c) for r, c in zip(release, counts, strict=True)) * epsilon / 6)
                for counts, weight in laws
            ])  # fmt: skip
            weights /= weights.sum()
            table = np.array([counts for counts, _ in laws], float)
            a, b = 1 + table[:, ::2], 1 + table[:, 1::2]
            mean, square = weights @ (a / (a + b)), weights @ (a * (a + 1) / ((a + b) * (a + b + 1)))
            variances.append((square - mean**2)[:3])
            known = 1 + np.array(counted(records[:3].tolist(), parents), float)
            for line, expected in (
                (aware_line, weights @ betainc(a, b, theta)), (plain, betainc(known[::2], known[1::2], theta))
            ):  # fmt: skip
                np.testing.assert_allclose(cell.arrays["quantile"][line, e, :, trial], expected[:3], atol=1e-9)
                np.testing.assert_allclose(cell.arrays["others"][line, e, :, trial], expected[3:], atol=1e-9)
        np.testing.assert_allclose(cell.arrays["sd_of_prior"][e], np.sqrt(12 * np.mean(variances, axis=0)), rtol=1e-9)


# A chain on records


def test_chains_on_adult_are_told_the_noise_and_are_compared_in_their_trials(monkeypatch):
    """A list of all data sets decides; averages of 1600 dependent draws are within 0.03 of it."""
    told, toy = spied(monkeypatch, noise_aware_records, "Records"), adult_toy(monkeypatch)
    assessed = spied(monkeypatch, adult, "assess")
    cell = run(
        "zhang2016/adult_network", 4, 2, n=[2], epsilon=[4.0], method=["laplace", "gibbs"], graph=["learned"],
        alpha=1, beta=1, t=0.2, most_parents=2, aware_up_to=2, chain_trials=2, burn_in=20, draws=400, thin=1,
    )  # fmt: skip
    test, private = ([r for r, out in zip(toy["records"], toy["is_test"], strict=True) if out == half]
                     for half in (True, False))  # fmt: skip
    parents, rng, found = learned(test[::2], 2), cell.streams("data", 0, n=2), []
    releases = cell.ledger.released("laplace/learned/n=2/epsilon=4")
    for trial in range(2):
        counts = counted([private[i] for i in rng.choice(len(private), 2, replace=False)], parents)
        truth, clipped = posterior_means(counts), [min(max(value, 0.0), 2) for value in releases[trial]]
        others = aware(releases[trial], 2, parents, 2.0), posterior_means(clipped)
        found.append([divergence(truth, other, parents) for other in others])
    # Four nodes: Δ = 8, and ε is 4; four chains a trial.
    ((_, given, n, scale), *_) = (call.given for call in told)
    assert (len(told), n, scale) == (1, 2, 2.0)
    np.testing.assert_array_equal(given, np.repeat(releases[:2], 4, axis=0))
    # Draws, then chains, then trials, then parameters.
    assert assessed[0].given[0].shape == (400, 4, 2, len(truth))
    kept = row(cell.tables["adult_network"], method="gibbs")
    assert (kept.n_repeats, kept.epsilon_record, kept.sampling) == (2, 4.0, "mcmc")
    # Chains of one trial agree, and 1600 draws are worth more than 100.
    assert 0.99 < kept.rhat_max < 1.1 and kept.ess_min > 100
    assert kept.divergence_mean == pytest.approx(np.mean([own for own, _ in found]), abs=0.03)
    less = kept.divergence_mean - np.mean([other for _, other in found])
    assert kept.divergence_less_laplace_mean == pytest.approx(less)
