"""`posterior` of networks, events and redacted sums, against exact posteriors."""

import itertools

import numpy as np
import pytest

import privpost
from privpost.mechanisms.noise.redacted import RedactedSum
from privpost.models.networks import graphs
from privpost.samplers.naive_bayes import exact as naive_bayes_exact
from privpost.samplers.noise_aware import draws as noise_aware_draws
from privpost.samplers.noise_aware import exact_counts
from privpost.samplers.noise_aware.quadrature import redacted_posterior

# Chains of 4000 draws that are worth a quarter as many or more: 0.3/√1000 is a standard error of a probability.
DRAWS, ERROR = 4000, 4 * 0.3 / 1000**0.5


@pytest.fixture(autouse=True)
def short_chains(monkeypatch):
    for name, value in (("COUNT_BURN_IN", 100), ("COUNT_THIN", 2)):
        monkeypatch.setattr(noise_aware_draws, name, value)


def test_a_network_agrees_with_the_exact_posterior():
    model = privpost.BayesianNetwork(graphs.naive_bayes(1), 1, 1)
    mechanism = privpost.NetworkLaplace(model, 20, 1.5)
    release = np.array([14.0, 3.0, 9.0, 6.0, 2.0, -1.0])
    found = mechanism.posterior(release, DRAWS, np.random.default_rng(1))
    exact = naive_bayes_exact.posterior(model, release, 20, mechanism.scale)
    means = [exact.class_mean, exact.means[0, 0], exact.means[0, 1]]
    assert found.mean(axis=0) == pytest.approx([exact.weights @ mean for mean in means], abs=ERROR)
    # The update that takes noisy counts for the counts is elsewhere.
    assert np.abs(model.mean(mechanism.naive_posterior(release)) - found.mean(axis=0)).max() > ERROR


def test_larger_networks_have_chains_on_the_records(monkeypatch):
    monkeypatch.setattr(noise_aware_draws, "LARGEST_TABLE", 0)
    test_a_network_agrees_with_the_exact_posterior()


def test_events_of_one_state_agree_with_the_sum_over_all_counts():
    mechanism = privpost.EventCountsLaplace(privpost.EventCounts((1,), (3,), 1), 12, 1.0)
    release = np.array([9.0, -3.0, 4.0])
    found = mechanism.posterior(release, DRAWS, np.random.default_rng(2))
    law = exact_counts.count_probabilities(release[None], 12, mechanism.scale)[0]
    assert found.shape == (DRAWS, 1, 3)
    assert found[:, 0, 0].mean() == pytest.approx(law @ (1 + np.arange(13)) / 15, abs=ERROR)


def test_draws_tell_how_far_to_trust_them(monkeypatch):
    mechanism = privpost.NetworkLaplace(privpost.BayesianNetwork({"a": [], "b": ["a"]}), 20, 2.0)
    found = mechanism.posterior(np.full(6, 9.0), 100, np.random.default_rng(1))
    assert found.diagnostics.rhat_max < 1.1
    assert found[:10].diagnostics is found.diagnostics
    assert type(found.mean()) is np.float64
    assert type(found + 1) is np.ndarray
    exact = privpost.RedactedLaplace(RedactedSum(privpost.GammaExponential(2, 2), 0.0, 4.0), 9, 1.0)
    assert exact.posterior(np.array([9.0]), 5, np.random.default_rng(1)).diagnostics is None
    counts = privpost.LaplaceMechanism(privpost.BetaBernoulli(1, 1), 20, 1.0)
    assert counts.posterior(np.array([9.0]), 5, np.random.default_rng(1)).diagnostics is None
    sweeps = iter(np.random.default_rng(2).normal(size=(2, 200, 8, 3)) + 5 * np.eye(8, 3))
    monkeypatch.setattr(noise_aware_draws, "network", lambda *_: next(sweeps))
    with pytest.warns(noise_aware_draws.NotConverged, match="the chains disagree"):
        assert mechanism.posterior(np.full(6, 9.0), 5, np.random.default_rng(1)).diagnostics.rhat_max > 1.1


