"""Contract tests of every mechanism that the package discovers."""

import inspect
import itertools
from dataclasses import fields, replace
from functools import cache, partial

import numpy as np
import pytest
from quadrature import parameter_nodes
from scipy.special import logsumexp

from privpost import discovery
from privpost.mechanisms import (
    ExponentialMechanism,
    GaussianMechanism,
    LaplaceMechanism,
    PosteriorDraw,
)
from privpost.mechanisms.noise.additive import AdditiveNoiseMechanism
from privpost.models import BetaBernoulli
from privpost.privacy.accounting.costs import NOTIONS, Cost, pure_to_rdp
from privpost.privacy.ledger.gate import BudgetExceeded, Ledger

NORMS = ("l1", "l2", "log-likelihood ratio", "natural parameters")
RELEASES = ("statistics", "sample")
KINDS = discovery.kinds()
EXAMPLES = [pytest.param(example, id=repr(example)) for kind in KINDS for example in kind.examples]
MODELS = {repr(example.model): example.model for kind in KINDS for example in kind.examples}
every_kind = pytest.mark.parametrize("kind", [pytest.param(kind, id=kind.name) for kind in KINDS])
every_example = pytest.mark.parametrize("mechanism", EXAMPLES)
every_noise = pytest.mark.parametrize("mechanism", [e for e in EXAMPLES if e.values[0].releases == "statistics"])

# Correlations of 20,000 independent draws are normal with sd 1/√20000; 5 of those are a false alarm in 1.7e6 pairs.
DRAWS, STANDARD_ERRORS = 20_000, 5.0


@cache
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
    return records[np.array(choices)], np.array(pairs)


@cache
def neighbouring_statistics(mechanism):
    """Distinct ordered pairs of sufficient statistics of neighbours, shape (pairs, 2, d)."""
    data, pairs = data_sets(mechanism)
    statistics = np.stack([mechanism.model.sufficient_statistics(x) for x in data])
    both = np.concatenate([pairs, pairs[:, ::-1]])
    return np.unique(statistics[both], axis=0)


def distinct_statistics(mechanism):
    """Sufficient statistics of all data sets that have neighbours with others, shape (number, d)."""
    return np.unique(neighbouring_statistics(mechanism)[:, 0], axis=0)


def change(mechanism, first, second):
    """Distance of queries (or releases) in the mechanism's norm."""
    difference = np.abs(first - second).reshape(len(first), -1)
    if mechanism.norm == "l1":
        return difference.sum(axis=-1)
    if mechanism.norm == "log-likelihood ratio":
        return difference.max(axis=-1)
    return np.sqrt((difference**2).sum(axis=-1))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("model", [pytest.param(model, id=name) for name, model in MODELS.items()])
def test_a_record_that_is_no_number_is_refused_at_once(model):
    """Not by noise later on: neither a sum nor a count of such records is a statistic."""
    data = np.array(model.records[[0, -1, 0]], float)
    model.sufficient_statistics(data if model.records.dtype.kind == "f" else data.astype(int))
    for place, value in itertools.product(np.ndindex(data.shape), (np.nan, np.inf, -np.inf)):
        broken = data.copy()
        broken[place] = value
        with pytest.raises(ValueError, match="data has"):
            model.sufficient_statistics(broken)


# The checks, as functions, so that broken mechanisms can be shown to fail them.


def check_sensitivity(mechanism):
    data, pairs = data_sets(mechanism)
    queries = np.stack([np.asarray(mechanism.query(x), float) for x in data])
    largest = change(mechanism, queries[pairs[:, 0]], queries[pairs[:, 1]]).max()
    # 1e-9: rounding.
    found = f"query changes between neighbours by up to {largest:g} ({mechanism.norm})"
    found += f", sensitivity is {mechanism.sensitivity:g}"
    assert largest <= mechanism.sensitivity * (1 + 1e-9), found
    if mechanism.tight:
        assert largest >= mechanism.sensitivity * (1 - 1e-9), (
            f"{found}, which none attains: override tight, if that is known"
        )


