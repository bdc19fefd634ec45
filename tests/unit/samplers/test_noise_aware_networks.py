"""Noise-aware posteriors of Bayesian networks: against the sum over all tables, each other, and calibration."""

import itertools

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import betaln, gammaln
from scipy.stats import beta as beta_law

from privpost.evaluation import mmd
from privpost.evaluation.calibration import ks_p_value, ks_statistic
from privpost.experiments.noise_aware.naive_bayes import claims as naive_bayes_claims
from privpost.experiments.noise_aware.naive_bayes import study as naive_bayes
from privpost.lab import grid, tables
from privpost.lab.claims import score
from privpost.mechanisms.noise.network import NetworkLaplace
from privpost.models.networks import graphs
from privpost.models.networks.bayesian_network import BayesianNetwork
from privpost.models.networks.consistency import consistent_counts
from privpost.samplers.chain import run
from privpost.samplers.naive_bayes import exact as naive_bayes_exact
from privpost.samplers.noise_aware import records as noise_aware_records
from privpost.samplers.noise_aware.exact import conditional_cdf
from privpost.samplers.noise_aware.records import Records
from privpost.samplers.noise_aware.table import State, Tables, cells

# KS test at 1e-4: a false alarm in 10,000 seeds, and none at the fixed ones.
ALARM = 1e-4
DIAMOND = (("a", ()), ("b", ("a",)), ("c", ("a", "b")))


def enumerate_tables(model, release, n, scale):
    """All contingency tables of n records as counts (tables, 2m), and their posterior probabilities."""
    _, counts = cells(model)
    size = len(counts)
    bars = np.array(list(itertools.combinations(range(n + size - 1), size - 1)))
    ends = np.full((len(bars), 1), -1), np.full((len(bars), 1), n + size - 1)
    table = np.diff(np.hstack([ends[0], bars, ends[1]]), axis=1) - 1
    statistics = table @ counts
    pairs = model.pairs(model.posterior(statistics))
    log_weights = betaln(pairs[..., 0], pairs[..., 1]).sum(axis=1) - gammaln(table + 1).sum(axis=1)
    log_weights -= np.abs(release - statistics).sum(axis=1) / scale
    weights = np.exp(log_weights - log_weights.max())
    return table, statistics, weights / weights.sum()


def releases(model, n, scale, size, rng):
    """True parameters, true counts, and noisy ones, `size` of each, parameters from the prior."""
    theta = model.sample(model.prior, rng, size)
    statistics = model.sufficient_statistics(model.sample_data(theta, n, rng))
    return theta, statistics, statistics + rng.laplace(0, scale, statistics.shape)


def counts_of(state):
    """Latent counts (chains, 2m) of either chain."""
    return state.counts.T if hasattr(state, "table") else state.counts.reshape(len(state.counts), -1)


# Exact posterior of naive Bayes


@pytest.mark.parametrize("prior, scale", [((1, 1), 1.7), ((2, 0.6), 0.4), ((1, 3), 30.0)])
def test_exact_naive_bayes_is_the_sum_over_all_tables(prior, scale):
    model, n = BayesianNetwork(graphs.naive_bayes(2), *prior), 5
    release = np.random.default_rng(1).normal(2, 4, (3, 10))
    found = naive_bayes_exact.posterior(model, release, n, scale)
    records, _ = cells(model)
    log_predictive = naive_bayes_exact.log_predictive(found, np.tile(records[:, 1:], (3, 1, 1)))

    def shared(total):
        ones = np.arange(total + 1.0)
        return np.stack([ones, (total - ones) ** 2], axis=-1)

    for trial in range(3):
        _, statistics, weights = enumerate_tables(model, release[trial], n, scale)
        size = np.bincount(statistics[:, 0].astype(int), weights, n + 1)
        # Rounding only.
        assert found.weights[trial] == pytest.approx(size, abs=1e-12)
        predictive = weights @ model.record_probabilities(model.mean(model.posterior(statistics)))
        mine = np.exp(log_predictive[trial, np.arange(len(records)), records[:, 0]])
        assert mine == pytest.approx(predictive, abs=1e-12)
        assert mine.sum() == pytest.approx(1, abs=1e-12)
        for place, index in ((None, 0), ((0, 0), 1), ((0, 1), 2), ((1, 0), 3), ((1, 1), 4)):
            ones, zeros = statistics[:, 2 * index], statistics[:, 2 * index + 1]
            features, own = naive_bayes_exact.expectations(
                found, place, shared, lambda total: np.tile(np.sqrt(np.arange(total + 1.0)), (3, 1))
            )
            assert features[trial] == pytest.approx([weights @ ones, weights @ zeros**2], rel=1e-11)
            assert own[trial] == pytest.approx(weights @ np.sqrt(ones), rel=1e-11)


