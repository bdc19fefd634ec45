"""Laplace mechanism on the Fourier coefficients of a Bayesian network's contingency table."""

from dataclasses import dataclass, field
from typing import ClassVar, Literal, Self, get_args

import numpy as np

from privpost.distributions import noise
from privpost.mechanisms.pure import PureMechanism
from privpost.models.base import is_number
from privpost.models.networks.bayesian_network import BayesianNetwork
from privpost.models.networks.fourier_basis import LARGEST_TRANSFORM, closure, largest_flips, signed_sums, transforms
from privpost.privacy.accounting.costs import Cost
from privpost.privacy.checks import check_choice

Variant = Literal["paper", "corrected"]


@dataclass(frozen=True)
class FourierMechanism(PureMechanism):
    """Noisy Fourier coefficients of the contingency table, from which consistent marginals are rebuilt.

    This is algorithm 2 of Zhang et al. (2016), after Barak et al. (2007), with everything multiplied by 2^(|I|/2) for
    |I| nodes. So a coefficient is a signed sum over records, for one set of nodes in N_I (`closure`). The release is
    the vector of noisy sums in the order of `closure`. `counts` adds a public `increment` to the sum for ∅. All cells
    are then non-negative ("stealth") with high probability.

    Attributes:
        epsilon: ε > 0, the cost of one release.
        t: size t ≥ 0 of the increment.
        variant: "paper" adds Laplace noise of scale 2|N_I|/ε. "corrected" adds no noise to the sum for ∅, which is the
            public n, and scales the noise by twice the largest number of signs that one record can flip. For more than
            18 nodes, an upper bound replaces this number.

    Raises:
        ValueError: a setting is outside its range, or the model is not a BayesianNetwork.

    >>> FourierMechanism(BayesianNetwork({"a": [], "b": ["a"]}), 100, 1.0, t=0.5).scale
    4.0
    """

    t: float = field(kw_only=True)
    variant: Variant = field(default="corrected", kw_only=True)

    method: ClassVar[str] = "fourier"
    norm: ClassVar[str] = "l1"
    public_inputs: ClassVar[tuple[str, ...]] = ("n", "graph", "prior", "t")
    releases: ClassVar[str] = "statistics"
    models: ClassVar[tuple[type, ...]] = (BayesianNetwork,)

    def __post_init__(self):
        super().__post_init__()
        if not is_number(self.t) or not 0 <= self.t < np.inf:
            raise ValueError(f"t is {self.t!r}; it must be >= 0 and finite")
        check_choice("variant", self.variant, get_args(Variant))

    @classmethod
    def calibrate(cls, model, n: int, budget: Cost, *, t: float, variant: Variant = "corrected") -> Self:
        """Return the mechanism with the largest ε within the budget. `rdp_to_pure_epsilon` converts a Rényi budget."""
        return super().calibrate(model, n, budget, t=t, variant=variant)

    @property
    def sensitivity(self) -> float:
        """L1 sensitivity: the paper's bound 2|N_I|, or twice the result of `largest_flips`."""
        return 2.0 * (len(closure(self.model)) if self.variant == "paper" else largest_flips(self.model))

    @property
    def tight(self):
        """Whether the sensitivity is exact: true for the variant "corrected" with up to 18 nodes."""
        return self.variant == "corrected" and len(self.model.nodes) <= LARGEST_TRANSFORM

    @property
    def scale(self) -> float:
        """Scale Δ/ε of the noise on a signed sum."""
        return self.sensitivity / self.epsilon

    @property
    def increment(self) -> float:
        """Increment 4t|N_I|²/ε of the signed sum for ∅. Without noise, this sum is the number of records."""
        return 4 * self.t * len(closure(self.model)) ** 2 / self.epsilon

    @property
    def _noisy(self) -> slice:
        return slice(0, None) if self.variant == "paper" else slice(1, None)

    def _sums(self, statistics):
        return np.asarray(statistics, float) @ transforms(self.model)[0].T

    def query(self, data) -> np.ndarray:
        """The signed sums (..., q) of the records, before noise."""
        return signed_sums(data, closure(self.model)[self._noisy]).astype(float)

    def _perturb(self, statistics, rng):
        """Return noisy signed sums (..., q) for counts (..., 2m)."""
        sums = self._sums(statistics)[..., self._noisy]
        return noise.add(sums, rng.laplace(0.0, self.scale, sums.shape), rng)

    def raw_counts(self, release) -> np.ndarray:
        """Consistent counts (..., 2m) for a release (..., q), before the increment is added. They may be negative."""
        release = np.asarray(release, float)
        if self.variant == "corrected":
            release = np.concatenate([np.full((*release.shape[:-1], 1), float(self.n)), release], axis=-1)
        return release @ transforms(self.model)[1].T

    def counts(self, release) -> np.ndarray:
        """Counts (..., 2m) that algorithm 2 publishes. They are consistent, and the cells share the increment."""
        return self.raw_counts(release) + self.increment * transforms(self.model)[1][:, 0]

    def stealthy(self, release) -> np.ndarray:
        """For each release (...), whether all published counts are non-negative."""
        return np.all(self.counts(release) >= 0, axis=-1)

    def smallest_t(self, release) -> np.ndarray:
        """The smallest t (...) with which all counts of a release would be non-negative."""
        unit = 4 * len(closure(self.model)) ** 2 / self.epsilon * transforms(self.model)[1][:, 0]
        return np.maximum(np.max(-self.raw_counts(release) / unit, axis=-1), 0.0)

    def project(self, release) -> np.ndarray:
        """The published counts (..., 2m), in which negative counts are set to 0."""
        return np.maximum(self.counts(release), 0.0)

    def naive_posterior(self, release) -> np.ndarray:
        """Parameters (..., 2m) of the conjugate posterior that treats the projected release as exact counts."""
        return self.model.posterior(self.project(release))

    def log_density(self, release, statistics) -> np.ndarray | None:
        """Log-density of the noisy signed sums (..., q) given the counts (..., 2m)."""
        distance = np.abs(np.asarray(release, float) - self._sums(statistics)[..., self._noisy])
        return (-np.log(2 * self.scale) - distance / self.scale).sum(axis=-1)

    @classmethod
    def examples(cls) -> list[Self]:
        """Two connected nodes, a node with two parents, and a chain of three nodes."""
        pair = BayesianNetwork({"a": [], "b": ["a"]})
        return [
            cls(pair, 3, 1.0, t=0.5, variant="paper"),
            cls(pair, 3, 1.0, t=0.5),
            cls(BayesianNetwork({"a": [], "b": [], "c": ["a", "b"]}), 2, 0.5, t=0.1),
            cls(BayesianNetwork({"a": [], "b": ["a"], "c": ["b"]}, 2, 1), 2, 2.0, t=1.0, variant="paper"),
        ]
