"""Divergences between neighbours for a release of one number, by quadrature of its density.

A change of variable makes densities fall doubly exponentially towards both ends (Takahasi and Mori 1974). The range is
divided into intervals ("panels"). Panels are halved until Gauss-Legendre quadrature has converged on each of them.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, logit

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(10)
# Number of initial panels, and the largest number of halvings.
PANELS = 48
HALVINGS = 50
# A panel has converged if halving it changes its integral by less than RELATIVE, or if the integral is below ABSOLUTE.
RELATIVE = 1e-7
ABSOLUTE = 1e-16
# Halving ends if this many panels have not converged.
MOST = 1000
# Panels with a smaller probability are left out.
NOTHING = 1e-30
# The integral of a density may differ from 1 by this much.
NORMALISED = 1e-5
# This many pairs of neighbours are integrated on the same panels.
BLOCK = 64
# This many pairs of a block, evenly spread, determine the panels.
SPREAD = 4
# Number of bisections to find where a ratio of densities crosses e^ε; a few are enough, as the integrand is 0 there.
BISECTIONS = 18


class Space(NamedTuple):
    """A change of variable from u in [-end, end] to the release, with its inverse and the logarithm of its slope."""

    point: Callable
    coordinate: Callable
    log_slope: Callable
    end: float

    @classmethod
    def interval(cls, low: float, high: float) -> "Space":
        """Return the change of variable for releases in [low, high]."""

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
        """Return the change of variable for real releases. Most points lie within about `width` of the centre."""
        half = math.pi / 2
        return cls(
            lambda u: centre + width * np.sinh(half * np.sinh(u)),
            lambda x: np.arcsinh(np.arcsinh((x - centre) / width) / half),
            lambda u: math.log(width * half) + np.log(np.cosh(half * np.sinh(u))) + np.log(np.cosh(u)),
            3.6,
        )


class Neighbours(NamedTuple):
    """Pairs of neighbours, and the density of a one-number release given the statistics.

    Attributes:
        pairs: statistics of the neighbours, shape (pairs, 2, d).
        log_density: function of points (...) and statistics (..., d).
        space: the change of variable.
        breaks: values of u at which a density jumps, shape (k,).
    """

    pairs: np.ndarray
    log_density: Callable
    space: Space
    breaks: np.ndarray

    def blocks(self) -> "Iterator[Neighbours]":
        """Yield blocks of `BLOCK` successive pairs."""
        for start in range(0, len(self.pairs), BLOCK):
            yield self._replace(pairs=self.pairs[start : start + BLOCK])

    @property
    def first_panels(self) -> np.ndarray:
        """Initial panels (panels, 2) of equal width, divided further at the breaks."""
        edges = np.linspace(-self.space.end, self.space.end, PANELS + 1)
        edges = np.unique(np.concatenate([edges, self.breaks]))
        return np.stack([edges[:-1], edges[1:]], axis=-1)

    def spread(self) -> "Neighbours":
        """Return `SPREAD` evenly spaced pairs, including the first pair and the last pair."""
        return self._replace(pairs=self.pairs[np.unique(np.linspace(0, len(self.pairs) - 1, SPREAD).astype(int))])

    def logs(self, u, row=None) -> tuple[np.ndarray, np.ndarray]:
        """Return the log-densities of both neighbours at u (...), each of shape (pairs, ...).

        With indices `row` (k,) of pairs, u and the log-densities have the shape (k, ...).
        """
        pairs, axes = (self.pairs, np.ndim(u)) if row is None else (self.pairs[row], np.ndim(u) - 1)
        pairs = pairs.reshape(len(pairs), 2, *(1,) * axes, pairs.shape[-1])
        points, log_slope = self.space.point(u), self.space.log_slope(u)
        # Outside the support, the log-density is −∞, as it should be.
        with np.errstate(divide="ignore", invalid="ignore"):
            first, second = (self.log_density(points, pairs[:, side]) + log_slope for side in (0, 1))
        return first, second

    def integrals(self, of: Callable, edges) -> np.ndarray:
        """Return the logarithms (pairs, panels) of ∫ exp f over panels (panels, 2), with f = of(ln p, ln q)."""
        u, log_weights = nodes(edges)
        return _log_sum(of(*self.logs(u)) + log_weights)


def nodes(edges) -> tuple[np.ndarray, np.ndarray]:
    """Return the quadrature nodes u of panels (..., 2) and the logarithms of the weights, both of shape (..., 10)."""
    half = np.diff(edges, axis=-1) / 2
    with np.errstate(divide="ignore"):
        return edges.mean(axis=-1, keepdims=True) + half * _NODES, np.log(half) + np.log(_WEIGHTS)


def neighbours(mechanism: Any) -> Neighbours | None:
    """Return a mechanism's neighbours, or None if quadrature cannot be used for its releases.

    Quadrature needs releases of one number, a known density and known pairs of neighbours.
    """
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
    # This is the width of a uniform density with the same height. A poor width only costs time.
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
    """Return the values of u at the points, leaving out values beyond the ends."""
    # The ends of an interval have an infinite u.
    with np.errstate(divide="ignore", invalid="ignore"):
        u = space.coordinate(np.asarray(points, float))
    return u[np.abs(u) < space.end]


def curve(mechanism: Any, epsilon: float) -> float | None:
    """Return δ(ε), the maximum over neighbours of ∫ (p − e^ε q)⁺, or None if `neighbours` returns None.

    Raises a ValueError if a density does not integrate to one.
    """
    pairs = neighbours(mechanism)
    return None if pairs is None else max(_hockey_stick(block, mechanism, epsilon) for block in pairs.blocks())


def rdp(mechanism: Any, orders) -> np.ndarray | None:
    """Return the largest Rényi divergence over neighbours at each order λ ≥ 1, or None if `neighbours` returns None.

    Raises a ValueError if a density does not integrate to one.
    """
    pairs = neighbours(mechanism)
    if pairs is None:
        return None
    flat = np.ravel(np.asarray(orders, float))
    largest = np.zeros(len(flat))
    for block in pairs.blocks():
        # Orders whose divergence is already infinite need no further block.
        finite = np.isfinite(largest)
        largest[finite] = np.maximum(largest[finite], _renyi(block, mechanism, flat[finite]))
    return largest.reshape(np.shape(orders))


def cdf(mechanism: Any, values) -> np.ndarray | None:
    """Return the distribution function of additive noise at any values, or None if `neighbours` returns None.

    Raises a ValueError if a density does not integrate to one.
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
    """Return sorted intervals (panels, 2) on which `integrals` have converged for all pairs.

    Intervals with negligible mass are left out."""
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
        # If the rounding error exceeds the tolerance, panels never converge, and their number grows.
        if not 0 < len(wide) < MOST:
            break
        whole = parts.reshape(len(parts), -1, 2)[:, ~done].reshape(len(parts), -1)
    panels = np.concatenate([*converged, wide])
    return panels[np.argsort(panels[:, 0])]


