"""Second moments of real data plus noise on a lattice, for linear regression.

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
    """Adds noise to the sums Σ v_i v_j over all records, where v = (1, x, y) has features x and label y in [−1, 1].

    Sums for i ≤ j are released in steps of 4^-SHIFT, except the first sum, the public n. For the sensitivity, let u and
    w be the absolute values of v in the two records that differ. Let D_i = |u_i² − w_i²| ≤ 1, and let B be the set of
    variables whose signs differ between these records. A sum of squares changes by D_i. A sum of products changes by
    |u_i u_j − w_i w_j| ≤ 1 if both or neither of i and j are in B. Otherwise it changes by

        u_i u_j + w_i w_j ≤ (u_i² + u_j² + w_i² + w_j²)/2 ≤ 2 − (D_i + D_j)/2,

    as u_i² + w_i² = 2 max(u_i, w_i)² − D_i. The sum of these bounds is linear in D, and the sum of their squares is
    convex in D. So both are largest with all D_i at 0 or 1. The constant 1 has D = 0 and is not in B.

    Attributes:
        n: public number of records.
        variables: number of features plus one for the label.
        setting: ε of Laplace noise, or σ of Gaussian noise in lattice steps.
        law: law of the noise, "laplace" or "gaussian".
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
        """Sensitivity Δ in `norm`, rounded up to a whole number of lattice steps."""
        power, largest = (1 if self.law == "laplace" else 2), 0.0
        for outside in range(self.variables + 1):
            inside = self.variables - outside
            same = math.comb(outside + 1, 2) + math.comb(inside, 2)
            for a, b in itertools.product(range(outside + 1), range(inside + 1)):
                # Numbers of pairs with one variable in B, by how many of the two variables have D = 1.
                pairs = {2: a * b, 1: a * (inside - b) + (outside + 1 - a) * b, 0: (outside + 1 - a) * (inside - b)}
                across = sum(number * (2 - ones / 2) ** power for ones, number in pairs.items())
                largest = max(largest, a + b + same + across)
        return float(math.ceil(largest ** (1 / power) * 4.0**SHIFT * (1 + 1e-12)))

    @property
    def scale(self) -> float:
        """Scale Δ/ε of Laplace noise, in lattice steps."""
        return self.sensitivity / self.setting

    @property
    def sigma(self) -> float:
        """Standard deviation σ of Gaussian noise, in lattice steps."""
        return self.setting

    @property
    def loss(self) -> Law:
        """Bound on the privacy loss of a release, as a law from `losses`: `Response` or `Normal`."""
        return Response(self.setting) if self.law == "laplace" else Normal(self.sensitivity / self.setting)

    @property
    def places(self) -> tuple[np.ndarray, np.ndarray]:
        """Row and column of each released sum, two arrays of shape (q,)."""
        i, j = np.triu_indices(self.variables + 1)
        return i[1:], j[1:]

    def sufficient_statistics(self, records) -> np.ndarray:
        """Exact sums (q,) for records (n, variables) of whole numbers within ±2^SHIFT."""
        one = np.full((len(records), 1), 2.0**SHIFT)
        v = np.concatenate([one, np.reshape(records, (len(records), self.variables))], axis=1)
        return (v.T @ v)[self.places]

    def query(self, records) -> np.ndarray:
        """The released sums (q,), before noise."""
        return self.sufficient_statistics(records)

    def perturb(self, exact, source) -> np.ndarray:
        """Return the exact sums (q,) plus noise, both in lattice steps."""
        laplace, shape = self.law == "laplace", np.shape(exact)
        drawn = source.laplace(0.0, self.scale, shape) if laplace else source.normal(0.0, self.sigma, shape)
        return noise.add(exact, drawn, source)

    def moments(self, release) -> tuple[np.ndarray, Noise]:
        """All second moments (q + 1,) of (1, x, y), and the law of their noise. The noise on n is tiny."""
        scale = (self.scale if self.law == "laplace" else self.sigma) / 4.0**SHIFT
        moments = np.append(self.n, np.asarray(release, float) / 4.0**SHIFT)
        return moments, Noise(self.law, np.append(1e-4 * self.n, np.full(len(moments) - 1, scale)))