def test_truncated_counts_tell_as_much():
    # A count truncated to [0, n] is censored; its likelihood is that of the untruncated one up to a constant.
    model, n, scale = BayesianNetwork(graphs.naive_bayes(3)), 12, 8.0
    _, _, release = releases(model, n, scale, 50, np.random.default_rng(2))
    truncated = NetworkLaplace(model, n, 1.0).project(release)
    assert np.mean(truncated != release) > 0.3
    plain, censored = (naive_bayes_exact.posterior(model, z, n, scale) for z in (release, truncated))
    # Rounding only.
    assert censored.weights == pytest.approx(plain.weights, abs=1e-12)
    assert censored.means == pytest.approx(plain.means, abs=1e-12)


def test_family_by_family_is_the_posterior_of_each_family_alone():
    model, pair, n, scale = BayesianNetwork(graphs.naive_bayes(3)), BayesianNetwork(graphs.naive_bayes(1)), 12, 3.0
    _, _, release = releases(model, n, scale, 6, np.random.default_rng(12))
    found = naive_bayes.family_means(naive_bayes_exact.posterior(model, release, n, scale))
    for attribute in range(3):
        own = release[:, [0, 1, *range(2 + 4 * attribute, 6 + 4 * attribute)]]
        alone = naive_bayes_exact.posterior(pair, own, n, scale)
        means = np.einsum("tck,tk->tc", alone.means[:, 0], alone.weights)
        # Rounding only.
        assert found[:, 1 + 2 * attribute : 3 + 2 * attribute] == pytest.approx(means, abs=1e-12)
    # Under Beta(1, 1) all N are equally likely before the class's own counts.
    weights, _ = naive_bayes_exact.by_family(naive_bayes_exact.posterior(model, release[0], n, scale))
    ones = np.arange(n + 1)
    direct = np.exp(-(np.abs(release[0, 0] - ones) + np.abs(release[0, 1] - (n - ones))) / scale)
    assert weights == pytest.approx(direct / direct.sum(), abs=1e-12)


def quantiles(model, theta, release, n, scale):
    """Posterior quantiles of θ of the first attribute in class 1, (trials,)."""
    found = naive_bayes_exact.posterior(model, release, n, scale)
    prior = (model.alpha, model.beta)
    _, cdf = naive_bayes_exact.expectations(
        found, (0, 1), lambda total: np.zeros((total + 1, 0)), lambda total: conditional_cdf(prior, theta[:, 2], total)
    )
    return np.clip(cdf, 0, 1)


def test_exact_naive_bayes_is_calibrated_and_a_wrong_scale_is_caught():
    model, n, scale = BayesianNetwork(graphs.naive_bayes(4), 2, 1), 30, 5.0
    theta, _, release = releases(model, n, scale, 2000, np.random.default_rng(3))
    assert ks_p_value(ks_statistic(quantiles(model, theta, release, n, scale)), 2000) > ALARM
    # A scale too large leads towards the prior, which is calibrated as well.
    assert ks_p_value(ks_statistic(quantiles(model, theta, release, n, scale / 2)), 2000) < ALARM


