"""Privacy of a release of one number from its density alone: divergences between neighbours, by quadrature.

A change of variable makes densities fall doubly exponentially towards both ends (Takahasi and Mori 1974). The range is
cut into panels, which are halved until Gauss-Legendre quadrature of each has converged.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, logit

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(10)
# Initial panels, and the most halvings.
PANELS = 48
HALVINGS = 50
# A panel has converged to this share of its integral, or to this probability.
RELATIVE = 1e-7
ABSOLUTE = 1e-16
# The most panels that are halved at once.
MOST = 1000
# The probability below which a panel is left out.
NOTHING = 1e-30
# How far from one the integral of a density may be.
NORMALISED = 1e-5
# Neighbouring pairs that share panels.
BLOCK = 64
# How many of these pairs, evenly spread, determine the panels.
SPREAD = 4
# Bisections of a place where a ratio of densities crosses a level; there the integrand is 0.
BISECTIONS = 18


class Space(NamedTuple):
    """The space of releases: points as a function of u in [-end, end], its inverse, and the logarithm of its slope."""

    point: Callable
    coordinate: Callable
    log_slope: Callable
    end: float

    @classmethod
    def interval(cls, low: float, high: float) -> "Space":
        """[low, high]."""

        def log_slope(u):
            wide = math.pi * np.abs(np.sinh(u))
            return math.log((high - low) * math.pi) + np.log(np.cosh(u)) - wide - 2 * np.log1p(np.exp(-wide))

        return cls(
            lambda u: low + (high - low) * expit(math.pi * np.sinh(u)),
            lambda x: np.arcsinh(logit((x - low) / (high - low)) / math.pi),
            log_slope,
            3.1,
        )

    @classmethod
    def line(cls, centre: float, width: float) -> "Space":
        """The real line, with points denser near the centre, on a scale of `width`."""
        half = math.pi / 2
        return cls(
            lambda u: centre + width * np.sinh(half * np.sinh(u)),
            lambda x: np.arcsinh(np.arcsinh((x - centre) / width) / half),
            lambda u: math.log(width * half) + np.log(np.cosh(half * np.sinh(u))) + np.log(np.cosh(u)),
            3.6,
        )


class Neighbours(NamedTuple):
    """Pairs of neighbours' statistics, and the law of a release of one number given the statistics.

    Attributes:
        pairs: statistics, shape (pairs, 2, d).
        log_density: function of points (...) and statistics (..., d).
        space: where releases lie.
        breaks: u at which a density jumps, shape (k,): panels end there.
    """

    pairs: np.ndarray
    log_density: Callable
    space: Space
    breaks: np.ndarray

    def blocks(self) -> "Iterator[Neighbours]":
        """Successive pairs, whose laws are alike, `BLOCK` at a time."""
        for start in range(0, len(self.pairs), BLOCK):
            yield self._replace(pairs=self.pairs[start : start + BLOCK])

    @property
    def first_panels(self) -> np.ndarray:
        """Panels (panels, 2) of equal width, but for those that the breaks cut."""
        edges = np.linspace(-self.space.end, self.space.end, PANELS + 1)
        edges = np.unique(np.concatenate([edges, self.breaks]))
        return np.stack([edges[:-1], edges[1:]], axis=-1)

    def spread(self) -> "Neighbours":
        """`SPREAD` evenly spaced pairs, including the first and the last."""
        return self._replace(pairs=self.pairs[np.unique(np.linspace(0, len(self.pairs) - 1, SPREAD).astype(int))])

    def logs(self, u, row=None) -> tuple[np.ndarray, np.ndarray]:
        """Both neighbours' log-densities of u: (pairs, ...) at u (...), or for pairs in `row` (k,) at u (k, ...)."""
        pairs, axes = (self.pairs, np.ndim(u)) if row is None else (self.pairs[row], np.ndim(u) - 1)
        pairs = pairs.reshape(len(pairs), 2, *(1,) * axes, pairs.shape[-1])
        points, log_slope = self.space.point(u), self.space.log_slope(u)
        # ln 0 = −∞ is right beyond the support.
        with np.errstate(divide="ignore", invalid="ignore"):
            first, second = (self.log_density(points, pairs[:, side]) + log_slope for side in (0, 1))
        return first, second

    def integrals(self, of: Callable, edges) -> np.ndarray:
        """Logarithms of the integrals (pairs, panels) of exp(of(ln p, ln q)) over panels (panels, 2)."""
        u, log_weights = nodes(edges)
        return _log_sum(of(*self.logs(u)) + log_weights)


