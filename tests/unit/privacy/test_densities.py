"""Divergences of releases of one number from their density, against closed forms; newcomers that state only that."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
import pytest

import privpost
from privpost.experiments.fair_axis.beta_bernoulli.study import Divergence
from privpost.mechanisms.base import Mechanism
from privpost.mechanisms.noise.additive import AdditiveNoiseMechanism
from privpost.privacy.accounting.costs import Cost, pure_to_rdp
from privpost.privacy.checks import pure_epsilon, rdp_budget
from privpost.privacy.divergences import densities, masses

BITS = privpost.BetaBernoulli(6, 12)
CLOSED = [
    privpost.LaplaceMechanism(BITS, 8, 1.0, coordinates="free"),
    privpost.LaplaceMechanism(BITS, 8, 10.0, coordinates="free"),
    privpost.GaussianMechanism(BITS, 8, 2.0, 2.0),
    privpost.GaussianMechanism(BITS, 8, 0.05, 2.0),
    privpost.PosteriorDraw(BITS, 8, 2.0, 0.3, weighting="diffused"),
    privpost.PosteriorDraw(BITS, 70, 2.0, weighting="direct"),
    # Truncated, and with a pole beyond the truncation.
    privpost.ExponentialMechanism(privpost.BetaBernoulli(0.5, 2), 8, 1.0, a0=0.05),
]
every_closed = pytest.mark.parametrize("mechanism", CLOSED, ids=repr)


@every_closed
@pytest.mark.parametrize("epsilon", [0.05, 0.5, 2.0])
def test_curves_are_those_of_the_closed_forms(mechanism, epsilon):
    # Of 1e-9: rounding of incomplete beta functions of large parameters.
    assert densities.curve(mechanism, epsilon) == pytest.approx(mechanism.privacy_curve(epsilon), rel=1e-9, abs=1e-20)


@every_closed
def test_renyi_divergences_are_those_of_the_closed_forms(mechanism):
    orders = np.array([1.0, 1.5, 4.0])
    found = densities.rdp(mechanism, orders)
    if mechanism.notion == "rdp":
        # Beyond the asymptote both are infinite.
        assert found == pytest.approx(mechanism.rdp(orders), rel=1e-6)
        assert densities.rdp(mechanism, 2.0).shape == ()
    elif mechanism.method == "laplace":
        # Mironov (2017), table II: of Laplace noise, here of scale 1/ε.
        at, eps = orders[1:], mechanism.epsilon
        exact = np.log(at / (2 * at - 1) * np.exp((at - 1) * eps) + (at - 1) / (2 * at - 1) * np.exp(-at * eps))
        assert found[1:] == pytest.approx(exact / (at - 1), rel=1e-6)
        assert found[0] == pytest.approx(eps - 1 + np.exp(-eps), rel=1e-6)


def test_renyi_divergences_of_whole_numbers_are_those_of_two_answers():
    """Geometric noise on one count loses ε or −ε, as randomised response does."""
    orders = np.array([1.0, 1.5, 4.0])
    found = masses.rdp(privpost.GeometricMechanism(BITS, 8, 0.7, coordinates="free"), orders)
    assert found == pytest.approx(pure_to_rdp(0.7, orders), rel=1e-9)


def test_a_divergence_beyond_the_asymptote_is_infinite():
    mechanism = privpost.PosteriorDraw(BITS, 8, 2.0, weighting="direct")
    assert mechanism.rdp(8.0) == np.inf
    assert densities.rdp(mechanism, 8.0) == np.inf


def test_high_orders_of_many_records_are_those_of_the_closed_form():
    """Above the asymptote, 1 + 6/0.3, an integral has no end to be found; other pairs have theirs far beyond."""
    mechanism, twin = (
        RenyiNewcomer(BITS, 300, 2.0, 0.3),
        privpost.PosteriorDraw(BITS, 300, 2.0, 0.3, weighting="diffused"),
    )
    orders = np.array([1.0, 1.02, 3.0, 12.0, 30.0, 1001.0])
    assert densities.rdp(mechanism, orders) == pytest.approx(twin.rdp(orders), rel=1e-6)


@pytest.mark.parametrize("mechanism", CLOSED[:4], ids=repr)
def test_distribution_functions_are_those_of_the_closed_forms(mechanism):
    values = np.linspace(-6, 6, 24).reshape(2, 12)
    assert densities.cdf(mechanism, values) == pytest.approx(mechanism.noise_cdf(values), abs=1e-9)


@dataclass(frozen=True)
class Newcomer(AdditiveNoiseMechanism):
    """Laplace noise that states its density and no more."""

    epsilon: float

    method: ClassVar[str] = "newcomer"
    norm: ClassVar[str] = "l1"
    notion: ClassVar[str] = "pure"
    public_inputs: ClassVar[tuple[str, ...]] = ("n",)
    calibrated: ClassVar[str] = "epsilon"

    @classmethod
    def calibrate(cls, model, n, budget, *, coordinates="all"):
        return cls(model, n, pure_epsilon(budget, cls.method), coordinates=coordinates)

    @cached_property
    def twin(self):
        return privpost.LaplaceMechanism(self.model, self.n, self.epsilon, coordinates=self.coordinates)

    def noise(self, shape, rng):
        return self.twin.noise(shape, rng)

    def cost(self):
        return Cost("pure", self.epsilon)

    def log_density(self, release, statistics):
        return self.twin.log_density(release, statistics)

    @classmethod
    def examples(cls):
        return [cls(BITS, 8, 1.0, coordinates="free")]


@dataclass(frozen=True)
class WideNewcomer(Newcomer):
    """Calibrated by a scale, with which privacy grows."""

    calibrated: ClassVar[str] = "scale"
    scale: float = 1.0

    @cached_property
    def twin(self):
        return privpost.LaplaceMechanism(self.model, self.n, 1 / self.scale, coordinates=self.coordinates)


@dataclass(frozen=True)
class RenyiNewcomer(Mechanism):
    """A draw of a law between 0 and 1 that states its density; its Rényi DP comes from there."""

    order: float
    coefficient: float

    method: ClassVar[str] = "renyi_newcomer"
    norm: ClassVar[str] = "natural parameters"
    notion: ClassVar[str] = "rdp"
    public_inputs: ClassVar[tuple[str, ...]] = ("n",)
    releases: ClassVar[str] = "sample"
    calibrated: ClassVar[str] = "coefficient"
    sensitivity = 1.0

    @classmethod
    def calibrate(cls, model, n, budget):
        return cls(model, n, rdp_budget(budget, cls.method)[1], 0.1)

    def query(self, data):
        return self.model.sufficient_statistics(data)

    def _perturb(self, statistics, rng):
        return self.model.sample(self.model.posterior(self.coefficient * statistics), rng)

    def cost(self):
        return Cost("rdp", float(self.rdp(self.order)), order=self.order)

    def log_density(self, release, statistics):
        return self.model.log_density(release, self.model.posterior(self.coefficient * np.asarray(statistics)))

    @classmethod
    def examples(cls):
        return [cls(BITS, 8, 2.0, 0.3)]


BUDGET = Cost("approximate", 0.5, delta=1e-3)


@pytest.mark.parametrize("mechanism", [Newcomer.examples()[0], WideNewcomer(BITS, 8, 0.0, coordinates="free")])
def test_a_newcomer_is_recalibrated_by_its_density(mechanism):
    found = mechanism.recalibrated(BUDGET)
    exact = CLOSED[0].recalibrated(BUDGET).epsilon
    setting = found.scale if mechanism.calibrated == "scale" else 1 / found.epsilon
    # Twenty bisections of a factor of two.
    assert 1 / setting == pytest.approx(exact, rel=1e-5)
    assert found.cost_in(BUDGET, "exact").delta <= BUDGET.delta
    # Without a δ, ε-DP is what is left.
    pure = mechanism.recalibrated(replace(BUDGET, delta=0.0)).twin.epsilon
    assert pure == pytest.approx(BUDGET.epsilon, rel=1e-5)


def test_a_newcomer_with_a_renyi_guarantee_states_no_formula():
    mechanism, twin = RenyiNewcomer.examples()[0], privpost.PosteriorDraw(BITS, 8, 2.0, 0.3, weighting="diffused")
    assert mechanism.cost().epsilon == pytest.approx(twin.cost().epsilon, rel=1e-9)
    assert mechanism.recalibrated(BUDGET).coefficient == pytest.approx(twin.recalibrated(BUDGET).coefficient, rel=1e-5)


def test_the_fair_axis_has_the_divergence_of_a_newcomer():
    divergence, newcomer = Divergence(BITS, 20, 0.05), Newcomer(BITS, 20, 1.0, coordinates="free")
    twin, successes = newcomer.twin, np.array([0.0, 7.0, 20.0])
    assert divergence(newcomer, successes) == pytest.approx(divergence(twin, successes), rel=1e-7)


def test_what_is_no_number_has_no_curve():
    both = Newcomer(BITS, 8, 1.0, coordinates="all")
    assert both.privacy_curve(0.5) is None
    assert both.noise_cdf(0.0) is None
    assert both.recalibrated(BUDGET) is None
    assert privpost.NetworkLaplace(privpost.BayesianNetwork({"a": []}), 3, 1.0).privacy_curve(0.5) is None


def test_a_density_that_is_none_is_refused(monkeypatch):
    monkeypatch.setattr(Newcomer, "log_density", lambda self, r, s: self.twin.log_density(r, s) - np.log(2))
    for ask in (lambda m: m.privacy_curve(0.5), lambda m: m.noise_cdf(0.0), lambda m: densities.rdp(m, 2.0)):
        with pytest.raises(ValueError, match=r"^log_density of Newcomer integrates to 0\.5 over all releases; it must"):
            ask(Newcomer.examples()[0])


@dataclass(frozen=True)
class Staircase(AdditiveNoiseMechanism):
    """Noise of a piecewise constant density: e^−kε f on the k-th step [k + γ, k + 1 + γ) of |x|, f on the first one."""

    epsilon: float = 1.0
    gamma: float = 0.3
    told: bool = True

    method: ClassVar[str] = "staircase"
    norm: ClassVar[str] = "l1"
    notion: ClassVar[str] = "pure"
    calibrated: ClassVar[str] = "epsilon"
    public_inputs: ClassVar[tuple[str, ...]] = ("n",)

    @classmethod
    def calibrate(cls, model, n, budget, **options):
        return cls(model, n, epsilon=pure_epsilon(budget, cls.method), **options)

    def cost(self):
        return Cost("pure", self.epsilon)

    def noise(self, shape, rng):
        raise NotImplementedError

    @property
    def height(self):
        ratio = np.exp(-self.epsilon)
        return (1 - ratio) / (2 * (self.gamma + (1 - self.gamma) * ratio))

    @property
    def steps(self):
        # Beyond 60/ε the density is below e^−60.
        return np.arange(int(60 / self.epsilon))

    @property
    def breaks(self):
        ends = self.steps + self.gamma
        return np.concatenate([-ends, ends]) if self.told else np.empty(0)

    def log_density(self, release, statistics):
        step = np.floor(np.abs(np.asarray(release, float) - self.select(statistics)) + 1 - self.gamma)
        return (np.log(self.height) - self.epsilon * step)[..., 0]

    @classmethod
    def examples(cls):
        return [cls(BITS, 8, coordinates="free")]

    def by_hand(self):
        """Lengths of the pieces on which both neighbours' densities, of 0 and of 1, are constant, and the densities."""
        ends = np.concatenate([-self.breaks, self.breaks, 1 + self.breaks])
        ends = np.unique(np.round(ends, 12))
        middles = (ends[:-1] + ends[1:]) / 2
        p, q = (
            self.height * np.exp(-self.epsilon * np.floor(np.abs(middles - at) + 1 - self.gamma)) for at in (0.0, 1.0)
        )
        return np.diff(ends), p, q


