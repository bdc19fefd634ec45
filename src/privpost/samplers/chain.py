"""The interface of all Markov chains, and a function that runs chains."""

from collections.abc import Iterator
from typing import Any, Protocol


class Sampler(Protocol):
    """A Markov chain, or a batch of chains that move together.

    A step may overwrite the arrays of its input state, so copy the arrays that you want to keep.
    """

    def init(self, rng) -> Any:
        """Return the state before the first step."""

    def step(self, state, rng) -> tuple[Any, Any]:
        """Return the next state and the cost of the step."""


def run(sampler: Sampler, rng, *, draws: int, burn_in: int = 0, thin: int = 1, state=None) -> Iterator[tuple]:
    """Yield states of a chain. Each comes with a list: the cost of every step since the previous yield.

    Args:
        draws: number of yielded states, ≥ 1.
        burn_in: number of steps discarded at the start, ≥ 0. The first list includes the costs of these steps.
        thin: number of steps from one yielded state to the next, ≥ 1.
        state: state before the first step; None for `sampler.init(rng)`.

    Raises:
        ValueError: `draws`, `burn_in` or `thin` is out of range.
    """
    for name, value, least in (("draws", draws, 1), ("burn_in", burn_in, 0), ("thin", thin, 1)):
        if value < least:
            raise ValueError(f"{name} is {value!r}; it must be >= {least}")
    return _states(sampler, rng, draws, burn_in, thin, state)


def _states(sampler, rng, draws, burn_in, thin, state):
    state = sampler.init(rng) if state is None else state
    for draw in range(draws):
        costs = []
        for _ in range(thin + burn_in * (draw == 0)):
            state, cost = sampler.step(state, rng)
            costs.append(cost)
        yield state, costs
