"""Private logistic regression of real data: one exact posterior draw on lattice points in a ball (OPS).

`logistic_ops.LogisticOps` is the continuous version for simulations.
"""

import math
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from privpost.mechanisms.draws.logistic_sampling import MOST_PROPOSALS, MOST_STEPS
from privpost.mechanisms.noise.logistic_lattice import design
from privpost.privacy.accounting.approximate import largest_within
from privpost.privacy.divergences import certified
from privpost.samplers.logistic import lattice_ball as logistic_lattice_ball
from privpost.samplers.logistic.lattice_ball import LatticeBall, least_radius

# Seconds that a proposal or step takes for each record.
_SECONDS = 6e-9
# Additional seconds for each pair of a weight and a record.
_SECONDS_PER_WEIGHT = 2e-10
# Additional seconds for each weight.
_SECONDS_PROPOSED = 4e-7


@dataclass(frozen=True)
class BallDraw:
    """One exact draw w from the posterior of a logistic regression, on lattice points in a ball.

    With s_i = ±x_i·w, the density is ∝ exp(−ρ Σ ln(1 + exp(−s_i)) − P‖w‖²/2) for w in the lattice γZ^d with ‖w‖ ≤ R.
    Neither the lattice nor the ball depends on the data. A record's length is at most c = √d, so its loss lies between
    ln(1 + exp(−cR)) and ln(1 + exp(cR)), which differ by cR. Substituting a record changes the density at each point,
    and the sum over all points, by a factor of at most exp(ρcR). So the draw is 2cρR-DP. With R² = ρκn/P + d/P and
    κ = max x/(1 + e^x), the ball holds at least 1/e of the posterior for all data, and always contains the mode.

    Attributes:
        n: public number of records.
        dimension: number d of weights, including the intercept.
        total_precision: precision P > 0 of the prior.
        epsilon: ε > 0. The power ρ is the largest one up to 1 that ε allows.

    Raises:
        ValueError: a draw would take too long for some data, or the lattice would be too fine.
    """

    n: int
    dimension: int
    total_precision: float
    epsilon: float

    neighbours: ClassVar[str] = "substitution"

    def __post_init__(self):
        public = self.public
        if not (public.held and public.log_expected <= math.log(MOST_PROPOSALS) and public.steps <= MOST_STEPS):
            raise ValueError(
                f"epsilon is {self.epsilon:g} and the prior's precision {self.total_precision:g}; with n {self.n} and "
                f"{self.dimension} weights some data would take 1e{public.log_expected / math.log(10):.1f} proposals "
                f"on average, of at most {MOST_PROPOSALS}, and {public.steps} steps, of at most {MOST_STEPS}: take a "
                "larger precision, fewer columns or a smaller epsilon."
            )

    @property
    def bound(self) -> float:
        """Bound c = √d on the length of a record, rounded up."""
        return math.nextafter(math.sqrt(self.dimension), math.inf)

    @cached_property
    def power(self) -> float:
        """Power ρ of the likelihood, the largest up to 1 that ε allows."""
        try:
            return largest_within(lambda power: self._loss(power) <= self.epsilon, 1e-18, 1.0, 64)
        except ValueError:
            raise ValueError(f"epsilon is {self.epsilon:g}: too small for a draw on a ball.") from None

    def _loss(self, power: float) -> float:
        return 2 * self.bound * power * self._radius(power)

    def _radius(self, power: float) -> float:
        return least_radius(self.n, self.dimension, self.total_precision, power)

    @property
    def radius(self) -> float:
        """Radius R of the ball."""
        return self._radius(self.power)

    @cached_property
    def public(self) -> LatticeBall:
        """The public part of the draw: its lattice, and its numbers of proposals and steps."""
        precision = self.total_precision / self.n
        return LatticeBall(self.n, self.dimension, precision, self.power, self.bound, self.radius)

    def certified_epsilon(self) -> float:
        """A proved upper bound of 2cρR, computed from the same numbers that the draw uses."""
        return certified.ball_epsilon(self.dimension, self.power, self.radius)

    def seconds(self, bits: int) -> float:
        """Approximate time in seconds of a draw and of its rehearsal on public data, from public numbers."""
        seconds_each = self.n * (_SECONDS + self.dimension * _SECONDS_PER_WEIGHT) + self.dimension * _SECONDS_PROPOSED
        return 2 * seconds_each * (self.public.proposals(1) + self.public.steps)

    @property
    def terms(self) -> dict[str, Any]:
        """What the statement of a release says about its law, from public numbers."""
        return {
            "law": "the prior times the likelihood to the power rho, at the multiples of step within radius of 0",
            "rho": self.power,
            "radius": self.radius,
            "step": self.public.step,
            "released": "one of these points",
            "method": "rejection decided by interval arithmetic; no rounding error changes the law",
            "proposals": self.public.proposals(1),
        }

    def rounded(self, records: np.ndarray, bits: int, randbits: Callable[[int], int] = secrets.randbits) -> list[int]:
        """Return one drawn point in lattice steps, given records as for `OutputNoise.fit`."""
        around = logistic_lattice_ball.proposals(*design(records), self.public)
        return [int(place) for place in around.draw(randbits)]
