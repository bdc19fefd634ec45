"""The base class of mechanisms whose setting is the pure ε of one release."""

from dataclasses import dataclass
from typing import ClassVar, Self

from privpost.mechanisms.base import Mechanism
from privpost.models.base import is_number
from privpost.privacy.accounting.costs import Cost
from privpost.privacy.checks import LARGEST, SMALLEST, pure_epsilon


@dataclass(frozen=True)
class PureMechanism(Mechanism):
    """A mechanism whose release is ε-differentially private.

    Attributes:
        epsilon: upper bound ε > 0 of the cost of one release.

    Raises:
        ValueError: a setting is outside its range, or the model is not supported.
    """

    epsilon: float

    notion: ClassVar[str] = "pure"
    calibrated: ClassVar[str] = "epsilon"

    def __post_init__(self):
        super().__post_init__()
        if not is_number(self.epsilon) or not SMALLEST <= self.epsilon <= LARGEST:
            raise ValueError(f"epsilon is {self.epsilon!r}; it must lie in [{SMALLEST:g}, {LARGEST:g}]")

    @classmethod
    def calibrate(cls, model, n: int, budget: Cost, **options) -> Self:
        """Return the mechanism with the largest ε within the budget. `rdp_to_pure_epsilon` converts a Rényi budget."""
        return cls(model, n, pure_epsilon(budget, cls.method), **options)

    def cost(self) -> Cost:
        """The pure cost ε of one release."""
        return Cost("pure", self.epsilon)
