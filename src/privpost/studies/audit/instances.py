"""What the audit looks at: every mechanism's examples, their neighbours, and exact divergences where laws are known."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np

from privpost import discovery
from privpost.mechanisms.base import Mechanism
from privpost.mechanisms.event_counts import HiddenMarkovSampler
from privpost.mechanisms.exponential import ExponentialMechanism
from privpost.mechanisms.gaussian import GaussianMechanism
from privpost.mechanisms.linear_sampling import LinearSampler
from privpost.mechanisms.logistic_sampling import LogisticSampling
from privpost.mechanisms.map_estimate import MapMechanism
from privpost.mechanisms.network_sampling import TrimmedSampler
from privpost.mechanisms.posterior_sampling import PosteriorSampling
from privpost.models.beta_bernoulli import BetaBernoulli
from privpost.privacy.renyi import dirichlet_divergence, gaussian_divergence

DIGITS = 9
# Where a mechanism is used; a new one has none.
STUDIES = {
    "LaplaceMechanism": "foulds2016, bernstein2018",
    "RedactedLaplace": "bernstein2018",
    "GaussianMechanism": "geumlek2017",
    "ExponentialMechanism": "foulds2016",
    "EventCountsLaplace": "foulds2016 (war logs)",
    "HiddenMarkovSampler": "foulds2016 (war logs)",
    "NetworkLaplace": "zhang2016",
    "FourierMechanism": "zhang2016",
    "RecordSampler": "zhang2016",
    "AttributeSampler": "zhang2016",
    "LinearSampler": "zhang2016 (linear regression)",
    "MapMechanism": "zhang2016",
    "DirectPosterior": "geumlek2017",
    "DiffusedPosterior": "geumlek2017",
    "ConcentratedPosterior": "geumlek2017",
    "LogisticDirect": "geumlek2017 (logistic)",
    "LogisticConcentrated": "geumlek2017 (logistic)",
    "LogisticDiffused": "geumlek2017 (logistic)",
    "LogisticOps": "geumlek2017 (logistic)",
}
# Methods whose only input about the data is the release: by post-processing they spend what the release does.
POST_PROCESSING = {
    "LaplaceMechanism": "naive, gibbs, exact",
    "RedactedLaplace": "gibbs",
    "GaussianMechanism": "naive",
    "EventCountsLaplace": "naive, gibbs",
    "NetworkLaplace": "naive, gibbs, exact",
    "FourierMechanism": "naive",
}


def names() -> set[str]:
    """Class names of all discovered mechanisms."""
    return {kind.__name__ for classes in discovery.mechanisms().values() for kind in classes}


def instances(epsilon: float, large_n: int) -> dict[str, Mechanism]:
    """Every discovered mechanism's examples calibrated to ε of their own notion (and order), by a stable name.

    Bits appear with `large_n` records too. A mechanism that has nothing to calibrate appears as it is.
    """
    found = {}
    for classes in discovery.mechanisms().values():
        for kind in classes:
            for number, example in enumerate(kind.examples()):
                for n in (example.n, large_n) if isinstance(example.model, BetaBernoulli) else (example.n,):
                    mechanism = replace(example, n=n)
                    if kind.calibrated is not None:
                        budget = replace(mechanism.cost(), epsilon=epsilon)
                        mechanism = kind.calibrate(mechanism.model, n, budget, **mechanism.options)
                    found[f"{kind.__name__} {number}, n = {n}"] = mechanism
    return found


def neighbours(mechanism: Mechanism, vertices: bool = False) -> np.ndarray:
    """Distinct ordered pairs of statistics of neighbours, shape (pairs, 2, d).

    All of them, or only those whose common records are all equal.
    """
    records, n = mechanism.model.records, mechanism.n
    numbers = range(len(records))
    common = [(k,) * (n - 1) for k in numbers] if vertices else itertools.combinations_with_replacement(numbers, n - 1)
    changes = list(itertools.permutations(numbers, 2))
    pairs = [
        [mechanism.model.sufficient_statistics(records[[*rest, changed]]) for changed in change]
        for rest in common
        for change in changes
    ]
    return np.unique(np.array(pairs), axis=0)


def order_of(mechanism: Mechanism) -> float | None:
    """Order of a Rényi claim, None for a pure one."""
    return mechanism.cost().order


def copies(mechanism: Mechanism, release) -> int:
    """How many draws of θ (or vectors of statistics) one release of an array (size, …) holds."""
    if mechanism.releases == "sample":
        expected = math.prod(mechanism.model.theta_shape)
    else:
        records = np.repeat(mechanism.model.records[:1], mechanism.n, axis=0)
        expected = np.size(mechanism.query(records))
    return max(1, release[0].size // expected)


def exact_divergences(mechanism: Mechanism, pairs) -> np.ndarray | None:
    """Divergence in the claim's notion of one draw for each pair (pairs, 2, d); None where the law is not known."""
    first, second, order = pairs[:, 0], pairs[:, 1], order_of(mechanism)
    if isinstance(mechanism, PosteriorSampling):
        return dirichlet_divergence(mechanism.posterior(first), mechanism.posterior(second), order)
    if isinstance(mechanism, GaussianMechanism):
        change = mechanism.select(first) - mechanism.select(second)
        return gaussian_divergence(np.sqrt((change**2).sum(-1)), mechanism.sigma, 0.0, mechanism.sigma, order)
    if isinstance(mechanism, MapMechanism):
        scores = [mechanism.scores(side) for side in (first, second)]
        logs = [s - np.logaddexp.reduce(s, axis=-1, keepdims=True) for s in scores]
        return (logs[0] - logs[1]).max(axis=-1).sum(axis=-1)
    if isinstance(mechanism, LogisticSampling | LinearSampler):
        return _one_weight(mechanism, pairs) if mechanism.model.dimension == 1 else None
    points = _extreme_points(mechanism)
    if points is None or mechanism.log_density(points[0], first[0]) is None:
        return None
    # In these families the log-ratio is monotone in each coordinate, so that it is largest at a corner.
    ratios = [mechanism.log_density(points, p) - mechanism.log_density(points, q) for p, q in pairs]
    return np.array(ratios).max(axis=-1)