def nodes(edges) -> tuple[np.ndarray, np.ndarray]:
    """u of the nodes of panels (..., 2), shape (..., 10), and the logarithms of their weights."""
    half = np.diff(edges, axis=-1) / 2
    with np.errstate(divide="ignore"):
        return edges.mean(axis=-1, keepdims=True) + half * _NODES, np.log(half) + np.log(_WEIGHTS)


def neighbours(mechanism: Any) -> Neighbours | None:
    """A mechanism's pairs; None if a release is not one number, or its density or its neighbours are not known."""
    pairs = mechanism.neighbouring_statistics()
    if pairs is None:
        return None
    first = pairs[0, 0]
    if mechanism.releases == "sample":
        if mechanism.model.theta_shape or mechanism.log_density(0.5, first) is None:
            return None
        space = Space.interval(*mechanism.model.support)
        return Neighbours(pairs, mechanism.log_density, space, _within(space, mechanism.breaks))
    centre = mechanism.select(first)
    if centre.shape != (1,) or (peak := mechanism.log_density(centre, first)) is None:
        return None
    # The width of a uniform density of this height; a wrong width only costs time.
    width = math.exp(-float(peak)) if np.isfinite(peak) else 1.0
    space = Space.line(float(centre[0]), width)
    exact = mechanism.select(np.unique(pairs.reshape(-1, pairs.shape[-1]), axis=0))
    return Neighbours(
        pairs,
        lambda points, statistics: mechanism.log_density(np.asarray(points)[..., None], statistics),
        space,
        _within(space, (exact + np.asarray(mechanism.breaks, float)).ravel()),
    )


def _within(space: Space, points) -> np.ndarray:
    """u of points, without those beyond the ends."""
    # The ends of an interval have no u.
    with np.errstate(divide="ignore", invalid="ignore"):
        u = space.coordinate(np.asarray(points, float))
    return u[np.abs(u) < space.end]


def curve(mechanism: Any, epsilon: float) -> float | None:
    """δ(ε) = max over neighbours of ∫ (p − e^ε q)⁺; None where `neighbours` gives None.

    Raises:
        ValueError: a density that does not integrate to one.
    """
    pairs = neighbours(mechanism)
    return None if pairs is None else max(_hockey_stick(block, mechanism, epsilon) for block in pairs.blocks())


def rdp(mechanism: Any, orders) -> np.ndarray | None:
    """Largest Rényi divergences of orders λ ≥ 1 over neighbours, inf if infinite; None if `neighbours` is None.

    Raises: as `curve`.
    """
    pairs = neighbours(mechanism)
    if pairs is None:
        return None
    flat = np.ravel(np.asarray(orders, float))
    largest = np.zeros(len(flat))
    for block in pairs.blocks():
        # A supremum that is infinite stays so.
        finite = np.isfinite(largest)
        largest[finite] = np.maximum(largest[finite], _renyi(block, mechanism, flat[finite]))
    return largest.reshape(np.shape(orders))


def cdf(mechanism: Any, values) -> np.ndarray | None:
    """Distribution function of additive noise at values of any shape; None where `neighbours` is None.

    Raises: as `curve`.
    """
    pairs = neighbours(mechanism)
    if pairs is None:
        return None
    law = pairs._replace(pairs=pairs.pairs[:1])
    values = np.asarray(values, float) + law.space.point(0.0)
    u = np.clip(law.space.coordinate(values), -law.space.end, law.space.end)
    edges = np.unique(np.concatenate([_panels(law, lambda p, q: p).ravel(), u.ravel()]))
    parts = np.exp(law.integrals(lambda p, q: p, np.stack([edges[:-1], edges[1:]], axis=-1))[0])
    _check_one(mechanism, parts.sum())
    return np.append(0.0, np.cumsum(parts))[np.searchsorted(edges, u)]


