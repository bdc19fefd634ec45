"""One exact draw for a release: from the posterior of a logistic regression, on the lattice points in a ball.

The law is p(w) ∝ exp(−U(w)) with U(w) = ρ Σ ln(1 + exp(−s_i)) + P|w|²/2 and s_i = ±x_i·w, on the points of γZ^d with
‖w‖ ≤ R. Let g be the gradient of U at a lattice point m in the ball. A table of integer cells proposes each coordinate
of Δ = w − m. Each cell has a weight v that is at least scale · exp(−PΔ²/2) everywhere in the cell. A proposal in the
ball is accepted with probability exp(−E − Σ_j [PΔ_j²/2 + ln(v_j/scale)]), where

    E(w) = ρ Σ [ln(1 + exp(−s_i(w))) − ln(1 + exp(−s_i(m)))] + P m·Δ + S ≥ 0,    S ≥ 2R|g|.

Accepted proposals have the law p for any m. A float decides only where its error cannot change the decision.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np

from privpost.distributions.exact_draws import Uniform, ball, flint
from privpost.models.regression.logistic import LogisticPosterior, certified_gradient
from privpost.privacy.divergences.glm import KAPPA
from privpost.samplers.logistic.public_time import PublicTime, near_mode

# Largest value of 2R times the gradient's norm at m.
_SLACK = 0.06
# Largest γ√d, as a share of R and of other lengths.
_FINE = 2.0**-10
# A cell's length in prior standard deviations.
_CELL = 2.0**-8
# Bits that choose a cell.
_BITS = 62
_MOST_CELLS = 1 << 24
# The assumed error of elementary functions, a thousand times their actual error.
_UNIT = 2.0**-43
# Largest number of lattice steps across the ball: up to it, floats hold the points exactly.
_MOST_STEPS = 2.0**50
# Largest number of predictors held in memory at once.
_ELEMENTS = 1 << 21
EXACT = True

RandomBits = Callable[[int], int]


def least_radius(n: int, dimension: int, total_precision: float, power: float) -> float:
    """Return the radius R of a ball that holds 1/e of the posterior's mass whatever the data."""
    # As s/(1 + e^s) ≤ κ, w·∇U(w) ≥ P|w|² − ρκn. The mean of w·∇U(w) under exp(−U) on R^d is d, by parts. So the mean
    # of |w|² is at most (ρκn + d)/P. The logarithm of F(q) = P(|w|² ≤ q) is concave (Prékopa), so for some a,
    # F(q) ≤ F(q₀) exp(a(q − q₀)). A law with the right side as distribution function has the mean
    # q₀ + (−ln F(q₀) − 1)/a. So F is at least 1/e at the mean of |w|². A thousandth is added for the lattice.
    return (1 + _FINE) * math.sqrt((power * KAPPA * n + dimension) / total_precision)


class Table(NamedTuple):
    """A table of 2·`cells` cells around 0, each `length` steps long. Weights are whole numbers and sum to 2^62.

    The weight of a cell is at least scale · exp(−Pγ²k²/2) for every step k in the cell.
    """

    length: int
    cells: int
    weights: np.ndarray
    below: np.ndarray
    logs: np.ndarray
    scale: int

    def chosen(self, words: np.ndarray) -> np.ndarray:
        """Return the cells that uniform 64-bit words choose."""
        # numpy would compare signed and unsigned integers as floats.
        places = (words >> np.uint64(64 - _BITS)).astype(np.int64)
        return np.searchsorted(self.below, places, side="right")


