"""Laws that dominate a release: pairs of distributions at least as easy to tell apart as releases about neighbours.

The curve δ(ε) of a law is at least the curve of the release for all neighbours, in both orders. If each pair is fixed
beforehand, the product of the pairs dominates several releases together (Zhu, Dong and Wang 2022). A ledger stores a
law as JSON, which has public numbers only.
"""

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import gammainc, gammaincc, logit

from privpost.models.base import check_range, check_scale
from privpost.privacy.accounting.approximate import ORDERS, beta_curve, pure_curve
from privpost.privacy.accounting.costs import pure_to_rdp
from privpost.privacy.checks import SMALLEST, check_count
from privpost.privacy.divergences.renyi import dirichlet_categorical_supremum, gamma_divergence

# Larger whole numbers are replaced by this number before numpy sees them.
LARGEST_WHOLE = 2**62
# A law's curve is cut where δ is this small, and the rest counts as an infinite loss.
TAIL = 1e-14
# Up to this parameter, the errors of incomplete beta and gamma functions are at most 1e-13.
LARGEST_PARAMETER = 1e6
# At most this many counts are tried one by one, if it is unknown which count is worst.
MOST_COUNTS = 1000


@dataclass(frozen=True)
class Law(ABC):
    """Base of the laws that dominate one release."""

    name: ClassVar[str]
    # [0, reach] is split into this many parts. In each part, a chord above the curve replaces the curve.
    parts: ClassVar[int] = 512
    # The law of the release is the product of this many equal laws with this curve.
    times = 1

    @abstractmethod
    def curve(self, epsilon: np.ndarray) -> np.ndarray:
        """Return δ at every ε ≥ 0 of an array (k,)."""

    def rdp(self, orders: np.ndarray) -> np.ndarray:
        """Return Rényi DP parameters of the release at the orders, or inf if they are unknown."""
        return np.full(np.shape(orders), math.inf)

    @property
    def pure(self) -> float:
        """Pure ε of the release, or inf if it is unknown."""
        return math.inf

    @property
    def perfect(self) -> bool:
        """Whether the release reveals nothing."""
        return self.pure == 0

    @property
    def reach(self) -> float:
        """An ε at which δ is at most `TAIL`, or 384 if no smaller value is found."""
        ends = np.append(2.0 ** np.arange(-20, 9), 1.5 * 2.0 ** np.arange(-20, 9))
        ends.sort()
        return float(next((end for end in ends if self.curve(np.array([end]))[0] <= TAIL), ends[-1]))

    def line(self) -> dict[str, Any]:
        """Return the law as JSON for a ledger."""
        return {"law": self.name, **dataclasses.asdict(self)}


@dataclass(frozen=True)
class Response(Law):
    """Randomised response, repeated `times` times. One response dominates every (ε, δ)-DP release.

    The true answer is revealed with probability δ (Kairouz, Oh and Viswanath 2015).
    """

    epsilon: float
    delta: float = 0.0
    times: int = 1

    name: ClassVar[str] = "response"
    # The curve is linear in e^ε, so few parts are enough.
    parts: ClassVar[int] = 32

    def __post_init__(self):
        check_range("[0, inf)", epsilon=self.epsilon)
        check_range("[0, 1]", delta=self.delta)
        check_count("times", self.times)
        check_range("[1, 1e6]", times=min(self.times, LARGEST_WHOLE))

    def curve(self, epsilon):
        return self.delta + (1 - self.delta) * pure_curve(self.epsilon, epsilon)

    def rdp(self, orders):
        return super().rdp(orders) if self.delta else self.times * pure_to_rdp(self.epsilon, orders)

    @property
    def pure(self):
        return math.inf if self.delta else self.times * self.epsilon

    @property
    def reach(self):
        # A division by an ε near the smallest float would overflow.
        return min(max(self.epsilon, SMALLEST), 512.0)


@dataclass(frozen=True)
class Normal(Law):
    """Normal or discrete normal noise of standard deviation 1 on neighbours' statistics that differ by `shift`."""

    shift: float

    name: ClassVar[str] = "normal"

    def __post_init__(self):
        check_scale(shift=self.shift)

    def curve(self, epsilon):
        return Summed(tuple(self.rdp(ORDERS).tolist())).curve(epsilon)

    def rdp(self, orders):
        return np.asarray(orders, float) * self.shift**2 / 2


@dataclass(frozen=True)
class Summed(Law):
    """Releases for which only the sum of their Rényi curves at `ORDERS` is known."""

    epsilons: tuple[float, ...]

    name: ClassVar[str] = "summed"

    def rdp(self, orders):
        return np.array(self.epsilons) if np.array_equal(orders, ORDERS) else super().rdp(orders)

    def curve(self, epsilon):
        # This is proposition 12 of Canonne, Kamath and Steinke (2020).
        with np.errstate(over="ignore"):
            logs = (ORDERS - 1) * (np.array(self.epsilons) - epsilon[:, None] + np.log1p(-1 / ORDERS)) - np.log(ORDERS)
        return np.minimum(np.exp(np.minimum(logs.min(axis=1), 0.0)), 1.0)


