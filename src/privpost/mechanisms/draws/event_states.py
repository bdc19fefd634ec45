"""One posterior sample of the hidden Markov model of events, from a Gibbs chain at a temperature set by ε."""

import itertools
import math
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np

from privpost.distributions import truncated_beta
from privpost.mechanisms.batches import Batched
from privpost.mechanisms.noise.event_counts import prior_of
from privpost.mechanisms.pure import PureMechanism
from privpost.models.events import EventCounts
from privpost.privacy import count_tables
from privpost.privacy.accounting.costs import Cost
from privpost.privacy.ledger.gate import Release
from privpost.samplers.hidden_markov import gibbs
from privpost.samplers.hidden_markov.seeds import Seeding


@dataclass(frozen=True)
class TemperedEvents(Batched, PureMechanism):
    """Base of mechanisms that draw emission probabilities at temperature T = max(1, 2Δ/ε), with sensitivity Δ.

    Attributes:
        epsilon: upper bound ε > 0 of the cost of one draw.
        truncation: M > 1. Every probability of a field d with K_d levels is at least a0 = 1/(M K_d).
    """

    truncation: float = field(default=10.0, kw_only=True)

    norm: ClassVar[str] = "log-likelihood ratio"
    models: ClassVar[tuple[type, ...]] = (EventCounts,)

    def __post_init__(self):
        super().__post_init__()
        count_tables.smallest_probabilities(self.model.sizes, self.truncation)

    @property
    def sensitivity(self) -> float:
        """Largest change Δ = Σ_d ln((1 − (K_d − 1) a0)/a0) of the log-likelihood."""
        return count_tables.log_likelihood_range(self.model.sizes, self.truncation)

    @property
    def temperature(self) -> float:
        """Temperature T = max(1, 2Δ/ε)."""
        return count_tables.temperature(self.model.sizes, self.truncation, self.epsilon)

    @property
    def lows(self) -> list[float]:
        """Smallest probability a0 = 1/(M K_d) of each field."""
        return count_tables.smallest_probabilities(self.model.sizes, self.truncation)

    def query(self, data) -> np.ndarray:
        """Log-likelihood (ΠK_d,) at all vertices of the truncated simplices, if all events are in one state."""
        counts = self.model.tables(self.model.sufficient_statistics(data)).sum(axis=-2)
        vertices = [
            np.where(np.eye(size, dtype=bool), 1 - (size - 1) * low, low)
            for size, low in zip(self.model.sizes, self.lows, strict=True)
        ]
        grid = np.stack([np.concatenate(rows) for rows in itertools.product(*vertices)])
        return np.log(grid) @ counts


