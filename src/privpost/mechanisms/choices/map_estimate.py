"""Private MAP (maximum a posteriori) estimates of a Bayesian network's parameters, by the exponential mechanism."""

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
# ours: a grid of 101 points from .005 to .995, where every beta density is finite.
GRID = np.linspace(0.005, 0.995, 101)


def utility(pairs, kind: str) -> np.ndarray:
    """Return the utility (..., 101) of every grid point: the beta density, or this density normalised over the grid.

    Args:
        pairs: parameters (α, β) of beta laws, shape (..., 2).
        kind: "density", or "mass" for the normalised density.
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
    """For each number k ≤ n of records, return the utility's largest changes, over all grid points and counts.

    Returns:
        Two arrays (n + 1,), which are 0 at k = 0. Entry k of `moved` is the change if one of k records changes from 1
        to 0. Entry k of `added` is the change if a record joins k − 1 others.
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
    """Return the sensitivity Δ of one node: the largest total change of its utilities if a record is substituted.

    A node without parents has one parameter for all n records. A node with parents has one parameter per configuration
    of the parents. If the record moves to another configuration, the changes of two parameters add up.
    """
    moved, added = largest_changes(alpha, beta, n, kind)
    if not has_parents:
        return float(moved[n])
    # The record leaves a configuration of k records and joins one that then has l records, so k + l − 1 ≤ n.
    most = np.maximum.accumulate(added)
    left = np.arange(1, n + 1)
    return float(max(moved.max(), (added[left] + most[n + 1 - left]).max()))


@dataclass(frozen=True)
class MapMechanism(PureMechanism):
    """Chooses each parameter on a grid by the exponential mechanism, with the parameter's posterior as utility.

    This is algorithm 3 of Zhang et al. (2016), with a uniform base measure and one parameter at a time (our choice). A
    grid point for a parameter of node i is drawn with probability ∝ exp(ε_i u / (2Δ_i)). Here u is the utility of the
    point, Δ_i is the node's `utility_sensitivity`, and ε_i = ε/|I| for |I| nodes.

    Attributes:
        epsilon: ε > 0, the cost of one release.
        utility: "density" of the beta posterior, or "mass" for the density normalised over the grid. The sensitivity of
            a density grows with n, and the sensitivity of a mass is below 2.

    Raises:
        ValueError: a setting is outside its range, or the model is not a BayesianNetwork.

    >>> MapMechanism(BayesianNetwork({"a": [], "b": ["a"]}), 100, 1.0).perturb([30, 70, 10, 20, 30, 40], rng).shape
    (3,)
    """

    utility: Utility = field(default="mass", kw_only=True)

    method: ClassVar[str] = "map"
    norm: ClassVar[str] = "log-likelihood ratio"
    releases: ClassVar[str] = "sample"
    public_inputs: ClassVar[tuple[str, ...]] = ("n", "graph", "prior")
    models: ClassVar[tuple[type, ...]] = (BayesianNetwork,)
    # `query` gives only the scores at equal θ, which do not attain the sensitivity.
    tight: ClassVar[bool] = False

    def __post_init__(self):
        super().__post_init__()
        check_choice("utility", self.utility, UTILITIES)

    @classmethod
    def calibrate(cls, model, n: int, budget: Cost, *, utility: Utility = "mass") -> Self:
        """Return the mechanism with the largest ε within the budget. `rdp_to_pure_epsilon` converts a Rényi budget."""
        return super().calibrate(model, n, budget, utility=utility)

    @property
    def sensitivity(self) -> float:
        """Largest change ε/2 of the joint log-score if a record is substituted."""
        return self.epsilon / 2

    @property
    def weights(self) -> np.ndarray:
        """Factors (m,) of the utility: ε_i/(2Δ_i) for each parameter."""
        model = self.model
        share = self.epsilon / len(model.nodes)
        deltas = [
            utility_sensitivity(float(model.alpha), float(model.beta), int(self.n), self.utility, len(family) > 1)
            for family in model.families
        ]
        return (share / (2 * np.array(deltas)))[model.owner]

    def scores(self, statistics) -> np.ndarray:
        """Log-probabilities (..., m, 101) of every parameter's grid points, up to a constant."""
        return self.weights[:, None] * utility(self.model.pairs(self.model.posterior(statistics)), self.utility)

    def query(self, data) -> np.ndarray:
        """Joint log-scores (101,), one for each grid point, with all θ equal to this point."""
        return self.scores(self.model.sufficient_statistics(data)).sum(axis=-2)

    def _perturb(self, statistics, rng):
        """Return grid values (..., m), one for every θ."""
        return choose(self.scores(statistics), rng)

    def replicate(self, statistics, size, rng) -> np.ndarray:
        """Return releases (size, m) about one data set's counts."""
        return choose(self.scores(statistics), rng, size)

    @classmethod
    def examples(cls) -> list[Self]:
        """Two connected nodes with either utility, and a node with two parents."""
        pair = BayesianNetwork({"a": [], "b": ["a"]})
        return [
            cls(pair, 3, 1.0),
            cls(pair, 3, 2.0, utility="density"),
            cls(BayesianNetwork({"a": [], "b": [], "c": ["a", "b"]}, 2, 1), 2, 4.0),
        ]


def choose(scores, rng: np.random.Generator, size: int | None = None) -> np.ndarray:
    """Draw grid values ([size,] ...) with probability ∝ exp(scores), given scores (..., 101)."""
    cumulative = scores - scores.max(axis=-1, keepdims=True)
    np.cumsum(np.exp(cumulative, out=cumulative), axis=-1, out=cumulative)
    leading = cumulative.shape[:-1]
    uniform = rng.random(leading if size is None else (size, *leading)) * cumulative[..., -1]
    if size is None:
        # The sum is at most 101, which fits into a byte, and bytes are added fastest.
        index = (cumulative <= uniform[..., None]).sum(axis=-1, dtype=np.uint8).astype(np.intp)
    else:
        index = np.empty(uniform.shape, np.int64)
        for place in np.ndindex(leading):
            index[:, *place] = np.searchsorted(cumulative[place], uniform[:, *place], side="right")
    # By rounding, `uniform` can equal the total. The index beyond the grid then becomes the last grid point.
    return GRID[np.minimum(index, GRID.size - 1)]
