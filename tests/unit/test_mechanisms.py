"""Contract tests of every mechanism that the package discovers, and tests of the shipped ones."""

import inspect
import itertools
import subprocess
import sys
from dataclasses import dataclass, fields, replace
from functools import cache

import numpy as np
import pytest
from quadrature import parameter_nodes
from scipy.special import logsumexp

from privpost import discovery, mechanisms
from privpost.distributions import truncated_beta
from privpost.mechanisms import (
    ConcentratedPosterior,
    DiffusedPosterior,
    DirectPosterior,
    ExponentialMechanism,
    GaussianMechanism,
    LaplaceMechanism,
    posterior_sampling,
)
from privpost.mechanisms.base import NORMS, RELEASES, Mechanism
from privpost.models import BetaBernoulli, DirichletCategorical
from privpost.privacy.accounting import NOTIONS, Cost, pure_to_rdp
from privpost.privacy.ledger import BudgetExceeded, Ledger
from privpost.privacy.renyi import gaussian_divergence

CLASSES = [mechanism for same_method in discovery.mechanisms().values() for mechanism in same_method]
EXAMPLES = [pytest.param(example, id=repr(example)) for mechanism in CLASSES for example in mechanism.examples()]
every_class = pytest.mark.parametrize("mechanism", CLASSES)
every_example = pytest.mark.parametrize("mechanism", EXAMPLES)

# Correlations of 20,000 independent draws are normal with sd 1/√20000; 5 of those are a false alarm in 1.7e6 pairs.
DRAWS, STANDARD_ERRORS = 20_000, 5.0


def data_sets(mechanism):
    """All data sets of n records, and the index pairs (unordered) of those that differ in one record."""
    records, n = mechanism.model.records, mechanism.n
    choices = list(itertools.product(range(len(records)), repeat=n))
    assert len(choices) <= 5000, "an example has too many data sets to enumerate"
    index = {choice: i for i, choice in enumerate(choices)}
    pairs = [
        (i, index[(*choice[:position], other, *choice[position + 1 :])])
        for choice, i in index.items()
        for position in range(n)
        for other in range(choice[position] + 1, len(records))
    ]
    return [records[list(choice)] for choice in choices], np.array(pairs)


@cache
def neighbouring_statistics(mechanism):
    """Distinct ordered pairs of sufficient statistics of neighbours, shape (pairs, 2, d)."""
    data, pairs = data_sets(mechanism)
    statistics = np.stack([mechanism.model.sufficient_statistics(x) for x in data])
    both = np.concatenate([pairs, pairs[:, ::-1]])
    return np.unique(statistics[both], axis=0)


def change(mechanism, first, second):
    """Distance of queries (or releases) in the mechanism's norm."""
    difference = np.abs(first - second).reshape(len(first), -1)
    if mechanism.norm == "l1":
        return difference.sum(axis=-1)
    if mechanism.norm == "log-likelihood ratio":
        return difference.max(axis=-1)
    return np.sqrt((difference**2).sum(axis=-1))


# The checks, as functions, so that broken mechanisms can be shown to fail them.


def check_sensitivity(mechanism):
    data, pairs = data_sets(mechanism)
    queries = np.stack([np.asarray(mechanism.query(x), float) for x in data])
    largest = change(mechanism, queries[pairs[:, 0]], queries[pairs[:, 1]]).max()
    # 1e-9: rounding.
    assert largest <= mechanism.sensitivity * (1 + 1e-9), "a change between neighbours exceeds the sensitivity"
    if mechanism.tight:
        assert largest >= mechanism.sensitivity * (1 - 1e-9), "no pair of neighbours attains the sensitivity"


def check_replay(mechanism):
    """The same noise on neighbouring data: the releases differ by at most the sensitivity."""
    data, pairs = data_sets(mechanism)
    statistics = mechanism.model.sufficient_statistics
    releases = np.stack([mechanism.perturb(statistics(x), np.random.default_rng(7)) for x in data])
    largest = change(mechanism, releases[pairs[:, 0]], releases[pairs[:, 1]]).max()
    assert largest <= mechanism.sensitivity * (1 + 1e-9)