def check_replay(mechanism):
    """The same noise on neighbouring data: the releases differ by at most the sensitivity."""
    data, pairs = data_sets(mechanism)
    statistics = mechanism.model.sufficient_statistics
    releases = np.stack([mechanism.perturb(statistics(x), np.random.default_rng(7)) for x in data])
    largest = change(mechanism, releases[pairs[:, 0]], releases[pairs[:, 1]]).max()
    message = "releases of neighbours, made by generators in one state, differ by more than the sensitivity"
    assert largest <= mechanism.sensitivity * (1 + 1e-9), f"{message}: {largest:g} against {mechanism.sensitivity:g}"


def check_noise_is_independent(mechanism):
    statistics = neighbouring_statistics(mechanism)[0, 0]
    releases = mechanism.perturb(np.broadcast_to(statistics, (DRAWS, statistics.size)), np.random.default_rng(11))
    releases = releases.reshape(DRAWS, -1)
    noisy = releases.std(axis=0) > 0
    # A coordinate without noise must be the same for all data.
    for pair in [] if noisy.all() else neighbouring_statistics(mechanism):
        there, back = (mechanism.perturb(s, np.random.default_rng(0)).ravel() for s in pair)
        assert np.allclose(there[~noisy], back[~noisy]), "a coordinate without noise differs between neighbours"
    if noisy.sum() > 1:
        correlations = np.corrcoef(releases[:, noisy], rowvar=False)
        off_diagonal = correlations[~np.eye(noisy.sum(), dtype=bool)]
        largest = np.abs(off_diagonal).max()
        message = f"noise of two coordinates has correlation {largest:.2g}; each needs variates of its own"
        assert largest < STANDARD_ERRORS / DRAWS**0.5, message


def check_a_second_release_is_refused(mechanism):
    """An account with a budget for one release pays one, also where a mechanism of no finite cost has none."""
    ledger, statistics, rng = Ledger(), neighbouring_statistics(mechanism)[0, 0], np.random.default_rng(1)
    ledger.open("cell", mechanism.cost(), mechanism)
    ledger.release("cell", mechanism, statistics, rng, size=1)
    with pytest.raises(BudgetExceeded, match="cell"):
        ledger.release("cell", mechanism, statistics, rng, size=1)


@cache
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
    # Whole numbers are all of them looked at.
    whole = mechanism.support == "integers"
    spread = np.maximum(releases.std(axis=0), 0.5)
    exact = mechanism.query if mechanism.norm in ("l1", "l2") else mechanism.model.sufficient_statistics
    centre = np.stack([exact(x) for x in data_sets(mechanism)[0]])
    # The mixture of order λ lies up to λ−1 sensitivities outside; half a standard deviation is a fine step for the
    # trapezoidal rule on a normal density (error exp(−8π²)).
    reach = 10 * spread + (getattr(mechanism, "order", 1) - 1) * mechanism.sensitivity
    axes = [
        np.arange(np.floor(low - r), high + r, 1.0) if whole else np.arange(low - r, high + r, s / 2)
        for low, high, r, s in zip(centre.min(0), centre.max(0), reach, spread, strict=True)
    ]
    nodes = np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")], axis=-1)
    return nodes, np.full(len(nodes), sum(np.log(axis[1] - axis[0]) for axis in axes))


def log_densities(mechanism, nodes):
    """The log-density at nodes by the bytes of statistics: those of all data sets, which are in several pairs each."""
    return {each.tobytes(): mechanism.log_density(nodes, each) for each in distinct_statistics(mechanism)}


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
    log_density = log_densities(mechanism, nodes)
    for p, q in neighbouring_statistics(mechanism):
        log_p, log_q = log_density[p.tobytes()], log_density[q.tobytes()]
        assert np.array_equal(np.isneginf(log_p), np.isneginf(log_q)), "the support depends on the data"
        inside = ~np.isneginf(log_p)
        log_p, log_q = log_p[inside], log_q[inside]
        if mechanism.notion == "pure":
            loss = np.max(log_p - log_q)
            message = (
                f"log_density differs between neighbours by up to {loss:g}, cost() is {cost}: is the noise too small?"
            )
            assert loss <= cost.epsilon * (1 + 1e-9), message
        elif mechanism.notion == "rdp" and cost.order > 1:
            log_integrand = cost.order * log_p + (1 - cost.order) * log_q + log_weights[inside]
            # 1e-6 relative and 1e-8 absolute: the rule's finite step and range.
            divergence = logsumexp(log_integrand) / (cost.order - 1)
            message = f"neighbours' releases have the Rényi divergence {divergence:g}, cost() is {cost}"
            assert divergence <= cost.epsilon * (1 + 1e-6) + 1e-8, message