@pytest.mark.parametrize("concentration", [1.0, 0.4])
def test_counts_of_naive_bayes_agree_with_enumeration(concentration):
    """One class of two levels and one of them of three: the means of all counts of 40,000 draws."""
    from scipy.special import gammaln

    release, sizes, n, scale = np.array([[2.0, 0, -1, 3, 1], [-2.0, 4, 1, 0, 2]]), (2, 3), 5, 1.5

    def split(total, levels):
        if levels == 1:
            yield (total,)
            return
        for first in range(total + 1):
            yield from ((first, *rest) for rest in split(total - first, levels - 1))

    def weight(counts, total):
        counts = np.array(counts)
        law = gammaln(total + 1) - gammaln(total + len(counts) * concentration)
        return (
            law
            + (gammaln(counts + concentration) - gammaln(counts + 1) - gammaln(concentration)).sum()
            + gammaln(len(counts) * concentration)
        )

    tables, logs = [], []
    for total in range(n + 1):
        rows = [[(one, two) for one in split(size, 2) for two in split(size, 3)] for size in (total, n - total)]
        for (a, b), (c, d) in itertools.product(*rows):
            table = np.array([[*a, *b], [*c, *d]])
            law = weight(a, total) + weight(b, total) + weight(c, n - total) + weight(d, n - total)
            tables.append(table)
            logs.append(law - np.abs(release - table).sum() / scale)
    law = np.exp(np.array(logs) - max(logs))
    law /= law.sum()
    mean = np.tensordot(law, tables, 1)
    deviation = np.sqrt(np.tensordot(law, (tables - mean) ** 2, 1))
    given = release, sizes, concentration, n, scale, 40_000
    found = exact_counts.class_counts(*given, np.random.default_rng(3))
    assert np.all(np.abs(found.mean(axis=0) - mean) < 4 * deviation / 200)
    assert np.allclose(found.std(axis=0), deviation, rtol=0.05)


def test_counts_by_fourier_transforms_have_the_same_law(monkeypatch):
    monkeypatch.setattr(exact_counts, "_DIRECT", 0)
    monkeypatch.setattr(exact_counts, "_EVERY", 2)
    test_counts_of_naive_bayes_agree_with_enumeration(1.0)


def test_a_redacted_sum_agrees_with_quadrature():
    family = privpost.GammaExponential(2.0, 2.0)
    mechanism = privpost.RedactedLaplace(RedactedSum(family, 0.0, 4.0), 100, 1.0)
    found = mechanism.posterior(np.array([80.0]), DRAWS, np.random.default_rng(3))
    law = redacted_posterior(family, np.array([80.0]), 100, mechanism.scale, 0.0, 4.0)
    mean, deviation = (float(np.ravel(moment)[0]) for moment in law.moments()[:2])
    # Four standard errors.
    assert found.mean() == pytest.approx(mean, abs=4 * deviation / DRAWS**0.5)
    assert found.std() == pytest.approx(deviation, rel=0.05)


@pytest.mark.parametrize(
    "mechanism",
    [
        privpost.NetworkLaplace(privpost.BayesianNetwork({"a": [], "b": ["a"]}), 3, 1.0),
        privpost.EventCountsLaplace(privpost.EventCounts((2,), (2, 2)), 3, 1.0),
        privpost.RedactedLaplace(RedactedSum(privpost.GammaExponential(8, 2), 1.0, 1.5), 4, 1.0),
    ],
    ids=lambda mechanism: type(mechanism).__name__,
)
def test_draws_are_parameters_and_bad_input_is_one_line(mechanism, monkeypatch):
    monkeypatch.setattr(noise_aware_draws, "COUNT_BURN_IN", 5)
    rng = np.random.default_rng(4)
    release = mechanism.perturb(mechanism.model.sufficient_statistics(mechanism.model.records[:1]), rng)
    assert mechanism.posterior(release, 7, rng).shape == (7, *mechanism.model.theta_shape)
    for given, message in (
        ((release[:-1], 7, rng), "^release has the shape"),
        ((release, 0.5, rng), "^draws is 0.5; it must be an integer >= 1$"),
        ((release, 7, 3), "^rng is 3; it must be a numpy Generator"),
    ):
        with pytest.raises(ValueError, match=message):
            mechanism.posterior(*given)


def test_sums_that_are_split_by_rejection_have_the_same_law(monkeypatch):
    """Against the enumeration of three counts: the means of 40,000 draws, each of deviation below 3."""
    factors = np.log(np.random.default_rng(5).random((3, 11)))
    tables = np.array([(i, j, 10 - i - j) for i in range(11) for j in range(11 - i)])
    law = np.exp(sum(factor[column] for factor, column in zip(factors, tables.T, strict=True)))
    monkeypatch.setattr(exact_counts, "_ELEMENTS", 1)
    monkeypatch.setattr(exact_counts, "_ROUNDS", 5)
    # The tilt comes from every second count, as that of many records does.
    monkeypatch.setattr(exact_counts, "_EVERY", 5)
    monkeypatch.setattr(exact_counts, "_NEAR", 1)
    counts = exact_counts.latent_counts(factors, 40_000, np.random.default_rng(6))
    assert counts.mean(axis=0) == pytest.approx(law @ tables / law.sum(), abs=4 * 3 / 200)
    places = {tuple(table): place for place, table in enumerate(tables)}
    seen = np.bincount([places[tuple(row)] for row in counts], minlength=len(tables)) / 40_000
    # Four standard errors of a share.
    assert np.all(np.abs(seen - law / law.sum()) < 4 * np.sqrt(law / law.sum() / 40_000) + 1e-4)
