"""The law that each mechanism's release must have, given the records and the settings as the papers define them."""

import itertools
import math

import numpy as np
from scipy.special import betaln, xlog1py, xlogy

from privpost.experiments.audit import laws
from privpost.experiments.audit.steps import Steps, law_after
from privpost.mechanisms.choices.exponential import ExponentialMechanism
from privpost.mechanisms.choices.map_estimate import GRID, MapMechanism, utility_sensitivity
from privpost.mechanisms.draws.event_states import HiddenMarkovSampler
from privpost.mechanisms.draws.gamma import GammaDraw
from privpost.mechanisms.draws.linear import LinearSampler
from privpost.mechanisms.draws.logistic_finite import LogisticLangevin, LogisticOutputNoise
from privpost.mechanisms.draws.logistic_ops import LogisticOps
from privpost.mechanisms.draws.logistic_sampling import LogisticSampling
from privpost.mechanisms.draws.network import AttributeSampler, TrimmedSampler
from privpost.mechanisms.draws.posterior import PosteriorDraw
from privpost.mechanisms.draws.private_gibbs import PrivateGibbs
from privpost.mechanisms.noise.fourier import FourierMechanism
from privpost.mechanisms.noise.gaussian import GaussianMechanism
from privpost.mechanisms.noise.laplace import LaplaceMechanism
from privpost.mechanisms.noise.randomised_response import RandomisedResponse

# Pure ε of one OPS draw in units of c²ρ/β, for feature bound c, power ρ of the likelihood and prior precision β.
OPS_CHARGE = {"paper": 4.0, "corrected_charge": 2.0}
# The largest value of x/(1 + e^x).
KAPPA = 0.27846454276107380


def law_of(mechanism, data):
    """Return the law of a release about records `data` (n, *record_shape), or None if the law is not known."""
    for kind, law in LAWS.items():
        if isinstance(mechanism, kind):
            return law(mechanism, data)
    return None


def _laplace(mechanism, data):
    return laws.Noise("laplace", float(mechanism.scale), np.ravel(mechanism.query(data)).astype(float))


def _normal(mechanism, data):
    return laws.Noise("normal", float(mechanism.sigma), np.ravel(mechanism.query(data)).astype(float))


def _weights(mechanism):
    """Return the weight r of the likelihood, and the divisor m of the prior's parameters."""
    weights = {"diffused": (mechanism.coefficient, 1.0), "concentrated": (1.0, mechanism.coefficient)}
    return weights.get(mechanism.weighting, (1.0, 1.0))


def _posterior(mechanism, data):
    """Return the law Dirichlet(α/m + r · counts), with r and m of `_weights`."""
    r, m = _weights(mechanism)
    return laws.Dirichlet(np.asarray(mechanism.model.prior) / m + r * mechanism.model.sufficient_statistics(data))


def _gamma(mechanism, data):
    """Return the law Gamma(α/m + rn, β/m + rΣx), with r and m of `_weights`."""
    r, m = _weights(mechanism)
    alpha, beta = np.asarray(mechanism.model.prior) / m
    return laws.Gamma(float(alpha + r * len(data)), float(beta + r * np.sum(data)))


def _exponential(mechanism, data):
    """Return the law ∝ posterior^(1/T) on [a0, 1 − a0] for binary data, where T = max(1, 2 ln((1 − a0)/a0)/ε)."""
    temperature = max(1.0, 2 * math.log((1 - mechanism.a0) / mechanism.a0) / mechanism.epsilon)
    alpha, beta = np.asarray(mechanism.model.prior) - 1 + mechanism.model.sufficient_statistics(data)
    shape = np.array([1 + alpha / temperature]), np.array([1 + beta / temperature])
    return laws.TruncatedBetas(*shape, mechanism.a0)


def _trimmed(mechanism, data):
    """Return a network's posterior on [ω, 1 − ω] with ω = 1/(1 + exp(ε/(2k))), where k attributes share ε."""
    parts = 1 if isinstance(mechanism, AttributeSampler) else len(mechanism.model.nodes)
    pairs = _pairs(mechanism.model, data)
    return laws.TruncatedBetas(pairs[:, 0], pairs[:, 1], 1 / (1 + math.exp(mechanism.epsilon / (2 * parts))))


