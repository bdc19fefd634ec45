"""Sources of noise: numpy's generators for simulations, the package opendp for releases of real data.

Mechanisms call the method `laplace(0, scale, shape)` or `normal(0, sigma, shape)` of their source. The last digits of
floating-point noise reveal data (Mironov 2012), so `SecureNoise` draws whole numbers.
"""

import contextlib
import contextvars
import functools
import math
import warnings
from collections.abc import Iterator

import numpy as np

from privpost import lookup

# Beyond this scale a float might not hold the sum of statistic and noise exactly.
LARGEST_SCALE = 2.0**40
# The largest σ whose discrete Gaussian law is tabulated.
_LARGEST_TABLE = 2.0**14
INSTALL = "pip install 'opendp>=0.16,<0.17' (or the project's extra: pip install '.[secure]')"


@functools.cache
def opendp():
    """Return the package opendp with the needed features enabled. A missing package raises a ValueError."""
    prelude = lookup.optional("opendp.prelude", "noise is 'secure', which needs the package opendp", INSTALL)
    prelude.enable_features("contrib")
    return prelude


class SimulationNoise(UserWarning):
    """Warning that numpy drew the noise of a release outside a simulation.

    >>> import warnings
    >>> warnings.simplefilter("ignore", SimulationNoise)  # in a script that simulates
    """


_simulated = contextvars.ContextVar("simulated", default=False)
_told: list[bool] = []


@contextlib.contextmanager
def simulation() -> Iterator[None]:
    """Context of a simulation, in which releases with numpy's noise raise no warning."""
    token = _simulated.set(True)
    try:
        yield
    finally:
        _simulated.reset(token)


def tell(source) -> None:
    """Warn once per process if a release outside `simulation` uses another source than `SecureNoise`."""
    if not (_told or _simulated.get() or isinstance(source, SecureNoise)):
        _told.append(True)
        warnings.warn(
            "a numpy generator draws this release: for simulations only, as floating-point noise protects nobody. For "
            "real data use `privpost release`, or rng=privpost.SecureNoise() where statistics are whole numbers "
            "(docs/library.md)",
            SimulationNoise,
            stacklevel=3,
        )


class SecureNoise:
    """Discrete Laplace and Gaussian noise from the package opendp, for releases of real data.

    The laws are P(k) ∝ exp(−|k|/scale) and P(k) ∝ exp(−k²/(2 scale²)) on the whole numbers, drawn in exact arithmetic
    (Canonne, Kamath and Steinke 2020). If statistics are whole numbers, Laplace noise costs ε = Δ/scale at L1
    sensitivity Δ, and Gaussian noise costs ρ = Δ²/(2 scale²) of zero-concentrated DP at L2 sensitivity Δ. The class
    replaces a numpy Generator in mechanisms that add noise. The operating system supplies randomness, without a seed.

    >>> LaplaceMechanism(BetaBernoulli(1, 1), 10, 1.0).perturb([3, 7], SecureNoise()).shape
    (1,)
    """

    def laplace(self, loc, scale: float, size) -> np.ndarray:
        """Return `loc` plus discrete Laplace variates, which are whole numbers stored as floats.

        Raises:
            ValueError: a scale that is not in (0, 2^40].
        """
        return loc + _variates(laplace_measurement(_scale(scale)), size)

    def normal(self, loc, scale: float, size) -> np.ndarray:
        """Return `loc` plus discrete Gaussian variates, which are whole numbers stored as floats.

        Raises:
            ValueError: a scale that is not in (0, 2^40].
        """
        return loc + _variates(gaussian_measurement(_scale(scale)), size)

    def __getattr__(self, name):
        raise AttributeError(
            f"secure noise has no {name!r}: it adds Laplace or Gaussian noise to whole numbers. A posterior sample is "
            "private only if it is drawn exactly, which floating-point variates of a beta or gamma law are not."
        )


class Swapped:
    """A generator whose arrays of uniforms are filled column by column, not row by row."""

    def __init__(self, rng: np.random.Generator):
        self._rng = rng

    def random(self, shape: tuple[int, int]) -> np.ndarray:
        """Return uniform variates on [0, 1)."""
        return self._rng.random(shape[::-1]).T


class Common:
    """A source whose Laplace noise is the same, up to the scale, for all releases of one shape."""

    def __init__(self, rng: np.random.Generator):
        self._rng, self._standard = rng, {}

    def laplace(self, loc, scale: float, size) -> np.ndarray:
        """Return `loc` plus scale times the shared standard Laplace variates."""
        if size not in self._standard:
            self._standard[size] = self._rng.laplace(size=size)
        return loc + scale * self._standard[size]


