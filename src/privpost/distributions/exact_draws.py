"""Exact draws from given distributions, rounded down to a public number of bits.

A draw is θ = F⁻¹(U) for an ideal uniform U and a distribution function F. Bits of U are revealed until the cell k with
F(k/2^b) ≤ U < F((k+1)/2^b) is certain, so k is exactly ⌊2^b θ⌋. F is computed as a ball, which is an interval with
guaranteed ends (package python-flint).
"""

import contextlib
import contextvars
import functools
import math
import secrets
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from time import thread_time
from typing import Any

import numpy as np

from privpost import lookup

# Public precision of a released draw, in bits after the binary point.
LARGEST_BITS = 64
INSTALL = "pip install 'python-flint>=0.8,<0.9' (or the project's extra: pip install '.[secure]')"
# Bits of U that are revealed at a time.
_STEP = 32
# First precision of a ball, in bits.
_PRECISION = 64
# Largest precision, beyond which a draw is refused. A correct F decides at far lower precisions.
_LARGEST_PRECISION = 2**16
# Number of bits of a draw that floats can guess; bisection finds the others.
_GUESSED = 42
# Whether draws are guessed first, see `guessing`.
_guessing = contextvars.ContextVar("guessing", default=False)

Distribution = Callable[[Fraction], Any]


@functools.cache
def flint():
    """Return the package python-flint. A missing package raises a ValueError."""
    return lookup.optional("flint", "exact draws need the package python-flint", INSTALL)


def ball(value: Fraction):
    """Return a ball around a rational number, at the precision in use."""
    return flint().arb(flint().fmpq(value.numerator, value.denominator))


def parameter(value: Fraction):
    """Return a ball of positive width around a parameter.

    FLINT sums finite series for exact whole numbers, which can take 20 times as long as for a ball of positive width.
    """
    context = flint().ctx
    return ball(value) + flint().arb(0, flint().arb(2) ** -(2 * context.prec))


class Uniform:
    """A uniform variate U that lies in [known, known + 1) / 2^bits."""

    def __init__(self, randbits: Callable[[int], int], known: int = 0, bits: int = 0):
        self._randbits = randbits
        self._known, self._bits = known, bits

    def reveal(self) -> None:
        """Draw more bits."""
        self._known = (self._known << _STEP) | self._randbits(_STEP)
        self._bits += _STEP

    @property
    def middle(self) -> float:
        """Midpoint of the interval that the known bits leave for U."""
        return (2 * self._known + 1) / 2 ** (self._bits + 1)

    def is_below(self, enclosed: Callable[[], Any]) -> bool:
        """Return whether U is below the number that `enclosed` returns as a ball.

        Raises:
            ArithmeticError: the answer stays uncertain at the largest precision.
        """
        context = flint().ctx
        before, precision = context.prec, _PRECISION
        try:
            while precision <= _LARGEST_PRECISION:
                context.prec = precision
                scaled = enclosed() * flint().arb(2) ** self._bits
                if scaled >= self._known + 1:
                    return True
                if scaled <= self._known:
                    return False
                self.reveal()
                precision *= 2
        finally:
            context.prec = before
        raise ArithmeticError("a probability could not be enclosed; no draw was made")