def _extreme_points(mechanism: Mechanism) -> np.ndarray | None:
    """Corners of the release space, with the release's shape behind a first axis."""
    if mechanism.releases == "statistics":
        if mechanism.notion != "pure":
            return None
        width = copies_width(mechanism)
        return np.array(list(itertools.product([-1e6, 1e6], repeat=width)))
    if isinstance(mechanism, ExponentialMechanism):
        return np.array([mechanism.a0, 1 - mechanism.a0])
    if isinstance(mechanism, TrimmedSampler):
        ends = [mechanism.omega, 1 - mechanism.omega]
        return np.array(list(itertools.product(ends, repeat=mechanism.model.theta_shape[0])))
    if isinstance(mechanism, HiddenMarkovSampler) and mechanism.model.n_states == 1:
        sides = [((low, 1 - low), (1 - low, low)) for low in mechanism.lows]
        return np.array([np.concatenate(corner)[None] for corner in itertools.product(*sides)])
    return None


def copies_width(mechanism: Mechanism) -> int:
    """Number of released coordinates of a mechanism that releases statistics."""
    return np.size(mechanism.query(np.repeat(mechanism.model.records[:1], mechanism.n, axis=0)))


def _one_weight(mechanism: LogisticSampling | LinearSampler, pairs) -> np.ndarray:
    """Divergences of laws of one weight by quadrature, over the ball or, in logistic regression, 12 prior sds of it."""
    reach = math.inf if mechanism.radius is None else mechanism.radius
    if isinstance(mechanism, LogisticSampling):
        reach = min(reach, 12 / math.sqrt(mechanism.n * mechanism.precision))
    x, weights = np.polynomial.legendre.leggauss(400)
    # The ends belong to the ball, where the ratio is largest; they get no weight in the integral.
    nodes = reach * np.concatenate([[-1.0], x, [1.0]])
    with np.errstate(divide="ignore"):
        log_weights = np.log(reach * np.concatenate([[0.0], weights, [0.0]]))
    order, found = order_of(mechanism), []
    for pair in pairs:
        # Rounding at the ends would put them outside the ball.
        logs = [mechanism.log_weight(nodes[:, None] * (1 - 1e-12), side) for side in pair]
        p, q = (log - np.logaddexp.reduce(log + log_weights) for log in logs)
        if order is None:
            found.append((p - q).max())
        else:
            found.append(np.logaddexp.reduce(order * p + (1 - order) * q + log_weights) / (order - 1))
    return np.array(found)


def features(mechanism: Mechanism, release, pair) -> np.ndarray:
    """Columns (size, columns) in whose half-lines an event is looked for.

    The log-likelihood ratio where the law is known up to a constant; for noisy statistics the orthant that the change
    points to; every coordinate, its smallest and largest value, and sums and differences of two.
    """
    size, count = len(release), copies(mechanism, release)
    shape = mechanism.model.theta_shape if mechanism.releases == "sample" else (copies_width(mechanism),)
    draws = release.reshape(size, count, *shape)
    columns = []
    log_law = getattr(mechanism, "log_weight", mechanism.log_density)
    if log_law(draws[0, 0], pair[0]) is not None:
        columns.append((log_law(draws, pair[0]) - log_law(draws, pair[1])).sum(axis=1))
    flat = draws.reshape(size, count, -1)
    width = flat.shape[-1]
    if mechanism.releases == "statistics" and hasattr(mechanism, "select"):
        change = mechanism.select(pair[0]) - mechanism.select(pair[1])
        moved = change != 0
        towards = np.sign(change[moved]) * (flat[..., moved] - mechanism.select(pair[0])[moved])
        columns.append(towards.min(axis=(1, 2)))
    for values in (flat.mean(axis=1), flat.min(axis=(1,)), flat.max(axis=(1,)))[: 1 if count == 1 else 3]:
        columns += list(values.T)
        if 1 < width <= 8:
            columns += [values[:, i] - values[:, j] for i, j in itertools.combinations(range(width), 2)]
            columns += [values[:, i] + values[:, j] for i, j in itertools.combinations(range(width), 2)]
    if width > 1:
        columns += [flat.min(axis=(1, 2)), flat.max(axis=(1, 2))]
    # Releases are floating-point numbers, whose last digits tell the data apart (Mironov 2012): an event on the ratio's
    # last digits would find that, and not what the claim about real-valued noise says.
    return np.round(np.stack(columns, axis=1), DIGITS)
