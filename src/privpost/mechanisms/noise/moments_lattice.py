"""Second moments of bounded numbers on a lattice plus safe noise: what a linear regression of real data releases.

`moments_laplace.MomentsLaplace` and `MomentsGaussian` are the continuous versions for simulations.
"""

import itertools
import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from privpost.distributions import noise
from privpost.privacy.accounting.losses import Law, Normal, Response
from privpost.samplers.noise_aware.regression import Noise

# Variables are whole multiples of 2^-SHIFT in [-1, 1].
SHIFT = 10


@dataclass(frozen=True)
class LatticeMoments:
    """Sums of v_i v_j over records, i ≤ j, v = (1, x, y) with x and y in [−1, 1], in steps of 4^-SHIFT, plus noise.

    The first sum is n, which is public, and left out. Between neighbours, with u and w the sizes of both records'
    variables, D_i = |u_i² − w_i²| ≤ 1 and signs that differ for the variables in a set B but not for the others, a sum
    of squares changes by D_i; one of two variables on one side of B by |u_i u_j − w_i w_j| ≤ 1; one across by

        u_i u_j + w_i w_j ≤ (u_i² + u_j² + w_i² + w_j²)/2 ≤ 2 − (D_i + D_j)/2,

    as u_i² + w_i² = 2 max(u_i, w_i)² − D_i. The sum of these (of their squares) is linear (convex) in D, so that the
    largest is at D of zeros and ones; the constant has D = 0 and is not in B.

    Attributes:
        n: public number of records.
        variables: number of features and the label.
        setting: ε of Laplace noise, or σ of Gaussian noise in lattice steps.
        law: of the noise, "laplace" or "gaussian".
    """

    n: int
    variables: int
    setting: float
    law: str

    neighbours: ClassVar[str] = "substitution"

    @property
    def norm(self) -> str:
        """The norm of `sensitivity`."""
        return "l1" if self.law == "laplace" else "l2"

    @cached_property
    def sensitivity(self) -> float:
        """Δ in lattice steps, rounded up to a whole number of them."""
        power, largest = (1 if self.law == "laplace" else 2), 0.0
        for outside in range(self.variables + 1):
            inside = self.variables - outside
            same = math.comb(outside + 1, 2) + math.comb(inside, 2)
            for a, b in itertools.product(range(outside + 1), range(inside + 1)):
                # Pairs across, by how many of both have D = 1; the constant counts as one of those outside.
                pairs = {2: a * b, 1: a * (inside - b) + (outside + 1 - a) * b, 0: (outside + 1 - a) * (inside - b)}
                across = sum(number * (2 - ones / 2) ** power for ones, number in pairs.items())
                largest = max(largest, a + b + same + across)
        return float(math.ceil(largest ** (1 / power) * 4.0**SHIFT * (1 + 1e-12)))

    @property
    def scale(self) -> float:
        """Scale Δ/ε of Laplace noise."""
        return self.sensitivity / self.setting

    @property
    def sigma(self) -> float:
        """σ of Gaussian noise."""
        return self.setting

    @property
    def loss(self) -> Law:
        """A randomised response of ε, or the normal law of deviation 1 that neighbours shift by Δ/σ."""
        return Response(self.setting) if self.law == "laplace" else Normal(self.sensitivity / self.setting)

    @property
    def places(self) -> tuple[np.ndarray, np.ndarray]:
        """Row and column of every released sum, shape (q,) each."""
        i, j = np.triu_indices(self.variables + 1)
        return i[1:], j[1:]

    def sufficient_statistics(self, records) -> np.ndarray:
        """The exact sums (q,) of whole-numbered records (n, variables), each within ±2^SHIFT."""
        one = np.full((len(records), 1), 2.0**SHIFT)
        v = np.concatenate([one, np.reshape(records, (len(records), self.variables))], axis=1)
        return (v.T @ v)[self.places]

    def query(self, records) -> np.ndarray:
        """The released sums before noise, (q,)."""
        return self.sufficient_statistics(records)

    def perturb(self, exact, source) -> np.ndarray:
        """Noisy sums (q,) in lattice steps."""
        laplace, shape = self.law == "laplace", np.shape(exact)
        drawn = source.laplace(0.0, self.scale, shape) if laplace else source.normal(0.0, self.sigma, shape)
        return noise.add(exact, drawn, source)

    def moments(self, release) -> tuple[np.ndarray, Noise]:
        """Second moments of (1, x, y), all of them (q + 1,), and the law of their noise; n itself has next to none."""
        scale = (self.scale if self.law == "laplace" else self.sigma) / 4.0**SHIFT
        moments = np.append(self.n, np.asarray(release, float) / 4.0**SHIFT)
        return moments, Noise(self.law, np.append(1e-4 * self.n, np.full(len(moments) - 1, scale)))