class Draw:
    """An ideal draw from a distribution on [0, ∞). The draw lies in [cell, cell + 1) / 2^bits.

    Args:
        distribution: distribution function F, which maps a rational number to a ball at the precision in use.
        randbits: source of independent fair bits: k ↦ a whole number below 2^k.
        bounded: whether F(1) = 1.
        quantile: an approximation of F⁻¹ in floats, or None.
    """

    def __init__(
        self,
        distribution: Distribution,
        randbits: Callable[[int], int],
        bounded: bool = True,
        quantile: Callable[[float], float] | None = None,
    ):
        self._distribution, self._uniform, self._quantile = distribution, Uniform(randbits), quantile
        self._uniform.reveal()
        self.cell, self.bits = 0, 0
        if not bounded:
            self._bound()

    def _bound(self) -> None:
        """Find the whole number below the draw, by doubling and bisection."""
        high = 1
        while not self._below(Fraction(high)):
            self.cell, high = high, 2 * high
        while high - self.cell > 1:
            middle = (self.cell + high) // 2
            self.cell, high = (self.cell, middle) if self._below(Fraction(middle)) else (middle, high)

    def refine(self, bits: int) -> int:
        """Return ⌊2^bits θ⌋, the draw θ rounded down to a larger number of bits."""
        if _guessing.get() and self._quantile and self.bits == 0:
            self._guess(min(bits, _GUESSED))
        while self.bits < bits:
            middle = 2 * self.cell + 1
            self.bits += 1
            self.cell = middle - self._below(Fraction(middle, 2**self.bits))
        return self.cell

    def _guess(self, bits: int) -> None:
        """Move to the cell that `quantile` suggests if the draw certainly lies in this cell."""
        self._uniform.reveal()
        guess = self._quantile(self._uniform.middle) * 2.0**bits
        if 0 <= guess < 2.0**bits:
            cell = int(guess)
            if self._below(Fraction(cell + 1, 2**bits)) and not self._below(Fraction(cell, 2**bits)):
                self.cell, self.bits = cell, bits

    def _below(self, point: Fraction) -> bool:
        """Return whether the draw lies below a point."""
        return self._uniform.is_below(lambda: self._distribution(point))


def seconds(one, other, bits: int) -> np.ndarray:
    """Return an estimate of the seconds that a call of a beta distribution function takes.

    The estimate holds to a factor of 2 for parameters from 0.05 to 1e9. A gamma distribution function of shape α takes
    as long as the distribution function of Beta(α, α).
    """
    smaller, larger = np.minimum(one, other), np.maximum(one, other)
    root = np.sqrt(smaller)
    far = np.where(smaller > 1, np.minimum(4e-8 * larger, 5e-4) / np.maximum(root, 1.0), 7e-8 * larger)
    return 4.5e-5 + (np.minimum(7e-6 * root, 2e-3) + far) * bits / 24


@contextlib.contextmanager
def guessing() -> Iterator[None]:
    """Context in which draws are first guessed in floats, which is far quicker and gives the same draws.

    Use this context for public data only, because the time of a draw then depends more on the draw's value.
    """
    token = _guessing.set(True)
    try:
        yield
    finally:
        _guessing.reset(token)


def unit_of_time(public: Sequence[Callable[[], Any]]) -> float:
    """Return twice the longest time, in seconds, that a draw in `public` takes. Draws depend only on public numbers."""

    def duration(draw):
        start = thread_time()
        draw()
        return thread_time() - start

    # The first draw computes constants that later draws use.
    duration(public[0])
    return 2 * max(map(duration, public))


def in_units_of_time(unit: float, draw: Callable[[], Any]) -> Any:
    """Return the result of a draw, after busy waiting until a whole number of time units has passed."""
    start = thread_time()
    drawn = draw()
    end = start + unit * math.ceil((thread_time() - start) / unit)
    while thread_time() < end:
        pass
    return drawn


def beta(
    parameters: Sequence[Fraction],
    ends: tuple[Fraction, Fraction] = (Fraction(0), Fraction(1)),
    randbits: Callable[[int], int] = secrets.randbits,
) -> Draw:
    """Return an ideal draw from Beta(α, β) truncated to an interval.

    Args:
        parameters: (α, β) > 0, exact.
        ends: ends of the interval in [0, 1], exact.
        randbits: as in `Draw`; by default from the operating system.
    """
    law, quantile = tuple(parameters), functools.partial(_beta_quantile, tuple(parameters), ends)
    return Draw(functools.partial(_truncated_beta, law, ends), randbits, quantile=quantile)


def _beta_quantile(parameters, ends, share: float) -> float:
    """Return an approximate quantile of the truncated law in floats."""
    from scipy.special import betainc, betaincinv

    low, high = betainc(*map(float, parameters), np.array(ends, float))
    return float(betaincinv(*map(float, parameters), low + share * (high - low)))


