"""MAP point estimates of a Bayesian network by the exponential mechanism."""

import functools
from dataclasses import dataclass, field
from typing import ClassVar, Literal, Self, get_args

import numpy as np
from scipy.special import betaln

from privpost.mechanisms.pure import PureMechanism
from privpost.models.networks.bayesian_network import BayesianNetwork
from privpost.privacy.accounting.costs import Cost
from privpost.privacy.checks import check_choice

Utility = Literal["density", "mass"]
UTILITIES = get_args(Utility)
# ours: 101 points from .005 to .995, on which every Beta density with counts is finite.
GRID = np.linspace(0.005, 0.995, 101)


def utility(pairs, kind: str) -> np.ndarray:
    """Utility of every grid point: the Beta density there, or its probability when normalised over the grid.

    Args:
        pairs: (α, β), shape (..., 2).
        kind: "density" or "mass".

    Returns:
        Shape (..., 101).
    """
    pairs = np.asarray(pairs, float)
    if pairs.size > GRID.size:
        # Parameters with equal counts are computed once.
        distinct, inverse = np.unique(pairs[..., 0] + 1j * pairs[..., 1], return_inverse=True)
        if distinct.size < inverse.size:
            return utility(np.stack([distinct.real, distinct.imag], axis=-1), kind)[inverse.reshape(pairs.shape[:-1])]
    a, b = pairs[..., :1], pairs[..., 1:]
    log_density = (a - 1) * np.log(GRID) + (b - 1) * np.log1p(-GRID)
    if kind == "density":
        return np.exp(log_density - betaln(a, b))
    weights = np.exp(log_density - log_density.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


@functools.lru_cache(maxsize=64)
def largest_changes(alpha: float, beta: float, n: int, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Largest changes of the utility at any grid point, by enumeration over all counts of at most n records.

    Returns:
        `moved` (n+1,): at k, a one becomes a zero among k records; `added` (n+1,): at k, a record is added to k−1
        others. Both are 0 at k = 0.
    """
    moved, added = np.zeros(n + 1), np.zeros(n + 1)
    ones = np.arange(n + 1.0)
    before = utility(np.array([[alpha, beta]]), kind)
    for total in range(1, n + 1):
        counts = ones[: total + 1]
        values = utility(np.stack([alpha + counts, beta + total - counts], axis=-1), kind)
        moved[total] = np.abs(np.diff(values, axis=0)).max()
        added[total] = max(np.abs(values[1:] - before).max(), np.abs(values[:-1] - before).max())
        before = values
    return moved, added


@functools.lru_cache(maxsize=256)
def utility_sensitivity(alpha: float, beta: float, n: int, kind: str, has_parents: bool) -> float:
    """Δ of one node: the largest sum over its parameters of the change of utility when one record is substituted.

    Without parents all n records belong to one parameter and one of them changes sides. With parents the record
    changes sides within a configuration of at most n records, or leaves one configuration for another, two
    parameters whose changes add up.
    """
    moved, added = largest_changes(alpha, beta, n, kind)
    if not has_parents:
        return float(moved[n])
    # The record leaves a configuration of k records and enters one that then has l records: k + l − 1 ≤ n.
    most = np.maximum.accumulate(added)
    left = np.arange(1, n + 1)
    return float(max(moved.max(), (added[left] + most[n + 1 - left]).max()))


@dataclass(frozen=True)
class MapMechanism(PureMechanism):
    """Each parameter chosen on a grid by the exponential mechanism, with its posterior as utility.

    Zhang et al. (2016), algorithm 3, with a uniform base measure and one parameter at a time (`ours`): a grid point
    of θ_ij is drawn with probability ∝ exp(ε_i u / (2Δ_i)), ε_i = ε/|I|, u its Beta posterior's density or grid
    probability. A substituted record changes the scores of one node by at most ε_i/2 in total, as Δ_i adds up over
    the parameters that change together.

    Attributes:
        epsilon: ε > 0.
        utility: "mass" or "density"; a density's sensitivity grows with n, a probability's stays below 1 or 2.

    Raises:
        ValueError: a setting outside its range, or another model than BayesianNetwork.

    >>> MapMechanism(BayesianNetwork({"a": [], "b": ["a"]}), 100, 1.0).perturb([30, 70, 10, 20, 30, 40], rng).shape
    (3,)
    """

    utility: Utility = field(default="mass", kw_only=True)

    method: ClassVar[str] = "map"
    norm: ClassVar[str] = "log-likelihood ratio"
    releases: ClassVar[str] = "sample"
    public_inputs: ClassVar[tuple[str, ...]] = ("n", "graph", "prior")
    models: ClassVar[tuple[type, ...]] = (BayesianNetwork,)
    # The score where all θ are equal does not attain the sensitivity.
    tight: ClassVar[bool] = False

    def __post_init__(self):
        super().__post_init__()
        check_choice("utility", self.utility, UTILITIES)

    @classmethod
    def calibrate(cls, model, n: int, budget: Cost, *, utility: Utility = "mass") -> Self:
        """With the largest ε within the budget; a Rényi budget is met through `rdp_to_pure_epsilon`."""
        return super().calibrate(model, n, budget, utility=utility)

    @property
    def sensitivity(self) -> float:
        """ε/2, the largest change of the joint log-score Σ ε_i u/(2Δ_i)."""
        return self.epsilon / 2

    @property
    def weights(self) -> np.ndarray:
        """Factor ε_i/(2Δ_i) of the utility, per parameter, shape (m,)."""
        model = self.model
        share = self.epsilon / len(model.nodes)
        deltas = [
            utility_sensitivity(float(model.alpha), float(model.beta), int(self.n), self.utility, len(family) > 1)
            for family in model.families
        ]
        return (share / (2 * np.array(deltas)))[model.owner]

    def scores(self, statistics) -> np.ndarray:
        """Log-probabilities up to a constant, of every grid point for every parameter, shape (..., m, 101)."""
        return self.weights[:, None] * utility(self.model.pairs(self.model.posterior(statistics)), self.utility)

    def query(self, data) -> np.ndarray:
        """Joint log-score where all θ are equal, shape (101,)."""
        return self.scores(self.model.sufficient_statistics(data)).sum(axis=-2)

    def _perturb(self, statistics, rng):
        """One grid value of every θ, shape (..., m)."""
        return choose(self.scores(statistics), rng)

    def replicate(self, statistics, size, rng) -> np.ndarray:
        """Releases (size, m) about one data set's counts, whose scores are worked out once."""
        return choose(self.scores(statistics), rng, size)

    @classmethod
    def examples(cls) -> list[Self]:
        """Two nodes and a collider, with either utility."""
        pair = BayesianNetwork({"a": [], "b": ["a"]})
        return [
            cls(pair, 3, 1.0),
            cls(pair, 3, 2.0, utility="density"),
            cls(BayesianNetwork({"a": [], "b": [], "c": ["a", "b"]}, 2, 1), 2, 4.0),
        ]


def choose(scores, rng: np.random.Generator, size: int | None = None) -> np.ndarray:
    """Grid values drawn with probability ∝ exp(scores), for scores (..., 101).

    Returns:
        Shape ([size,] ...): one draw per leading index, or `size` of them from the same scores.
    """
    cumulative = scores - scores.max(axis=-1, keepdims=True)
    np.cumsum(np.exp(cumulative, out=cumulative), axis=-1, out=cumulative)
    leading = cumulative.shape[:-1]
    uniform = rng.random(leading if size is None else (size, *leading)) * cumulative[..., -1]
    if size is None:
        # At most 101, which fits into a byte, and sums of bytes are quickest.
        index = (cumulative <= uniform[..., None]).sum(axis=-1, dtype=np.uint8).astype(np.intp)
    else:
        index = np.empty(uniform.shape, np.int64)
        for place in np.ndindex(leading):
            index[:, *place] = np.searchsorted(cumulative[place], uniform[:, *place], side="right")
    # Rounding of the product can reach the total, which stands for the last grid point.
    return GRID[np.minimum(index, GRID.size - 1)]