def _pairs(model, data):
    """Return an array (m, 2): α and β of the beta posterior, for each of a network's m parameters."""
    counts = model.pairs(model.sufficient_statistics(data))
    return counts + np.array([float(model.alpha), float(model.beta)])


def _map(mechanism, data):
    """Return the law of independent grid values with probabilities ∝ exp(ε_i u/(2Δ_i)) for utility u, ε_i = ε/|I|."""
    model, pairs = mechanism.model, _pairs(mechanism.model, data)
    a, b = pairs[:, :1], pairs[:, 1:]
    utility = np.exp(xlogy(a - 1, GRID) + xlog1py(b - 1, -GRID) - betaln(a, b))
    if mechanism.utility == "mass":
        utility /= utility.sum(axis=1, keepdims=True)
    deltas = [
        utility_sensitivity(float(model.alpha), float(model.beta), mechanism.n, mechanism.utility, len(family) > 1)
        for family in model.families
    ]
    share = mechanism.epsilon / len(model.nodes) / (2 * np.array(deltas))
    return laws.OnGrid(GRID, share[model.owner][:, None] * utility)


def _reports(mechanism, data):
    """Return the law of counts of randomised reports. The true answer is e^ε times as probable as any other."""
    counts, base = mechanism.model.sufficient_statistics(data).astype(int), mechanism.n + 1
    chances = np.exp(mechanism.epsilon * np.eye(len(counts)))
    masses = {0: 1.0}
    for answer in np.repeat(np.arange(len(counts)), counts):
        reported = itertools.product(masses.items(), enumerate(chances[answer] / chances[answer].sum()))
        masses = {}
        for (number, mass), (digit, chance) in reported:
            place = number + base**digit
            masses[place] = masses.get(place, 0.0) + mass * chance
    grid = sorted(masses)
    return laws.Reports(np.array(grid, float), np.log([[masses[number] for number in grid]]), base)


def _linear(mechanism, data):
    """Return the law of weights w on the ball of radius R, with density ∝ exp(−b|w|²/2 − Σ(y − x·w)²/(2σ²))."""
    model, statistics = mechanism.model, mechanism.model.sufficient_statistics(data)
    if model.dimension > 2:
        return None

    def log_weight(w):
        return -model.prior_precision * laws.squared(w) / 2 + model.log_likelihood(w, statistics)

    return laws.Weights(log_weight, model.dimension, mechanism.radius, mechanism.radius)


def _logistic(mechanism, data):
    if mechanism.model.dimension > 2:
        return None
    return logistic_law(mechanism, *_distinct(data))


def _distinct(data):
    """Return the distinct records of a data set (n, d), and the number of times that each record occurs."""
    # Often all records but the last are equal. This case is quick to test, while sorting would take most of the time.
    if np.all(data[1:-1] == data[0]):
        return data[[0, -1]], np.array([len(data) - 1, 1])
    return np.unique(data, axis=0, return_counts=True)


def _mode_with_noise(mechanism, data):
    """Return the law N(mode, (nβ)⁻¹ I), where the mode maximises prior · likelihood^ρ."""
    precision, w = mechanism.n * mechanism.model.prior_precision, np.zeros(mechanism.model.dimension)
    records, numbers = _distinct(data)
    for _ in range(50):
        p = 1 / (1 + np.exp(records @ w))
        pull, curvature = mechanism.coefficient * numbers * p, mechanism.coefficient * numbers * p * (1 - p)
        hessian = precision * np.eye(len(w)) + (records.T * curvature) @ records
        w = w + np.linalg.solve(hessian, pull @ records - precision * w)
    return laws.Noise("normal", precision**-0.5, w)


def _langevin(mechanism, data) -> Steps | None:
    """Return the law of the weights after all Langevin steps from w = 0, or None if it is not known."""
    model, n, power = mechanism.model, mechanism.n, mechanism.coefficient
    if model.dimension > 2:
        return None
    precision = n * model.prior_precision
    eta = mechanism.step / (precision + n * power * model.feature_bound**2 / 4)
    # A rounding error above a whole number must not add a step.
    count = max(1, math.ceil(mechanism.relaxations / (eta * precision) - 1e-9))
    records, numbers = _distinct(data)
    return law_after(records, numbers, eta=eta, count=count, precision=precision, power=power, order=mechanism.order)