def check_noise_is_independent(mechanism):
    statistics = neighbouring_statistics(mechanism)[0, 0]
    releases = mechanism.perturb(np.broadcast_to(statistics, (DRAWS, statistics.size)), np.random.default_rng(11))
    releases = releases.reshape(DRAWS, -1)
    noisy = releases.std(axis=0) > 0
    # A coordinate without noise must be the same for all data.
    for pair in neighbouring_statistics(mechanism):
        there, back = (mechanism.perturb(s, np.random.default_rng(0)).ravel() for s in pair)
        assert np.allclose(there[~noisy], back[~noisy])
    if noisy.sum() > 1:
        correlations = np.corrcoef(releases[:, noisy], rowvar=False)
        off_diagonal = correlations[~np.eye(noisy.sum(), dtype=bool)]
        assert np.abs(off_diagonal).max() < STANDARD_ERRORS / DRAWS**0.5


def check_a_second_release_is_refused(mechanism):
    """An account with a budget for one release pays one, also where a mechanism of no finite cost has none."""
    ledger, statistics = Ledger(), neighbouring_statistics(mechanism)[0, 0]
    ledger.open("cell", mechanism.cost(), mechanism)
    ledger.release("cell", mechanism, statistics, np.random.default_rng(1), size=1)
    with pytest.raises(BudgetExceeded, match="cell"):
        ledger.release("cell", mechanism, statistics, np.random.default_rng(1), size=1)


def outputs_and_weights(mechanism):
    """Points of the release space with the log-weights of an integral over it."""
    if mechanism.releases == "sample":
        return parameter_nodes(mechanism.model)
    statistics = neighbouring_statistics(mechanism)[:, 0]
    rng = np.random.default_rng(3)
    releases = mechanism.perturb(np.broadcast_to(statistics[0], (4000, statistics.shape[1])), rng)
    if mechanism.notion == "pure" and releases.shape[-1] > 2:
        # A largest ratio needs no integral, and a grid over many coordinates would be too long.
        return releases, None
    spread = releases.std(axis=0)
    centre = np.stack([mechanism.query(x) for x in data_sets(mechanism)[0]])
    # The mixture of order λ lies up to λ−1 sensitivities outside; half a standard deviation is a fine step for the
    # trapezoidal rule on a normal density (error exp(−8π²)).
    reach = 10 * spread + (getattr(mechanism, "order", 1) - 1) * mechanism.sensitivity
    axes = [
        np.arange(low - r, high + r, s / 2)
        for low, high, r, s in zip(centre.min(0), centre.max(0), reach, spread, strict=True)
    ]
    nodes = np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")], axis=-1)
    return nodes, np.full(len(nodes), sum(np.log(axis[1] - axis[0]) for axis in axes))


def check_cost_covers_the_exact_divergence(mechanism):
    """The worst case over all neighbouring counts, of the log-ratio (pure) or of the Rényi divergence (rdp)."""
    if mechanism.log_density(*probe(mechanism)) is None:
        return
    nodes, log_weights = outputs_and_weights(mechanism)
    if mechanism.notion == "pure" and mechanism.releases == "statistics":
        # Corners far outside, where the ratio of Laplace densities is largest.
        far = np.array(list(itertools.product([-1e3, 1e3], repeat=nodes.shape[1])))
        nodes = np.concatenate([nodes, far])
    cost = mechanism.cost()
    for p, q in neighbouring_statistics(mechanism):
        log_p, log_q = mechanism.log_density(nodes, p), mechanism.log_density(nodes, q)
        assert np.array_equal(np.isneginf(log_p), np.isneginf(log_q)), "the support depends on the data"
        inside = ~np.isneginf(log_p)
        log_p, log_q = log_p[inside], log_q[inside]
        if mechanism.notion == "pure":
            assert np.max(log_p - log_q) <= cost.epsilon * (1 + 1e-9)
        elif mechanism.notion == "rdp" and cost.order > 1:
            log_integrand = cost.order * log_p + (1 - cost.order) * log_q + log_weights[inside]
            # 1e-6 relative and 1e-8 absolute: the rule's finite step and range.
            assert logsumexp(log_integrand) / (cost.order - 1) <= cost.epsilon * (1 + 1e-6) + 1e-8


def probe(mechanism):
    statistics = neighbouring_statistics(mechanism)[0, 0]
    return mechanism.perturb(statistics, np.random.default_rng(0)), statistics


# Contract


@every_class
def test_class_attributes_are_declared(mechanism):
    assert mechanism.method.isidentifier()
    assert mechanism.neighbours == "substitution"
    assert mechanism.norm in NORMS
    assert mechanism.notion in NOTIONS
    assert mechanism.releases in RELEASES
    assert isinstance(mechanism.exact, bool)
    assert mechanism.public_inputs
    assert all(isinstance(name, str) for name in mechanism.public_inputs)
    assert mechanism.calibrated is None or mechanism.calibrated in {field.name for field in fields(mechanism)}
    assert mechanism.examples()
    assert all(type(example) is mechanism for example in mechanism.examples())
    with pytest.raises((AttributeError, TypeError)):
        mechanism.examples()[0].n = 3


