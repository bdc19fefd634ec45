"""One sample of the hidden Markov model of events, from a Gibbs chain at a temperature that privacy decides."""

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
    """Emission probabilities drawn at temperature T = max(1, 2Δ/ε), each at least a0 = 1/(M K_d).

    Attributes:
        epsilon: ε > 0 that a draw may cost.
        truncation: M > 1.
    """

    truncation: float = field(default=10.0, kw_only=True)

    norm: ClassVar[str] = "log-likelihood ratio"
    models: ClassVar[tuple[type, ...]] = (EventCounts,)

    def __post_init__(self):
        super().__post_init__()
        count_tables.smallest_probabilities(self.model.sizes, self.truncation)

    @property
    def sensitivity(self) -> float:
        """Δ = Σ_d ln((1 − (K_d − 1) a0)/a0)."""
        return count_tables.log_likelihood_range(self.model.sizes, self.truncation)

    @property
    def temperature(self) -> float:
        """T = max(1, 2Δ/ε)."""
        return count_tables.temperature(self.model.sizes, self.truncation, self.epsilon)

    @property
    def lows(self) -> list[float]:
        """a0 of each field."""
        return count_tables.smallest_probabilities(self.model.sizes, self.truncation)

    def query(self, data) -> np.ndarray:
        """Log-likelihood of the events in one state, at the vertices of the truncated simplices, shape (ΠK_d,)."""
        counts = self.model.tables(self.model.sufficient_statistics(data)).sum(axis=-2)
        vertices = [
            np.where(np.eye(size, dtype=bool), 1 - (size - 1) * low, low)
            for size, low in zip(self.model.sizes, self.lows, strict=True)
        ]
        grid = np.stack([np.concatenate(rows) for rows in itertools.product(*vertices)])
        return np.log(grid) @ counts


@dataclass(frozen=True)
class HiddenMarkovSampler(TemperedEvents):
    """Emission probabilities at the end of a Gibbs chain at temperature T = max(1, 2Δ/ε).

    Foulds et al. (2016), section 5. Every probability is at least a0 = 1/(M K_d). ε pays for one joint sample of states
    and emissions from a converged chain; without convergence the proved cost is `unconverged_cost`. With one state a
    draw is exact.

    Attributes:
        epsilon: ε > 0 that the sample may cost.
        truncation: M > 1.
        iterations: Gibbs iterations, the last of which is released, ≥ 1.
        tempered_prior: whether the prior is tempered too, as in the paper, or is the base measure.
        seeding: where the chain starts; None for random states, drawn without the data, as in the paper.

    Raises:
        ValueError: a setting outside its range, or another model than EventCounts.

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
        """With the largest ε within the budget; a Rényi budget is met through `rdp_to_pure_epsilon`."""
        options: dict = {
            "truncation": truncation,
            "iterations": iterations,
            "tempered_prior": tempered_prior,
            "seeding": seeding,
        }
        return super().calibrate(model, n, budget, **options)

    def draw(self, statistics, rng, size=None, *, observed=None, watch=None) -> Release:
        """One release of emission probabilities (..., K, levels), each from the end of a separate chain.

        Args:
            observed: cells whose events are the data, bool (chains, cells); the others are held out. With `size` there
                may be more chains than releases: the additional chains are for diagnosis only.
            watch: function of the iteration's number and the chains' `State`, for diagnosis only.

        Returns:
            The release. Its info is the chains' `End`: the first chains' states belong to the released sample, the rest
            is diagnosis.
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
        """Chains at the sample's temperature and truncation; arguments as of `gibbs.Law`."""
        prior = self.temperature if self.tempered_prior else 1.0
        return gibbs.Law(counts, observed, self.temperature, prior, self.lows)

    def unconverged_cost(self) -> float:
        """ε of one sample if nothing is known of the chain's convergence: the sum over all updates.

        It is infinite for a seeded chain, as its start depends on the data and is not paid for.
        """
        if self.seeding is not None:
            return math.inf
        return count_tables.unconverged_cost(self.model.sizes, self.truncation, self.epsilon, self.iterations)

    def cost(self) -> Cost:
        """2Δ/T, which is ε or, at T = 1, less; if the chain has converged."""
        return Cost("pure", count_tables.sampling_cost(self.model.sizes, self.truncation, self.epsilon))

    def log_density(self, release, statistics) -> np.ndarray | None:
        """Log-density (...) of a release, known for one state and fields of two levels; else None."""
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
        """One cell, and two months of one region in two states, from random and seeded starts."""
        return [
            cls(EventCounts((1,), (2,), 1), 8, 2.0, iterations=2),
            cls(EventCounts((2,), (2,)), 4, 4.0, iterations=12),
            cls(EventCounts((2,), (2,)), 4, 4.0, iterations=8, seeding=Seeding(2, 4)),
        ]