def _truncated_beta(parameters, ends, point: Fraction):
    """Return a ball around the distribution function of the truncated law."""
    low, high = ends
    if point <= low or point >= high:
        return ball(Fraction(int(point >= high)))
    # F is computed from the tail that holds the interval, so that nothing cancels.
    a, b = parameters
    if low > a / (a + b):
        return 1 - _truncated_beta((b, a), (1 - high, 1 - low), 1 - point)

    # Beyond 1/2 the series converges slowly, so the upper tail's series is used. An interval below the mean keeps the
    # lower tail up to the mean, because a difference of upper tails would cancel.
    turn = Fraction(1, 2) if high == 1 else max(Fraction(1, 2), a / (a + b))

    def mass(value: Fraction):
        if value > turn:
            return 1 - ball(1 - value).beta_lower(parameter(b), parameter(a), regularized=1)
        # Beyond 1/2, balls of positive width around the parameters take long.
        enclosed = parameter if 2 * value <= 1 else ball
        return ball(value).beta_lower(enclosed(a), enclosed(b), regularized=1)

    bottom = mass(low) if low > 0 else ball(Fraction(0))
    top = mass(high) if high < 1 else ball(Fraction(1))
    return (mass(point) - bottom) / (top - bottom)


def gamma(shape: Fraction, rate: Fraction, randbits: Callable[[int], int] = secrets.randbits) -> Draw:
    """Return an ideal draw from Gamma(shape, rate) for exact parameters > 0, with `randbits` as in `beta`."""
    # The ball around the upper tail is narrow for all shapes. The ball around the lower tail is wide for large shapes.
    return Draw(
        lambda point: 1 - ball(point * rate).gamma_upper(parameter(shape), regularized=1), randbits, bounded=False
    )


def dirichlet(
    concentrations: Sequence[Fraction], bits: int, randbits: Callable[[int], int] = secrets.randbits
) -> list[int]:
    """Return ⌊2^bits θ_i⌋ for every i of one ideal draw θ from a Dirichlet law.

    By stick-breaking, θ_i = V_i ∏_{j<i} (1 − V_j) with independent V_i ~ Beta(α_i, α_{i+1} + … + α_d). The draws of all
    V are refined until every ⌊2^bits θ_i⌋ is certain.

    Args:
        concentrations: at least 2 exact concentrations α > 0.
        bits: number of bits after the binary point.
        randbits: as in `Draw`.
    """
    rests = [sum(concentrations[i + 1 :], Fraction(0)) for i in range(len(concentrations))]
    fractions = [
        beta((alpha, rest), randbits=randbits) for alpha, rest in zip(concentrations[:-1], rests[:-1], strict=True)
    ]
    for precision in range(bits + 8, bits + 8 + _LARGEST_PRECISION, 16):
        cells = [fraction.refine(precision) for fraction in fractions]
        ranges = _sticks(cells, precision, bits)
        if all(low == high for low, high in ranges):
            return [low for low, _ in ranges]
    raise ArithmeticError("a cell of the simplex stays uncertain; no draw was made")


def _sticks(cells: Sequence[int], precision: int, bits: int) -> list[tuple[int, int]]:
    """Return the smallest and the largest possible ⌊2^bits θ_i⌋ if V_i ∈ [cell, cell + 1) / 2^precision."""
    # The rest of the stick is rounded outwards, to far more bits than the intervals have.
    one, scale = 2**precision, 2 * precision
    low = high = 2**scale
    ranges = []
    for cell in (*cells, None):
        # None stands for all that is left of the stick.
        below, above = (one, one) if cell is None else (cell, cell + 1)
        shift = scale + precision - bits
        # A draw on the upper edge of an interval has probability 0.
        ranges.append((low * below >> shift, -(-high * above >> shift) - 1))
        low, high = low * (one - above) >> precision, -(-high * (one - below) >> precision)
    return ranges