@dataclass(frozen=True)
class HiddenMarkovSampler(TemperedEvents):
    """Releases the emission probabilities at the end of a Gibbs chain at temperature T = max(1, 2Δ/ε).

    Here Δ is the sensitivity. If the chain has converged, ε covers one joint sample of states and emissions (Foulds et
    al. 2016, section 5). Otherwise the proved cost is `unconverged_cost`. With only one state, draws are exact.

    Attributes:
        epsilon: upper bound ε > 0 of the cost of the sample.
        truncation: M > 1. Every probability of a field d with K_d levels is at least 1/(M K_d).
        iterations: number ≥ 1 of Gibbs iterations.
        tempered_prior: True to temper the prior too, as in the paper; False to use the prior as the base measure.
        seeding: how the chain starts. None, as in the paper, means random states that do not depend on the data.

    Raises:
        ValueError: a setting is outside its range, or the model is not EventCounts.

    >>> round(HiddenMarkovSampler(EventCounts((2,), (2,)), 100, 0.5).temperature, 1)
    11.8
    """

    iterations: int = field(default=50, kw_only=True)
    tempered_prior: bool = field(default=True, kw_only=True)
    seeding: Seeding | None = field(default=None, kw_only=True)

    method: ClassVar[str] = "ops"
    public_inputs: ClassVar[tuple[str, ...]] = ("cells", "levels", "prior", "truncation")
    exact: ClassVar[bool] = False

    def __post_init__(self):
        super().__post_init__()
        if self.iterations < 1:
            raise ValueError(f"iterations is {self.iterations!r}; it must be >= 1")

    @classmethod
    def calibrate(
        cls,
        model,
        n: int,
        budget: Cost,
        *,
        truncation: float = 10.0,
        iterations: int = 50,
        tempered_prior: bool = True,
        seeding: Seeding | None = None,
    ) -> Self:
        """Return the mechanism with the largest ε within the budget. `rdp_to_pure_epsilon` converts a Rényi budget."""
        options: dict = {
            "truncation": truncation,
            "iterations": iterations,
            "tempered_prior": tempered_prior,
            "seeding": seeding,
        }
        return super().calibrate(model, n, budget, **options)

    def draw(self, statistics, rng, size=None, *, observed=None, watch=None) -> Release:
        """Return releases of emission probabilities (..., K, levels), each from the end of a separate chain.

        Args:
            observed: bool (chains, cells), whether a cell's events are data; other cells are held out. If `size` is
                given, there may be more chains than releases. The additional chains serve for diagnosis only.
            watch: function of the iteration number and the chains' `State`, for diagnosis only.

        Returns:
            The release. Its info is the chains' `End`. Only the states of the first chains, one for each release,
            belong to the release.
        """
        lead = np.shape(statistics)[:-1] if size is None else (size,)
        law = self._law(statistics, lead, size, observed)
        sampler = gibbs.Chains(law, gibbs.Layout.of(self.model.regions), prior_of(self.model), self.seeding)
        end: Any = gibbs.follow(sampler, rng, self.iterations, watch)
        values = end.state.probabilities[: math.prod(lead)]
        return Release(values.reshape(*lead, *self.model.theta_shape), end)

    def _law(self, statistics, lead, size=None, observed=None) -> gibbs.Law:
        counts = self.model.tables(statistics)
        if size is None:
            counts = counts.reshape(-1, *counts.shape[-2:])
        if observed is None:
            observed = np.ones((math.prod(lead), counts.shape[-2]), bool)
        return self.law(counts, observed)

    def law(self, counts, observed) -> gibbs.Law:
        """Return the chains' law with this temperature and truncation. Arguments are as in `gibbs.Law`."""
        prior = self.temperature if self.tempered_prior else 1.0
        return gibbs.Law(counts, observed, self.temperature, prior, self.lows)

    def unconverged_cost(self) -> float:
        """Cost ε of one sample without convergence: the cost of all updates together. It is inf for a seeded chain."""
        # The start of a seeded chain depends on the data and is not charged.
        if self.seeding is not None:
            return math.inf
        return count_tables.unconverged_cost(self.model.sizes, self.truncation, self.epsilon, self.iterations)

    def cost(self) -> Cost:
        """Pure cost 2Δ/T of a draw from a converged chain, where T = max(1, 2Δ/ε). It is at most ε."""
        return Cost("pure", count_tables.sampling_cost(self.model.sizes, self.truncation, self.epsilon))

    def log_density(self, release, statistics) -> np.ndarray | None:
        """Log-density (...) of a release for one state and fields of two levels. None otherwise."""
        if self.model.n_states > 1 or max(self.model.sizes) > 2:
            return None
        counts = self.model.tables(statistics).sum(axis=-2)
        release = np.asarray(release, float)[..., 0, :]
        terms = [
            truncated_beta.log_density(
                release[..., 2 * d], 1 + counts[..., 2 * d : 2 * d + 2] / self.temperature, low, 1 - low
            )
            for d, low in enumerate(self.lows)
        ]
        return np.sum(terms, axis=0)

    @classmethod
    def examples(cls) -> list[Self]:
        """One cell with one state; and two months of one region, with two states and random or seeded starts."""
        return [
            cls(EventCounts((1,), (2,), 1), 8, 2.0, iterations=2),
            cls(EventCounts((2,), (2,)), 4, 4.0, iterations=12),
            cls(EventCounts((2,), (2,)), 4, 4.0, iterations=8, seeding=Seeding(2, 4)),
        ]