@cache
def probe(mechanism):
    statistics = neighbouring_statistics(mechanism)[0, 0]
    return mechanism.perturb(statistics, np.random.default_rng(0)), statistics


# Contract


@every_kind
def test_class_attributes_are_declared(kind):
    mechanism = kind.mechanism
    names = "method", "neighbours", "norm", "notion", "releases", "exact", "public_inputs", "calibrated"
    lacking = [name for name in names if not hasattr(mechanism, name)]
    assert not lacking, (
        f"{mechanism.__name__} lacks the class attribute {', '.join(lacking)} (see Mechanism's docstring)"
    )
    assert kind.method.isidentifier()
    assert mechanism.neighbours == "substitution"
    assert mechanism.norm in NORMS
    assert mechanism.notion in NOTIONS
    assert mechanism.releases in RELEASES
    assert mechanism.support in ("reals", "integers")
    assert isinstance(mechanism.exact, bool)
    assert mechanism.public_inputs
    assert all(isinstance(name, str) for name in mechanism.public_inputs)
    assert kind.calibrated is None or kind.calibrated in {field.name for field in fields(mechanism)}
    assert all(type(example) is mechanism for example in kind.examples)
    with pytest.raises((AttributeError, TypeError)):
        kind.examples[0].n = 3


@every_example
def test_sensitivity_is_the_maximum_over_all_neighbours(mechanism):
    check_sensitivity(mechanism)


@every_noise
def test_replayed_noise_moves_the_release_by_at_most_the_sensitivity(mechanism):
    if mechanism.norm in ("l1", "l2"):
        check_replay(mechanism)


@every_noise
def test_noise_of_released_coordinates_is_independent(mechanism):
    # Reports of everybody's own answer sum to n.
    if not mechanism.local:
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
    assert curve is not None, "rdp is not known: state it, or a log_density of releases of one number"
    assert curve.shape == orders.shape, "rdp takes orders of any shape"
    assert np.all(curve >= 0)
    assert np.all(curve[1:] >= curve[:-1] * (1 - 1e-12)), "rdp falls with the order"
    if mechanism.notion == "rdp":
        assert float(mechanism.rdp(cost.order)) == cost.epsilon, "cost() is not rdp at its order"
    else:
        assert np.allclose(curve, pure_to_rdp(cost.epsilon, orders), rtol=1e-12)


def check_privacy_curve(mechanism, *epsilons):
    """δ(ε) against the hockey-stick divergence by quadrature, at its largest over all neighbours."""
    claimed = [mechanism.privacy_curve(epsilon) for epsilon in epsilons]
    # Those of logistic regression are bounds (test_logistic_mechanisms.py).
    if None in claimed or hasattr(mechanism, "log_weight"):
        assert hasattr(mechanism, "log_weight") or claimed.count(None) == len(epsilons)
        return
    nodes, log_weights = outputs_and_weights(mechanism)
    law = mechanism.log_density(nodes[:1], neighbouring_statistics(mechanism)[0][0])
    assert law is not None, "privacy_curve is compared with log_density, or log_mass of whole numbers: state it, too"
    if mechanism.releases == "statistics" and nodes.shape[1] == 1 and mechanism.support == "reals":
        # The divergence has a kink, for which the rule's own step is too wide.
        nodes = np.linspace(nodes.min(), nodes.max(), 100_001)[:, None]
        log_weights = np.log(nodes[1] - nodes[0])
    density = {key: np.exp(law + log_weights) for key, law in log_densities(mechanism, nodes).items()}
    found = np.zeros(len(epsilons))
    for p, q in neighbouring_statistics(mechanism):
        own, other = density[p.tobytes()], density[q.tobytes()]
        divergences = [np.maximum(own - np.exp(epsilon) * other, 0.0).sum() for epsilon in epsilons]
        found = np.maximum(found, divergences)
    # Several coordinates keep the wide step, half a standard deviation.
    one = mechanism.releases == "sample" or nodes.shape[1] == 1
    assert claimed == pytest.approx(found, rel=1e-2 if one else 0.1, abs=1e-4)


