"""Exact draws from logistic posteriors against quadrature, with every shell forced, and faults that must be seen."""

import math
from functools import cache

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import binom, kstest

from privpost.models.regression.logistic import LogisticPosterior
from privpost.samplers.logistic import exact as logistic_exact
from privpost.samplers.logistic.exact import envelope, sample

# Ends of shells, in deviations of the predictors: from the prior's Gaussian alone to tails that hold most proposals.
FORCED = [(), (3.0,), (0.8,), (0.5, 1.2), (0.3, 0.9, 2.0)]
POSTERIORS = {
    "skewed": {"prior_precision": 0.2},
    "tempered": {"prior_precision": 0.4, "power": 0.3},
    "ball": {"prior_precision": 0.2, "radius": 4.0},
}


def design(n, d, seed=11):
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((n, d))
    features /= np.linalg.norm(features, axis=1, keepdims=True) / rng.uniform(0.2, 1, (n, 1))
    # A record without features tells nothing, and has no tails.
    features[-1] = 0
    return features, (rng.random(n) < 1 / (1 + np.exp(-3 * features[:, 0]))).astype(float)


leggauss = cache(np.polynomial.legendre.leggauss)


def axis(posterior):
    """Nodes and weights of Gauss-Legendre quadrature, up to the ball's radius or 12 of the prior's deviations."""
    nodes, weights = leggauss(800)
    bound = min(posterior.radius or math.inf, 12 / math.sqrt(posterior.prior_precision))
    return bound * nodes, bound * weights


def acceptance(posterior, around, points, weights):
    """Share of accepted proposals: the target's mass over the envelope's, by quadrature."""
    mode = around.mode.mean if around.basis is None else around.mode.mean @ around.basis
    log_mass = logsumexp(posterior.log_density(points) - posterior.log_density(mode[None]), b=weights)
    total = logsumexp([shell.log_weight for shell in around.shells])
    total -= (posterior.dimension - around.law.dimension) / 2 * math.log(posterior.prior_precision)
    return math.exp(log_mass - total - posterior.dimension / 2 * math.log(2 * math.pi))


def p_value_on_the_line(posterior, ends, seed=1, size=3_000):
    """Return the p-values of a Kolmogorov-Smirnov test against quadrature, and of the number of proposals."""
    nodes, weights = axis(posterior)
    around = envelope(posterior, ends=ends)
    draws, info = sample(around, size, np.random.default_rng(seed))
    density = weights * np.exp(posterior.log_density(nodes[:, None]))
    cdf = np.cumsum(density) - density / 2
    law = kstest(np.interp(draws[:, 0], nodes, cdf / density.sum()), "uniform").pvalue
    share, trials = acceptance(posterior, around, nodes[:, None], weights), round(info.proposals * size)
    # Exactly `size` of the trials are accepted.
    number = 2 * min(binom.cdf(size, trials, share), binom.sf(size - 1, trials, share))
    return law, number


@pytest.mark.parametrize("ends", FORCED)
@pytest.mark.parametrize("case", POSTERIORS)
def test_draws_and_acceptance_on_the_line_equal_quadrature(case, ends):
    posterior = LogisticPosterior(*design(9, 1), **POSTERIORS[case])
    # 30 values in all: a false alarm once in 3,000 runs.
    assert min(p_value_on_the_line(posterior, ends)) > 1e-5


@pytest.mark.parametrize("ends", [(0.8,), (0.3, 0.9, 2.0)])
@pytest.mark.parametrize("case", ["skewed", "ball"])
@pytest.mark.parametrize("alike", ["none", "copies", "zeros"])
def test_draws_in_the_plane_equal_quadrature(alike, case, ends):
    features, labels = design(12, 2)
    features = {"none": features, "copies": features[:, [0, 0]], "zeros": features * [0, 1]}[alike]
    posterior = LogisticPosterior(features, labels, **POSTERIORS[case])
    nodes, weights = axis(posterior)
    nodes, weights = nodes[::4], weights[::4] * 4
    bound = posterior.radius or math.inf
    points = np.stack(np.meshgrid(nodes, nodes), axis=-1).reshape(-1, 2)
    mass = np.outer(weights, weights).ravel() * (np.linalg.norm(points, axis=1) <= bound)
    size = 4_000
    around = envelope(posterior, ends=ends, draws=size)
    assert around.law.dimension == 1 + (alike == "none")
    draws, info = sample(around, size, np.random.default_rng(2))
    density = mass * np.exp(posterior.log_density(points))

    def functionals(w):
        x, y = w[:, 0], w[:, 1]
        return np.stack([x, y, x * x, y * y, x * y, np.hypot(x, y), np.tanh(x - y), np.exp(-((x + y) ** 2))])

    expected = functionals(points) @ density / density.sum()
    found = functionals(draws)
    # 32 scores; at the ball's edge the nodes move them by 0.2 standard errors.
    assert (abs(found.mean(axis=1) - expected) < 4.8 * found.std(axis=1) / math.sqrt(size)).all()
    share = acceptance(posterior, around, points, mass)
    deviation = math.sqrt((1 - share) / size) / share
    assert abs(info.proposals - 1 / share) < 5 * deviation + 0.01 / share * (posterior.radius is not None)


def doubled_tail_mass(patch):
    shell = logistic_exact._shell

    def doubled(*args):
        made = shell(*args)
        return made if made.tails is None else made._replace(log_weight=made.log_weight + math.log(2))

    patch.setattr(logistic_exact, "_shell", doubled)