def test_large_counts_and_little_noise_do_not_underflow():
    model, n, scale = BayesianNetwork(graphs.naive_bayes(2)), 400, 0.05
    _, statistics, release = releases(model, n, scale, 5, np.random.default_rng(4))
    found = naive_bayes_exact.posterior(model, release, n, scale)
    # Noise of a twentieth of a record leaves no doubt about the counts.
    assert np.argmax(found.weights, axis=-1).tolist() == statistics[:, 0].tolist()
    assert np.isfinite(found.means).all()


def test_other_graphs_and_releases_are_refused():
    with pytest.raises(ValueError, match="must be a class and its children"):
        naive_bayes_exact.posterior(BayesianNetwork(graphs.chain(3)), np.zeros((1, 10)), 5, 1.0)
    with pytest.raises(ValueError, match="release has 8 counts; the network has 10"):
        naive_bayes_exact.posterior(BayesianNetwork(graphs.naive_bayes(2)), np.zeros((1, 8)), 5, 1.0)


# Chains on the table and on the records


@pytest.mark.parametrize("chains_of", [Tables, Records])
@pytest.mark.parametrize("graph", [graphs.collider(2), DIAMOND], ids=["collider", "triangle"])
def test_chain_has_the_moments_of_the_enumerated_posterior(graph, chains_of):
    model, n, scale, chains = BayesianNetwork(graph, 2, 0.7), 4, 1.5, 1500
    release = np.random.default_rng(5).normal(1.5, 2, 2 * model.theta_shape[0])
    _, statistics, weights = enumerate_tables(model, release, n, scale)
    sampler = chains_of(model, np.tile(release, (chains, 1)), n, scale)
    draws = [counts_of(state).T.copy() for state, _ in run(sampler, np.random.default_rng(6), draws=40, burn_in=30)]
    for power in (1, 2):
        means = np.mean(np.array(draws, float) ** power, axis=0)
        error = means.std(axis=1) / np.sqrt(chains)
        # 5 standard errors of independent chains, for each of 2 · 12 numbers; counts that are nearly always 0 have an
        # error of nearly 0.
        assert np.abs(means.mean(axis=1) - weights @ statistics**power).max() < (5 * error + 1e-3).max()
        assert (np.abs(means.mean(axis=1) - weights @ statistics**power) < 5 * error + 1e-3).all()


@pytest.mark.parametrize("shifts", [False, True])
def test_each_kind_of_step_leaves_the_posterior_as_it_is(shifts):
    # Started from exact draws, so that the other kind of step cannot hide an error.
    model, n, scale, chains = BayesianNetwork(DIAMOND, 0.7, 2), 4, 1.5, 20_000
    rng = np.random.default_rng(7)
    release = rng.normal(1.5, 2, 2 * model.theta_shape[0])
    table, statistics, weights = enumerate_tables(model, release, n, scale)
    sampler = Tables(model, np.tile(release, (chains, 1)), n, scale)
    chosen = rng.choice(len(weights), chains, p=weights)
    state = State(table[chosen].T.copy(), statistics[chosen].T.astype(np.int64, order="C"))
    before = state.table.copy()
    for _ in range(3):
        sampler._take(np.flatnonzero((sampler._steps.theta >= 0) == shifts), state, rng)
    assert np.mean(state.table != before) > 0.1
    assert (cells(model)[1].T @ state.table == state.counts).all()
    index = {tuple(row): i for i, row in enumerate(table)}
    found = np.bincount([index[tuple(row)] for row in state.table.T], minlength=len(weights))
    likely = chains * weights > 20
    expected = chains * weights[likely]
    chi2 = np.sum((found[likely] - expected) ** 2 / expected)
    # χ² with as many degrees of freedom, 5 standard deviations.
    assert abs(chi2 - likely.sum()) < 5 * np.sqrt(2 * likely.sum())