@every_example
def test_sensitivity_is_the_maximum_over_all_neighbours(mechanism):
    check_sensitivity(mechanism)


@every_example
def test_replayed_noise_moves_the_release_by_at_most_the_sensitivity(mechanism):
    if mechanism.releases == "statistics" and mechanism.norm in ("l1", "l2"):
        check_replay(mechanism)


@every_example
def test_noise_of_released_coordinates_is_independent(mechanism):
    if mechanism.releases == "statistics":
        check_noise_is_independent(mechanism)


@every_example
def test_cost_covers_the_exact_worst_case(mechanism):
    check_cost_covers_the_exact_divergence(mechanism)


@every_example
def test_cost_and_rdp_curve_agree(mechanism):
    cost = mechanism.cost()
    assert cost.notion == mechanism.notion
    orders = np.array([1, 1.5, 2, 8, 64])
    curve = mechanism.rdp(orders)
    if mechanism.notion == "approximate":
        assert curve is None
        return
    assert curve.shape == orders.shape
    assert np.all(curve >= 0)
    assert np.all(curve[1:] >= curve[:-1] * (1 - 1e-12))
    if mechanism.notion == "rdp":
        assert float(mechanism.rdp(cost.order)) == cost.epsilon
    else:
        assert np.allclose(curve, pure_to_rdp(cost.epsilon, orders), rtol=1e-12)


def check_privacy_curve(mechanism, epsilon):
    """δ(ε) against the hockey-stick divergence by quadrature, at its largest over all neighbours."""
    claimed = mechanism.privacy_curve(epsilon)
    if claimed is None:
        return
    nodes, log_weights = outputs_and_weights(mechanism)
    if mechanism.releases == "statistics" and nodes.shape[1] == 1:
        # The divergence has a kink, for which the rule's own step is too wide.
        nodes = np.linspace(nodes.min(), nodes.max(), 100_001)[:, None]
        log_weights = np.log(nodes[1] - nodes[0])
    found = 0.0
    for p, q in neighbouring_statistics(mechanism):
        densities = (np.exp(mechanism.log_density(nodes, side) + log_weights) for side in (p, q))
        found = max(found, np.maximum(next(densities) - np.exp(epsilon) * next(densities), 0.0).sum())
    # Several coordinates keep the wide step, half a standard deviation.
    one = mechanism.releases == "sample" or nodes.shape[1] == 1
    assert claimed == pytest.approx(found, rel=1e-2 if one else 0.1, abs=1e-4)


@every_example
@pytest.mark.parametrize("epsilon", [0.05, 0.5])
def test_privacy_curves_are_the_largest_divergence(mechanism, epsilon):
    check_privacy_curve(mechanism, epsilon)


@every_example
@pytest.mark.parametrize("budget", [Cost("approximate", 0.5, delta=1e-3), Cost("approximate", 3.0, delta=1e-14)])
def test_recalibration_spends_an_approximate_budget_by_the_exact_curve(mechanism, budget):
    found = mechanism.recalibrated(budget)
    if found is None:
        assert mechanism.privacy_curve(budget.epsilon) is None or mechanism.calibrated is None
        return
    ledger = Ledger()
    ledger.open("exact", budget, found, accounting="exact")
    assert found.options == mechanism.options
    # What is left over: a setting at the end of its range, rounding of a small δ, or 30 steps of bisection.
    at_end = 1 in (getattr(found, "coefficient", 0), getattr(found, "temperature", 0))
    assert at_end or budget.delta < 1e-9 or found.privacy_curve(budget.epsilon) > 0.99 * budget.delta


def test_a_wrong_privacy_curve_is_found():
    for example, change in (
        (GaussianMechanism(BetaBernoulli(6, 12), 8, 2.0, 2.0), {"sigma": 4.0}),
        (LaplaceMechanism(BetaBernoulli(6, 12), 8, 1.0, coordinates="free"), {"epsilon": 0.5}),
        (DiffusedPosterior(BetaBernoulli(6, 12), 8, 2.0, 0.3), {"coefficient": 0.15}),
        (ExponentialMechanism(BetaBernoulli(6, 12), 8, 1.0, a0=0.2), {"epsilon": 0.5}),
    ):
        check_privacy_curve(example, 0.05)
        weaker = replace(example, **change)
        object.__setattr__(example, "privacy_curve", weaker.privacy_curve)
        with pytest.raises(AssertionError):
            check_privacy_curve(example, 0.05)


