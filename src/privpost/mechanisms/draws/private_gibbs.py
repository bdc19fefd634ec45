"""Gibbs sampling of the hidden Markov model of events that pays for every update (Foulds et al. 2016, section 4.1)."""

from dataclasses import dataclass, field
from typing import ClassVar, Self

from privpost.mechanisms.draws.event_states import HiddenMarkovSampler
from privpost.models.events import EventCounts
from privpost.privacy.accounting import gibbs
from privpost.privacy.accounting.costs import Cost


@dataclass(frozen=True)
class PrivateGibbs(HiddenMarkovSampler):
    """Emission probabilities after `iterations` Gibbs iterations of u updates in all, at T = max(1, 2Δu/ε).

    The states that the chain starts from are drawn without the data, and every value that it takes is public. Then each
    update is an exponential mechanism (equation 19), and the guarantee needs no convergence. A substituted event costs:

    - emissions given the states: 2Δ/T, as their log-density changes by something between −Δ/T and Δ/T;
    - one scan over the states given the emissions: 2Δ/T for all cells together. A cell's state depends on no other
      cell's events. An event that stays in its cell changes the weights of that cell's states by at most Δ/T each way,
      one that moves takes a factor out of one cell and puts one into another, each of which has range Δ/T.

    So each iteration has 2 updates, or 1 with a single state, which needs no draw. The cost covers every state of the
    chain: what a request's `watch` sees may be released with the sample, and averaged over.

    Attributes:
        epsilon: ε > 0 that the whole chain may cost.
        truncation, tempered_prior: as in `HiddenMarkovSampler`.
        iterations: Gibbs iterations that share ε, ≥ 1. In the first the emissions are drawn given random states.

    >>> round(PrivateGibbs(EventCounts((2,), (2,)), 100, 5.0, iterations=10).temperature, 1)
    23.6
    """

    iterations: int = field(default=2, kw_only=True)

    method: ClassVar[str] = "private_gibbs"

    def __post_init__(self):
        super().__post_init__()
        if self.seeding is not None:
            raise ValueError(f"seeding is {self.seeding!r}; it must be None, as its updates are not paid for")

    @classmethod
    def calibrate(
        cls,
        model,
        n: int,
        budget: Cost,
        *,
        truncation: float = 10.0,
        iterations: int = 2,
        tempered_prior: bool = True,
        seeding: None = None,
    ) -> Self:
        """With the largest ε within the budget; a Rényi budget is met through `rdp_to_pure_epsilon`."""
        options: dict = {
            "truncation": truncation,
            "iterations": iterations,
            "tempered_prior": tempered_prior,
            "seeding": seeding,
        }
        return super().calibrate(model, n, budget, **options)

    @property
    def updates(self) -> int:
        """u, the updates that each cost 2Δ/T."""
        return self.iterations * _updates(self.model)

    @property
    def temperature(self) -> float:
        """T = max(1, 2Δu/ε)."""
        return max(1.0, 2 * self.sensitivity * self.updates / self.epsilon)

    def cost(self) -> Cost:
        """2Δu/T, whether or not the chain has converged: ε, or less if T = 1."""
        update = gibbs.update_cost(self.sensitivity, self.temperature)
        # An event changes two cells' states at most.
        of_cell = Cost("pure", update.epsilon / 2)
        scan = gibbs.scan_cost([update], [] if _updates(self.model) == 1 else [of_cell, of_cell], 2)
        return gibbs.chain_cost(scan, self.iterations)

    @classmethod
    def examples(cls) -> list[Self]:
        """One state, where the law is known; two months of one region, and two regions with two fields."""
        return [
            cls(EventCounts((1,), (2,), 1), 8, 2.0, iterations=2),
            cls(EventCounts((2,), (2,)), 4, 4.0),
            cls(EventCounts((1, 1), (2, 2)), 2, 8.0, truncation=4.0, iterations=1),
        ]


def _updates(model: EventCounts) -> int:
    return 1 if model.n_states == 1 else 2