@dataclass(frozen=True)
class LatticeBall(PublicTime):
    """Lattice, table and time of a draw, computed from public numbers alone.

    Attributes:
        spacing: lattice spacing γ; None for a default that is fine enough for the bounds on the time.
    """

    spacing: float | None = None

    @property
    def ball(self) -> float:
        """Radius R of the ball."""
        assert self.radius is not None
        return self.radius

    @property
    def total(self) -> float:
        """Precision P of the prior."""
        return self.n * self.precision

    @property
    def step(self) -> float:
        """Spacing γ of the lattice."""
        if self.spacing is not None:
            return self.spacing
        # At this spacing the lattice hardly lowers the accepted share. The integral of exp(−U) over a cell with middle
        # w is at most γ^d exp(−U(w)) exp(γ²|∇U(w)|²/24), and the cells of the ball's points cover the ball of radius
        # R − γ√d/2.
        root, curvature = math.sqrt(self.dimension), 1 / self.step_size
        longest = self.total * self.ball + self.power * self.n * self.bound
        lengths = 1 / math.sqrt(curvature), self.ball / root, 1 / (root * curvature * self.ball), 1 / longest
        return 2.0 ** math.floor(math.log2(_FINE * min(lengths)))

    @property
    def squared(self) -> int:
        """The largest squared length of a point of the ball, in squared lattice steps."""
        return math.floor((Fraction(self.ball) / Fraction(self.step)) ** 2)

    @property
    def held(self) -> bool:
        """Whether floats can represent the lattice, and memory can hold the table."""
        steps = 4 * self.ball / self.step
        return steps < _MOST_STEPS and steps / self._length < _MOST_CELLS

    @property
    def steps(self) -> int:
        """Number of gradient steps towards the mode, after which 2R|g| is small."""
        return self.steps_to(_SLACK / (2 * self.ball))

    @property
    def log_expected(self) -> float:
        """Logarithm of a bound on the mean number of proposals per draw, for any data."""
        # The ball holds 1/e of the posterior, which costs a factor e. The table costs at most a factor exp(d `_CELL`).
        free = PublicTime(self.n, self.dimension, self.precision, self.power, self.bound).log_expected
        return free + 1 + self.dimension * _CELL

    @property
    def rounding(self) -> float:
        """The largest rounding error of the exponent in the ball."""
        # `units` counts errors of predictors, quadratic terms, elementary functions and logarithms of weights, in units
        # of 2^-43. Errors of sums of n terms are twice n 2^-53 times the sum of the terms' sizes.
        n, d, size = self.n, self.dimension, self.bound * self.ball + 1
        units = (d + 16) * (n * size + 4 * self.total * self.ball**2) + 64 * d
        return _UNIT * units + 8 * 2.0**-53 * n**2 * size

    @property
    def _length(self) -> int:
        return max(1, 2 ** math.floor(math.log2(_CELL / (self.step * math.sqrt(self.total)))))

    @cached_property
    def table(self) -> Table:
        """The proposal table of one coordinate, wide enough for every step between two points of the ball."""
        length = self._length
        cells = math.ceil((2 * math.isqrt(self.squared) + 1) / length)
        places = np.arange(-cells, cells)
        nearest = np.where(places >= 0, places * float(length), (-places - 1) * float(length) + 1)
        heights = np.exp(-self.total / 2 * (self.step * nearest) ** 2)
        scale = math.floor(2.0**_BITS * (1 - 2.0**-30) / heights.sum())
        weights = np.ceil(float(scale) * heights * (1 + 2.0**-40)).astype(np.int64) + 1
        weights[cells] += 2**_BITS - int(weights.sum())
        below = np.cumsum(weights)
        return Table(length, cells, weights, below, np.log(weights / float(scale)), scale)