def _laws(pairs: Neighbours, mechanism, of: Callable, relative: float = RELATIVE):
    """Return panels, and both neighbours' log-densities (pairs, panels, 12) at the ends and nodes of the panels."""
    # Pairs are similar, so a few pairs determine the panels. If this fails for any pair, all pairs determine them.
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
    """Return the largest ∫ (p − e^ε q)⁺ over pairs, given log-densities at the ends and nodes of panels."""
    p, q = logs
    values, above = _excess(p[..., 1:-1], q[..., 1:-1], epsilon, log_weights), _loss(p, q) > epsilon
    # A panel is divided wherever the ratio of the densities crosses e^ε between two of its nodes.
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
    """Return the values sorted by pair, then panel, then size."""
    return u[np.lexsort((u, owner[1], owner[0]))]


def _crossings(pairs: Neighbours, row, low, high, epsilon: float) -> np.ndarray:
    """Return the u (k,) in [low, high] where the privacy loss of the pairs in `row` crosses ε."""
    if not len(row):
        return np.empty(0)
    start = _loss(*pairs.logs(low, row)) > epsilon
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        same = (_loss(*pairs.logs(middle, row)) > epsilon) == start
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    return (low + high) / 2


def _loss(p, q) -> np.ndarray:
    """Return the privacy loss ln(p/q) from ln p and ln q, or −inf where p is 0."""
    with np.errstate(invalid="ignore"):
        return np.where(np.isneginf(p), -np.inf, p - q)