@pytest.mark.parametrize(("epsilon", "gamma"), [(0.4, 0.3), (1.0, 0.5), (2.0, 0.5), (5.0, 0.37)])
def test_a_density_that_jumps_is_integrated_between_its_breaks(epsilon, gamma):
    """Independent: sums over the pieces, by hand. It was refused: "integrates to 1.00038"."""
    mechanism = Staircase(BITS, 8, epsilon=epsilon, gamma=gamma, coordinates="free")
    lengths, p, q = mechanism.by_hand()
    for at in (0.0, epsilon / 2):
        exact = (lengths * np.maximum(p - np.exp(at) * q, 0)).sum()
        assert mechanism.privacy_curve(at) == pytest.approx(exact, rel=1e-7)
    assert mechanism.privacy_curve(epsilon * (1 + 1e-9)) == pytest.approx(0, abs=1e-9)
    for order in (1.5, 3.0):
        exact = np.log((lengths * p**order * q ** (1 - order)).sum()) / (order - 1)
        assert densities.rdp(mechanism, order) == pytest.approx(exact, rel=1e-6)
    # The density is constant between the breaks of one law, so that its distribution function is linear.
    ends = np.sort(mechanism.breaks)
    heights = mechanism.height * np.exp(-epsilon * np.floor(np.abs((ends[:-1] + ends[1:]) / 2) + 1 - mechanism.gamma))
    below = np.append(0.0, np.cumsum(np.diff(ends) * heights))
    at = np.array([-2.0, -mechanism.gamma / 2, 0.0, 0.9])
    assert mechanism.noise_cdf(at) == pytest.approx(np.interp(at, ends, below), abs=1e-7)


def test_a_density_whose_jumps_are_not_told_says_what_to_declare():
    with pytest.raises(
        ValueError, match=r"it must be 1\. Where a right density jumps .*, declare the places as `breaks`"
    ):
        Staircase(BITS, 8, gamma=0.5, told=False, coordinates="free").privacy_curve(0.5)