def _panels(pairs: Neighbours, of: Callable, relative: float = RELATIVE) -> np.ndarray:
    """Sorted panels (panels, 2) on which `integrals` have converged for all pairs; panels of no mass are left out."""
    wide, converged = pairs.first_panels, []
    whole = pairs.integrals(of, wide)
    for _ in range(HALVINGS):
        middle = wide.mean(axis=-1)
        halves = np.stack([wide[:, 0], middle, middle, wide[:, 1]], axis=-1).reshape(-1, 2)
        parts = pairs.integrals(of, halves)
        added = np.logaddexp(parts[:, ::2], parts[:, 1::2])
        largest = np.maximum(added, whole)
        with np.errstate(invalid="ignore"):
            close = np.abs(added - whole) < relative
        done = (close | (largest < math.log(ABSOLUTE))).all(axis=0)
        relevant = (largest > math.log(NOTHING)).any(axis=0)
        converged.append(halves.reshape(-1, 4)[done & relevant].reshape(-1, 2))
        wide = halves.reshape(-1, 4)[~done].reshape(-1, 2)
        # Halving never ends where the rounding error exceeds the tolerance.
        if not 0 < len(wide) < MOST:
            break
        whole = parts.reshape(len(parts), -1, 2)[:, ~done].reshape(len(parts), -1)
    panels = np.concatenate([*converged, wide])
    return panels[np.argsort(panels[:, 0])]


def _laws(pairs: Neighbours, mechanism, of: Callable, relative: float = RELATIVE):
    """Panels, and both neighbours' log-densities (pairs, panels, 12) at the panels' ends and nodes.

    The panels come from a few of the pairs, as the pairs are alike; from all pairs if the laws of some do not integrate
    to one on these panels.
    """
    for some in (pairs.spread(), pairs):
        edges = _panels(some, of, relative)
        u, log_weights = nodes(edges)
        logs = pairs.logs(np.concatenate([edges[:, :1], u, edges[:, 1:]], axis=-1))
        totals = np.stack([np.exp(side[..., 1:-1] + log_weights).sum(axis=(-1, -2)) for side in logs])
        if np.all(np.abs(totals - 1) < NORMALISED):
            break
    _check_one(mechanism, totals)
    return edges, logs


def _hockey_stick(pairs: Neighbours, mechanism, epsilon: float) -> float:
    edges, logs = _laws(pairs, mechanism, np.logaddexp)
    u, log_weights = nodes(edges)
    places = np.concatenate([edges[:, :1], u, edges[:, 1:]], axis=-1)
    both = (pairs, logs), (pairs._replace(pairs=pairs.pairs[:, ::-1]), logs[::-1])
    return max(_one_way(*way, edges, places, log_weights, epsilon) for way in both)


def _one_way(pairs: Neighbours, logs, edges, places, log_weights, epsilon: float) -> float:
    """The largest ∫ (p − e^ε q)⁺, from log-densities at the ends and nodes of panels."""
    p, q = logs
    values, above = _excess(p[..., 1:-1], q[..., 1:-1], epsilon, log_weights), _loss(p, q) > epsilon
    # A panel is cut wherever the ratio of the densities crosses e^ε between two of its nodes.
    row, panel, place = np.nonzero(above[..., 1:] != above[..., :-1])
    crossing = _crossings(pairs, row, places[panel, place], places[panel, place + 1], epsilon)
    cut = np.unique(np.stack([row, panel]), axis=1)
    values[tuple(cut)] = 0.0
    owner = np.append(cut, [row, panel], axis=1)
    ends = [_sorted(np.append(edges[cut[1], side], crossing), owner) for side in (0, 1)]
    rows, (u, weights) = np.sort(owner[0]), nodes(np.stack(ends, axis=-1))
    total = values.sum(axis=-1)
    np.add.at(total, rows, _excess(*pairs.logs(u, rows), epsilon, weights))
    return float(total.max())


def _sorted(u, owner) -> np.ndarray:
    """Values sorted by pair, panel and size."""
    return u[np.lexsort((u, owner[1], owner[0]))]


def _crossings(pairs: Neighbours, row, low, high, epsilon: float) -> np.ndarray:
    """u in [low, high] (k,) where the privacy loss of the pairs in `row` crosses ε, by bisection."""
    if not len(row):
        return np.empty(0)
    start = _loss(*pairs.logs(low, row)) > epsilon
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        same = (_loss(*pairs.logs(middle, row)) > epsilon) == start
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    return (low + high) / 2


