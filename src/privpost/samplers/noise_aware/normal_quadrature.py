"""Posterior of a normal law's mean and variance given noisy clamped moments, by quadrature.

The grid's coordinates are the mean and ln sd. `posterior` treats the sums given θ as normal, as in Bernstein and
Sheldon (2018). The density of a release is then a one-dimensional integral. `exact` uses the true law of the sums.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy.interpolate import RBFInterpolator
from scipy.ndimage import map_coordinates
from scipy.special import gammaincinv, stdtrit

from privpost.models.conjugate.clamped_moments import INTERVALS, ClampedMoments, moments_within
from privpost.samplers.noise_aware.quadrature import log_normal_laplace, power

# Cells per axis of the first grid, which treats the sums as independent.
_FIRST = 32
# Prior mass outside the first grid on either side.
_TAIL = 1e-7
# Each grid halves the cells whose log-density is at most this far below the peak; the depth shrinks grid by grid.
_DEPTHS = (40.0, 25.0, 15.0)
# Cells are halved until each holds less than this share of the mass, as in a normal law's cell of 0.4 deviations.
_SHARE = 0.0256
# Largest number of grids.
_GRIDS = 14
# The integral ends where the logarithm of its integrand has fallen by this much.
_DROP = 24.0
# Points computed at once.
_PART = 500
# Nodes on either side of the release.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(20)
# Nodes of a record's law in `exact`.
_RECORD_NODES, _RECORD_WEIGHTS = np.polynomial.legendre.leggauss(64)
# Standard deviations that the nodes of a record's law span on either side.
_RECORD_SPAN = 8.5
# Standard deviations of the sums' frequencies that the inversion spans.
_FREQUENCIES = 7.0
# Standard deviations of the sums' values that the inversion spans.
_VALUES = 14.0
# Scales of the noise that the inversion spans.
_SCALES = 14.0
# Number of points at which the correction is computed; a quarter of this number if the noise is wider than the sums.
_POINTS = 150
# How far below the peak the log-density may be at the points of the correction.
_DEPTH = 12.0
_NEIGHBOURS = np.array([(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1)])
_HALVES = np.array([(0, 0), (0, 1), (1, 0), (1, 1)])


class Posterior(NamedTuple):
    """A posterior on a grid of equal cells, with the mean and ln sd as coordinates.

    Attributes:
        place: integer positions of the cells, shape (cells, 2).
        origin, step: shape (2,). The midpoint of a cell, in mean and ln sd, is origin + step (place + ½).
        mass: probability of each cell, shape (cells,).
    """

    place: np.ndarray
    origin: np.ndarray
    step: np.ndarray
    mass: np.ndarray

    @property
    def middle(self) -> np.ndarray:
        """Mean and ln sd of the cells' midpoints, shape (cells, 2)."""
        return self.origin + self.step * (self.place + 0.5)

    def sample(self, draws: int, rng) -> np.ndarray:
        """Return independent draws (draws, 2) of (μ, σ²)."""
        law = self.finer()
        cell = rng.choice(len(law.mass), draws, p=law.mass)
        return _theta(law.middle[cell] + law.step * (rng.random((draws, 2)) - 0.5))

    def finer(self) -> "Posterior":
        """Return the law on cells of half the length, by cubic splines of the log-density."""
        logs = np.log(np.maximum(self.mass, 1e-290))
        matter = logs > logs.max() - _DEPTHS[-1]
        corner = self.place.min(axis=0)
        dense = np.full(self.place.max(axis=0) - corner + 1, logs[matter].min())
        dense[tuple((self.place - corner).T)] = np.maximum(logs, logs[matter].min())
        place = (2 * self.place[matter][:, None] + _HALVES).reshape(-1, 2)
        mass = np.exp(map_coordinates(dense, ((place + 0.5) / 2 - 0.5 - corner).T, order=3, mode="nearest"))
        return Posterior(place, self.origin, self.step / 2, mass / mass.sum())

    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the means and the standard deviations of (μ, σ²), shape (2,) each."""
        theta = _theta(self.middle)
        mean = self.mass @ theta
        return mean, np.sqrt(self.mass @ np.square(theta - mean))

    def cdf(self, theta) -> np.ndarray:
        """Return the posterior distribution functions (2,) of mean and variance at θ = (μ, σ²)."""
        at = np.array([theta[0], np.log(theta[1]) / 2])
        return self.mass @ np.clip((at - self.middle) / self.step + 0.5, 0.0, 1.0)


def _theta(points) -> np.ndarray:
    return np.stack([points[..., 0], np.exp(2 * points[..., 1])], axis=-1)


def log_likelihood(mean, covariance, release, scale: float) -> np.ndarray:
    """Return the log-density (points,) of a release (2,) that is a normal pair plus independent Laplace noise.

    Args:
        mean: means of the pair in the first two rows, shape (2 or more, points).
        covariance: shape (2 or more, 2 or more, points).
    """
    # The parts fit in the processor's cache.
    cut = range(0, mean.shape[1], _PART)
    parts = [_log_pair(mean[:, k : k + _PART], covariance[..., k : k + _PART], release, scale) for k in cut]
    return np.concatenate(parts)


def _log_pair(mean, covariance, release, scale: float) -> np.ndarray:
    variance = np.maximum(covariance[0, 0], 1e-12 * scale**2)[..., None]
    slope = covariance[0, 1][..., None] / variance
    rest = np.maximum(covariance[1, 1][..., None] - slope**2 * variance, 0.0)
    offset, second = (release[0] - mean[0])[..., None], (release[1] - mean[1])[..., None]
    total = 0.0
    # The integral over the first variable is split at the release, where the density of the noise has a kink.
    for side in (1.0, -1.0):
        # Below the release (the other side is reflected), the normal density times e^(z/b) is integrated up to top.
        end, centre, reach = side * offset, variance / scale, 2 * _DROP * variance
        top = np.minimum(end, centre + np.sqrt(reach))
        beyond = np.maximum(centre - end, 0.0)
        length = top - np.minimum(end, centre) + reach / (beyond + np.sqrt(beyond**2 + reach))
        z = top - length * (1 - _NODES) / 2
        log_first = (z - end) / scale - z * z / (2 * variance) - 0.5 * np.log(2 * np.pi * variance)
        log_second = log_normal_laplace(second - side * slope * z, rest, scale)
        total = total + (np.exp(log_first + log_second) * _WEIGHTS * length).sum(axis=-1)
    return np.log(np.maximum(total, 1e-300) / (4 * scale))


def _apart(mean, covariance, release, scale):
    """Return the `log_likelihood` for uncorrelated sums."""
    return sum(log_normal_laplace(release[j] - mean[j], covariance[j, j], scale) for j in range(2))


def posterior(model: ClampedMoments, release, n: int, scale: float) -> Posterior:
    """Return the posterior given one release (2,), with the sums treated as normal.

    Raises:
        ValueError: the posterior is too narrow for floats.
    """
    ends = np.array(_ends(model)).T
    place, step = np.stack([*map(np.ravel, np.indices((_FIRST, _FIRST)))], axis=-1), (ends[1] - ends[0]) / _FIRST
    for grid in range(_GRIDS):
        theta = _theta(ends[0] + step * (place + 0.5))
        mean, covariance = model.sum_moments(theta, n)
        logs = (log_likelihood if grid else _apart)(mean, covariance, release, scale) + log_prior(model, theta)
        mass = np.exp(logs - logs.max())
        mass /= mass.sum()
        if grid and mass.max() < _SHARE:
            return Posterior(place, ends[0], step, mass)
        near = place[logs > logs.max() - _DEPTHS[min(grid, len(_DEPTHS) - 1)]]
        # Neighbours are kept too: a peak can lie between two midpoints.
        near = _distinct((near[:, None] + _NEIGHBOURS).reshape(-1, 2))
        place, step = (2 * near[:, None] + _HALVES).reshape(-1, 2), step / 2
    raise ValueError("the posterior is too narrow for its grid")


def _distinct(place) -> np.ndarray:
    """Return the distinct pairs of integers in `place` (cells, 2), sorted."""
    # np.unique on rows takes ten times as long.
    corner = place.min(axis=0)
    width = np.ptp(place[:, 1]) + 1
    return np.stack(np.divmod(np.unique((place - corner) @ [width, 1]), width), axis=-1) + corner


def _ends(model: ClampedMoments) -> list[tuple[float, float]]:
    """Return an interval of the mean and an interval of ln sd that hold the prior's mass."""
    family = model.family
    reach = -stdtrit(2 * family.shape, _TAIL) * np.sqrt(family.rate / family.shape / family.strength)
    precise = gammaincinv(family.shape, [1 - _TAIL, _TAIL]) / family.rate
    if not (np.isfinite(reach) and np.all(precise > 0)):
        raise ValueError(f"shape is {family.shape!r}; the prior is too wide for quadrature, take a larger shape")
    return [(family.prior_mean - reach, family.prior_mean + reach), tuple(-np.log(precise) / 2)]