def tails_unlike_their_masses(patch):
    shell = logistic_exact._shell

    def wrong(*args):
        made = shell(*args)
        if made.tails is None:
            return made
        return made._replace(tails=made.tails._replace(deviation=1.2 * made.tails.deviation))

    patch.setattr(logistic_exact, "_shell", wrong)


def pull_forgotten(patch):
    """The Gaussian's centre is not moved by the gradient, as if the start were the mode itself."""
    shell = logistic_exact._shell
    patch.setattr(
        logistic_exact, "_shell", lambda *args: (made := shell(*args))._replace(pull=np.zeros_like(made.pull))
    )


def crowd_not_counted(patch):
    ratio = logistic_exact.Envelope._log_ratio

    def uncounted(self, steps, chosen):
        found = ratio(self, steps, chosen)
        starts = np.array([shell.start for shell in self.shells])[chosen]
        number = (np.abs(steps @ self.posterior.features.T) * self.scales >= starts[:, None]).sum(axis=1)
        return found + np.where(starts > 0, np.log(np.maximum(number, 1)), 0)

    patch.setattr(logistic_exact.Envelope, "_log_ratio", uncounted)


@pytest.mark.parametrize("fault", [doubled_tail_mass, tails_unlike_their_masses, pull_forgotten, crowd_not_counted])
def test_a_seeded_fault_shows_in_the_law_or_at_run_time(fault, monkeypatch):
    posterior = LogisticPosterior(*design(9, 1), prior_precision=0.2)
    # Away from the mode, where the gradient counts.
    at_mode = LogisticPosterior.at_mode
    monkeypatch.setattr(
        LogisticPosterior, "at_mode", lambda self, start=None: (m := at_mode(self))._replace(mean=m.mean + 0.5)
    )
    assert min(p_value_on_the_line(posterior, (0.8,))) > 1e-5
    fault(monkeypatch)
    try:
        assert p_value_on_the_line(posterior, (0.8,))[0] < 1e-5
    except ArithmeticError as error:
        assert "log-acceptance" in str(error)


def test_a_floor_that_is_none_is_an_error(monkeypatch):
    floor = LogisticPosterior.curvature_floor
    monkeypatch.setattr(LogisticPosterior, "curvature_floor", lambda *args: 1.3 * floor(*args))
    with pytest.raises(ArithmeticError, match="log-acceptance is"):
        sample(envelope(LogisticPosterior(*design(50, 3), 0.2), ends=(3.0,)), 2000, np.random.default_rng(3))


def test_the_curvature_floor_is_one():
    rng = np.random.default_rng(4)
    at, reach = 6 * rng.standard_normal(200_000), 10 ** rng.uniform(-5, 1.3, 200_000)
    s = reach * rng.uniform(-1, 1, 200_000)
    posterior = LogisticPosterior(np.ones((1, 1)), np.ones(1), 1.0)
    floor = posterior.curvature_floor(at, reach)
    # The gap is s² ∫ (1 − t) ℓ''(at + t s) dt; 40 nodes are exact to rounding up to |s| = 20.
    nodes, weights = np.polynomial.legendre.leggauss(40)
    t, weights = (nodes + 1) / 2, weights / 2

    def average(step):
        return 2 * ((1 - t) * weights / (4 * np.cosh((at[:, None] + t * step[:, None]) / 2) ** 2)).sum(axis=1)

    assert (floor <= average(s) * (1 + 1e-8)).all()
    # No smaller than it must be: attained at the end away from 0.
    np.testing.assert_allclose(floor, average(np.copysign(reach, at)), rtol=1e-6)


def test_later_proposals_do_not_depend_on_what_was_accepted():
    posterior = LogisticPosterior(*design(9, 2), prior_precision=0.2)
    one, two = (sample(envelope(posterior, ends=ends), 500, np.random.default_rng(8))[0] for ends in ((3.0,), (3.1,)))
    assert np.median(np.abs(one - two)) < 0.1


def test_what_cannot_be_drawn_is_refused():
    features, labels = design(30, 2)
    with pytest.raises(ValueError, match=r"radius is 0.1; the posterior's mode lies outside the ball"):
        envelope(LogisticPosterior(features, labels, 0.2, radius=0.1))
    with pytest.raises(ValueError, match="size is 0"):
        sample(envelope(LogisticPosterior(features, labels, 0.2)), 0, np.random.default_rng(1))


def test_few_proposals_on_a_hard_posterior():
    """The prior's Gaussian alone would take 1e4; the expected number is Laplace's, the found one a mean of 400.

    A search over ends around those chosen finds nothing below 2.53.
    """
    posterior = LogisticPosterior(*design(2000, 20, seed=3), prior_precision=1.0)
    around = envelope(posterior)
    _, info = sample(around, 400, np.random.default_rng(9))
    log_plain = np.log(np.diag(around.mode.factor)).sum()
    assert math.exp(log_plain) > 5_000 and len(around.shells) > 1
    assert info.expected < 2.6 and abs(info.proposals / info.expected - 1) < 0.25


def test_of_few_draws_a_shell_must_save_its_own_time():
    posterior = LogisticPosterior(*design(2000, 20, seed=3), prior_precision=1.0)
    most, one, many = (envelope(posterior, draws=draws) for draws in (None, 1, 10_000))
    assert [shell.start for shell in most.shells] == [shell.start for shell in many.shells]
    # A shell less takes at most (20 + 40) / 2 proposals more.
    assert 1 < len(one.shells) < len(most.shells)
    assert most.expected < one.expected < most.expected + 30 * (len(most.shells) - len(one.shells))