@pytest.mark.parametrize(("kind", "more"), [(noise_aware_records.flips, ()), (noise_aware_records.shifts, (0.0,))])
def test_each_kind_of_step_on_records_leaves_the_posterior_as_it_is(kind, more):
    # As above; the bits of the network's last node are not in topological order.
    parents = (("c", ("a", "b")), ("a", ()), ("b", ("a",)))
    model, n, scale, chains = BayesianNetwork(parents, 0.7, 2), 4, 1.5, 20_000
    rng = np.random.default_rng(7)
    release = rng.normal(1.5, 2, 2 * model.theta_shape[0])
    table, _, weights = enumerate_tables(model, release, n, scale)
    alphabet, _ = cells(model)
    chosen = rng.choice(len(weights), chains, p=weights)
    # In random order: given the table all orders of the records are as likely.
    records = np.stack([rng.permutation(np.repeat(alphabet, table[k], axis=0)) for k in chosen]).astype(np.int8)
    before = np.sort(records @ [4, 2, 1], axis=1)
    counts = model.sufficient_statistics(records).astype(np.int64).reshape(chains, -1, 2)
    sampler = Records(model, np.tile(release, (chains, 1)), n, scale)
    for _ in range(3):
        kind(records, counts, sampler._release, sampler._scale, sampler._prior, sampler._graph, rng, *more)
    after = np.sort(records @ [4, 2, 1], axis=1)
    assert np.mean(after != before) > 0.1
    assert (model.sufficient_statistics(records).reshape(counts.shape) == counts).all()
    index = {tuple(row): i for i, row in enumerate(table)}
    codes = np.apply_along_axis(np.bincount, 1, after, minlength=len(alphabet))
    found = np.bincount([index[tuple(row)] for row in codes], minlength=len(weights))
    likely = chains * weights > 20
    expected = chains * weights[likely]
    # χ² with as many degrees of freedom, 5 standard deviations.
    assert abs(np.sum((found[likely] - expected) ** 2 / expected) - likely.sum()) < 5 * np.sqrt(2 * likely.sum())


@pytest.mark.parametrize("chains_of", [Tables, Records])
def test_chain_agrees_with_the_exact_posterior_of_naive_bayes(chains_of):
    model, n, scale, repeats = BayesianNetwork(graphs.naive_bayes(3)), 30, 4.0, 40
    _, _, release = releases(model, n, scale, 8, np.random.default_rng(8))
    found = naive_bayes_exact.posterior(model, release, n, scale)
    expected = (found.weights * found.means[:, 0, 1]).sum(axis=-1)
    sampler = chains_of(model, np.repeat(release, repeats, axis=0), n, scale)
    states = run(sampler, np.random.default_rng(9), draws=80, burn_in=60, thin=2)
    means = [model.mean(model.posterior(counts_of(state)))[:, 2] for state, _ in states]
    means = np.mean(means, axis=0).reshape(8, repeats)
    # 5 standard errors of 40 independent chains, for each of 8 releases.
    assert (np.abs(means.mean(axis=1) - expected) < 5 * means.std(axis=1) / np.sqrt(repeats)).all()


def test_settings_of_the_chain_are_checked():
    table = Tables(BayesianNetwork(graphs.chain(2)), np.zeros((1, 6)), 3, 1.0)
    for name, value in (("draws", 0), ("burn_in", -1), ("thin", 0)):
        with pytest.raises(ValueError, match=f"{name} is {value}"):
            run(table, np.random.default_rng(0), **{"draws": 1, name: value})
    with pytest.raises(ValueError, match="has 9 nodes; its table needs at most 8"):
        cells(BayesianNetwork(graphs.chain(9)))


# Consistent counts, distances, predictions


@pytest.mark.parametrize("graph", [graphs.naive_bayes(3), graphs.collider(2), DIAMOND])
def test_consistent_counts_are_the_least_squares_fit_of_a_table(graph):
    model, n = BayesianNetwork(graph), 20
    _, counts = cells(model)
    _, statistics, release = releases(model, n, 5.0, 4, np.random.default_rng(10))
    # Rounding only.
    assert consistent_counts(model, statistics, n) == pytest.approx(statistics, abs=1e-10)
    # Tables that are free but for their sum.
    free = counts[1:] - counts[0]
    table = np.linalg.lstsq(free.T, (release - n * counts[0]).T, rcond=None)[0]
    fit = n * counts[0] + (free.T @ table).T
    assert consistent_counts(model, release, n) == pytest.approx(fit, abs=1e-10)