@every_example
def test_privacy_curves_are_the_largest_divergence(mechanism):
    check_privacy_curve(mechanism, 0.05, 0.5)


@every_example
@pytest.mark.parametrize("budget", [Cost("approximate", 0.5, delta=1e-3), Cost("approximate", 3.0, delta=1e-14)])
def test_recalibration_spends_an_approximate_budget_by_the_exact_curve(mechanism, budget):
    found = mechanism.recalibrated(budget)
    calibrate = partial(type(mechanism).calibrate, mechanism.model, mechanism.n, budget, **mechanism.options)
    if found is None:
        assert mechanism.privacy_curve(budget.epsilon) is None or mechanism.calibrated is None
        if mechanism.notion == "rdp":
            with pytest.raises(ValueError, match="its notion must be 'rdp'"):
                calibrate()
        return
    if mechanism.notion == "rdp":
        assert calibrate().options == mechanism.options
        assert calibrate().privacy_curve(budget.epsilon) == pytest.approx(
            found.privacy_curve(budget.epsilon), rel=1e-3, abs=budget.delta / 100
        )
    ledger = Ledger()
    ledger.open("exact", budget, found, accounting="exact")
    assert found.options == mechanism.options
    # What is left over: a setting at the end of its range, rounding of a small δ, or 30 steps of bisection.
    at_end = 1 in (getattr(found, "coefficient", 0), getattr(found, "temperature", 0))
    assert at_end or budget.delta < 1e-9 or found.privacy_curve(budget.epsilon) > 0.99 * budget.delta


def test_a_privacy_curve_without_a_law_is_refused(monkeypatch):
    monkeypatch.setattr(LaplaceMechanism, "log_density", lambda self, release, statistics: None)
    with pytest.raises(AssertionError, match="privacy_curve is compared with log_density"):
        check_privacy_curve(LaplaceMechanism(BetaBernoulli(6, 12), 8, 1.0, coordinates="free"), 0.5)