@every_example
def test_calibration_meets_the_budget_without_data(mechanism):
    for share in (1.0, 0.5):
        budget = replace(mechanism.cost(), epsilon=share * mechanism.cost().epsilon)
        if share < 1 and mechanism.calibrated is None:
            continue
        calibrated = type(mechanism).calibrate(mechanism.model, mechanism.n, budget, **mechanism.options)
        assert type(calibrated) is type(mechanism)
        assert calibrated.cost().within(budget)
        assert calibrated.options == mechanism.options
        # Little of the budget is wasted.
        assert calibrated.cost().epsilon > 0.99 * budget.epsilon


@every_class
def test_calibration_takes_no_data(mechanism):
    parameters = list(inspect.signature(mechanism.calibrate).parameters.values())
    assert [parameter.name for parameter in parameters[:3]] == ["model", "n", "budget"]
    assert all(parameter.kind in (parameter.KEYWORD_ONLY, parameter.VAR_KEYWORD) for parameter in parameters[3:])
    options = set(discovery.options_of(mechanism))
    assert options == set(mechanism.examples()[0].options)
    assert not options & {"data", "statistics", "records", "rng"}


@every_class
def test_unknown_settings_and_impossible_sizes_are_errors(mechanism):
    example = mechanism.examples()[0]
    with pytest.raises(TypeError, match="no_such_setting"):
        mechanism.calibrate(example.model, example.n, example.cost(), **example.options, no_such_setting=1)
    with pytest.raises(ValueError, match="n is 0; it must be an integer >= 1"):
        replace(example, n=0)
    for name, value in example.options.items():
        if isinstance(value, str):
            with pytest.raises(ValueError, match=f"{name} is 'no_such_value'; allowed: "):
                replace(example, **{name: "no_such_value"})
    for epsilon in (0.0, np.inf):
        with pytest.raises(ValueError, match=r"budget is .*epsilon > 0 and finite"):
            mechanism.calibrate(example.model, example.n, replace(example.cost(), epsilon=epsilon), **example.options)


@every_example
def test_a_ledger_refuses_the_second_release(mechanism):
    check_a_second_release_is_refused(mechanism)


@every_example
def test_perturb_on_a_batch_is_a_loop_over_it(mechanism):
    # Different rows: equal ones may run as one batch of chains.
    statistics = np.unique(neighbouring_statistics(mechanism)[:, 0], axis=0)[:5]
    together = mechanism.perturb(statistics, np.random.default_rng(5))
    rng = np.random.default_rng(5)
    alone = np.stack([mechanism.perturb(one, rng) for one in statistics])
    assert together.shape == alone.shape
    assert np.allclose(together, alone, rtol=1e-12)
    nested = mechanism.perturb(np.stack([statistics] * 3), np.random.default_rng(5))
    assert nested.shape == (3, *together.shape)
    assert len(np.unique(nested.reshape(3, -1), axis=0)) == 3


@every_example
def test_posterior_samples_are_parameters(mechanism):
    statistics = np.stack([neighbouring_statistics(mechanism)[:2, 0]] * 4)
    draws = mechanism.posterior_sample(statistics, np.random.default_rng(6))
    assert draws.shape == (4, 2, *mechanism.model.theta_shape)
    assert np.all(np.isfinite(draws))
    assert len(np.unique(draws.reshape(8, -1), axis=0)) == 8