def logistic_law(mechanism, records, numbers) -> laws.Weights:
    """Return the law of logistic weights given distinct records and how often each occurs. For OPS it is on a ball."""
    model, power, radius = mechanism.model, 1.0, None
    beta, bound = model.prior_precision, model.feature_bound
    if isinstance(mechanism, LogisticOps):
        if mechanism.ball is not None:
            power, radius = min(1.0, mechanism.epsilon / (2 * bound * mechanism.ball)), mechanism.ball
        elif mechanism.charge == "smallest_ball":
            power = min(1.0, (mechanism.epsilon * math.sqrt(beta / KAPPA) / (2 * bound)) ** (2 / 3))
            radius = math.sqrt(power * KAPPA / beta)
        else:
            power, radius = min(1.0, mechanism.epsilon * beta / (OPS_CHARGE[mechanism.charge] * bound**2)), bound / beta
    elif mechanism.weighting == "concentrated":
        beta = mechanism.coefficient
    elif mechanism.weighting != "direct":
        power = mechanism.coefficient
        radius = bound / beta if mechanism.weighting == "ball" else None
    precision = mechanism.n * beta

    def log_weight(w):
        return -precision * laws.squared(w) / 2 - power * np.logaddexp(0, -w @ records.T) @ numbers

    # The mode is at most ρc/β from 0. Twelve prior standard deviations around the mode cover the mass.
    reach = power * bound / beta + 12 / math.sqrt(precision)
    return laws.Weights(log_weight, model.dimension, min(reach, radius or math.inf), radius)


def _hidden_markov(mechanism, data):
    """Return the law of each field's probabilities in a tempered and truncated posterior, or None if not known."""
    model = mechanism.model
    several = model.n_states > 1
    # For several states, the law is a mixture over the cells' states, computed for two cells and a field of two levels.
    if several and ((model.cells, model.sizes) != ((2,), (2,)) or isinstance(mechanism, PrivateGibbs)):
        return None
    lows = [1 / (mechanism.truncation * size) for size in model.sizes]
    change = sum(math.log((1 - (size - 1) * low) / low) for size, low in zip(model.sizes, lows, strict=True))
    # The density is ∝ Π x^((b − 1)/T' + count/T) on x ≥ 1/(M K), with T = max(1, 2Δu/ε) for u paid draws. The prior's
    # temperature T' is T if the prior is tempered, else 1.
    draws = mechanism.iterations if isinstance(mechanism, PrivateGibbs) else 1
    temperature = max(1.0, 2 * change * draws / mechanism.epsilon)
    cells, levels = np.asarray(data)[:, 0], np.asarray(data)[:, 1:]
    if several:
        counts = np.zeros((2, 2))
        np.add.at(counts, (cells, levels[:, 0]), 1)
        prior = 1 + (model.emission - 1) / (temperature if mechanism.tempered_prior else 1.0)
        return _of_two_cells(counts / temperature, prior, model.n_states, lows[0])
    counts = [np.bincount(column, minlength=size) for column, size in zip(levels.T, model.sizes, strict=True)]
    prior = 1 + (model.emission - 1) / (temperature if mechanism.tempered_prior else 1.0)
    return laws.TruncatedDirichlets(tuple(prior + count / temperature for count in counts), tuple(lows))


def _of_two_cells(counts, prior: float, states: int, low: float) -> laws.BetasOfStates:
    """Return the mixture over the states of both cells. All pairs of states are equally likely a priori."""
    parts = []
    for sequence in itertools.product(range(states), repeat=2):
        shapes = np.full((states, 2), prior)
        np.add.at(shapes, list(sequence), counts)
        parts.append(laws.TruncatedBetas(shapes[:, 0], shapes[:, 1], low))
    return laws.BetasOfStates(tuple(parts))


LAWS = {
    GaussianMechanism: _normal,
    LaplaceMechanism: _laplace,
    FourierMechanism: _laplace,
    PosteriorDraw: _posterior,
    GammaDraw: _gamma,
    ExponentialMechanism: _exponential,
    TrimmedSampler: _trimmed,
    MapMechanism: _map,
    RandomisedResponse: _reports,
    LinearSampler: _linear,
    LogisticLangevin: _langevin,
    LogisticOutputNoise: _mode_with_noise,
    LogisticSampling: _logistic,
    HiddenMarkovSampler: _hidden_markov,
}