def log_prior(model: ClampedMoments, theta) -> np.ndarray:
    """Return the prior's log-density in the mean and ln sd at θ (..., 2), up to a constant."""
    # The Jacobian is dσ² = 2 σ² d ln σ.
    return model.family.log_density(theta, model.family.prior) + np.log(theta[..., 1])


def exact(model: ClampedMoments, release, n: int, scale: float) -> Posterior:
    """Return the posterior given one release (2,), with the true law of the sums.

    `inverted` corrects the log-likelihood in some cells, and the correction is interpolated in other cells.
    """
    law = posterior(model, release, n, scale)
    logs = np.log(np.maximum(law.mass, 1e-290))
    matter = logs > logs.max() - _DEPTH
    # Other cells get no mass.
    place, mass = law.place[matter], law.mass[matter]
    covariance = model.sum_moments(_theta(mass @ law.middle[matter] / mass.sum()), n)[1]
    points = _POINTS if scale < np.sqrt(covariance[0, 0]) else _POINTS // 4
    some = (place % math.ceil(math.sqrt(len(place) / points)) == 0).all(axis=1)
    theta = _theta(law.middle[matter][some])
    lacks = np.log([inverted(model, point, release, n, scale) for point in theta])
    lacks -= log_likelihood(*model.sum_moments(theta, n), release, scale)
    # Far below the peak, inverted densities are rounding errors and may be negative.
    lacks = np.clip(lacks, -_DEPTH, _DEPTH)
    mass = mass * np.exp(RBFInterpolator(place[some], lacks)(place))
    return law._replace(place=place, mass=mass / mass.sum())


