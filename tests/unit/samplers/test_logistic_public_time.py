"""Draws of logistic posteriors in public time: their law, the bound of their proposals, and what their work reveals."""

import math

import numpy as np
import pytest
from scipy.stats import kstest

from privpost.mechanisms.draws.logistic_ops import LogisticOps
from privpost.mechanisms.draws.logistic_sampling import LogisticDraw
from privpost.models.regression.binary import BinaryRegression
from privpost.models.regression.logistic import LogisticPosterior
from privpost.privacy.accounting.costs import Cost
from privpost.privacy.ledger.gate import Ledger
from privpost.samplers.logistic import public_time as logistic_public_time
from privpost.samplers.logistic.public_time import PublicTime, near_mode, sample


def records(kind: str, n: int, d: int) -> np.ndarray:
    """Signed records (n, d) no longer than 1."""
    rng = np.random.default_rng(n + d)
    if kind == "random":
        found = rng.standard_normal((n, d))
        return found / np.linalg.norm(found, axis=1, keepdims=True)
    if kind == "one-hot":
        return rng.choice([-1.0, 1.0], (n, 1)) * np.eye(d)[rng.integers(0, d, n)]
    if kind == "separated":
        return np.eye(d)[rng.integers(0, d, n)]
    if kind == "alike":
        return np.ones((n, d)) / math.sqrt(d)
    if kind == "balanced":
        return np.where(np.arange(n) % 2 == 0, 1.0, -1.0)[:, None] * np.eye(d)[np.arange(n) // 2 % d]
    return np.zeros((n, d))


KINDS = ["random", "one-hot", "separated", "alike", "balanced", "nothing"]


def posterior_of(kind, public: PublicTime) -> LogisticPosterior:
    signed = public.bound * records(kind, public.n, public.dimension)
    labels = np.ones(len(signed))
    return LogisticPosterior(signed, labels, public.n * public.precision, public.power, public.radius)


def grid(public: PublicTime, near):
    """Nodes (k, d) of a fine lattice about a point, as wide as the prior allows, and the volume of its cells."""
    reach = 9 / math.sqrt(public.n * public.precision)
    line = np.linspace(-reach, reach, 20_001 if public.dimension == 1 else 301)
    axes = np.meshgrid(*[line] * public.dimension, indexing="ij")
    return near + np.stack([axis.ravel() for axis in axes], axis=-1), (line[1] - line[0]) ** public.dimension


SETTINGS = [
    PublicTime(30, 1, 0.05, 1.0, 1.0),
    PublicTime(40, 2, 0.2, 0.7, 1.5),
    PublicTime(12, 2, 0.01, 1.0, 1.0),
    PublicTime(30, 1, 0.2, 0.9, 1.0, 5.0),
    PublicTime(3, 2, 1.0, 1.0, 1.0, 1.0),
    PublicTime(12, 2, 0.02, 1.0, 1.0, 50.0),
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("public", SETTINGS)
def test_no_data_accept_less_than_the_public_share(kind, public):
    """The share that is accepted is an integral, summed over a lattice to 1e-3; six kinds of data, ball or none."""
    posterior = posterior_of(kind, public)
    near = near_mode(posterior, public)
    nodes, volume = grid(public, near)
    gradient = -posterior.gradient(near)
    logs = posterior.log_density(nodes) - posterior.power * posterior.log_likelihood(near[None])
    logs += 0.5 * posterior.prior_precision * near @ near
    integral = np.exp(logs).sum() * volume
    proposed = (2 * math.pi / posterior.prior_precision) ** (public.dimension / 2)
    proposed *= math.exp(gradient @ gradient / (2 * posterior.prior_precision))
    assert integral / proposed >= math.exp(-public.log_expected) * (1 - 1e-3)


def test_the_public_share_is_nearly_attained():
    """Records that cancel, on the axes, have their mode at 0, where all losses curve most: of narrow posteriors a share
    that is within a twentieth and the slack of e^-0.1.
    """
    public = PublicTime(4000, 2, 0.05, 1.0, 1.0)
    posterior = posterior_of("balanced", public)
    spread = np.linalg.slogdet(posterior.precision(np.zeros(2)))[1] - 2 * math.log(posterior.prior_precision)
    assert 0 <= public.log_expected - spread / 2 <= 0.1 + 0.05


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("public", SETTINGS)
def test_the_public_steps_leave_a_gradient_within_the_slack(kind, public):
    """|∇f|² ≤ 0.2 nβ, by the gradient itself, and by what a step shortens the longest one, ρnc/2, by; to rounding."""
    posterior = posterior_of(kind, public)
    left = np.linalg.norm(posterior.gradient(near_mode(posterior, public))) ** 2
    assert left <= 0.2 * posterior.prior_precision * (1 + 1e-9)
    most = public.n * public.precision + public.power * public.n * public.bound**2 / 4
    shortened = (1 - public.n * public.precision / most) ** public.steps * public.power * public.n * public.bound / 2
    assert shortened**2 <= 0.2 * public.n * public.precision * (1 + 1e-9)


@pytest.mark.parametrize("radius", [None, 2.2])
@pytest.mark.parametrize("away", [0.0, 0.25])
def test_draws_in_public_time_have_the_posteriors_law(monkeypatch, radius, away):
    """Against the distribution function by a sum over 20,001 nodes; a right sampler fails once in 10,000 runs.

    Proposals are about another point than the mode, too, and a seventh of what the ball leaves out.
    """
    public = PublicTime(30, 1, 0.05, 0.8, 1.0, radius)
    posterior = posterior_of("separated" if radius else "one-hot", public)
    monkeypatch.setattr(logistic_public_time, "near_mode", lambda *arguments: near_mode(*arguments) + away)
    draws = sample(posterior, public, 4000, np.random.default_rng(3))[:, 0]
    nodes, _ = grid(public, np.zeros(1))
    density = np.exp(posterior.log_density(nodes))
    cdf = np.cumsum(density) - density / 2
    assert kstest(np.interp(draws, nodes[:, 0], cdf / density.sum()), "uniform").pvalue > 1e-4
    assert radius is None or np.abs(draws).max() <= radius


def worked(mechanism, statistics, monkeypatch):
    """Steps, proposals looked at, and where the source of randomness stands after one draw."""
    steps, looked, gradient = [], [], LogisticPosterior.gradient
    likelihood = LogisticPosterior.log_likelihood_of_predictors
    rng = np.random.default_rng(4)
    with monkeypatch.context() as patch:
        patch.setattr(LogisticPosterior, "gradient", lambda self, w: steps.append(1) or gradient(self, w))
        patch.setattr(
            LogisticPosterior,
            "log_likelihood_of_predictors",
            lambda self, z: looked.append(z.shape) or likelihood(self, z),
        )
        info = mechanism.draw(statistics, rng, 2).info
    return len(steps), looked, rng.bit_generator.state, info


MECHANISMS = [
    LogisticDraw(BinaryRegression(3, 0.05), 60, 2.0, weighting="direct"),
    LogisticDraw(BinaryRegression(3, 0.01), 60, 2.0, 0.3, weighting="diffused"),
    LogisticDraw(BinaryRegression(3, 0.05), 60, 2.0, 0.3, weighting="ball"),
    LogisticOps(BinaryRegression(3, 0.05), 60, 1.0),
]


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_work_of_a_draw_is_the_same_for_all_data(mechanism, monkeypatch):
    """Steps, proposals and randomness are counted, and what the sampler reports is compared, to the last bit."""
    # Some proposals at a time.
    monkeypatch.setattr(logistic_public_time, "_ELEMENTS", 60 * 7)
    counted = [worked(mechanism, records(kind, 60, 3).ravel(), monkeypatch) for kind in KINDS]
    assert all(each == counted[0] for each in counted[1:])
    assert counted[0][0] == mechanism.schedule.steps + 1 and counted[0][3].start is None


def test_a_draw_goes_on_where_the_public_number_of_proposals_does_not_do(monkeypatch):
    """One proposal accepts a third of the time, so 200 draws need more than the one that is planned for them."""
    public = PublicTime(30, 1, 0.05, 1.0, 1.0)
    monkeypatch.setattr(PublicTime, "proposals", lambda self, size: 1)
    assert sample(posterior_of("one-hot", public), public, 200, np.random.default_rng(5)).shape == (200, 1)


@pytest.mark.parametrize(("size", "share"), [(1, 0.3), (1, 1e-4), (7, 0.5), (5000, 0.02)])
def test_fewer_than_wanted_are_accepted_with_a_probability_of_at_most_1e_20(size, share):
    """By the binomial sum in logarithms, term by term; and a number two hundredths smaller does not do."""
    found = logistic_public_time._proposals(size, share)

    def log_fewer(number):
        k = np.arange(size)
        choose = np.vectorize(math.lgamma)
        terms = math.lgamma(number + 1) - choose(k + 1.0) - choose(number - k + 1.0)
        return np.logaddexp.reduce(terms + k * math.log(share) + (number - k) * math.log1p(-share))

    assert log_fewer(found) <= math.log(1e-20) + 1e-6 < log_fewer(found - 2 - found // 50)


@pytest.mark.parametrize(("n", "d"), [(1000, 50), (100, 30), (200, 50)])
@pytest.mark.parametrize("size", [1, None])
def test_what_may_take_too_long_is_refused_for_all_data_in_the_same_words(n, d, size):
    """Data that would need few and many proposals are refused alike, before anything is charged or drawn."""
    mechanism = LogisticDraw(BinaryRegression(d, 1e-3), n, 2.0, weighting="direct")
    told = set()
    for kind in ("one-hot", "alike", "nothing"):
        ledger, rng = Ledger(), np.random.default_rng(6)
        before = rng.bit_generator.state
        ledger.open("account", Cost("rdp", np.inf, order=2.0), mechanism)
        with pytest.raises(ValueError, match=r"public_time is True; with n .* some data would take") as caught:
            ledger.release("account", mechanism, records(kind, n, d).ravel(), rng, size=size)
        told.add(str(caught.value).split("public_time")[1])
        assert ledger.record()[0]["releases"] == 0 and rng.bit_generator.state == before
    assert len(told) == 1


def test_a_posterior_that_is_not_log_concave_is_an_error(monkeypatch):
    """The bound's fault would be drawn from silently: a likelihood that is larger than its tangent."""
    likelihood = LogisticPosterior.log_likelihood_of_predictors
    monkeypatch.setattr(LogisticPosterior, "log_likelihood_of_predictors", lambda self, z: -likelihood(self, z))
    public = PublicTime(30, 1, 0.05, 1.0, 1.0)
    with pytest.raises(ArithmeticError, match="log-acceptance is"):
        sample(posterior_of("one-hot", public), public, 10, np.random.default_rng(7))
    with pytest.raises(ValueError, match="size is 0"):
        sample(posterior_of("one-hot", public), public, 0, np.random.default_rng(7))