@pytest.mark.parametrize("a, b", [(0.3, 2.0), (40.0, 3.5), (1.0, 1.0), (200.0, 51.0)])
def test_embedding_of_a_beta_law_is_the_integral(a, b):
    found = mmd.beta_embedding(a, b)
    draws = beta_law(a, b).rvs(4000, random_state=1)
    sample = mmd.embedding_sum(draws) / len(draws)
    # The largest feature has a standard deviation of at most 0.3, 5 standard errors.
    assert np.abs(found - sample).max() < 5 * 0.3 / np.sqrt(4000)
    for k in (0, 1, 5):
        scale = np.sqrt(float(np.prod(np.arange(1, k + 1))))
        integral = quad(
            lambda t, k=k: np.exp(-0.5 * (t - 0.5) ** 2) * (t - 0.5) ** k * beta_law.pdf(t, a, b),
            0,
            1,
            points=[a / (a + b)],
            epsabs=1e-12,
        )[0]
        # The quadrature's own error, larger at the singularity of a = 0.3.
        assert found[k] == pytest.approx(integral / scale, abs=1e-8)


def test_predictions_by_brute_force():
    rng = np.random.default_rng(11)
    bayes = BayesianNetwork(graphs.naive_bayes(2))
    theta, (records, _) = rng.random((1, *bayes.theta_shape)), cells(bayes)
    found = naive_bayes.conjugate_log_predictive(theta, records[None, :, 1:])[0, np.arange(8), records[:, 0]]
    assert np.exp(found) == pytest.approx(bayes.record_probabilities(theta)[0], abs=1e-12)


# The studies


def shipped(name):
    return tables.read_tables(grid.load_study(f"noise_aware/{name}"))


@pytest.fixture(scope="module")
def bayes():
    return shipped("naive_bayes")


def verdict(module, own, id):
    return next(claim.verdict for claim in score(module, own) if claim.id == id)


def test_noise_naive_accuracy_is_that_of_the_papers_experiment(bayes):
    # Another study with test records, code for predictions and random numbers of its own.
    ours, paper = bayes["naive_bayes"], tables.read_tables(grid.load_study("zhang2016/naive_bayes"))["naive_bayes"]
    ours = ours[(ours.n == 50) & (ours.concentration == 1) & (ours.metric == "accuracy") & (ours.variant == "paper")]
    paper = paper[(paper.runs == "all") & (paper.variant == "paper")]
    for method, other in (("naive", "laplace"), ("non_private", "non_private")):
        left, right = ours[ours.method == method], paper[paper.method == other]
        for row in left.itertuples():
            near = right if method == "non_private" else right[np.isclose(right.epsilon, row.epsilon)]
            for reference in near.itertuples():
                # 5 standard errors of the difference.
                assert abs(row.mean - reference.accuracy_mean) < 5 * np.hypot(row.sem, reference.accuracy_sem)


def test_the_row_that_a_verdict_hangs_on_is_named(bayes):
    pairs = bayes["naive_bayes_pairs"]
    chosen = (pairs["first"] == "naive") & (pairs.second == "exact") & (pairs.second_variant == "paper")
    chosen &= (pairs.first_variant == "consistent") & (pairs.metric == "mmd2") & (pairs.n == 50)
    row = pairs[chosen].index[0]
    own = pairs.assign(difference_mean=pairs.difference_mean.where(pairs.index != row, 2.0 * pairs.difference_sem))
    claim = next(c for c in score(naive_bayes_claims, {**bayes, "naive_bayes_pairs": own}) if c.id == "N4")
    name = "nearest its limit, mmd2"
    assert claim.failed == (claim.evidence[name],)
    assert claim.evidence[f"{name}, standard errors"] == pytest.approx(2.0, rel=1e-9)
    assert claim.evidence[f"{name}, standard errors asked for"] > 2.0
