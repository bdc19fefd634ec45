"""Gibbs sampling of the hidden Markov model of events, where every update is paid for."""

from dataclasses import dataclass, field
from typing import ClassVar, Self

from privpost.mechanisms.draws.event_states import HiddenMarkovSampler
from privpost.models.events import EventCounts
from privpost.privacy.accounting import gibbs
from privpost.privacy.accounting.costs import Cost


@dataclass(frozen=True)
class PrivateGibbs(HiddenMarkovSampler):
    """Releases the emission probabilities after `iterations` Gibbs iterations, at temperature T = max(1, 2Δu/ε).

    Here Δ is the sensitivity, and u is the number of all updates. The chain starts from states drawn without the data,
    and all values of the chain may be released. So each update is an exponential mechanism (Foulds et al. 2016,
    equation 19), and the guarantee needs no convergence. The costs are:

    - The emissions given the states cost 2Δ/T: a substituted event changes the log-density of the emissions by at most
      Δ/T either way.
    - One scan over the states of all cells costs 2Δ/T. The update of a cell's state uses only the events of this cell.
      If the substituted event stays in its cell, the log-weights of this cell's states change by at most Δ/T either
      way. If the event moves, two cells each gain or lose a factor whose logarithm has range Δ/T.

    So each iteration has 2 updates. With one state it has 1, because the states need no draw.

    Attributes:
        epsilon: upper bound ε > 0 of the cost of the whole chain.
        truncation, tempered_prior: as in `HiddenMarkovSampler`.
        iterations: number ≥ 1 of Gibbs iterations. The first iteration uses random states.

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
        """Return the mechanism with the largest ε within the budget. `rdp_to_pure_epsilon` converts a Rényi budget."""
        options: dict = {
            "truncation": truncation,
            "iterations": iterations,
            "tempered_prior": tempered_prior,
            "seeding": seeding,
        }
        return super().calibrate(model, n, budget, **options)

    @property
    def updates(self) -> int:
        """Number u of updates, each of which costs 2Δ/T."""
        return self.iterations * _updates(self.model)

    @property
    def temperature(self) -> float:
        """Temperature T = max(1, 2Δu/ε)."""
        return max(1.0, 2 * self.sensitivity * self.updates / self.epsilon)

    def cost(self) -> Cost:
        """Pure cost 2Δu/T of the whole chain, which needs no convergence. It is ε if T > 1, and at most ε if T = 1."""
        update = gibbs.update_cost(self.sensitivity, self.temperature)
        # A substituted event affects the states of at most two cells.
        of_cell = Cost("pure", update.epsilon / 2)
        scan = gibbs.scan_cost([update], [] if _updates(self.model) == 1 else [of_cell, of_cell], 2)
        return gibbs.chain_cost(scan, self.iterations)

    @classmethod
    def examples(cls) -> list[Self]:
        """One state, whose law is known; two months of one region; and two regions with two fields."""
        return [
            cls(EventCounts((1,), (2,), 1), 8, 2.0, iterations=2),
            cls(EventCounts((2,), (2,)), 4, 4.0),
            cls(EventCounts((1, 1), (2, 2)), 2, 8.0, truncation=4.0, iterations=1),
        ]


def _updates(model: EventCounts) -> int:
    return 1 if model.n_states == 1 else 2