@dataclass(frozen=True, eq=False)
class Proposals:
    """The proposal law for a data set, around the lattice point `centre` and with S as `slack`."""

    posterior: LogisticPosterior
    public: LatticeBall
    # The point m in steps, whole numbers (d,). E − S is convex and 0 at m, with the gradient g of U at m. So E ≥ 0.
    centre: np.ndarray
    slack: float

    def draw(self, randbits: RandomBits) -> np.ndarray:
        """Return one draw (d,) in steps of the lattice: the first accepted proposal of a public number of proposals.

        Args:
            randbits: source of independent fair bits: k ↦ a whole number below 2^k.

        Raises:
            ArithmeticError: an exponent above 0, which refutes the bound.
        """
        number, at_once = self.public.proposals(1), max(1, _ELEMENTS // self.public.n)
        draw = None
        while number > 0 or draw is None:
            accepted = self._first(min(at_once, number) if number > 0 else at_once, randbits)
            draw, number = accepted if draw is None else draw, number - at_once
        return draw

    def _first(self, number: int, randbits: RandomBits) -> np.ndarray | None:
        """Evaluate `number` proposals and return the first accepted proposal, or None."""
        public, posterior, d = self.public, self.posterior, len(self.centre)
        table = public.table
        cells = table.chosen(_words(randbits, number, d))
        moves = (cells - table.cells) * table.length
        moves += (_words(randbits, number, d) % np.uint64(table.length)).astype(np.int64)
        uniforms = _words(randbits, number)
        at, gained = self._at
        steps = public.step * moves
        predictors = (at + steps) @ posterior.features.T
        exponents = posterior.power * (gained - posterior.log_likelihood_of_predictors(predictors))
        exponents += steps @ (posterior.prior_precision * at) + self.slack
        exponents += (posterior.prior_precision / 2 * steps**2 + table.logs[cells]).sum(axis=1)
        inside = _within(self.centre + moves, public.squared)
        if (exponents[inside] < -public.rounding).any():
            raise ArithmeticError("a log-acceptance is above 0; no draw was made")
        levels = 64 * math.log(2) - np.log(uniforms + 0.5)
        with np.errstate(divide="ignore"):
            unsure = public.rounding + _UNIT * levels + 1 / uniforms.astype(float)
        gaps = levels - exponents
        # Where the float is too close to decide, more bits and interval arithmetic decide.
        for i in np.flatnonzero(inside & (gaps >= -unsure)):
            if gaps[i] > unsure[i] or self._accepts(int(uniforms[i]), moves[i], cells[i], randbits):
                return self.centre + moves[i]
        return None

    @cached_property
    def _at(self) -> tuple[np.ndarray, np.ndarray]:
        """The weights at the lattice point m, and the log-likelihood of these weights."""
        at = self.public.step * self.centre
        return at, self.posterior.log_likelihood_of_predictors((self.posterior.features @ at)[None])

    def _accepts(self, known: int, moves: np.ndarray, cells: np.ndarray, randbits: RandomBits) -> bool:
        """Return whether a uniform that begins with the 64 bits `known` is certainly below exp(−exponent)."""
        return Uniform(randbits, known, 64).is_below(partial(self.chance, moves, cells))

    def chance(self, moves: np.ndarray, cells: np.ndarray):
        """Return an interval that holds the acceptance probability of a move by `moves` lattice steps into `cells`."""
        table, step, total = self.public.table, Fraction(self.public.step), Fraction(self.posterior.prior_precision)
        centre, change = [int(place) for place in self.centre], [int(move) for move in moves]
        along = sum(place * move for place, move in zip(centre, change, strict=True))
        square = Fraction(sum(move**2 for move in change), 2)
        exponent = ball(total * step**2 * (along + square) + Fraction(self.slack))
        for cell in cells:
            exponent += ball(Fraction(int(table.weights[cell]), table.scale)).log()
        there = self._loss([place + move for place, move in zip(centre, change, strict=True)])
        exponent += ball(Fraction(self.posterior.power)) * (there - self._loss(centre))
        return (-exponent).exp()

    def _loss(self, steps: list[int]):
        """Return an interval that holds Σ ln(1 + exp(−s_i)) at a lattice point."""
        arb, arb_mat = flint().arb, flint().arb_mat
        step = Fraction(self.public.step)
        weights = arb_mat(len(steps), 1, [ball(step * place) for place in steps])
        scores = arb_mat(len(self._signed), len(steps), [arb(x) for row in self._signed for x in row]) * weights
        return sum(((-score).exp().log1p() for score in scores.entries()), arb(0))

    @cached_property
    def _signed(self) -> list[list[float]]:
        signs = np.where(self.posterior.labels == 1, 1.0, -1.0)
        return (self.posterior.features * signs[:, None]).tolist()


def proposals(features: np.ndarray, labels: np.ndarray, public: LatticeBall) -> Proposals:
    """Return the proposal law for a data set.

    Args:
        features: shape (n, d), entries at most 1 in size, rows no longer than the bound.
        labels: 0 or 1, shape (n,).
        public: lattice and time.
    """
    posterior = LogisticPosterior(features, labels, public.total, public.power)
    return around(posterior, public, near_mode(posterior, public))


def around(posterior: LogisticPosterior, public: LatticeBall, near: np.ndarray) -> Proposals:
    """Return the proposal law whose m is `near`, rounded towards 0 to a lattice point of the ball."""
    length = float(np.linalg.norm(near))
    if length > (largest := public.ball * (1 - 2.0**-20)):
        near = near * (largest / length)
    centre = np.trunc(near / public.step).astype(np.int64)
    gradient = certified_gradient(posterior, public.step * centre) + public.n * public.bound * _UNIT
    return Proposals(posterior, public, centre, 2 * public.ball * gradient * (1 + _UNIT))


def _words(randbits: RandomBits, *shape: int) -> np.ndarray:
    """Return independent uniform whole numbers of 64 bits."""
    number = math.prod(shape)
    return np.frombuffer(randbits(64 * number).to_bytes(8 * number, "little"), np.uint64).reshape(shape)


def _within(places: np.ndarray, most: int) -> np.ndarray:
    """Return whether |place|² ≤ `most` for each of the places (number, d), without rounding errors."""
    squares = np.einsum("kd,kd->k", places.astype(float), places.astype(float))
    within = squares <= most
    for i in np.flatnonzero(np.abs(squares - most) <= 2.0**-40 * most):
        within[i] = sum(int(place) ** 2 for place in places[i]) <= most
    return within