def test_a_wrong_privacy_curve_is_found():
    for example, change in (
        (GaussianMechanism(BetaBernoulli(6, 12), 8, 2.0, 2.0), {"sigma": 4.0}),
        (LaplaceMechanism(BetaBernoulli(6, 12), 8, 1.0, coordinates="free"), {"epsilon": 0.5}),
        (PosteriorDraw(BetaBernoulli(6, 12), 8, 2.0, 0.3, weighting="diffused"), {"coefficient": 0.15}),
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
        assert calibrated.cost().within(budget), f"calibrate to {budget} gives a mechanism of {calibrated.cost()}"
        assert calibrated.options == mechanism.options, "calibrate drops an option"
        # Little of the budget is wasted.
        message = f"calibrate to {budget} leaves most of it unused: {calibrated.cost()}"
        assert calibrated.cost().epsilon > 0.99 * budget.epsilon, message


@every_kind
def test_calibration_takes_no_data(kind):
    parameters = list(inspect.signature(kind.mechanism.calibrate).parameters.values())
    assert [parameter.name for parameter in parameters[:3]] == ["model", "n", "budget"]
    assert all(parameter.kind in (parameter.KEYWORD_ONLY, parameter.VAR_KEYWORD) for parameter in parameters[3:])
    options = {*discovery.options_of(kind), *kind.settings}
    assert options == set(kind.examples[0].options)
    example = kind.examples[0]
    own = {name: value for name, value in example.options.items() if name != "weighting"}
    made = kind.calibrate(example.model, example.n, example.cost(), **own)
    assert (made.name, made.options) == (kind.name, example.options)
    # A class of one weighting need not be told.
    if len(kind.mechanism.weightings) == 1:
        assert kind.mechanism.calibrate(example.model, example.n, example.cost(), **own) == made
    assert not options & {"data", "statistics", "records", "rng"}


@every_kind
def test_unknown_settings_and_impossible_sizes_are_errors(kind):
    mechanism, example = kind.mechanism, kind.examples[0]
    with pytest.raises(TypeError, match="no_such_setting"):
        mechanism.calibrate(example.model, example.n, example.cost(), **example.options, no_such_setting=1)
    with pytest.raises(ValueError, match="n is 0; it must be an integer >= 1"):
        replace(example, n=0)
    for name, value in example.options.items():
        if isinstance(value, str):
            with pytest.raises(ValueError, match=f"{name} is 'no_such_value'; allowed: "):
                replace(example, **{name: "no_such_value"})
    if kind.calibrated is not None:
        for value in (-1.0, np.nan):
            with pytest.raises(ValueError, match=f"{kind.calibrated} is {value}"):
                replace(example, **{kind.calibrated: value})
    for epsilon in (0.0, np.inf):
        with pytest.raises(ValueError, match=r"budget is .*epsilon > 0 and finite"):
            mechanism.calibrate(example.model, example.n, replace(example.cost(), epsilon=epsilon), **example.options)
    for epsilon in (1e-200, 1e200):
        with pytest.raises(ValueError, match=r"budget is .*epsilon must be 0, inf or in \[1e-100, 1e\+100\]"):
            mechanism.calibrate(example.model, example.n, replace(example.cost(), epsilon=epsilon), **example.options)


@every_kind
def test_a_model_that_is_not_served_is_refused(kind):
    mechanism, example = kind.mechanism, kind.examples[0]
    served = {type(each.model) for each in kind.examples}
    for model in MODELS.values():
        # Noise on statistics serves every model whose statistics are bounded.
        if type(model) not in served and not (AdditiveNoiseMechanism in mechanism.__bases__ and model.bounded):
            with pytest.raises(ValueError, match="model is"):
                replace(example, model=model)
            with pytest.raises(ValueError, match="model is"):
                mechanism.calibrate(model, example.n, example.cost(), **example.options)


@every_example
def test_a_ledger_refuses_the_second_release(mechanism):
    check_a_second_release_is_refused(mechanism)


@every_example
def test_perturb_on_a_batch_is_a_loop_over_it(mechanism):
    # Different rows: equal ones may run as one batch of chains.
    statistics = np.unique(neighbouring_statistics(mechanism)[:, 0], axis=0)[:2]
    together = mechanism.perturb(statistics, np.random.default_rng(5))
    rng = np.random.default_rng(5)
    alone = np.stack([mechanism.perturb(one, rng) for one in statistics])
    assert together.shape == alone.shape
    message = "perturb on a batch must draw row after row: all numbers of the first release before those of the second"
    assert np.allclose(together, alone, rtol=1e-12), message
    # Two whole numbers may be equal, but hardly forty.
    number = 40 if mechanism.support == "integers" else 2
    nested = mechanism.perturb(np.stack([statistics[:1]] * number), np.random.default_rng(5))
    assert nested.shape == (number, 1, *together.shape[1:])
    different = len(np.unique(nested.reshape(number, -1), axis=0))
    message = 'releases of equal statistics share their noise; only with support "integers" may two of them be equal'
    assert different > 1 if number > 2 else different == 2, message


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
        message = "releases do not have the law of log_density: check scale and shape of the noise against it"
        assert abs(ratios.mean() - 1) < STANDARD_ERRORS * ratios.std() / DRAWS**0.5, message


@every_example
def test_density_of_a_draw_integrates_to_one(mechanism):
    release, statistics = probe(mechanism)
    if mechanism.releases == "sample" and mechanism.log_density(release, statistics) is not None:
        nodes, log_weights = parameter_nodes(mechanism.model)
        # 0.01: the rule steps over the edges of a truncated density.
        assert logsumexp(mechanism.log_density(nodes, statistics) + log_weights) == pytest.approx(0, abs=0.01)