def _loss(p, q) -> np.ndarray:
    """ln(p/q), −inf where p is 0."""
    with np.errstate(invalid="ignore"):
        return np.where(np.isneginf(p), -np.inf, p - q)


def _excess(p, q, epsilon: float, log_weights) -> np.ndarray:
    """∫ (p − e^ε q)⁺ over panels, from nodes along the last axis."""
    share = -np.expm1(np.minimum(epsilon - _loss(p, q), 0.0))
    return np.where(share > 0, np.exp(p + log_weights) * share, 0.0).sum(axis=-1)


def _renyi(pairs: Neighbours, mechanism, orders) -> np.ndarray:
    """Divergences (orders,), the larger of both ways, on panels fit for the largest finite one and the densities."""
    wide, some = pairs.first_panels, pairs.spread()
    coarse = _both_ways(some, wide)
    largest = max((order for order in orders if not _diverges(coarse, order)), default=1.0)

    def hardest(p, q):
        ways = _integrand(p, q, largest), _integrand(q, p, largest)
        return np.logaddexp(np.logaddexp(p, q), np.logaddexp(*ways))

    # Rounding grows with the order, and the logarithm of the integral is divided by it.
    edges, _ = _laws(pairs, mechanism, hardest, RELATIVE * max(1.0, largest - 1))
    # The panels at both ends are added: there an integrand without an integral does not fall.
    laws = _both_ways(pairs, np.concatenate([wide[:1], edges, wide[-1:]]))
    return np.array([_largest(laws, order) if order <= largest else math.inf for order in orders])


def _both_ways(pairs: Neighbours, edges) -> list:
    """(p, q, log-weights) and (q, p, log-weights), with the log-densities (pairs, panels, 10) at the panels' nodes."""
    u, log_weights = nodes(edges)
    p, q = pairs.logs(u)
    return [(p, q, log_weights), (q, p, log_weights)]


def _largest(laws, order: float) -> float:
    """The largest divergence of an order; the first and the last panel only show whether it is finite."""
    if order == 1:
        with np.errstate(invalid="ignore"):
            terms = [np.where(np.isneginf(p), 0.0, np.exp(p + w) * (p - q))[:, 1:-1] for p, q, w in laws]
        return max(float(term.sum(axis=(-1, -2)).max()) for term in terms)
    if _diverges(laws, order):
        return math.inf
    parts = [_log_sum(_integrand(p, q, order) + w)[:, 1:-1] for p, q, w in laws]
    return max(float(_log_sum(term).max()) for term in parts) / (order - 1)


def _diverges(laws, order: float) -> bool:
    """Whether an integrand does not fall towards one of the ends, so that its integral is infinite."""
    integrals = [_log_sum(_integrand(p, q, order) + w) for p, q, w in laws]
    return any(np.any(np.maximum(x[:, 0], x[:, -1]) - x.max(axis=1) > math.log(1e-6)) for x in integrals)


def _integrand(p, q, order: float):
    """ln(p^λ q^(1−λ)), −inf where p is 0."""
    with np.errstate(invalid="ignore"):
        return np.where(np.isneginf(p), -np.inf, order * p + (1 - order) * q)


def _log_sum(terms) -> np.ndarray:
    """ln Σ exp over the last axis; +inf where a term is +inf."""
    top = terms.max(axis=-1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = top[..., 0] + np.log(np.exp(terms - top).sum(axis=-1))
    return np.where(np.isinf(top[..., 0]), top[..., 0], logs)


def _check_one(mechanism, total) -> None:
    wrong = np.abs(total - 1) > NORMALISED
    if np.any(wrong):
        integral = np.atleast_1d(total)[np.atleast_1d(wrong)][0]
        raise ValueError(
            f"log_density of {type(mechanism).__name__} integrates to {integral:.6g} over all releases; it must be 1. "
            "Where a right density jumps (a piecewise constant one), declare the places as `breaks`, which quadrature "
            'has to be told; a mechanism that releases whole numbers has support "integers" and a log_mass in its place'
        )
