"""The search for the states that a chain of the collapsed sampler starts from: annealing, resplits and crossing.

From random states some partitions of the cells are cooled: the target is the collapsed joint to the power 1/τ, τ
falling to 1, while states are merged and split anew. Then partitions are crossed, and the better ones kept.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

# A search ends when its best log joint has risen by no more than so many nats for long, or when of at least so many
# cooled partitions every second one is no farther below the best.
RISE, AGREEING = 1.0, 8


@dataclass(frozen=True)
class Annealing:
    """How a chain searches for its start, and its replicas after that.

    Partitions are cooled one after another from random states: τ falls in geometric steps to 1 in two thirds of a
    partition's `cooling` rounds, from `hottest`, or in a group that is tempered by T already from hottest/T or 3,
    whichever is more. Then two at a time are crossed (`crossed`), and the child has
    `cycle` rounds at τ = 1; it replaces the worst partition if it is better. A search ends before its last round when
    half of its partitions agree, or children have stopped to be better. The best partition is the start.

    Replicas of a chain have the joint to the powers 1/τ as targets, τ from 1 to `top` in geometric steps; they start
    from the other partitions. After every round neighbours trade places by the rule of Metropolis, so that the one at
    τ = 1 keeps its law.

    Attributes:
        rounds: most rounds of a search; without any the start is random.
        hottest: the highest temperature τ.
        resplits: for how many states in each round, as a multiple of half of them, states are merged and split anew
            (`hidden_markov_resplit.resplit`).
        members: most partitions of a search; 4 for each state, in a third of the rounds.
        cooling: rounds of a partition; a single one has ten times as many, if that is within `rounds`.
        cycle: rounds of a child.
        patience: a search ends after so many children for each partition, and half of all so far, without a better one.
        replicas: how many there are of a chain after the search, itself included.
        top: the highest temperature τ of a replica.

    Raises:
        ValueError: a hottest or top temperature below 1, a negative number of rounds or resplits, no member or replica,
            or a partition or child without a round.
    """

    rounds: int = 0
    hottest: float = 100.0
    resplits: int = 1
    members: int = 36
    cooling: int = 12
    cycle: int = 4
    patience: int = 2
    replicas: int = 1
    top: float = 2.0

    def __post_init__(self):
        least = {
            "hottest": 1,
            "top": 1,
            "rounds": 0,
            "resplits": 0,
            "members": 1,
            "cooling": 1,
            "cycle": 1,
            "replicas": 1,
        }
        for name, value in least.items():
            if not getattr(self, name) >= value:
                raise ValueError(f"{name} is {getattr(self, name)!r}; it must be >= {value}")

    @property
    def ladder(self) -> np.ndarray:
        """1/τ of the replicas, shape (replicas,)."""
        return np.geomspace(1, 1 / self.top, self.replicas)

    def population(self, n_states: int) -> int:
        """How many partitions are cooled; a single one is not crossed."""
        return max(1, min(self.members, 4 * n_states, self.rounds // (3 * self.cooling)))

    def powers(self, n_states: int, temperature: float = 1.0) -> np.ndarray:
        """1/τ of the rounds of one partition of a group that is tempered by T already."""
        powers = np.ones(self.cooling if self.population(n_states) > 1 else min(self.rounds, 10 * self.cooling))
        falling = len(powers) * 2 // 3
        start = min(self.hottest, max(3.0, self.hottest / temperature))
        powers[:falling] = 1 / np.geomspace(start, 1, falling)
        return powers


def crossed(first, second, n_states: int, rng) -> np.ndarray:
    """A child of two partitions (cells,): in turn the largest state of each is handed on, less what is taken already.

    As for colourings of graphs (Galinier and Hao 1999); cells that are left get random states.
    """
    child, parents = np.full(len(first), -1), (first, second)
    for k in range(n_states):
        free, parent = child < 0, parents[k % 2]
        child[free & (parent == np.bincount(parent[free], minlength=n_states).argmax())] = k
    free = child < 0
    child[free] = rng.integers(n_states, size=free.sum())
    return child


def search(states, rounds, annealing: Annealing, n_states: int, temperature: float, rng) -> tuple[np.ndarray, ...]:
    """Search from random states (cells,) for partitions of high collapsed joint.

    Args:
        rounds: function that runs rounds of states (cells,) in place, at the given 1/τ of each, and returns their log
            joint after them; its last argument is the number of the partition, or of the child.
        temperature: T of the group.

    Returns:
        Partitions (members, cells) and their log joints (members,), the best first.
    """
    number, cooling = annealing.population(n_states), annealing.powers(n_states, temperature)
    partitions, joints = np.empty((number, len(states)), states.dtype), np.empty(number)
    for place in range(number):
        partitions[place] = rng.integers(n_states, size=len(states)) if place else states
        joints[place] = rounds(partitions[place], cooling, place)
        if place + 1 >= AGREEING and np.mean(joints[: place + 1] > joints[: place + 1].max() - RISE) >= 0.5:
            return _sorted(partitions[: place + 1], joints[: place + 1])
    children = (annealing.rounds - number * len(cooling)) // annealing.cycle if number > 1 else 0
    best, risen = joints.max(), 0
    for turn in range(children):
        child = crossed(*partitions[rng.choice(number, 2, replace=False)], n_states, rng)
        joint = rounds(child, np.ones(annealing.cycle), turn)
        worst = joints.argmin()
        # Of partitions that differ by less than a nat one is enough.
        if joint > joints[worst] and np.abs(joints - joint).min() > 1:
            partitions[worst], joints[worst] = child, joint
        if joints.max() > best + RISE:
            best, risen = joints.max(), turn
        elif turn - risen >= max(annealing.patience * number, turn // 2):
            break
    return _sorted(partitions, joints)


def _sorted(partitions, joints) -> tuple[np.ndarray, np.ndarray]:
    order = np.argsort(-joints, kind="stable")
    return partitions[order], joints[order]