def inverted(model: ClampedMoments, theta, release, n: int, scale: float) -> float:
    """Return the density p(y | θ) of a release under the true law of the sums, by Fourier inversion.

    The noisy sums have the characteristic function φ(ω)ⁿ/((1 + b²ω₁²)(1 + b²ω₂²)). Here b is the scale of the noise,
    and φ is the characteristic function of (r, r²) for one clamped record r.
    """
    mean, variance = model.in_units(theta)
    sd = np.sqrt(variance)
    low, high = max(-1.0, mean - _RECORD_SPAN * sd), min(1.0, mean + _RECORD_SPAN * sd)
    u = (low + high) / 2 + (high - low) / 2 * _RECORD_NODES
    density = (
        np.exp(-((u - mean) ** 2) / (2 * variance)) / np.sqrt(2 * np.pi * variance) * (high - low) / 2 * _RECORD_WEIGHTS
    )
    sums, covariance = (part[:2] for part in model.sum_moments(theta, n))
    spread = np.sqrt(np.diag(covariance[:, :2]))
    rest = np.sqrt(np.linalg.det(covariance[:, :2])) / spread[::-1]
    period = 2 * np.abs(release - sums) + _VALUES * spread + _SCALES * scale
    step, number = 2 * np.pi / period, np.ceil(_FREQUENCIES / rest * period / (2 * np.pi)).astype(int)
    first, second = (width * np.arange(most + 1) for width, most in zip(step, number, strict=True))
    # Nodes of a record's law, and its two bounds.
    u = np.append(u, (1.0, -1.0))
    density = np.append(density, [moments_within(mean, variance, *ends)[0] for ends in INTERVALS[1:]])
    one, other = np.exp(1j * first[:, None] * u) * density, np.exp(1j * second[:, None] * u * u)
    # Sums over cosines and over sines, which are real, serve both ω₂ and −ω₂.
    even, odd = (_product(one, part.T) for part in (other.real, other.imag))
    left = np.exp(-1j * first * release[0]) / (1 + (scale * first) ** 2)
    right = np.exp(-1j * second * release[1]) / (1 + (scale * second) ** 2)
    # The integrand at −ω is the conjugate of the integrand at ω.
    left[1:] *= 2
    # ω₂ = 0 is in both terms.
    right[0] /= 2
    value = left @ power(even + 1j * odd, n) @ right + left @ power(even - 1j * odd, n) @ right.conj()
    return float(max(value.real, 1e-300) / period.prod())


def _product(one, other) -> np.ndarray:
    """Return the product of a complex matrix and a real matrix, at half the cost of a complex product."""
    product = np.empty((len(one), other.shape[1]), complex)
    product.real, product.imag = one.real @ other, one.imag @ other
    return product
