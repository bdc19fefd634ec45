"""Contract tests of every conjugate model that the package discovers."""

import itertools

import numpy as np
import pytest
from quadrature import parameter_nodes
from scipy.special import logsumexp

from privpost import discovery, models
from privpost.models import BetaBernoulli, DirichletCategorical
from privpost.models.base import ConjugateModel

EXAMPLES = [
    pytest.param(example, id=repr(example)) for model in discovery.models().values() for example in model.examples()
]
every_example = pytest.mark.parametrize("model", EXAMPLES)

# Moments of 1e5 draws are compared at 5 standard errors: a false alarm in 1.7e6 comparisons; about 50 are made.
DRAWS, STANDARD_ERRORS = 100_000, 5.0


def small_data_sets(model, n=3):
    """Data sets of n records, one per multiset of records."""
    return [np.stack(choice) for choice in itertools.combinations_with_replacement(model.records, n)]


def posteriors(model):
    """The prior and three posteriors, shape (4, k)."""
    data = small_data_sets(model)
    chosen = [data[0], data[len(data) // 2], data[-1]]
    return np.stack([model.prior, *(model.posterior(model.sufficient_statistics(x)) for x in chosen)])


def test_discovery_finds_the_models_by_module():
    found = discovery.models()
    assert found["beta_bernoulli"] is BetaBernoulli
    assert found["dirichlet_categorical"] is DirichletCategorical
    assert ConjugateModel not in found.values()
    with pytest.raises(AttributeError, match="no attribute 'NoSuchModel'"):
        _ = models.NoSuchModel


@every_example
def test_prior_and_posteriors_integrate_to_one(model):
    theta, log_weights = parameter_nodes(model)
    for parameters in posteriors(model):
        # 1e-8: what the finite range and step of the rule leave.
        assert logsumexp(model.log_density(theta, parameters) + log_weights) == pytest.approx(0, abs=1e-8)


@every_example
def test_posterior_is_prior_times_likelihood(model):
    theta, log_weights = parameter_nodes(model)
    # Away from the ends, where a density of 0 or inf leaves nothing to compare.
    theta = theta[log_weights > log_weights.max() - 15]
    for data in small_data_sets(model):
        statistics = model.sufficient_statistics(data)
        log_posterior = model.log_density(theta, model.posterior(statistics))
        log_joint = model.log_density(theta, model.prior) + model.log_likelihood(theta, statistics)
        log_evidence = log_joint - log_posterior
        assert np.ptp(log_evidence) < 1e-9 * (1 + np.abs(log_joint).max())


@every_example
def test_likelihood_is_the_product_over_records(model):
    theta = model.mean(posteriors(model))
    for data in small_data_sets(model):
        each = sum(model.log_likelihood(theta, model.sufficient_statistics(record[None])) for record in data)
        assert np.allclose(model.log_likelihood(theta, model.sufficient_statistics(data)), each, rtol=1e-12)


@every_example
def test_log_partition_gives_the_integrals_of_the_family(model):
    # ln ∫ P^λ Q^(1−λ) = C(λη_P + (1−λ)η_Q) − λC(η_P) − (1−λ)C(η_Q), which determines C up to a linear function.
    theta, log_weights = parameter_nodes(model)
    densities = [(each, model.log_density(theta, each)) for each in posteriors(model)]
    for (p, log_p), (q, log_q) in itertools.permutations(densities, 2):
        eta_p, eta_q = model.natural_parameters(p), model.natural_parameters(q)
        for order in (0.3, 0.8, 1.05):
            mixed = model.log_partition(order * eta_p + (1 - order) * eta_q)
            if np.isinf(mixed):
                continue
            closed = mixed - order * model.log_partition(eta_p) - (1 - order) * model.log_partition(eta_q)
            log_integrand = order * log_p + (1 - order) * log_q
            assert logsumexp(log_integrand + log_weights) == pytest.approx(float(closed), abs=1e-7)


@every_example
def test_log_partition_is_infinite_where_not_normalisable(model):
    assert np.isfinite(model.log_partition(model.natural_parameters(model.prior)))
    assert model.log_partition(-model.natural_parameters(model.prior)) == np.inf


@every_example
def test_natural_parameters_are_linear_in_the_data(model):
    data = small_data_sets(model)
    natural = [model.natural_parameters(model.posterior(model.sufficient_statistics(x))) for x in data]
    prior = model.natural_parameters(model.prior)
    ones = [model.natural_parameters(model.posterior(model.sufficient_statistics(r[None]))) for r in model.records]
    steps = {i: one - prior for i, one in enumerate(ones)}
    for choice, value in zip(itertools.combinations_with_replacement(range(len(ones)), 3), natural, strict=True):
        assert np.allclose(value, prior + sum(steps[i] for i in choice), rtol=1e-12)


@every_example
def test_moments_of_the_density_and_of_draws(model):
    theta, log_weights = parameter_nodes(model)
    rng = np.random.default_rng(20170)
    for parameters in posteriors(model):
        mean, variance = model.mean(parameters), model.variance(parameters)
        weights = np.exp(model.log_density(theta, parameters) + log_weights)
        assert np.allclose(np.tensordot(weights, theta, 1), mean, rtol=1e-7)
        assert np.allclose(np.tensordot(weights, (theta - mean) ** 2, 1), variance, rtol=1e-6)
        draws = model.sample(parameters, rng, size=DRAWS)
        assert draws.shape == (DRAWS, *model.theta_shape)
        squares = (draws - mean) ** 2
        assert np.all(np.abs(draws.mean(0) - mean) < STANDARD_ERRORS * draws.std(0) / DRAWS**0.5)
        assert np.all(np.abs(squares.mean(0) - variance) < STANDARD_ERRORS * squares.std(0) / DRAWS**0.5)


@every_example
def test_draws_vectorise_over_leading_axes(model):
    parameters = np.stack([posteriors(model)] * 5)
    rng = np.random.default_rng(1)
    assert model.sample(parameters, rng).shape == (5, 4, *model.theta_shape)
    assert model.sample(parameters, rng, size=7).shape == (7, 5, 4, *model.theta_shape)
    draws = model.sample(parameters, rng)
    assert np.unique(draws.reshape(20, -1), axis=0).shape[0] == 20
    low, high = model.support
    assert np.all((draws >= low) & (draws <= high))
    assert np.all(np.isfinite(model.log_density(draws, parameters)))


@every_example
def test_simulated_data_are_records_with_the_likelihoods_law(model):
    rng = np.random.default_rng(2)
    theta = model.sample(model.prior, rng, size=6)
    data = model.sample_data(theta, 20, rng)
    assert data.shape == (6, 20, *model.records.shape[1:])
    assert model.sufficient_statistics(data).shape[0] == 6
    if np.array_equal(model.records, np.arange(len(model.records))):
        # Frequencies of 1e5 records, within 5 standard errors of the likelihood of each.
        one = model.mean(model.prior)
        probabilities = np.exp(
            [model.log_likelihood(one, model.sufficient_statistics(record[None])) for record in model.records]
        )
        counts = np.bincount(model.sample_data(one, DRAWS, rng), minlength=len(model.records))
        error = np.sqrt(probabilities * (1 - probabilities) / DRAWS)
        assert np.all(np.abs(counts / DRAWS - probabilities) < STANDARD_ERRORS * error)


@every_example
def test_another_prior_can_be_given(model):
    statistics = model.sufficient_statistics(small_data_sets(model)[0])
    assert np.array_equal(model.posterior(statistics, model.prior), model.posterior(statistics))
    doubled = model.natural_parameters(model.posterior(statistics, 2 * model.prior))
    assert not np.allclose(doubled, model.natural_parameters(model.posterior(statistics)))


def test_beta_is_the_dirichlet_of_two_categories():
    beta, dirichlet = BetaBernoulli(2, 5), DirichletCategorical((2, 5))
    theta = np.linspace(0.01, 0.99, 9)
    pairs = np.stack([theta, 1 - theta], axis=-1)
    assert np.allclose(beta.log_density(theta, beta.prior), dirichlet.log_density(pairs, dirichlet.prior), rtol=1e-12)
    assert np.allclose(beta.log_likelihood(theta, (3.0, 4.0)), dirichlet.log_likelihood(pairs, (3.0, 4.0)))
    eta = beta.natural_parameters(beta.prior)
    assert np.isclose(beta.log_partition(eta), dirichlet.log_partition(dirichlet.natural_parameters(dirichlet.prior)))


def test_natural_parameters_of_the_papers_prior():
    # Geumlek et al. (2017): η0 = (6, 18) is Beta(6, 12).
    assert BetaBernoulli(6, 12).natural_parameters((6, 12)).tolist() == [6, 18]


def test_draws_at_tiny_concentrations_are_finite():
    model = DirichletCategorical((1e-3, 1e-3, 1e-3))
    draws = model.sample(model.prior, np.random.default_rng(0), size=10_000)
    assert np.all(np.isfinite(draws))
    assert np.allclose(draws.sum(axis=-1), 1)


@pytest.mark.parametrize("size", [None, 5])
def test_gamma_draws_of_one_shape_are_those_of_each(size):
    """One shape for all is passed as a number: the same draws as of an array, and of shapes that differ."""
    for shapes in (np.full((4, 3), 0.4), np.full(6, 101.0), np.array([0.4, 2.0, 2.0])):
        rates = np.arange(1.0, shapes.size + 1).reshape(shapes.shape)
        found = models.GammaExponential().sample(np.stack([shapes, rates], axis=-1), np.random.default_rng(4), size)
        lead = () if size is None else (size,)
        expected = np.random.default_rng(4).standard_gamma(shapes, (*lead, *shapes.shape)) / rates
        np.testing.assert_array_equal(found, expected)


def test_density_is_zero_outside_the_support():
    assert BetaBernoulli(1, 1).log_density([-0.1, 1.1], (1, 1)).tolist() == [-np.inf, -np.inf]
    assert DirichletCategorical((1, 1)).log_density([[0.5, 0.4], [1.2, -0.2]], (1, 1)).tolist() == [-np.inf] * 2


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: BetaBernoulli(0, 1), "alpha is 0"),
        (lambda: BetaBernoulli(1, np.inf), "beta is inf"),
        (lambda: DirichletCategorical((1.0,)), "concentration has 1 entries"),
        (lambda: DirichletCategorical((1.0, -1.0)), "concentration is "),
        (lambda: BetaBernoulli().sufficient_statistics([0, 2]), "data has records other than 0 and 1"),
        (lambda: DirichletCategorical((1, 1)).sufficient_statistics([0, 2]), "data has records outside 0, ..., 1"),
    ],
)
def test_errors_name_the_setting(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@every_example
def test_a_parameter_that_is_no_number_has_no_density(model):
    """NaN is neither inside nor outside: a density of 0 would pass for an answer."""
    theta = np.array(model.mean(model.prior), float)
    assert np.isfinite(model.log_density(theta, model.prior))
    assert np.isnan(model.log_density(np.full_like(theta, np.nan), model.prior))
    assert np.isnan(model.log_partition(np.full_like(model.natural_parameters(model.prior), np.nan)))