def discrete_laplace(scale: float, shape, source) -> np.ndarray:
    """Return whole numbers k with P(k) ∝ exp(−|k|/scale), from a numpy generator or `SecureNoise`."""
    if isinstance(source, SecureNoise):
        return source.laplace(0.0, scale, shape)
    # The two variates of a number are adjacent, so that a batch is drawn row by row.
    pairs = source.geometric(-math.expm1(-1 / scale), (*shape, 2))
    return (pairs[..., 0] - pairs[..., 1]).astype(float)


def discrete_gaussian(sigma: float, shape, source) -> np.ndarray:
    """Return whole numbers k with P(k) ∝ exp(−k²/(2σ²)), from a numpy generator or `SecureNoise`.

    For σ > 2^14, a numpy generator draws rounded normal variates. Their law differs by less than 1e-9 in total
    variation.
    """
    if isinstance(source, SecureNoise):
        return source.normal(0.0, sigma, shape)
    if sigma > _LARGEST_TABLE:
        return np.rint(source.normal(0.0, sigma, shape))
    below = _discrete_gaussian_cdf(sigma)
    return np.searchsorted(below, source.random(shape), side="right") - float(len(below) // 2)


def log_theta(sigma: float) -> float:
    """Return ln Σ exp(−k²/(2σ²)), where the sum is over all whole numbers k."""
    k = np.arange(1, 8.0)
    if sigma < 0.5:
        return math.log1p(2 * np.exp(-0.5 * (k / sigma) ** 2).sum())
    return math.log(sigma * math.sqrt(2 * math.pi)) + math.log1p(2 * np.exp(-2 * (math.pi * sigma * k) ** 2).sum())


def spread(scale: float, laplace: bool) -> float:
    """Return the spread of discrete noise: mean absolute deviation if Laplace, standard deviation if Gaussian."""
    if laplace:
        return 2 * math.exp(-1 / scale) / -math.expm1(-2 / scale)
    # The standard deviation equals sigma up to about exp(-2 pi^2 sigma^2).
    if scale > 10:
        return scale
    steps = np.arange(-400, 401.0)
    weights = np.exp(-(steps**2) / (2 * scale**2))
    return math.sqrt(float(weights @ steps**2 / weights.sum()))


@functools.lru_cache(maxsize=64)
def _discrete_gaussian_cdf(sigma: float) -> np.ndarray:
    # The mass beyond 12 σ is about 1e-32.
    reach = math.ceil(12 * sigma) + 1
    return np.cumsum(np.exp(-0.5 * (np.arange(-reach, reach + 1.0) / sigma) ** 2 - log_theta(sigma)))


def add(exact, noise, source) -> np.ndarray:
    """Return the sum of statistics and noise.

    Raises:
        ValueError: the source is secure noise, and statistics are not whole numbers below 2^52.
    """
    if isinstance(source, SecureNoise):
        values = np.asarray(exact)
        if not (np.all(values == np.rint(values)) and np.all(np.abs(values) < 2.0**52)):
            raise ValueError(
                "statistics have values that are not whole numbers below 2^52; secure noise hides no others"
            )
    return exact + noise


def laplace_measurement(scale: float):
    """Return opendp's discrete Laplace measurement on vectors of 64-bit integers under the L1 distance."""
    package = opendp()
    space = package.vector_domain(package.atom_domain(T="i64")), package.l1_distance(T="i64")
    return package.m.make_laplace(*space, scale=float(scale))


def gaussian_measurement(scale: float):
    """Return opendp's discrete Gaussian measurement on vectors of 64-bit integers under the L2 distance."""
    package = opendp()
    space = package.vector_domain(package.atom_domain(T="i64")), package.l2_distance(T=float)
    return package.m.make_gaussian(*space, scale=float(scale))


def laplace_epsilon(scale: float, sensitivity: int) -> float:
    """Return opendp's ε of discrete Laplace noise, by the privacy map, rounded up."""
    return float(laplace_measurement(scale).map(int(sensitivity)))


def gaussian_epsilon(scale: float, sensitivity: float, delta: float) -> float:
    """Return opendp's ε of discrete Gaussian noise at a given δ, converted from zero-concentrated DP, rounded up."""
    profile = opendp().c.make_zCDP_to_approxDP(gaussian_measurement(scale)).map(float(sensitivity))
    return float(profile.epsilon(delta))


def _scale(scale: float) -> float:
    if not 0 < scale <= LARGEST_SCALE:
        raise ValueError(f"scale is {scale!r}; secure noise needs one in (0, 2^40]")
    return float(scale)


def _variates(measurement, size) -> np.ndarray:
    shape = (size,) if isinstance(size, int) else tuple(size)
    return np.array(measurement([0] * math.prod(shape)), float).reshape(shape)