def _excess(p, q, epsilon: float, log_weights) -> np.ndarray:
    """Return ∫ (p − e^ε q)⁺ over panels, given ln p and ln q at nodes along the last axis."""
    share = -np.expm1(np.minimum(epsilon - _loss(p, q), 0.0))
    return np.where(share > 0, np.exp(p + log_weights) * share, 0.0).sum(axis=-1)


def _renyi(pairs: Neighbours, mechanism, orders) -> np.ndarray:
    """Return the largest divergences (orders,) over pairs and directions, with inf for infinite divergences."""
    wide, some = pairs.first_panels, pairs.spread()
    coarse = _both_ways(some, wide)
    largest = max((order for order in orders if not _diverges(coarse, order)), default=1.0)

    def hardest(p, q):
        ways = _integrand(p, q, largest), _integrand(q, p, largest)
        return np.logaddexp(np.logaddexp(p, q), np.logaddexp(*ways))

    # The rounding error grows with the order, but the logarithm of the integral is divided by order − 1.
    edges, _ = _laws(pairs, mechanism, hardest, RELATIVE * max(1.0, largest - 1))
    # The first and the last panel are added: the integral diverges if the integrand does not fall there.
    laws = _both_ways(pairs, np.concatenate([wide[:1], edges, wide[-1:]]))
    return np.array([_largest(laws, order) if order <= largest else math.inf for order in orders])


def _both_ways(pairs: Neighbours, edges) -> list:
    """Return log-densities (pairs, panels, 10) and log-weights as (p, q, weights) and as (q, p, weights)."""
    u, log_weights = nodes(edges)
    p, q = pairs.logs(u)
    return [(p, q, log_weights), (q, p, log_weights)]


def _largest(laws, order: float) -> float:
    """Return the largest divergence of an order, over all pairs and both directions."""
    if order == 1:
        with np.errstate(invalid="ignore"):
            terms = [np.where(np.isneginf(p), 0.0, np.exp(p + w) * (p - q))[:, 1:-1] for p, q, w in laws]
        return max(float(term.sum(axis=(-1, -2)).max()) for term in terms)
    if _diverges(laws, order):
        return math.inf
    # The first and the last panel only show whether the divergence is finite.
    parts = [_log_sum(_integrand(p, q, order) + w)[:, 1:-1] for p, q, w in laws]
    return max(float(_log_sum(term).max()) for term in parts) / (order - 1)


def _diverges(laws, order: float) -> bool:
    """Whether an integral is infinite, because its integrand does not fall towards one of the ends."""
    integrals = [_log_sum(_integrand(p, q, order) + w) for p, q, w in laws]
    return any(np.any(np.maximum(x[:, 0], x[:, -1]) - x.max(axis=1) > math.log(1e-6)) for x in integrals)


def _integrand(p, q, order: float):
    """Return ln(p^λ q^(1−λ)) from ln p and ln q, or −inf where p is 0."""
    with np.errstate(invalid="ignore"):
        return np.where(np.isneginf(p), -np.inf, order * p + (1 - order) * q)


def _log_sum(terms) -> np.ndarray:
    """Return ln Σ exp(terms) over the last axis, or +inf where a term is +inf."""
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