@every_example
def test_releases_follow_the_stated_density(mechanism):
    if mechanism.log_density(*probe(mechanism)) is None:
        return
    # E p(y|s')/p(y|s) = 1 over releases y of s, for a density that is normalised and that of the draws; the ratio has
    # a bounded second moment, which is what the privacy guarantee says. 5 standard errors: false alarm 6e-7 a pair.
    pairs = neighbouring_statistics(mechanism)
    for p, q in pairs[:: max(1, len(pairs) // 6)]:
        releases = mechanism.perturb(np.broadcast_to(p, (DRAWS, p.size)), np.random.default_rng(8))
        ratios = np.exp(mechanism.log_density(releases, q) - mechanism.log_density(releases, p))
        assert abs(ratios.mean() - 1) < STANDARD_ERRORS * ratios.std() / DRAWS**0.5


@every_example
def test_density_of_a_draw_integrates_to_one(mechanism):
    release, statistics = probe(mechanism)
    if mechanism.releases == "sample" and mechanism.log_density(release, statistics) is not None:
        nodes, log_weights = parameter_nodes(mechanism.model)
        # 0.01: the rule steps over the edges of a truncated density.
        assert logsumexp(mechanism.log_density(nodes, statistics) + log_weights) == pytest.approx(0, abs=0.01)


# The checks catch broken mechanisms


@dataclass(frozen=True)
class SharedNoise(LaplaceMechanism):
    """One noise variate for all coordinates."""

    def noise(self, shape, rng):
        return np.broadcast_to(super().noise((*shape[:-1], 1), rng), shape)


@dataclass(frozen=True)
class SensitivityTooSmall(LaplaceMechanism):
    """The L1 sensitivity of counts taken as 1."""

    @property
    def sensitivity(self):
        return 1.0


@dataclass(frozen=True)
class WrongScale(LaplaceMechanism):
    """Noise of half the scale that the density states."""

    def noise(self, shape, rng):
        return super().noise(shape, rng) / 2


@dataclass(frozen=True)
class SensitivityTooLarge(LaplaceMechanism):
    """A bound that no pair of neighbours attains."""

    @property
    def sensitivity(self):
        return 3.0


@dataclass(frozen=True)
class TooCold(ExponentialMechanism):
    """A temperature of 1 whatever the ε."""

    @property
    def temperature(self):
        return 1.0


@dataclass(frozen=True)
class Undercharged(DiffusedPosterior):
    """Charged half of its Rényi divergence."""

    def rdp(self, orders):
        return super().rdp(orders) / 2


COUNTS = DirichletCategorical((5, 5, 5))


@pytest.mark.parametrize(
    "broken, check",
    [
        (SharedNoise(COUNTS, 4, 1.0), check_noise_is_independent),
        (SharedNoise(BetaBernoulli(), 8, 1.0), check_noise_is_independent),
        (SensitivityTooSmall(COUNTS, 4, 1.0), check_sensitivity),
        (SensitivityTooSmall(COUNTS, 4, 1.0), check_replay),
        (SensitivityTooSmall(COUNTS, 4, 1.0), check_cost_covers_the_exact_divergence),
        (WrongScale(COUNTS, 4, 1.0), test_releases_follow_the_stated_density),
        (SensitivityTooLarge(COUNTS, 4, 1.0), check_sensitivity),
        (TooCold(BetaBernoulli(), 8, 1.0, a0=0.2), check_cost_covers_the_exact_divergence),
        (Undercharged(BetaBernoulli(6, 12), 8, 2.0, 0.3), check_cost_covers_the_exact_divergence),
    ],
)
def test_broken_mechanisms_are_caught(broken, check):
    with pytest.raises(AssertionError):
        check(broken)


# Discovery


def test_discovery_finds_the_shipped_mechanisms():
    found = discovery.mechanisms()
    assert LaplaceMechanism in found["laplace"]
    assert GaussianMechanism in found["gaussian"]
    assert ExponentialMechanism in found["ops"]
    assert DirectPosterior in found["direct"]
    assert DiffusedPosterior in found["diffused"]
    assert ConcentratedPosterior in found["concentrated"]
    assert not any(inspect.isabstract(mechanism) for mechanism in CLASSES)
    assert all(issubclass(mechanism, Mechanism) for mechanism in CLASSES)
    with pytest.raises(AttributeError, match="no attribute 'NoSuchMechanism'"):
        _ = mechanisms.NoSuchMechanism


NEW_MECHANISM = """
from dataclasses import dataclass
from privpost.mechanisms.laplace import LaplaceMechanism

@dataclass(frozen=True)
class NewMechanism(LaplaceMechanism):
    method = "new"
"""


def test_a_new_file_is_a_new_mechanism(tmp_path, monkeypatch):
    (tmp_path / "new_mechanism.py").write_text(NEW_MECHANISM)
    monkeypatch.setattr(mechanisms, "__path__", [*mechanisms.__path__, str(tmp_path)])
    monkeypatch.delitem(sys.modules, "privpost.mechanisms.new_mechanism", raising=False)
    assert [mechanism.__name__ for mechanism in discovery.mechanisms()["new"]] == ["NewMechanism"]
    assert mechanisms.NewMechanism.method == "new"
    monkeypatch.delitem(sys.modules, "privpost.mechanisms.new_mechanism")


def test_importing_one_mechanism_leaves_the_others_alone():
    code = "import sys; import privpost.mechanisms.exponential; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "privpost.mechanisms.exponential" in loaded
    assert not {"privpost.mechanisms.gaussian", "scipy.stats", "pandas", "matplotlib"} & set(loaded)


# Laplace and Gaussian


def test_noise_densities_agree_with_scipy():
    from scipy.stats import laplace, norm

    release, statistics = np.array([1.5, -2.0]), np.array([3.0, 1.0, 0.0])
    noisy = LaplaceMechanism(COUNTS, 4, 0.5, coordinates="free")
    expected = laplace.logpdf(release, statistics[:2], 4.0).sum()
    assert float(noisy.log_density(release, statistics)) == pytest.approx(expected, rel=1e-12)
    noisy = GaussianMechanism(COUNTS, 4, 2.5, 2.0)
    expected = norm.logpdf(release, statistics[:2], 2.5).sum()
    assert float(noisy.log_density(release, statistics)) == pytest.approx(expected, rel=1e-12)


def test_laplace_sensitivities_and_scales():
    bits = BetaBernoulli(1, 1)
    assert LaplaceMechanism(bits, 20, 0.5).sensitivity == 2
    assert LaplaceMechanism(bits, 20, 0.5).scale == 4
    assert LaplaceMechanism(bits, 20, 0.5, coordinates="free").sensitivity == 1
    assert LaplaceMechanism(COUNTS, 20, 0.5).sensitivity == 2
    assert LaplaceMechanism(COUNTS, 20, 0.5, coordinates="free").sensitivity == 2


def test_laplace_calibrates_to_a_renyi_budget():
    budget = Cost("rdp", 0.3, order=4)
    mechanism = LaplaceMechanism.calibrate(BetaBernoulli(), 20, budget)
    assert mechanism.epsilon > 0.3
    assert mechanism.cost().within(budget)
    assert float(mechanism.rdp(4)) == pytest.approx(0.3, rel=1e-9)


def test_projection_and_privatised_posterior():
    every = LaplaceMechanism(BetaBernoulli(2, 3), 10, 1.0)
    assert every.project([[-1.5, 14.0], [3.5, 6.0]]).tolist() == [[0, 14], [3.5, 6]]
    assert every.posterior([-1.5, 14.0]).tolist() == [2, 17]
    count = GaussianMechanism(BetaBernoulli(6, 12), 10, 2.0, 2.0)
    assert count.project([[-1.5], [14.0], [3.5]]).tolist() == [[0, 10], [10, 0], [3.5, 6.5]]
    free = LaplaceMechanism(COUNTS, 10, 1.0, coordinates="free")
    assert free.project([[2.0, 3.0], [8.0, 7.0], [-4.0, 12.0]]).tolist() == [[2, 3, 5], [8, 7, 0], [0, 10, 0]]


@pytest.mark.parametrize("variant, factor", [("corrected", 0.5), ("paper", 1.0)])
def test_gaussian_charge(variant, factor):
    mechanism = GaussianMechanism(BetaBernoulli(6, 12), 100, 3.0, 15.0, variant=variant)
    assert mechanism.cost() == Cost("rdp", mechanism.cost().epsilon, order=15.0)
    assert mechanism.cost().epsilon == pytest.approx(factor * 15 / 9, rel=1e-12)
    calibrated = GaussianMechanism.calibrate(BetaBernoulli(6, 12), 100, Cost("rdp", 0.2, order=2), variant=variant)
    assert calibrated.sigma == pytest.approx(np.sqrt(factor * 2 / 0.2), rel=1e-12)
    exact = float(gaussian_divergence(0.0, 3.0, 1.0, 3.0, 15.0))
    assert mechanism.cost().epsilon == pytest.approx(exact * factor / 0.5, rel=1e-12)


# Posterior sampling


def test_posterior_parameters_of_the_three_mechanisms():
    model, statistics = BetaBernoulli(6, 12), np.array([38.0, 62.0])
    assert DirectPosterior(model, 100, 2.0).posterior(statistics).tolist() == [44, 74]
    assert np.allclose(DiffusedPosterior(model, 100, 2.0, 0.5).posterior(statistics), [25, 43])
    assert np.allclose(ConcentratedPosterior(model, 100, 2.0, 0.5).posterior(statistics), [50, 86])


def test_calibrated_coefficients_at_both_orders():
    # Direct sampling costs 0.1912902 at order 2; order 15 is beyond its asymptote and stops both at 6/14.
    model = BetaBernoulli(6, 12)
    for mechanism in (DiffusedPosterior, ConcentratedPosterior):
        assert mechanism.calibrate(model, 100, Cost("rdp", 0.1912903, order=2)).coefficient == 1
        assert mechanism.calibrate(model, 100, Cost("rdp", 1e6, order=15)).coefficient == pytest.approx(6 / 14)
        paper = mechanism.calibrate(model, 100, Cost("rdp", 0.1, order=1.5), supremum="paper")
        assert paper.coefficient < mechanism.calibrate(model, 100, Cost("rdp", 0.1, order=1.5)).coefficient


def test_coefficients_are_vectorised_over_targets():
    epsilons = np.array([[0.01], [0.1], [1.0]])
    for coefficient in (posterior_sampling.diffused_coefficient, posterior_sampling.concentrated_coefficient):
        values = coefficient((6, 12), 100, [2.0, 15.0], epsilons)
        assert values.shape == (3, 2)
        assert float(coefficient((6, 12), 100, 15.0, 0.1)) == pytest.approx(values[1, 1], rel=1e-12)


def test_coefficient_functions_take_no_data():
    allowed = {"prior", "n", "order", "epsilon", "supremum", "iterations"}
    for function in (posterior_sampling.diffused_coefficient, posterior_sampling.concentrated_coefficient):
        assert set(inspect.signature(function).parameters) == allowed


def test_direct_posterior_refuses_budgets_below_its_cost():
    model = BetaBernoulli(6, 12)
    assert DirectPosterior.calibrate(model, 100, Cost("rdp", 0.2, order=2)).cost().epsilon < 0.2
    with pytest.raises(ValueError, match=r"budget is .*the direct posterior costs"):
        DirectPosterior.calibrate(model, 100, Cost("rdp", 0.19, order=2))
    with pytest.raises(ValueError, match=r"the direct posterior costs .*epsilon=inf"):
        DirectPosterior.calibrate(model, 100, Cost("rdp", 1e6, order=7))


@pytest.mark.parametrize("mechanism", [DiffusedPosterior, ConcentratedPosterior, DirectPosterior, GaussianMechanism])
def test_renyi_mechanisms_refuse_other_budgets(mechanism):
    for budget in (Cost("pure", 1.0), Cost("approximate", 1.0, delta=1e-5)):
        with pytest.raises(ValueError, match=r"budget is .*its notion must be 'rdp'"):
            mechanism.calibrate(BetaBernoulli(6, 12), 100, budget)


@pytest.mark.parametrize("coefficient", [0.0, -0.1, 1.1, np.nan])
def test_coefficients_outside_their_range_are_errors(coefficient):
    for mechanism in (DiffusedPosterior, ConcentratedPosterior):
        with pytest.raises(ValueError, match="coefficient is "):
            mechanism(BetaBernoulli(6, 12), 100, 2.0, coefficient)


# Exponential mechanism


@pytest.mark.parametrize("epsilon, a0, temperature", [(0.1, 0.05, 58.888780), (1.0, 0.05, 5.888878), (20.0, 0.05, 1.0)])
def test_temperature_and_tempered_posterior(epsilon, a0, temperature):
    mechanism = ExponentialMechanism(BetaBernoulli(3, 4), 10, epsilon, a0=a0)
    assert mechanism.temperature == pytest.approx(temperature, rel=1e-7)
    expected = [1 + (3 - 1 + 7) / temperature, 1 + (4 - 1 + 3) / temperature]
    assert np.allclose(mechanism.posterior([7.0, 3.0]), expected, rtol=1e-7)
    assert mechanism.cost().epsilon == pytest.approx(min(epsilon, 2 * np.log(19)), rel=1e-12)


@pytest.mark.parametrize("a0", [0.0, 0.5, -0.1])
def test_truncation_outside_its_range_is_an_error(a0):
    with pytest.raises(ValueError, match="a0 is "):
        ExponentialMechanism(BetaBernoulli(), 10, 1.0, a0=a0)


def test_exponential_mechanism_needs_bits():
    with pytest.raises(ValueError, match="model is "):
        ExponentialMechanism(COUNTS, 10, 1.0, a0=0.1)


# Truncated beta

TRUNCATED = [
    ((1.0005, 1.0002), 0.05, 0.95),  # T in the thousands
    ((5.0, 3.0), 0.2, 0.8),
    ((0.5, 2.0), 0.05, 0.95),
    ((1001.0, 1.0), 0.05, 0.95),
    ((1.0, 1001.0), 0.05, 0.95),
    ((300.0, 20.0), 0.01, 0.3),
    ((50.0, 50.0), 0.9, 0.99),
]


@pytest.mark.parametrize("parameters, low, high", TRUNCATED)
def test_truncated_beta_against_forty_digits(parameters, low, high):
    import mpmath

    with mpmath.workdps(40):
        total = mpmath.betainc(*parameters, low, high)
        log_mass = float(mpmath.log(total / mpmath.beta(*parameters)))
        assert float(truncated_beta.log_mass(parameters, low, high)) == pytest.approx(log_mass, rel=1e-12, abs=1e-14)
        for u in (1e-6, 0.1, 0.5, 0.9, 1 - 1e-6):
            theta = float(truncated_beta.quantile(u, parameters, low, high))
            # 1e-11: θ has 16 digits, the distribution function rises by at most 1000 of its scales.
            assert float(mpmath.betainc(*parameters, low, theta) / total) == pytest.approx(u, abs=1e-11)


@pytest.mark.parametrize(
    "parameters, low, high",
    [((2e4, 2.0), 0.05, 0.95), ((2.0, 2e4), 0.05, 0.95), ((1e5, 3e5), 0.05, 0.2), ((1e6, 2.0), 0.05, 0.95)],
)
def test_truncated_beta_where_the_mass_underflows(parameters, low, high):
    # Independent: composite Gauss-Legendre on the 60 scale lengths next to the end where the density is largest.
    a, b = parameters
    end = low if a / (a + b) < low else high
    slope = (a - 1) / end - (b - 1) / (1 - end)
    edges = np.sort(end - np.linspace(0, 60, 400) / slope)
    x, w = np.polynomial.legendre.leggauss(20)

    def integral(left, right):
        cells = np.clip(edges, left, right)
        half, middle = np.diff(cells)[:, None] / 2, (cells[1:] + cells[:-1])[:, None] / 2
        theta = middle + half * x
        log_ratio = (a - 1) * np.log(theta / end) + (b - 1) * np.log((1 - theta) / (1 - end))
        return (half * w * np.exp(log_ratio)).sum()

    total = integral(low, high)
    assert truncated_beta.log_mass(parameters, low, high) < -900
    for u in (1e-6, 0.1, 0.5, 0.9, 1 - 1e-6):
        theta = float(truncated_beta.quantile(u, parameters, low, high))
        # 1e-9: θ has 16 digits and the density falls over 1e-6 of it.
        assert integral(low, theta) / total == pytest.approx(u, abs=1e-9)
    # The density at the end is the inverse of the integral of the ratio to it.
    assert float(truncated_beta.log_density(end, parameters, low, high)) == pytest.approx(-np.log(total), rel=1e-9)


def test_truncated_beta_draws_follow_their_distribution_function():
    from scipy.stats import kstest

    rng = np.random.default_rng(31)
    for parameters, low, high in TRUNCATED:
        draws = truncated_beta.sample(np.broadcast_to(parameters, (5000, 2)), low, high, rng)
        assert np.all((draws >= low) & (draws <= high))
        masses = [truncated_beta.log_mass(parameters, low, max(t, np.nextafter(low, 1))) for t in np.sort(draws)[::50]]
        uniform = np.exp(masses - truncated_beta.log_mass(parameters, low, high))
        # Every 50th order statistic: the largest distance of 5000 draws is at most that of these plus 50/5000;
        # 0.035 is a false alarm below 1e-5 for 5000 draws (2 exp(−2·5000·0.035²)).
        assert np.abs(uniform - np.arange(0, 5000, 50) / 5000).max() < 0.035
    assert kstest(truncated_beta.sample(np.ones((5000, 2)), 0.2, 0.8, rng), "uniform", (0.2, 0.6)).pvalue > 1e-5


def test_truncated_beta_errors():
    with pytest.raises(ValueError, match="low is "):
        truncated_beta.log_mass((1, 1), 0.8, 0.2)
    with pytest.raises(ValueError, match="parameters must be > 0"):
        truncated_beta.log_mass((0, 1), 0.2, 0.8)
    with pytest.raises(ValueError, match="probability must lie in"):
        truncated_beta.quantile(1.5, (1, 1), 0.2, 0.8)