@dataclass(frozen=True)
class Beta(Law):
    """A share that is drawn from a beta law with parameters prior + weight · counts, truncated to `ends`.

    `others` is the number of records in the two categories of the share, without the record in which neighbours differ.
    For more than two categories, `others` is 0, as all other records may be in a third category.
    """

    prior: tuple[float, float]
    weight: float
    others: int
    ends: tuple[float, float] = (0.0, 1.0)

    name: ClassVar[str] = "beta"

    def __post_init__(self):
        (first, second), (low, high) = self.prior, self.ends
        check_scale(first=first, second=second)
        check_range("(0, 1]", weight=self.weight)
        check_count("others", self.others + 1)
        check_range("[0, 1e15]", others=min(self.others, LARGEST_WHOLE))
        if not (0 <= low < high <= 1 and 1 - high < 1 - low):
            raise ValueError(f"ends are {self.ends}; 0 <= low < high <= 1 must hold, also in floats near 1")

    @property
    def pure(self) -> float:
        """Pure ε of a draw, which is the range of the log-ratio of the densities, or inf on [0, 1]."""
        return self.weight * float(np.diff(logit(self.ends))[0])

    @property
    def reach(self):
        return min(super().reach, self.pure)

    def curve(self, epsilon):
        worst = np.zeros(len(epsilon))
        if math.isfinite(self.pure):
            worst = pure_curve(self.pure, epsilon)
            if self.others >= MOST_COUNTS or sum(self.prior) + self.weight * self.others > LARGEST_PARAMETER:
                return worst
        first, second = self._parameters()
        p = np.stack([first + self.weight, second], axis=-1)[:, None]
        q = np.stack([first, second + self.weight], axis=-1)[:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            curve = np.maximum(*(beta_curve(*way, epsilon, *self.ends) for way in ((p, q), (q, p)))).max(axis=0)
        # The curve is nan if the probability of the interval underflows.
        return np.fmin(curve, worst) if math.isfinite(self.pure) else curve

    def _parameters(self) -> tuple[np.ndarray, np.ndarray]:
        """Return parameters of beta laws. For any counts of the other records, one of these laws dominates the draw."""
        # On [0, 1], smaller parameters are worse: a draw from Beta(a, b) times an independent draw from Beta(a + b, c)
        # has the law Beta(a, b + c). So the smallest values of both counts dominate a range of counts.
        (first, second), step = self.prior, 1 if math.isfinite(self.pure) else 4
        counts = np.array(list(_ranges(self.others, step)))
        low, high = first + self.weight * counts[:, 0], second + self.weight * (self.others - counts[:, 1])
        if math.isfinite(self.pure):
            return low, high
        return np.minimum(low, LARGEST_PARAMETER), np.minimum(high, LARGEST_PARAMETER)

    def rdp(self, orders):
        if math.isfinite(self.pure):
            return pure_to_rdp(self.pure, orders)
        return dirichlet_categorical_supremum(self.prior, self.others + 1, orders, self.weight)


def _ranges(most: int, step: int) -> Iterator[tuple[int, int]]:
    """Yield ranges (first, last) that cover 0..most. Unless `step` is 1, those near the middle are longer."""
    half, start = most // 2, 0
    while start <= half:
        stop = min(start if step == 1 else start + start // step, half)
        yield start, stop
        if most - start > half:
            yield max(most - stop, half + 1), most - start
        start = stop + 1


@dataclass(frozen=True)
class Gamma(Law):
    """A draw from a gamma law with a known shape. `rates` has the two rates for the worst pair of neighbours."""

    shape: float
    rates: tuple[float, float]

    name: ClassVar[str] = "gamma"

    def __post_init__(self):
        check_range("(0, inf)", shape=self.shape)
        check_scale(low=self.rates[0], high=self.rates[1])
        if not self.rates[0] < self.rates[1]:
            raise ValueError(f"rates are {self.rates}; they must rise")

    def curve(self, epsilon):
        if self.shape > LARGEST_PARAMETER:
            return Summed(tuple(self.rdp(ORDERS).tolist())).curve(epsilon)
        epsilon = np.minimum(epsilon, 700.0)
        (low, high), shape = self.rates, self.shape
        gap, ratio = high - low, shape * math.log(self.rates[0] / self.rates[1])
        # The lower rate favours large draws, and the higher rate small draws, at which the density ratio is bounded.
        large, small = (epsilon - ratio) / gap, np.maximum((-ratio - epsilon) / gap, 0.0)
        ways = (
            gammaincc(shape, low * large) - np.exp(epsilon) * gammaincc(shape, high * large),
            gammainc(shape, high * small) - np.exp(epsilon) * gammainc(shape, low * small),
        )
        return np.maximum(np.maximum(*ways), 0.0)

    def rdp(self, orders):
        low, high = self.rates
        return gamma_divergence(self.shape, low, high - low, np.asarray(orders, float))


LAWS: dict[str, type[Law]] = {law.name: law for law in (Response, Normal, Beta, Gamma)}


def read(entry: dict[str, Any]) -> Law:
    """Return the law that a line of a ledger states, or else the worst law for the line's ε and δ.

    Raises:
        ValueError, TypeError, KeyError: the stated law is unknown or invalid.
    """
    if "loss" not in entry:
        return Response(float(entry["epsilon"]), float(entry["delta"]))
    fields: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in entry["loss"].items()
    }
    return LAWS[fields.pop("law")](**fields)
